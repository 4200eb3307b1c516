//! Versions that were replaced and are kept by policy: the last so many, which count for quota.

use std::sync::Arc;

use byname_catalog::engine::{EmbeddedEngine, Engine, Span, Table};
use byname_catalog::id::ContentId;
use byname_catalog::{
    Answer, AttributeChanges, Caller, Command, DiskChanges, DiskState, KEPT_NS, Limits,
    MoveReplica, Receipt, Refusal, Resolution, Subject, TrashPolicy, Usage,
};

use crate::rebuild::assert_rebuilt;
use crate::storage::PowerDisk;
use crate::support::{HOUR_NS, SITE, TestSite, place, sums};
use crate::under_test::TestEngine;

fn keep(path: &str, wanted: u8) -> Command {
    Command::SetVersions { place: place(path), wanted }
}

/// A site whose top is everybody's, and keeps two versions of what is made there.
fn site(engine: Arc<dyn Engine>) -> TestSite {
    let mut site = TestSite::new(engine);
    let changes = AttributeChanges { mode: Some(0o777), ..AttributeChanges::default() };
    site.run("op", Command::SetAttributes { place: place("/"), changes }).unwrap();
    site.run("op", keep("/", 2)).unwrap();
    site
}

fn in_memory() -> TestSite {
    site(Arc::new(TestEngine::default()))
}

fn usage(site: &TestSite) -> Usage {
    site.reader("op").usage(&Subject::User("anna".into())).unwrap().0
}

fn versions(site: &TestSite, path: &str) -> Vec<ContentId> {
    let id = site.entry(path).unwrap().id;
    let found = site.reader("op").versions(id).unwrap();
    found.into_iter().map(|(it, _)| ContentId { inode: id, version: it.version }).collect()
}

fn replicas(site: &TestSite, content: ContentId) -> usize {
    let keeps = |disk| site.reader("op").resolution(disk, content).unwrap() == Resolution::Keep;
    site.disks.iter().filter(|disk| keeps(**disk)).count()
}

#[test]
fn the_last_versions_stay_and_count_and_older_ones_go() {
    let mut site = in_memory();
    let all: Vec<ContentId> = [10, 20, 30, 40].map(|size| site.put("anna", "f", size)).to_vec();
    assert_eq!(versions(&site, "f"), all[1..3]);
    assert_eq!(usage(&site).bytes, 20 + 30 + 40);
    site.pass(2 * KEPT_NS);
    assert_eq!(all.iter().map(|it| replicas(&site, *it)).collect::<Vec<_>>(), [0, 2, 2, 2]);
    let old = site.reader("op").versions(all[0].inode).unwrap().remove(0).1;
    assert_eq!((old.replaced_by.as_str(), old.modified_ns > 0), ("anna", true));
    assert_eq!(site.reader("anna").content(all[1]).unwrap().size, 20);
    // One more, by who empties it: what has no octets is no version.
    let changes = AttributeChanges { size: Some(0), ..AttributeChanges::default() };
    site.run("anna", Command::SetAttributes { place: place("f"), changes }).unwrap();
    assert_eq!(versions(&site, "f"), all[2..]);
    site.put("anna", "f", 5);
    assert_eq!(versions(&site, "f"), all[2..]);
    assert_eq!(usage(&site).bytes, 30 + 40 + 5);
    // Fewer are wanted: the others go as any that was replaced.
    site.run("op", keep("f", 1)).unwrap();
    assert_eq!((versions(&site, "f"), usage(&site).bytes), (all[3..].to_vec(), 45));
    site.run("op", keep("f", 0)).unwrap();
    site.pass(2 * KEPT_NS);
    assert_eq!((replicas(&site, all[3]), usage(&site).bytes), (0, 5));
    assert_eq!(site.run("anna", keep("f", 9)), Err(Refusal::NotOperator));
}

#[test]
fn quota_is_reserved_for_both_and_moves_with_the_file() {
    let mut site = in_memory();
    site.put("anna", "f", 100);
    let limit = |bytes| Command::SetLimits {
        subject: Subject::User("anna".into()),
        limits: Limits { inodes: u64::MAX, bytes, ..Limits::NONE },
    };
    site.run("op", limit(150)).unwrap();
    assert_eq!(site.create("anna", "f", 60), Err(Refusal::UserQuota), "both would count");
    site.put("anna", "f", 50);
    assert_eq!(usage(&site).bytes, 150);
    let owner = Some("bert".to_owned());
    let changes = AttributeChanges { owner, ..AttributeChanges::default() };
    site.run("op", Command::SetAttributes { place: place("f"), changes }).unwrap();
    assert_eq!(usage(&site), Usage::default());
    let bert = Subject::User("bert".into());
    assert_eq!(site.reader("op").usage(&bert).unwrap().0.bytes, 150);
    site.run("bert", Command::Unlink { place: place("f") }).unwrap();
    assert_eq!(site.reader("op").usage(&bert).unwrap().0, Usage::default());
}

