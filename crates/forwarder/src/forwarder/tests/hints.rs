//! Forwarding hints: where they lead, where they end, and what they may leave in the store.

use byname_packet::InterestBuilder;
use byname_packet::lp::{LpHeader, nack_reason};

use crate::config::Config;
use crate::counters::DropReason;
use crate::testing::{Bench, faces, name};

/// A segment of a content of the site `/site`.
const SEGMENT: &str = "/site/32=file/seq=5/v=1/seg=0";

#[test]
fn a_hint_leads_to_its_first_delegation_with_a_route() {
    let mut bench = Bench::new();
    let (consumer, there, producer) = (bench.local(), bench.remote(), bench.local());
    bench.route("/there", there, 0);
    bench.route("/a", producer, 0);
    let sent = bench.interest_hinted(consumer, "/a/1", 1, &["/unknown", "/there/1"]);
    assert_eq!(faces(&sent), [there]);
    assert!(sent[0].interest().forwarding_hint.is_some());
}

#[test]
fn a_hint_without_any_route_is_refused_at_once() {
    let mut bench = Bench::new();
    let (consumer, producer) = (bench.local(), bench.local());
    bench.route("/a", producer, 0);
    let sent = bench.interest_hinted(consumer, "/a/1", 1, &["/unknown"]);
    assert_eq!((sent[0].face, sent[0].nack), (consumer, Some(nack_reason::NO_ROUTE)));
}

#[test]
fn in_its_region_a_hint_is_taken_off_before_anything_is_pending() {
    let mut bench = Bench::with(Config { regions: vec![name("/here/edge")], ..Config::default() });
    let (one, other, there, producer) =
        (bench.local(), bench.local(), bench.remote(), bench.local());
    bench.route("/here", there, 0);
    bench.route("/a", producer, 0);
    let sent = bench.interest_hinted(one, "/a/1", 1, &["/elsewhere", "/here"]);
    assert_eq!(faces(&sent), [producer]);
    assert_eq!(sent[0].interest().forwarding_hint, None);
    assert_eq!(bench.interest(other, "/a/1", 2), [], "it joins what is pending");
    assert_eq!(faces(&bench.data(producer, "/a/1", 0)), [one, other]);
    assert_eq!(faces(&bench.interest(one, "/a/1", 3)), [one], "and is kept");
    let sent = bench.interest_hinted(one, "/a/2", 4, &["/here/edge/disk"]);
    assert_eq!(faces(&sent), [there], "below a region is not in it");
}

#[test]
fn delegations_of_one_machine_are_refused_from_other_machines() {
    let mut bench = Bench::new();
    let (local, remote, producer) = (bench.local(), bench.remote(), bench.local());
    bench.route("/localhost/x", producer, 0);
    bench.route("/there", producer, 0);
    let sent = bench.interest_hinted(remote, "/a/1", 1, &["/there", "/localhost/x"]);
    assert_eq!((sent.len(), bench.last_drop), (0, Some(DropReason::ScopeViolation)));
    assert_eq!(faces(&bench.interest_hinted(local, "/a/1", 2, &["/localhost/x"])), [producer]);
}

/// A router of NDNd asks for its neighbour's certificate by a hint to the neighbour's name of the
/// link.
#[test]
fn a_delegation_of_one_link_leads_one_hop() {
    let mut bench = Bench::new();
    let (local, remote, far) = (bench.local(), bench.remote(), bench.remote());
    let producer = bench.local();
    bench.route("/localhop/x", far, 0);
    let sent = bench.interest_hinted(local, "/a/1", 1, &["/localhop/x/1"]);
    assert_eq!(faces(&sent), [far]);
    let sent = bench.interest_hinted(remote, "/a/2", 2, &["/localhop/x/1"]);
    assert_eq!((sent[0].face, sent[0].nack), (remote, Some(nack_reason::NO_ROUTE)));
    bench.route("/localhop/x", producer, 10);
    let sent = bench.interest_hinted(remote, "/a/3", 3, &["/there", "/localhop/x/1"]);
    assert_eq!(faces(&sent), [producer]);
}

#[test]
fn a_delegation_of_this_machine_leads_to_no_other_one() {
    let mut bench = Bench::new();
    let (local, remote) = (bench.local(), bench.remote());
    bench.route("/localhost/x", remote, 0);
    let sent = bench.interest_hinted(local, "/a/1", 1, &["/localhost/x"]);
    assert_eq!((sent[0].face, sent[0].nack), (local, Some(nack_reason::NO_ROUTE)));
}

