//! Files that are put: what the catalog has afterwards, and what goes wrong.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use byname_catalog::engine::Engine;
use byname_catalog::{Command, Create, Place, PolicyChanges, Publish, Refusal};
use byname_security::tree::Tree;
use byname_site::DiskRefusal;
use byname_writer::{Next, Put, PutEvent, Source, Writer, WriterError};

use crate::world::{Faults, Running, start};

fn create(path: &str, size_max: u64) -> Create {
    Create {
        place: Place::path(path).unwrap(),
        mode: 0o640,
        size_max,
        publish: Publish::AtCommit,
        exclusive: false,
        policy: PolicyChanges::default(),
    }
}

fn file(directory: &Path, name: &str, octets: &[u8]) -> Arc<Source> {
    let path = directory.join(name);
    std::fs::write(&path, octets).unwrap();
    Arc::new(Source::open(&path, &|| false).unwrap())
}

fn octets(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 251) as u8).collect()
}

fn connect(running: &mut Running) -> Result<Writer, WriterError> {
    let connection = running.connection.take().unwrap();
    Writer::connect(connection, running.config.clone(), &|| false)
}

fn put_all(writer: &mut Writer, puts: Vec<Put>) -> Vec<Result<(), WriterError>> {
    let mut results: Vec<Option<Result<(), WriterError>>> = puts.iter().map(|_| None).collect();
    let mut puts = puts.into_iter().enumerate();
    writer
        .put_all(
            &mut || puts.next().map_or(Next::End, |(number, put)| Next::Put(number, put)),
            &mut |event| {
                if let PutEvent::Done { number, result } = event {
                    results[number] = Some(result.map(|_| ()));
                }
            },
            &|| false,
        )
        .unwrap();
    results.into_iter().map(Option::unwrap).collect()
}

fn put_one(writer: &mut Writer, path: &str, source: &Arc<Source>) -> Result<(), WriterError> {
    let create = create(path, source.size());
    let put = Put { create, keep_time: true, source: source.clone() };
    put_all(writer, vec![put]).remove(0)
}

#[test]
fn files_of_all_sizes_are_put_side_by_side() {
    let directory = tempfile::tempdir().unwrap();
    let mut running = start(3, Faults::default());
    let mut writer = connect(&mut running).unwrap();
    let sizes = [0, 1, 8192, 8193, 20_000, 100_000];
    let sources: Vec<_> = sizes
        .iter()
        .map(|size| file(directory.path(), &size.to_string(), &octets(*size)))
        .collect();
    let puts = |round: usize| {
        let sources = sources.iter().cycle().take(40).enumerate();
        sources.map(move |(number, source)| {
            let create = create(&format!("f{round}-{number}"), source.size());
            Put { create, keep_time: true, source: source.clone() }
        })
    };
    for result in put_all(&mut writer, puts(0).collect()) {
        result.unwrap();
    }
    for number in 0..40 {
        let found = running.entry(&format!("f0-{number}")).unwrap();
        let size = sizes[number % sizes.len()];
        let content = found.inode.content().unwrap();
        assert_eq!((content.size, found.inode.mode), (size as u64, 0o640));
        assert_eq!(content.root, *Tree::of(&octets(size)).root.as_bytes());
        assert_eq!(content.replicas.len(), if size == 0 { 0 } else { 2 });
        assert_eq!(found.inode.times.modified_ns, sources[number % sizes.len()].modified_ns());
    }
}