/// A file takes its versions to the trash and back; they go with it.
#[test]
fn versions_go_with_their_file() {
    let mut site = in_memory();
    let policy = TrashPolicy { is_on: true, keep_ns: HOUR_NS, bytes_max: u64::MAX };
    site.run("op", Command::SetTrash { place: place("/"), policy }).unwrap();
    let all: Vec<ContentId> = [10, 20, 30].map(|size| site.put("anna", "f", size)).to_vec();
    site.run("anna", Command::Unlink { place: place("f") }).unwrap();
    assert_eq!(usage(&site).bytes, 60);
    let item = site.reader("anna").trash(None, 9).unwrap().items.remove(0).1;
    assert_eq!(item.measure, Some((60, 1)));
    site.pass(HOUR_NS / 2);
    assert_eq!(all.iter().map(|it| replicas(&site, *it)).sum::<usize>(), 6);
    site.run("anna", Command::PurgeTrash { item: all[0].inode }).unwrap();
    assert_eq!(usage(&site), Usage::default());
    site.pass(3 * KEPT_NS);
    assert_eq!(all.iter().map(|it| replicas(&site, *it)).sum::<usize>(), 0);
    let rows = site.catalog.engine().snapshot().unwrap();
    for table in [Table::OldVersion, Table::Kept, Table::Replica] {
        assert!(rows.range(table, Span::ALL, 9).unwrap().is_empty(), "{table:?}");
    }
}

/// The head moves replicas of old versions off a disk as those of current ones.
#[test]
fn replicas_of_old_versions_leave_a_disk_that_is_drained() {
    let mut site = in_memory();
    let old = site.put("anna", "f", 10);
    site.put("anna", "f", 20);
    let (content, _) = site.reader("op").current(old).unwrap().expect("it is kept");
    let from = content.replicas[0];
    let changes = DiskChanges { state: Some(DiskState::Drain), ..DiskChanges::default() };
    site.run("op", Command::SetDisk { disk: from, changes }).unwrap();
    let to = *site.disks.iter().find(|disk| !content.replicas.contains(disk)).unwrap();
    let (root, checksums) = sums(old, 10);
    let receipt = Receipt {
        site: SITE.to_vec(),
        disk: to,
        generation: site.reader("op").disk(to).unwrap().generation,
        content: old,
        size: 10,
        root,
        checksums,
    };
    let moved = Command::MoveReplica(MoveReplica { receipt, from: Some(from) });
    site.run_as(Caller::Head, moved).unwrap();
    let after = site.reader("op").content(old).unwrap().replicas;
    assert!(after.contains(&to) && !after.contains(&from), "{after:?}");
    assert_eq!(site.reader("op").resolution(from, old).unwrap(), Resolution::Drop);
}

#[test]
fn a_head_that_dies_leaves_versions_and_quota_as_they_were() {
    let mut disk = PowerDisk::default();
    let mut site = site(Arc::new(EmbeddedEngine::on(disk.clone()).unwrap()));
    let mut sizes = 0;
    for size in [10, 20, 30, 40] {
        site.put("anna", "f", size);
        disk.cut_after(0);
        disk = disk.restart(0);
        site.take_over(Arc::new(EmbeddedEngine::on(disk.clone()).unwrap()));
        site.assert_consistent();
        assert_rebuilt(site.catalog.engine());
        sizes += size;
    }
    assert_eq!(usage(&site).bytes, sizes - 10);
    let held = versions(&site, "f")[0];
    site.run("anna", Command::Hold { content: held }).unwrap();
    assert!(matches!(site.run("op", keep("f", 0)), Ok(Answer::Entry(_))));
    for _ in 0..4 {
        site.pass(KEPT_NS / 2);
        site.run("anna", Command::RenewSession).unwrap();
        assert_eq!(replicas(&site, held), 2, "a reader holds it");
    }
}