/// Asks for `asked` by a hint that leads to a stranger, who answers `data`; whether the next one
/// who asks for `data` gets that answer.
fn is_kept(asked: &str, delegation: &str, data: &str) -> bool {
    let mut bench = Bench::new();
    let (consumer, stranger, producer) = (bench.remote(), bench.remote(), bench.local());
    bench.route(delegation, stranger, 0);
    bench.route(data, producer, 0);
    let (name, hint, mut wire) = (name(asked), [name(delegation)], Vec::new());
    let interest = InterestBuilder::new(name.view()).can_be_prefix(asked != data);
    interest.forwarding_hint(&hint).nonce([1; 4]).encode(&mut wire);
    let sent = bench.packet(consumer, &LpHeader::default(), &wire);
    assert_eq!(faces(&sent), [stranger]);
    assert_eq!(faces(&bench.data(stranger, data, 10_000)), [consumer]);
    let next = bench.remote();
    match faces(&bench.interest(next, data, 2))[..] {
        [face] if face == next => true,
        [face] if face == producer => false,
        _ => panic!("neither kept nor asked for"),
    }
}

#[test]
fn a_hint_fills_the_store_only_from_below_the_owner_of_the_name() {
    assert!(is_kept(SEGMENT, "/site/32=disk/hall/seq=3", SEGMENT));
    assert!(is_kept(SEGMENT, "/site", SEGMENT));
    assert!(!is_kept(SEGMENT, "/stranger/32=disk/hall/seq=3", SEGMENT));
    assert!(!is_kept(SEGMENT, "/sit", SEGMENT));
    assert!(!is_kept("/32=file/seq=5/v=1/seg=0", "/any", "/32=file/seq=5/v=1/seg=0"));
}

/// Behind one next hop both ways may lead to different machines, and who answers cannot be seen.
#[test]
fn who_asks_by_name_too_does_not_make_a_strangers_answer_be_kept() {
    let mut bench = Bench::new();
    let (attacker, upstream, next) = (bench.remote(), bench.remote(), bench.remote());
    bench.route("/stranger", upstream, 0);
    bench.route("/site", upstream, 0);
    bench.interest(attacker, SEGMENT, 1);
    bench.interest_hinted(attacker, SEGMENT, 2, &["/stranger"]);
    assert_eq!(faces(&bench.data(upstream, SEGMENT, 10_000)), [attacker]);
    assert_eq!(faces(&bench.interest(next, SEGMENT, 3)), [upstream]);
}

/// Interests for one name with different hints are found one after the other.
#[test]
fn one_name_has_a_bounded_number_of_hints_and_a_flood_of_them_costs_its_sender() {
    let mut bench = Bench::new();
    let (flooder, reader, producer) = (bench.remote(), bench.remote(), bench.local());
    bench.route("/site", producer, 0);
    let sent = bench.interest_hinted(reader, SEGMENT, 1, &["/site/32=disk/hall/seq=3"]);
    assert_eq!(faces(&sent), [producer]);
    bench.interest(reader, SEGMENT, 2);
    for number in 0..200u32 {
        let hint = format!("/site/{number}");
        let sent = bench.interest_hinted(flooder, SEGMENT, number as u8, &[&hint]);
        assert_eq!(faces(&sent), [producer], "the latest is served: {number}");
    }
    assert_eq!(bench.forwarder.pending_count(), crate::pit::HINTS_PER_NAME_MAX + 1);
    let shed = |face| bench.forwarder.face_drops(face).unwrap().get(DropReason::PitShed);
    assert_eq!((shed(reader), shed(flooder)), (0, 201 - crate::pit::HINTS_PER_NAME_MAX as u64));
    assert!(faces(&bench.data(producer, SEGMENT, 0)).contains(&reader));
}

#[test]
fn the_name_that_comes_decides_and_not_the_prefix_that_was_asked_for() {
    let (asked, delegation) = ("/org", "/org/stranger");
    assert!(!is_kept(asked, delegation, "/org/site/32=file/seq=5/v=1/seg=0"));
}

#[test]
fn who_asks_past_caches_is_answered_by_the_producer_and_mends_the_cache() {
    let mut bench = Bench::new();
    let (consumer, other, producer) = (bench.local(), bench.local(), bench.local());
    bench.route("/site", producer, 0);
    bench.interest(consumer, SEGMENT, 1);
    bench.data(producer, SEGMENT, 10_000);
    let past = |bench: &mut Bench, face, nonce| {
        bench.interest_with(face, SEGMENT, nonce, |interest| interest.past_caches(true))
    };
    let sent = past(&mut bench, consumer, 2);
    assert_eq!(faces(&sent), [producer]);
    assert!(sent[0].interest().past_caches, "the next forwarder is told, too");
    bench.data(producer, SEGMENT, 10_001);
    let mended = bench.interest(other, SEGMENT, 3);
    assert_eq!(mended[0].data().meta.freshness_ms, 10_001);
}

#[test]
fn who_asks_past_caches_does_not_join_one_whom_a_cache_may_answer() {
    let mut bench = Bench::new();
    let (consumer, other, producer) = (bench.local(), bench.local(), bench.local());
    bench.route("/site", producer, 0);
    bench.interest(consumer, SEGMENT, 1);
    let sent = bench.interest_with(other, SEGMENT, 2, |interest| interest.past_caches(true));
    assert_eq!(faces(&sent), [producer]);
}
