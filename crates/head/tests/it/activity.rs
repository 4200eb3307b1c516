//! What operators are told of what a head is doing.

use byname_catalog::{Command, Failure};
use byname_head::has_more;
use byname_packet::Interest;
use byname_site::{CONTENTS_MAX, DiskRefusal, DropAnswer};
use serde_json::Value;

use crate::commands::create;
use crate::fsck::{asked, query};
use crate::paths::put;
use crate::support::{BATCH_NS, NOW_NS, TestHead, place};

const SECOND_NS: u64 = 1_000_000_000;
/// All that can be asked.
const SUBJECTS: &str = "\
    access acl audit backup-log backup-rows balance content describe disk-of-key disks doors \
    entries fill fsck fsck-begin fsck-state lease loans log patterns prove prove-disk \
    prove-file prove-state quotas replicas replicate room status top trash trash-of users \
    versions whoami xattrs";
const MADE_UP: [&str; 2] = ["no-such-thing", "neither"];

fn line<'a>(lines: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let is_it = |line: &&Value| line["kind"] == kind && line["name"] == name;
    lines.iter().find(is_it).unwrap_or_else(|| panic!("no {kind} {name}: {lines:?}"))
}

/// All pages of it.
fn top(head: &mut TestHead) -> Vec<Value> {
    let (mut all, mut after) = (Vec::new(), String::new());
    loop {
        let mut page = query(head, format!("top {after}").trim_end());
        let more = page.pop_if(|line| line.get("more").is_some());
        all.extend(page);
        match more {
            Some(more) => more["more"].as_str().unwrap().clone_into(&mut after),
            None => return all,
        }
    }
}

#[test]
fn times_are_told_by_operation_and_by_user() {
    let mut head = TestHead::new();
    for name in ["a", "b"] {
        let mkdir = Command::MakeDirectory { place: place(name), mode: 0o755 };
        // The top is the operator's.
        head.run(false, mkdir);
    }
    let told = top(&mut head);
    let mkdir = line(&told, "operation", "mkdir");
    assert_eq!((&mkdir["count"], &mkdir["failed"]), (&2.into(), &2.into()), "{mkdir}");
    assert_eq!(mkdir["took_ns"], 2 * BATCH_NS);
    let anna = line(&told, "user", "anna");
    // Her session, too.
    assert_eq!((&anna["commands"], &anna["answered"]), (&3.into(), &3.into()), "{anna}");
    assert_eq!((&anna["took_ns"], &anna["longest_ns"]), (&(3 * BATCH_NS).into(), &BATCH_NS.into()));
}

#[test]
fn whatever_was_asked_there_is_room_for_all_who_asked() {
    let mut head = TestHead::new();
    for subject in SUBJECTS.split_whitespace().chain(MADE_UP) {
        // Answered or refused.
        let _ = asked(&mut head, false, subject);
    }
    let told = top(&mut head);
    for subject in SUBJECTS.split_whitespace() {
        line(&told, "operation", &format!("query {subject}"));
    }
    assert_eq!(line(&told, "operation", "query others")["count"], 2, "they have no rows");
    line(&told, "user", "anna");
    line(&told, "user", "op");
    assert_eq!(told.iter().filter(|line| line["kind"] == "head").count(), 1);
}

#[test]
fn disks_are_told_with_what_they_did_not_do_and_have_to_drop() {
    let mut head = TestHead::new();
    let mut watch = head.watch();
    let disk = |head: &mut TestHead, index: usize| query(head, "disks").remove(index);
    // The first refuses its first order and does not answer the next; all is well with the other.
    for round in 0..2 {
        let orders = watch.orders(&mut || head.stamp()).unwrap();
        for (index, order) in orders.into_iter().enumerate() {
            let refusal = DropAnswer::Refused(DiskRefusal::Failing);
            let done = DropAnswer::Done { epoch: head.epoch(), load: 0, scrub: None };
            let answer = match (index, round) {
                (0, 0) => Some(refusal),
                (0, _) => None,
                _ => Some(done),
            };
            let name = Interest::decode(order.wire()).unwrap().name.to_name();
            let signer = &head.disks[index].1.signer;
            let wire = answer.map(|it| it.encode(name.view(), signer).unwrap());
            watch.handle(order, wire.as_deref(), NOW_NS);
        }
    }
    let errors = disk(&mut head, 0)["errors"].clone();
    assert_eq!((&errors["refused"], &errors["unanswered"]), (&1.into(), &1.into()), "{errors}");
    assert_eq!(disk(&mut head, 1)["errors"]["unanswered"], 0);

    put(&mut head, "g", 9000);
    head.done(Command::Unlink { place: place("g") });

    // Two disks and two replicas: there is none to take the place of one.
    let content = create(&mut head, "f").terms().content;
    let second = head.disks[1].0.id;
    head.run(true, Command::ReplaceDisk { content, disk: second });
    assert_eq!(disk(&mut head, 1)["errors"]["replaced"], 0, "nothing came of it");
    head.add_disk(12);
    head.done(Command::ReplaceDisk { content, disk: second });
    assert_eq!(disk(&mut head, 1)["errors"]["replaced"], 1);
    assert_eq!(disk(&mut head, 0)["errors"]["replaced"], 0);

    // What nothing leads to any more has to go.
    head.expire(NOW_NS + 24 * 3600 * SECOND_NS);
    assert_eq!(disk(&mut head, 1)["to_drop"], 0, "it is told with the next order");
    watch.orders(&mut || head.stamp()).unwrap();
    assert_eq!([0, 1].map(|index| disk(&mut head, index)["to_drop"].clone()), [1, 1]);
}

/// A disk that is away for long has more to drop than one order names; the head asks it every two
/// seconds all the same, and the others with it.
#[test]
fn a_disk_that_is_away_hurries_nobody_however_much_it_has_to_drop() {
    let mut head = TestHead::new();
    let mut watch = head.watch();
    for number in 0..CONTENTS_MAX {
        let name = format!("f{number}");
        put(&mut head, &name, 9000);
        head.done(Command::Unlink { place: place(&name) });
    }
    head.expire(NOW_NS + 24 * 3600 * SECOND_NS);
    let orders = watch.orders(&mut || head.stamp()).unwrap();
    for (index, order) in orders.into_iter().enumerate() {
        let (name, signer) = (Interest::decode(order.wire()), &head.disks[index].1.signer);
        let answer = DropAnswer::Done { epoch: head.epoch(), load: 0, scrub: None };
        let wire = answer.encode(name.unwrap().name.to_name().view(), signer).unwrap();
        let is_there = index > 0;
        let commands = watch.handle(order, is_there.then_some(&wire[..]), NOW_NS);
        assert_eq!(commands.iter().any(has_more), is_there, "disk {index}");
    }
}

#[test]
fn what_waits_and_what_has_ended_is_told() {
    let mut head = TestHead::new();
    let content = create(&mut head, "f").terms().content;
    let before = top(&mut head).remove(0);
    assert_eq!((&before["kind"], &before["expired"]), (&"head".into(), &0.into()));
    head.expire(NOW_NS + 30 * 24 * 3600 * SECOND_NS);
    assert!(head.reader().attempt(content).is_err_and(|it| matches!(it, Failure::Refused(_))));
    let after = top(&mut head).remove(0);
    assert!(after["expired"].as_u64().unwrap() > 0, "{after}");
    assert_eq!(after["is_behind"], false);
    let number = |key: &str| after[key].as_u64().unwrap();
    // The question itself.
    assert_eq!((number("commands_waiting"), number("commands_in_flight")), (0, 0));
}
