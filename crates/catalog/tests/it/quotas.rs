//! Quotas: spaces, soft limits with their grace time, and catalogs of before there were any.

use std::sync::Arc;

use byname_catalog::engine::{Engine, Span, Table, Writes};
use byname_catalog::{
    AddDisk, Command, Create, Limits, OverSince, Policy, PolicyChanges, Publish, Quota, Refusal,
    Subject,
};

use crate::support::{HOUR_NS, TestSite, commit, place};
use crate::under_test::TestEngine;

fn site() -> TestSite {
    let mut site = TestSite::in_memory().0;
    site.run("op", Command::MakeDirectory { place: place("d"), mode: 0o777 }).unwrap();
    let mode = byname_catalog::AttributeChanges { mode: Some(0o777), ..Default::default() };
    site.run("op", Command::SetAttributes { place: place("d"), changes: mode }).unwrap();
    site
}

fn set(site: &mut TestSite, subject: Subject, limits: Limits) {
    site.run("op", Command::SetLimits { subject, limits }).unwrap();
}

fn anna() -> Subject {
    Subject::User("anna".into())
}

fn quota(site: &TestSite, subject: Subject) -> Quota {
    site.reader("op").quota(subject).unwrap()
}

fn soft(soft_bytes: u64, bytes: u64) -> Limits {
    Limits { soft_bytes, bytes, grace_ns: 5 * HOUR_NS, ..Limits::NONE }
}

#[test]
fn above_a_soft_limit_one_grows_for_the_grace_time_and_no_longer() {
    let mut site = site();
    set(&mut site, anna(), soft(100, 300));
    site.put("anna", "d/a", 100);
    assert_eq!(quota(&site, anna()).grace_left_ns(site.now_ns), None, "not above it");
    site.put("anna", "d/b", 50);
    assert_eq!(quota(&site, anna()).grace_left_ns(site.now_ns), Some(5 * HOUR_NS));
    assert_eq!(site.create("anna", "d/c", 151), Err(Refusal::UserQuota), "the hard one holds");

    site.pass(4 * HOUR_NS);
    site.put("anna", "d/c", 50);
    assert_eq!(quota(&site, anna()).grace_left_ns(site.now_ns), Some(HOUR_NS), "from the first");
    // Another head goes on with the time that is left.
    let engine = site.catalog.engine().clone();
    site.take_over(engine);
    site.pass(HOUR_NS);
    assert_eq!(quota(&site, anna()).grace_left_ns(site.now_ns), Some(0));
    assert_eq!(site.create("anna", "d/e", 1), Err(Refusal::UserGrace));
    // Entries have no soft limit, and what shrinks is no growth.
    site.mkdir("anna", "d/dir").unwrap();
    site.put("anna", "d/c", 10);
    assert_eq!(site.create("anna", "d/c", 11), Err(Refusal::UserGrace), "still above it");
    site.run("anna", Command::Unlink { place: place("d/a") }).unwrap();
    assert_eq!(quota(&site, anna()).over, OverSince::default());
    site.put("anna", "d/a", 100);
    assert_eq!(quota(&site, anna()).grace_left_ns(site.now_ns), Some(5 * HOUR_NS), "a new one");
}

#[test]
fn what_was_begun_within_the_grace_time_is_committed_after_it() {
    let mut site = site();
    set(&mut site, anna(), Limits { grace_ns: 60_000_000_000, ..soft(100, 300) });
    let ticket = site.create("anna", "d/a", 200).unwrap();
    site.pass(120_000_000_000);
    assert_eq!(site.create("anna", "d/b", 1), Err(Refusal::UserGrace));
    site.commit("anna", &ticket, 200).unwrap();
}

#[test]
fn a_soft_limit_without_grace_is_a_hard_one_and_one_that_is_taken_back_is_none() {
    let mut site = site();
    site.put("anna", "d/a", 100);
    set(&mut site, anna(), Limits { grace_ns: 0, ..soft(100, u64::MAX) });
    assert_eq!(site.create("anna", "d/b", 1), Err(Refusal::UserGrace));
    set(&mut site, anna(), Limits { soft_inodes: 0, grace_ns: HOUR_NS, ..Limits::NONE });
    assert_eq!(quota(&site, anna()).over.inodes_ns, Some(site.now_ns), "it is above it at once");
    site.pass(HOUR_NS);
    assert_eq!(site.mkdir("anna", "d/e").map(drop), Err(Refusal::UserGrace));
    // Another grace does not begin anew with other limits.
    set(&mut site, anna(), Limits { soft_inodes: 0, grace_ns: 2 * HOUR_NS, ..Limits::NONE });
    assert_eq!(quota(&site, anna()).grace_left_ns(site.now_ns), Some(HOUR_NS));
    set(&mut site, anna(), Limits::NONE);
    assert_eq!(quota(&site, anna()).over, OverSince::default());
    site.put("anna", "d/b", 1);
}

