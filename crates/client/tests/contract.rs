//! One contract, two façades: the same commands on the caller's thread ([`Client`]) and on a thread
//! of their own ([`Session`]). Every test here runs over both, but those of [`slow_disk`]: they are
//! about calls side by side.

#[path = "../../transfer/tests/support/publisher.rs"]
#[allow(dead_code, unreachable_pub)]
mod publisher;

#[path = "client/server.rs"]
#[allow(dead_code)]
mod server;

#[path = "contract/facade.rs"]
mod facade;
#[path = "contract/sharing.rs"]
mod sharing;
#[path = "contract/slow_disk.rs"]
mod slow_disk;

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use byname_client::{
    ClientConfig, ClientError, Event, FileKind, FileOutcome, Progress, Stop, TreeEntry, TrustLevel,
};
use byname_io::Endpoint;
use byname_packet::lp::nack_reason;
use byname_packet::{Component, Name, types};
use byname_transfer::error::ReadError;
use byname_transfer::manifest;
use byname_transfer::metadata::Absence;

use facade::{CallersThread, Facade, OwnThread};
use publisher::{Publisher, Reply, sample};
use server::{Meddler, Server, trusting};
use sharing::*;

const SIZE: usize = 3_000_001;

/// Requests seen by the server, in the order of their coming.
type Log = Arc<Mutex<Vec<Name>>>;

fn logging() -> (Log, Meddler) {
    let log = Log::default();
    let seen = Arc::clone(&log);
    let meddler: Meddler = Box::new(move |interest, reply| {
        seen.lock().expect("no panic").push(interest.name.to_name());
        reply
    });
    (log, meddler)
}

fn honest<F: Facade>(publisher: Publisher) -> (Server, F) {
    meddled(publisher, Box::new(|_, reply| reply))
}

fn meddled<F: Facade>(publisher: Publisher, meddler: Meddler) -> (Server, F) {
    let (server, client) = Server::meddled(publisher, meddler);
    (server, F::over(client))
}

/// Remembers what was reported.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<String>>>);

impl Heard {
    fn count(&self, what: &str) -> usize {
        let heard = self.0.lock().expect("no panic");
        heard.iter().filter(|event| event.as_str() == what).count()
    }
}

impl Progress for Heard {
    fn on_event(&mut self, event: Event<'_>) {
        let word = match event {
            Event::FileStarted { .. } => "started",
            Event::FileDone { .. } => "done",
            Event::FileFailed { .. } => "failed",
            Event::Fetched { .. } => "fetched",
            Event::Reused { .. } => "reused",
            Event::DirectoryListed { .. } => "listed",
            _ => "other",
        };
        self.0.lock().expect("no panic").push(word.to_owned());
    }
}

/// Requests to stop when the first bytes have come.
struct StopAtFirstBytes(Stop);

impl Progress for StopAtFirstBytes {
    fn on_event(&mut self, event: Event<'_>) {
        if let Event::Fetched { .. } = event {
            self.0.request();
        }
    }
}

/// Does nothing.
struct Silent;