/// Were a command executed again, it would meet what it has done itself.
#[test]
fn a_command_is_executed_once_though_its_answer_is_lost() {
    let directory = tempfile::tempdir().unwrap();
    let mut running = start(2, Faults { loses_replies: true, ..Faults::default() });
    let mut writer = connect(&mut running).unwrap();
    let place = Place::path("d").unwrap();
    let make = Command::MakeDirectory { place, mode: 0o755 };
    writer.execute(make.clone(), &|| false).unwrap();
    put_one(&mut writer, "d/a", &file(directory.path(), "a", &octets(9000))).unwrap();
    assert_eq!(running.entry("d/a").unwrap().inode.size(), 9000);
    let again = writer.execute(make, &|| false);
    assert!(matches!(again, Err(WriterError::Refused(Refusal::Exists))), "{again:?}");
    let catalog = running.catalog.lock().unwrap();
    let rows = catalog.engine().snapshot().unwrap();
    assert_eq!(byname_catalog::check(&*rows).unwrap(), []);
    let reader =
        byname_catalog::Reader::new(catalog.engine(), &byname_catalog::Caller::Head).unwrap();
    let user = byname_catalog::Subject::User("anna".to_owned());
    let usage = reader.usage(&user).unwrap().0;
    assert_eq!((usage.bytes, usage.reserved_bytes, usage.inodes), (9000, 0, 3));
}

#[test]
fn a_full_disk_is_replaced_and_the_last_one_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let source = file(directory.path(), "a", &octets(20_000));
    let full = |ids: &[u64]| Faults {
        refusing: ids.iter().map(|id| (*id, DiskRefusal::Full)).collect(),
        ..Faults::default()
    };
    let ids: Vec<u64> = {
        let running = start(3, Faults::default());
        let catalog = running.catalog.lock().unwrap();
        let reader =
            byname_catalog::Reader::new(catalog.engine(), &byname_catalog::Caller::Head).unwrap();
        let is_disk = |id: &u64| reader.disk(byname_catalog::id::DiskId(*id)).is_ok();
        (0..20).filter(is_disk).collect()
    };
    assert_eq!(ids.len(), 3);
    for refusing in &ids {
        let mut running = start(3, full(&[*refusing]));
        let mut writer = connect(&mut running).unwrap();
        put_one(&mut writer, "a", &source).unwrap();
        let entry = running.entry("a").unwrap();
        let replicas = &entry.inode.content().unwrap().replicas;
        assert_eq!(replicas.len(), 2);
        assert!(replicas.iter().all(|disk| disk.0 != *refusing));
    }
    let mut running = start(3, full(&ids[1..]));
    let mut writer = connect(&mut running).unwrap();
    let error = put_one(&mut writer, "a", &source).unwrap_err();
    assert!(matches!(error, WriterError::Disk { refusal: DiskRefusal::Full, .. }), "{error}");
    assert_eq!(running.entry("a"), Err(Refusal::NotFound));
    // The attempt was given up: what it had reserved is free.
    let catalog = running.catalog.lock().unwrap();
    let rows = catalog.engine().snapshot().unwrap();
    let found = byname_catalog::check(&*rows).unwrap();
    assert!(found.is_empty(), "{found:?}");
    let reader =
        byname_catalog::Reader::new(catalog.engine(), &byname_catalog::Caller::Head).unwrap();
    let user = byname_catalog::Subject::User("anna".to_owned());
    assert_eq!(reader.usage(&user).unwrap().0.reserved_bytes, 0);
}

/// What was begun under a head goes on under the next: no disk is replaced for it.
#[test]
fn a_ticket_of_a_head_that_leads_no_more_is_renewed() {
    let directory = tempfile::tempdir().unwrap();
    let sources: Vec<_> =
        (0..3).map(|at| file(directory.path(), &at.to_string(), &octets(20_000 + at))).collect();
    let mut running = start(2, Faults { heads_change: 7, ..Faults::default() });
    let mut writer = connect(&mut running).unwrap();
    for (at, source) in sources.iter().enumerate() {
        put_one(&mut writer, &at.to_string(), source).unwrap();
        let entry = running.entry(&at.to_string()).unwrap();
        assert_eq!(entry.inode.content().unwrap().replicas.len(), 2);
    }
}