/// A clock that goes back gives more time, and takes none.
#[test]
fn a_clock_that_was_set_back_ends_no_grace() {
    let mut site = site();
    set(&mut site, anna(), soft(100, 300));
    site.put("anna", "d/a", 101);
    site.now_ns -= HOUR_NS;
    assert_eq!(quota(&site, anna()).grace_left_ns(site.now_ns), Some(5 * HOUR_NS));
    site.put("anna", "d/b", 1);
}

fn to_tape(name: &str, size_max: u64) -> Command {
    Command::Create(Create {
        place: place(name),
        mode: 0o644,
        size_max,
        publish: Publish::AtCommit,
        exclusive: false,
        policy: PolicyChanges { space: Some("tape".into()), ..PolicyChanges::default() },
    })
}

#[test]
fn a_space_counts_what_its_policy_sends_there() {
    let mut site = site();
    for server in ["d", "e"] {
        let (space, label) = ("tape".into(), "room".into());
        let disk = AddDisk { space, server: server.into(), label, capacity_bytes: 1 << 40 };
        site.run("op", Command::AddDisk(disk)).unwrap();
    }
    let tape = || Subject::Space("tape".into());
    set(&mut site, tape(), Limits { bytes: 100, inodes: 3, ..Limits::NONE });
    site.put("anna", "d/a", 80);
    let used = |site: &TestSite, space: &str| {
        let usage = quota(site, Subject::Space(space.into())).usage;
        (usage.inodes, usage.bytes)
    };
    assert_eq!((used(&site, "main"), used(&site, "tape")), ((3, 80), (0, 0)));
    assert_eq!(site.run("anna", to_tape("d/b", 101)).map(drop), Err(Refusal::SpaceQuota));
    // A file that is written anew goes to the other space with all that it has.
    let answer = site.run("anna", to_tape("d/a", 90)).unwrap();
    let byname_catalog::Answer::Ticket(ticket) = answer else { panic!("{answer:?}") };
    assert_eq!(used(&site, "tape"), (0, 0), "until it is committed");
    site.run("anna", Command::Commit(commit(&ticket, 90))).unwrap();
    assert_eq!((used(&site, "main"), used(&site, "tape")), ((2, 0), (1, 90)));
    // So does what gets another policy.
    let policy = |space: &str| Policy { space: space.into(), replica_count: 2, receipt_count: 2 };
    let send = |name, space| Command::SetPolicy { place: place(name), policy: policy(space) };
    site.put("anna", "d/b", 20);
    assert_eq!(site.run("op", send("d/b", "tape")).map(drop), Err(Refusal::SpaceQuota));
    site.run("op", send("d/a", "main")).unwrap();
    site.run("op", send("d", "tape")).unwrap();
    assert_eq!((used(&site, "main"), used(&site, "tape")), ((3, 110), (1, 0)));
    site.mkdir("anna", "d/sub").unwrap();
    assert_eq!(used(&site, "tape"), (2, 0));
}

/// Rows of spaces are made by the first head that knows of them, limits stay as they are.
#[test]
fn a_catalog_of_before_counts_its_spaces_when_it_is_led() {
    let engine = TestEngine::default();
    let mut site = TestSite::new(Arc::new(engine.clone()));
    site.put("op", "a", 70);
    let ticket = site.create("op", "b", 30).unwrap();
    let space = Subject::Space("main".into());
    let counted = quota(&site, space.clone());
    assert_eq!((counted.usage.bytes, counted.usage.reserved_bytes), (70, 30));
    let transaction = engine.begin().unwrap();
    let mut writes = Writes::default();
    for (key, _) in transaction.range(Table::Usage, Span::ALL, 100).unwrap() {
        if key.starts_with(b"s") {
            writes.delete(Table::Usage, key);
        }
    }
    transaction.commit(&writes).unwrap();
    site.assert_consistent();
    site.take_over(Arc::new(engine));
    assert_eq!(quota(&site, space), counted);
    site.commit("op", &ticket, 30).unwrap();
    site.run("op", Command::Unlink { place: place("a") }).unwrap();
}