impl Progress for Silent {
    fn on_event(&mut self, _: Event<'_>) {}
}

fn a_status_is_flat_and_says_who_signed_it<F: Facade>() {
    let mut publisher = Publisher::new("/lab", 1);
    let file = publisher.publish("f", 1000, &sample(SIZE));
    let directory = publisher.publish_listing("d", 1000, &[b"a"]);
    let key = publisher.key_id();
    let (_server, mut facade) = honest::<F>(publisher);
    let stat = facade.stat(&file).expect("it is there");
    assert_eq!((&stat.name, stat.kind, stat.version), (&file, FileKind::File, 1000));
    assert_eq!((stat.size, stat.trust), (Some(SIZE as u64), TrustLevel::Anchored));
    assert_eq!((stat.publisher_key, stat.publisher_name), (Some(key), "/lab".parse().ok()));
    assert_eq!(stat.root.map(|root| root.to_string().len()), Some(64));
    assert_eq!(facade.stat(&directory).expect("it is there").kind, FileKind::Directory);
    let found = facade.lookup(&file).expect("it is there");
    assert!(!found.packet.is_empty(), "whoever needs the packet gets it");
    let missing = facade.stat(&file.with_generic(b"no")).expect_err("it is not there");
    assert!(matches!(missing, ClientError::Read(ReadError::NotFound { .. })), "{missing}");
}

fn a_listing_falls_back_to_the_manifest_where_nobody_has_the_plain_one<F: Facade>() {
    let mut publisher = Publisher::new("/lab", 1);
    let name = publisher.publish_manifest("d", 1000, &[("a", b"12345"), ("b", b"6")]);
    // As a mirror of what was fetched by manifest: it has no plain listing.
    let meddler: Meddler = Box::new(|interest, reply| {
        let is_of_manifest = interest
            .name
            .components()
            .any(|it| it.typ == types::KEYWORD && it.value == b"manifest");
        let is_certificate = interest.name.components().any(|it| it.value == b"KEY");
        if is_of_manifest || is_certificate { reply } else { Reply::Nack(150) }
    });
    let (_server, mut facade) = meddled::<F>(publisher, meddler);
    let listing = facade.list(&name).expect("the manifest will do");
    assert!(listing.is_manifest());
    assert_eq!(listing.entry_count(), 2);
    let entries: Vec<_> = listing.listed().filter_map(|entry| listing.resolve(&entry)).collect();
    assert_eq!(
        entries.iter().map(|entry| entry.stat().size).collect::<Vec<_>>(),
        [Some(5), Some(1)]
    );
}

/// A manifest of one entry that is not there.
fn malformed_manifest() -> Vec<u8> {
    let mut payload = Vec::new();
    manifest::write_header(&mut payload, 1);
    payload
}

/// No answer for plain listings and single files would hide what is wrong for a time-out.
fn a_malformed_manifest_is_said_so_with_its_key<F: Facade>() {
    for is_silent in [true, false] {
        let mut publisher = Publisher::new("/lab", 1);
        let name = publisher.publish_manifest_octets("d", 1000, &malformed_manifest());
        let key = publisher.key_id();
        let meddler: Meddler = Box::new(move |interest, reply| {
            let is_known =
                |it: Component<'_>| it.is_keyword(b"manifest") || it == Component::generic(b"KEY");
            match interest.name.components().any(is_known) {
                true => reply,
                false if is_silent => Reply::Silence,
                false => Reply::Nack(nack_reason::NO_ROUTE),
            }
        });
        let (_server, mut facade) = meddled::<F>(publisher, meddler);
        let check = |error: ClientError| {
            let ClientError::Read(ReadError::Manifest { name: of, key: by, .. }) = &error else {
                panic!("{error}")
            };
            assert_eq!((of, by), (&name, &Some(key)));
            let said = format!("the manifest of /lab/d by key {key} is malformed: 0 entries");
            assert!(error.to_string().starts_with(&said), "{error}");
        };
        check(facade.list_resolved(&name).expect_err("it has no entries"));
        let directory = tempfile::tempdir().expect("a directory");
        let watch = (Silent, |_: &TreeEntry<'_>| true);
        let target = directory.path().join("d");
        let tree = facade.download_tree(&name, &target, watch, &Stop::default());
        check(tree.expect_err("it has no entries"));
        if !is_silent {
            check(facade.list(&name).expect_err("it has no entries"));
            // Nobody has a route to the file, and its directory's manifest cannot be read.
            check(facade.stat(&name.with_generic(b"f")).expect_err("no entries"));
        }
    }
}

fn a_listed_entry_is_opened_without_asking_for_it<F: Facade>() {
    let mut publisher = Publisher::new("/lab", 1);
    let name = publisher.publish_manifest("d", 1000, &[("a", b"12345"), ("b", b"6")]);
    let (log, meddler) = logging();
    let (_server, mut facade) = meddled::<F>(publisher, meddler);
    let listing = facade.list_resolved(&name).expect("it is there");
    let entry = listing.listed().next().expect("two of them");
    let entry = listing.resolve(&entry).expect("the manifest says all");
    let before = log.lock().expect("no panic").len();
    let file = facade.open_entry(&entry).expect("it is known");
    assert_eq!(log.lock().expect("no panic").len(), before, "no Interest to open it");
    assert_eq!(F::stat_of(&file).size, Some(5));
    assert_eq!(facade.read(&file, &[(1, 3)]).expect("it is there"), [b"234"]);
    let after = log.lock().expect("no panic").len();
    assert_eq!(after - before, 1, "one segment and nothing else");
}

fn ranges_are_exact_and_a_second_read_of_a_unit_is_free<F: Facade>() {
    let mut publisher = Publisher::new("/lab", 1);
    let bytes = sample(SIZE);
    let name = publisher.publish("f", 1000, &bytes);
    let (log, meddler) = logging();
    let (_server, mut facade) = meddled::<F>(publisher, meddler);
    let file = facade.open(&name).expect("it is there");
    let end = SIZE as u64;
    let read = facade.read(&file, &[(8000, 400), (end - 3, 10), (end + 9, 5), (0, 1)]);
    let read = read.expect("they are there");
    assert!(read == [&bytes[8000..8400], &bytes[SIZE - 3..], &[][..], &bytes[..1]]);
    let before = log.lock().expect("no panic").len();
    let again = facade.read(&file, &[(8100, 50)]).expect("it is there");
    assert_eq!(again, [&bytes[8100..8150]]);
    assert_eq!(log.lock().expect("no panic").len(), before, "units and nodes stay with the file");
    let many = vec![(0, 1); byname_client::RANGES_MAX + 1];
    let error = facade.read(&file, &many).expect_err("too many");
    assert!(matches!(error, ClientError::TooMany { .. }), "{error}");
}

fn a_stream_comes_in_order_and_a_sink_that_fails_ends_it<F: Facade>() {
    let mut publisher = Publisher::new("/lab", 1);
    let bytes = sample(SIZE);
    let name = publisher.publish("f", 1000, &bytes);
    let (_server, mut facade) = honest::<F>(publisher);
    let file = facade.open(&name).expect("it is there");
    let read = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&read);
    let count = facade.stream(&file, 5..2_000_000, move |offset, piece| {
        let mut read = sink.lock().expect("no panic");
        assert_eq!(offset, 5 + read.len() as u64);
        read.extend_from_slice(piece);
        Ok(())
    });
    assert_eq!(count.expect("it arrives"), 1_999_995);
    assert!(*read.lock().expect("no panic") == bytes[5..2_000_000]);
    let broken = |_: u64, _: &[u8]| Err(std::io::ErrorKind::BrokenPipe.into());
    let error = facade.stream(&file, 0..u64::MAX, broken).expect_err("the sink fails");
    assert!(matches!(error, ClientError::Output(_)), "{error}");
}

fn a_download_is_watched_and_the_second_one_finds_it_there<F: Facade>() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = directory.path().join("f");
    let mut publisher = Publisher::new("/lab", 1);
    let bytes = sample(SIZE);
    let name = publisher.publish("f", 1000, &bytes);
    let (_server, mut facade) = honest::<F>(publisher);
    let heard = Heard::default();
    let report = facade.download(&name, &target, heard.clone(), &Stop::default());
    assert_eq!(report.expect("it arrives").fetched_bytes, SIZE as u64);
    assert!(std::fs::read(&target).expect("it is in place") == bytes);
    assert_eq!((heard.count("started"), heard.count("done")), (1, 1));
    assert!(heard.count("fetched") > 0);
    let again = facade.download(&name, &target, Silent, &Stop::default());
    assert_eq!(again.expect("it is there").outcome, FileOutcome::Identical);
    let nowhere = directory.path().join("no/such/directory");
    let refused = facade.download(&name, &nowhere, Silent, &Stop::default());
    assert!(matches!(refused, Err(ClientError::LocalDisk { .. })), "{refused:?}");
}

