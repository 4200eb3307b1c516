//! Challenges to disks: who has the octets proves it, and nobody else, whatever he says.

use byname_catalog::id::LeaseEpoch;
use byname_catalog::{Command, Commit, DiskChanges, DiskState};
use byname_packet::Interest;
use byname_security::tree;
use byname_site::{DiskRefusal, Prove, ProveAnswer};
use serde_json::Value;

use crate::commands::{commit, create_of, receipt, send_commit};
use crate::fsck::query;
use crate::support::{Holder, NOW_NS, TestHead, done};

/// Octets of a content.
const SIZE: u64 = 10_000;

/// How a disk answers.
#[derive(Clone, Copy)]
enum Kind {
    Honest,
    /// It has the first octets, and makes up the rest.
    Lying,
    /// It sends what it has proved before.
    Replaying,
    Missing,
    Silent,
}

fn octets() -> Vec<u8> {
    (0..SIZE).map(|at| (at * 7) as u8).collect()
}

fn put(head: &mut TestHead, path: &str) {
    let root = *tree::Hash::of(&octets()).as_bytes();
    let content = create_of(head, path, SIZE).terms().content;
    let commit = Commit { size: SIZE, root, ..commit(content) };
    let holders = [10, 11]
        .map(|seed: u8| Holder::new(seed, &head.site.disk(&head.disks[usize::from(seed - 10)].0)));
    let receipts = (0..2).map(|disk| receipt(head, disk, &holders[disk], &commit)).collect();
    done(send_commit(head, &commit, receipts));
}

fn proof_of(challenge: &[u8; 32], octets: &[u8]) -> Vec<u8> {
    let mut read = |offset: u64, into: &mut [u8]| {
        into.copy_from_slice(&octets[offset as usize..][..into.len()]);
        Ok::<(), std::convert::Infallible>(())
    };
    tree::prove(challenge, octets.len() as u64, &mut read).unwrap()
}

/// What a disk of this kind says to an order.
fn answer(head: &TestHead, wire: &[u8], kinds: [Kind; 2]) -> Option<Vec<u8>> {
    let interest = Interest::decode(wire).unwrap();
    let (name, order) = Prove::decode(&head.site, &interest).unwrap();
    let disk = head.disks.iter().position(|(disk, _)| *disk == name).unwrap();
    let octets = octets();
    let mut made_up = octets.clone();
    made_up[1024..].fill(0);
    let proof = match kinds[disk] {
        Kind::Honest => proof_of(&order.challenge, &octets),
        Kind::Lying => proof_of(&order.challenge, &made_up),
        Kind::Replaying => proof_of(&[0; 32], &octets),
        Kind::Silent => return None,
        Kind::Missing => {
            let answer = ProveAnswer::Refused(DiskRefusal::Missing);
            return Some(answer.encode(interest.name, &head.disks[disk].1.signer).unwrap());
        }
    };
    let answer = ProveAnswer::Proof { epoch: LeaseEpoch(1), proof };
    Some(answer.encode(interest.name, &head.disks[disk].1.signer).unwrap())
}

/// The wish that all replicas of a file are proved.
fn file(head: &TestHead) -> String {
    format!("file {}/a", head.site.view())
}

/// Has disks prove something; whether each did, and why not, by disk.
fn prove(head: &mut TestHead, wanted: &str, kinds: [Kind; 2]) -> Vec<(u64, bool, String)> {
    assert_eq!(query(head, &format!("prove-{wanted}"))[0]["begun"], true);
    let mut watch = head.watch();
    while let Some(orders) = watch.proofs(&mut || head.stamp()) {
        if !orders.is_empty() {
            let second = query(head, &format!("prove-{wanted}"));
            assert_eq!(second[0]["begun"], false, "one at a time");
        }
        let answers = orders.into_iter().map(|order| {
            let answer = answer(head, order.wire(), kinds);
            (order, answer)
        });
        let answers = answers.collect();
        watch.handle_proofs(answers, NOW_NS);
    }
    assert_eq!(query(head, "prove-state")[0]["running"], false);
    let mut found: Vec<(u64, bool, String)> = query(head, "prove")
        .iter()
        .map(|line: &Value| {
            let reason = line["reason"].as_str().unwrap_or_default().to_owned();
            (line["disk"].as_u64().unwrap(), line["proved"] == true, reason)
        })
        .collect();
    found.sort();
    found
}

#[test]
fn a_disk_that_has_the_octets_proves_it_and_one_that_has_not_cannot() {
    let mut head = TestHead::new();
    put(&mut head, "a");
    let ids = [0, 1].map(|disk| head.disks[disk].0.id.0);
    let wanted = file(&head);
    let all = prove(&mut head, &wanted, [Kind::Honest; 2]);
    assert_eq!(all, ids.map(|id| (id, true, String::new())));
    let wrong = "what it shows is not what was written";
    for (kind, reason) in [
        (Kind::Lying, wrong),
        (Kind::Replaying, wrong),
        (Kind::Missing, "the disk does not have the content"),
        (Kind::Silent, "it does not answer"),
    ] {
        let found = prove(&mut head, &wanted, [Kind::Honest, kind]);
        let expected = [(ids[0], true, String::new()), (ids[1], false, reason.to_owned())];
        assert_eq!(found, expected);
        let of_disk = format!("disk {} 10", ids[1]);
        let of_disk = prove(&mut head, &of_disk, [Kind::Honest, kind]);
        assert_eq!(of_disk, expected[1..], "one replica is all that it has");
    }
    // What a disk need not have any more it need not prove.
    let place = crate::support::place("a");
    done(head.run(true, Command::Unlink { place }));
    head.expire(NOW_NS + (3600 << 30));
    assert_eq!(prove(&mut head, &format!("disk {} 10", ids[0]), [Kind::Missing; 2]), []);
}

#[test]
fn a_disk_that_is_off_is_not_asked_and_only_operators_ask() {
    let mut head = TestHead::new();
    put(&mut head, "a");
    let disk = head.disks[0].0.id;
    let changes = DiskChanges { state: Some(DiskState::Off), ..DiskChanges::default() };
    done(head.run(true, Command::SetDisk { disk, changes }));
    let found = prove(&mut head, &format!("disk {} 1", disk.0), [Kind::Honest; 2]);
    assert_eq!(found, [(disk.0, false, "it is off".to_owned())]);
    for text in [&format!("prove-{}", file(&head)), "prove-disk 1 1", "prove-state", "prove"] {
        let refused = crate::fsck::asked(&mut head, false, text);
        assert!(refused.is_err(), "{text}");
    }
}