/// A disk that has heard of a head that nobody finds is given up in the end.
#[test]
fn a_ticket_that_is_never_new_enough_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let source = file(directory.path(), "a", &octets(20_000));
    let mut running = start(2, Faults { heads_change: u64::MAX, ..Faults::default() });
    let mut writer = connect(&mut running).unwrap();
    let error = put_one(&mut writer, "a", &source).unwrap_err();
    assert!(matches!(error, WriterError::Disk { refusal: DiskRefusal::OldEpoch, .. }), "{error}");
    assert_eq!(running.entry("a"), Err(Refusal::NotFound));
}

#[test]
fn a_file_that_changes_is_not_committed() {
    let directory = tempfile::tempdir().unwrap();
    let source = file(directory.path(), "a", &octets(20_000));
    let path = directory.path().join("a");
    let mut appended = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    appended.write_all(b"more").unwrap();
    drop(appended);
    let mut running = start(2, Faults::default());
    let mut writer = connect(&mut running).unwrap();
    let error = put_one(&mut writer, "a", &source).unwrap_err();
    assert!(matches!(error, WriterError::Changed { .. }), "{error}");
    assert_eq!(running.entry("a"), Err(Refusal::NotFound));
}

#[test]
fn refusals_and_forged_answers_are_errors() {
    let directory = tempfile::tempdir().unwrap();
    let source = file(directory.path(), "a", &octets(20_000));
    let mut running = start(2, Faults::default());
    let mut writer = connect(&mut running).unwrap();
    let error = put_one(&mut writer, "no/such/a", &source).unwrap_err();
    assert!(matches!(error, WriterError::Refused(Refusal::NotFound)), "{error}");
    let mut lone = start(1, Faults::default());
    let mut writer = connect(&mut lone).unwrap();
    let error = put_one(&mut writer, "a", &source).unwrap_err();
    assert!(matches!(error, WriterError::Refused(Refusal::NoSpace)), "{error}");
    // Somebody who is not the site says that all is well.
    let mut forged = start(2, Faults { is_forged: true, ..Faults::default() });
    let error = connect(&mut forged).err().unwrap();
    assert!(matches!(error, WriterError::Untrusted(_)), "{error}");
}

#[test]
fn a_writer_that_ends_ends_its_session() {
    let mut running = start(2, Faults::default());
    let of_anna = |running: &Running| {
        let catalog = running.catalog.lock().unwrap();
        let reader =
            byname_catalog::Reader::new(catalog.engine(), &byname_catalog::Caller::Head).unwrap();
        let (_, user) = reader.users(None, 9).unwrap().remove(0);
        user.session_count
    };
    let before = of_anna(&running);
    let writer = connect(&mut running).unwrap();
    // This head opens one for each request that comes, a repeated one too.
    let opened = of_anna(&running);
    assert!(opened > before);
    drop(writer);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while of_anna(&running) == opened {
        assert!(std::time::Instant::now() < deadline, "the session is there still");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// What one user may reserve at a time is little here: files wait for those before them.
#[test]
fn files_that_would_reserve_too_much_at_once_are_written_one_after_the_other() {
    let directory = tempfile::tempdir().unwrap();
    let mut running = start(3, Faults::default());
    running.make_ordinary(8 << 30);
    let mut writer = connect(&mut running).unwrap();
    let source = file(directory.path(), "f", &octets(5000));
    let put = |number: usize, size_max: u64| {
        let create = create(&format!("f{number}"), size_max);
        Put { create, keep_time: false, source: source.clone() }
    };
    // Two replicas of two of them are half of the room.
    let puts = (0..7).map(|number| put(number, 3 << 30)).collect();
    let results = put_all(&mut writer, puts);
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    // Alone, too.
    let results = put_all(&mut writer, vec![put(7, 7 << 30)]);
    let too_much = Err(WriterError::Refused(Refusal::TooMuchReserved));
    assert_eq!(format!("{results:?}"), format!("{:?}", [too_much as Result<(), _>]));
}