fn a_call_is_stopped_alone_and_what_came_of_a_download_counts_for_the_next<F: Facade>() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = directory.path().join("f");
    let mut publisher = Publisher::new("/lab", 1);
    let name = publisher.publish("f", 1000, &sample(SIZE));
    // What lies behind the middle does not come before the call was stopped.
    let is_stopped = Stop::default();
    let stop = is_stopped.clone();
    let meddler: Meddler = Box::new(move |interest, reply| {
        let segment = interest.name.last().and_then(|last| last.segment());
        let is_late = segment.is_some_and(|segment| segment > 180);
        if is_late && !stop.is_requested() { Reply::Silence } else { reply }
    });
    let (_server, mut facade) = meddled::<F>(publisher, meddler);
    let stopped =
        facade.download(&name, &target, StopAtFirstBytes(is_stopped.clone()), &is_stopped);
    assert!(matches!(stopped, Err(ClientError::Interrupted)), "{stopped:?}");
    assert!(!target.exists());
    assert_eq!(facade.stat(&name).expect("other calls go on").size, Some(SIZE as u64));
    let report = facade.download(&name, &target, Silent, &Stop::default()).expect("it arrives");
    assert!(report.reused_bytes > 0, "{report:?}");
    assert_eq!(report.reused_bytes + report.fetched_bytes, SIZE as u64);
}

fn a_tree_arrives_whole_with_its_filter_and_its_failures<F: Facade>() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = directory.path().join("t");
    let mut publisher = Publisher::new("/lab", 1);
    let root = publisher.publish_listing("d", 1000, &[b"a", b"big", b"not", b"bad"]);
    publisher.publish("d/a", 1000, b"hello");
    publisher.publish("d/big", 1000, &sample(SIZE));
    publisher.publish("d/not", 1000, b"filtered");
    let bad = publisher.publish("d/bad", 1000, b"forbidden");
    publisher.object_mut(&bad).absence = Some(Absence::NoPermission);
    let (_server, mut facade) = honest::<F>(publisher);
    let heard = Heard::default();
    let filter = |entry: &TreeEntry<'_>| !entry.path.ends_with("not");
    let report = facade.download_tree(&root, &target, (heard.clone(), filter), &Stop::default());
    let report = report.expect("the rest arrives");
    assert_eq!((report.fetched_count, report.failed_count), (2, 1));
    assert_eq!(report.failures[0].0, target.join("bad"));
    assert!(std::fs::read(target.join("big")).expect("it is in place") == sample(SIZE));
    assert!(!target.join("not").exists());
    assert_eq!((heard.count("done"), heard.count("failed")), (2, 1));
    let stop = Stop::default();
    stop.request();
    let stopped = facade.download_tree(&root, &target, (Silent, |_: &TreeEntry<'_>| true), &stop);
    assert!(matches!(stopped, Err(ClientError::Interrupted)), "{stopped:?}");
}

fn directories_are_listed_and_not_opened<F: Facade>() {
    let mut publisher = Publisher::new("/lab", 1);
    let name = publisher.publish_listing("d", 1000, &[b"a", b"b/"]);
    let (_server, mut facade) = honest::<F>(publisher);
    assert_eq!(facade.list(&name).expect("it is there").entries().count(), 2);
    let error = facade.open(&name).err().expect("it is a directory");
    assert!(matches!(error, ClientError::Read(ReadError::Protocol { .. })), "{error}");
}

fn a_path_is_reported_and_versions_are_remembered<F: Facade>() {
    let mut publisher = Publisher::new("/lab", 1);
    let name = publisher.publish("f", 1000, &sample(SIZE));
    let (_server, mut facade) = honest::<F>(publisher);
    facade.stat(&name).expect("it is there");
    let path = facade.path().expect("it works");
    assert!(path.request_count >= 2 && path.rtt_ns.is_some(), "{path:?}");
    assert_eq!(facade.versions().expect("it works"), [(name.clone(), 1000)]);
}

/// Publishes a file in another version than the manifest of its directory says.
fn publish_alone(server: &Server, path: &str, version: u64, bytes: &[u8]) {
    server.publisher.lock().expect("no panic").publish(path, version, bytes);
}

fn is_rolled_back(error: &ClientError) -> bool {
    let ClientError::Read(ReadError::RolledBack { seen, got, .. }) = error else { return false };
    (*seen, *got) == (2000, 1000)
}

fn what_a_manifest_has_shown_is_not_undone_by_an_older_description<F: Facade>() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = directory.path().join("a");
    let mut publisher = Publisher::new("/lab", 1);
    let name = publisher.publish_manifest("d", 2000, &[("a", b"two")]);
    let file = name.with_generic(b"a");
    let (server, mut facade) = honest::<F>(publisher);
    facade.list_resolved(&name).expect("it is there");
    publish_alone(&server, "d/a", 1000, b"one");
    let error = facade.download(&file, &target, Silent, &Stop::default()).expect_err("it is old");
    assert!(is_rolled_back(&error), "{error}");
    assert!(!target.exists());
    let error = facade.stat(&file).expect_err("it is old");
    assert!(is_rolled_back(&error), "{error}");
}

fn a_manifest_older_than_a_file_neither_overwrites_it_nor_spoils_the_tree<F: Facade>() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = directory.path().join("d");
    let mut publisher = Publisher::new("/lab", 1);
    let name = publisher.publish_manifest("d", 1000, &[("a", b"one"), ("b", b"bee")]);
    let file = name.with_generic(b"a");
    let (server, mut facade) = honest::<F>(publisher);
    publish_alone(&server, "d/a", 2000, b"two");
    assert_eq!(facade.stat(&file).expect("it is there").version, 2000);

    let listing = facade.list_resolved(&name).expect("it is there");
    let (a, b) = (listing.listed().next(), listing.listed().nth(1));
    assert!(listing.resolve(&a.expect("two of them")).is_none(), "it is old");
    assert!(listing.resolve(&b.expect("two of them")).is_some());

    let stop = Stop::default();
    let all = |_: &TreeEntry<'_>| true;
    let report = facade.download_tree(&name, &target, (Silent, all), &stop).expect("it arrives");
    assert_eq!((report.fetched_count, report.failed_count), (2, 0));
    assert_eq!(std::fs::read(target.join("a")).expect("it is in place"), b"two");

    publish_alone(&server, "d/a", 1000, b"one");
    let report = facade.download_tree(&name, &target, (Silent, all), &stop).expect("it is listed");
    assert_eq!(report.failed_count, 1);
    assert!(is_rolled_back(&report.failures[0].1), "{}", report.failures[0].1);
    assert_eq!(std::fs::read(target.join("a")).expect("it is in place"), b"two");
}

fn an_entry_is_not_opened_once_a_newer_version_was_seen<F: Facade>() {
    let mut publisher = Publisher::new("/lab", 1);
    let name = publisher.publish_manifest("d", 1000, &[("a", b"one")]);
    let (server, mut facade) = honest::<F>(publisher);
    let listing = facade.list_resolved(&name).expect("it is there");
    let entry = listing.listed().next().and_then(|entry| listing.resolve(&entry));
    let entry = entry.expect("the manifest says all");
    publish_alone(&server, "d/a", 2000, b"two!");
    assert_eq!(facade.stat(&name.with_generic(b"a")).expect("it is there").version, 2000);
    let file = facade.open_entry(&entry).expect("the newer one is there");
    assert_eq!(F::stat_of(&file).version, 2000);
    assert_eq!(facade.read(&file, &[(0, 4)]).expect("it is there"), [b"two!"]);
}

fn nobody_listening_is_the_same_error_for_every_call<F: Facade>() {
    let directory = tempfile::tempdir().expect("a directory");
    let endpoint = Endpoint::Unix(directory.path().join("sock"));
    let mut publisher = Publisher::new("/lab", 1);
    let name = publisher.publish("f", 1000, &sample(SIZE));
    let config = ClientConfig { timeout: Duration::from_millis(300), ..trusting(&publisher) };
    Server::listen(&endpoint, Arc::new(Mutex::new(publisher)), Some(2));
    let client = byname_client::Client::connect(std::slice::from_ref(&endpoint), config)
        .expect("it listens");
    let mut facade = F::over(client);
    facade.stat(&name).expect("it is there");
    let error = facade.stat(&name).expect_err("nobody is there any more");
    let shown = endpoint.to_string();
    assert!(
        matches!(&error, ClientError::Disconnected { endpoint, .. } if *endpoint == shown),
        "{error}"
    );
}

/// Several sources with the same file.
fn sources(publisher: Publisher, count: usize) -> (tempfile::TempDir, Vec<Endpoint>) {
    let directory = tempfile::tempdir().expect("a directory");
    let publisher = Arc::new(Mutex::new(publisher));
    let endpoint = |number: usize| Endpoint::Unix(directory.path().join(number.to_string()));
    let endpoints: Vec<Endpoint> = (0..count).map(endpoint).collect();
    for endpoint in &endpoints {
        Server::listen_often(endpoint, &publisher);
    }
    (directory, endpoints)
}

fn a_large_file_comes_from_all_sources_and_is_reported_once<F: Facade>() {
    const LARGE: usize = 40 << 20;
    let mut publisher = Publisher::new("/lab", 1);
    let bytes = sample(LARGE);
    let name = publisher.publish("f", 1000, &bytes);
    let config = ClientConfig { asks_all: true, ..trusting(&publisher) };
    let (directory, endpoints) = sources(publisher, 2);
    let client = byname_client::Client::connect(&endpoints, config).expect("they listen");
    let mut facade = F::over(client);
    let target: PathBuf = directory.path().join("target");
    let fetched = Arc::new(AtomicUsize::new(0));
    struct Count(Arc<AtomicUsize>);
    impl Progress for Count {
        fn on_event(&mut self, event: Event<'_>) {
            if let Event::Fetched { bytes } = event {
                self.0.fetch_add(bytes as usize, Ordering::Relaxed);
            }
        }
    }
    let report = facade.download(&name, &target, Count(Arc::clone(&fetched)), &Stop::default());
    let report = report.expect("it arrives");
    assert_eq!((report.fetched_bytes, report.reused_bytes), (LARGE as u64, 0));
    assert_eq!(report.sources.len(), 2, "{report:?}");
    assert!(report.sources.iter().map(|source| source.bytes).sum::<u64>() > 0);
    assert!(std::fs::read(&target).expect("it is in place") == bytes);
    assert_eq!(fetched.load(Ordering::Relaxed), LARGE, "every byte is reported once");
}

macro_rules! contract {
    ($($test:ident),* $(,)?) => {
        mod callers_thread {
            $(#[test] fn $test() { super::$test::<super::CallersThread>(); })*
        }
        mod own_thread {
            $(#[test] fn $test() { super::$test::<super::OwnThread>(); })*
        }
    };
}

contract!(
    a_status_is_flat_and_says_who_signed_it,
    a_listing_falls_back_to_the_manifest_where_nobody_has_the_plain_one,
    a_malformed_manifest_is_said_so_with_its_key,
    a_listed_entry_is_opened_without_asking_for_it,
    ranges_are_exact_and_a_second_read_of_a_unit_is_free,
    a_stream_comes_in_order_and_a_sink_that_fails_ends_it,
    a_download_is_watched_and_the_second_one_finds_it_there,
    a_call_is_stopped_alone_and_what_came_of_a_download_counts_for_the_next,
    a_tree_arrives_whole_with_its_filter_and_its_failures,
    directories_are_listed_and_not_opened,
    a_path_is_reported_and_versions_are_remembered,
    what_a_manifest_has_shown_is_not_undone_by_an_older_description,
    a_manifest_older_than_a_file_neither_overwrites_it_nor_spoils_the_tree,
    an_entry_is_not_opened_once_a_newer_version_was_seen,
    nobody_listening_is_the_same_error_for_every_call,
    a_large_file_comes_from_all_sources_and_is_reported_once,
    a_second_open_of_a_file_asks_for_no_content,
    names_of_equal_content_share_it_and_other_versions_do_not,
    a_new_version_of_a_file_is_read_anew,
    segments_of_a_file_without_root_are_kept_for_its_version,
);
