//! Scenarios: what a network of consumers and producers sees of one forwarder.

use byname_packet::InterestBuilder;
use byname_packet::lp::{CACHE_POLICY_NO_CACHE, LpHeader, nack_reason};

use super::*;
use crate::testing::{Bench, MS, data, faces, name};

mod data;
mod dead_next_hop;
mod flood;
mod hints;
mod hostile;
mod local_fields;
mod model;
mod nack;
mod strategies;
mod traces;

#[test]
fn an_interest_is_forwarded_and_the_data_goes_back_with_the_token() {
    let mut bench = Bench::new();
    let (consumer, producer) = (bench.local(), bench.local());
    bench.route("/a", producer, 0);
    for length in 1..=32u8 {
        let (uri, token) = (format!("/a/{length}"), vec![length; usize::from(length)]);
        let sent = bench.interest_with_token(consumer, &uri, length, &token);
        assert_eq!(faces(&sent), [producer]);
        assert_eq!(sent[0].token, None, "a token stays on its link");
        assert_eq!(sent[0].interest().nonce, Some([length; 4]));
        let sent = bench.data(producer, &uri, 1000);
        assert_eq!(faces(&sent), [consumer]);
        assert_eq!(sent[0].token, Some(token));
    }
    assert_eq!(bench.forwarder.pending_count(), 0);
    assert_eq!(bench.forwarder.counters().satisfied_interests, 32);
}

#[test]
fn interests_for_the_same_data_are_aggregated() {
    let mut bench = Bench::new();
    let (first, second, producer) = (bench.local(), bench.remote(), bench.local());
    bench.route("/a", producer, 0);
    assert_eq!(faces(&bench.interest_with_token(first, "/a/1", 1, b"one")), [producer]);
    assert_eq!(bench.interest_with_token(second, "/a/1", 2, b"two"), []);
    assert_eq!(bench.last_drop, Some(DropReason::Suppressed));
    let sent = bench.data(producer, "/a/1", 0);
    assert_eq!(faces(&sent), [first, second]);
    assert_eq!(sent[0].token.as_deref(), Some(&b"one"[..]));
    assert_eq!(sent[1].token.as_deref(), Some(&b"two"[..]));
    assert_eq!(bench.data(producer, "/a/1", 0), [], "the second copy answers nothing");
    assert_eq!(bench.last_drop, Some(DropReason::UnsolicitedData));
}

#[test]
fn interests_with_other_selectors_or_hints_are_not_aggregated() {
    let mut bench = Bench::new();
    let (first, second, producer) = (bench.local(), bench.local(), bench.local());
    bench.route("/a", producer, 0);
    bench.interest(first, "/a/1", 1);
    let fresh = bench.interest_with(second, "/a/1", 2, |i| i.must_be_fresh(true));
    assert_eq!(faces(&fresh), [producer]);
    let hinted = bench.interest_hinted(second, "/a/1", 3, &["/a"]);
    assert_eq!(faces(&hinted), [producer]);
    assert_eq!(bench.forwarder.pending_count(), 3);
    let sent = bench.data(producer, "/a/1", 0);
    assert_eq!(faces(&sent), [first, second], "one copy for each face");
}

#[test]
fn an_interest_that_comes_back_is_a_loop() {
    let mut bench = Bench::new();
    let (consumer, one, other) = (bench.local(), bench.remote(), bench.remote());
    bench.route("/a", one, 0);
    bench.interest(consumer, "/a/1", 1);
    let sent = bench.interest(other, "/a/1", 1);
    assert_eq!(bench.last_drop, Some(DropReason::LoopedInterest));
    assert_eq!((sent[0].face, sent[0].nack), (other, Some(nack_reason::DUPLICATE)));
    // Also when the entry is long gone and only the dead nonce list remembers.
    bench.wait_ms(4001);
    assert_eq!(bench.forwarder.pending_count(), 0);
    let sent = bench.interest(other, "/a/1", 1);
    assert_eq!((sent[0].face, sent[0].nack), (other, Some(nack_reason::DUPLICATE)));
    bench.wait_ms(20_000);
    assert_eq!(faces(&bench.interest(other, "/a/1", 1)), [one]);
}

#[test]
fn a_satisfied_interest_that_the_cache_cannot_answer_is_still_a_loop() {
    let mut bench = Bench::new();
    let (consumer, one, other) = (bench.local(), bench.remote(), bench.remote());
    bench.route("/a", one, 0);
    bench.interest_with(consumer, "/a/1", 1, |i| i.must_be_fresh(true));
    assert_eq!(faces(&bench.data(one, "/a/1", 0)), [consumer]);
    let sent = bench.interest_with(other, "/a/1", 1, |i| i.must_be_fresh(true));
    assert_eq!(sent[0].nack, Some(nack_reason::DUPLICATE));
}

#[test]
fn a_missing_nonce_is_added() {
    let mut bench = Bench::new();
    let (consumer, producer) = (bench.local(), bench.local());
    bench.route("/a", producer, 0);
    let mut nonces = Vec::new();
    for uri in ["/a/1", "/a/2"] {
        let (name, mut wire) = (name(uri), Vec::new());
        InterestBuilder::new(name.view()).encode(&mut wire);
        let sent = bench.packet(consumer, &LpHeader::default(), &wire);
        nonces.push(sent[0].interest().nonce.expect("a nonce"));
    }
    assert_ne!(nonces[0], nonces[1]);
}

#[test]
fn the_hop_limit_is_counted_down() {
    let mut bench = Bench::new();
    let (from, local, remote) = (bench.remote(), bench.local(), bench.remote());
    bench.route("/local", local, 0);
    bench.route("/remote", remote, 0);
    let sent = bench.interest_with(from, "/remote/1", 1, |i| i.hop_limit(5));
    assert_eq!(sent[0].interest().hop_limit, Some(4));
    assert_eq!(bench.interest_with(from, "/remote/2", 2, |i| i.hop_limit(0)), []);
    assert_eq!(bench.last_drop, Some(DropReason::HopLimitReached));
    let sent = bench.interest_with(from, "/local/1", 3, |i| i.hop_limit(1));
    assert_eq!((sent[0].face, sent[0].interest().hop_limit), (local, Some(0)));
    let sent = bench.interest_with(from, "/remote/3", 4, |i| i.hop_limit(1));
    assert_eq!((sent[0].face, sent[0].nack), (from, Some(nack_reason::NO_ROUTE)));
}

#[test]
fn localhost_never_crosses_machines() {
    let mut bench = Bench::new();
    let (local, other_local, remote) = (bench.local(), bench.local(), bench.remote());
    bench.route("/localhost/app", remote, 0);
    assert_eq!(bench.interest(remote, "/localhost/app/1", 1), []);
    assert_eq!(bench.last_drop, Some(DropReason::ScopeViolation));
    let sent = bench.interest(local, "/localhost/app/1", 2);
    assert_eq!((sent[0].face, sent[0].nack), (local, Some(nack_reason::NO_ROUTE)));
    bench.route("/localhost/app", other_local, 9);
    assert_eq!(faces(&bench.interest(local, "/localhost/app/2", 3)), [other_local]);
    bench.data(remote, "/localhost/app/2", 0);
    assert_eq!(bench.last_drop, Some(DropReason::ScopeViolation));
}

#[test]
fn localhop_goes_one_hop() {
    let mut bench = Bench::new();
    let (local, near, far) = (bench.local(), bench.remote(), bench.remote());
    bench.route("/localhop/x", far, 0);
    assert_eq!(faces(&bench.interest(local, "/localhop/x/1", 1)), [far]);
    let sent = bench.interest(near, "/localhop/x/2", 2);
    assert_eq!((sent[0].face, sent[0].nack), (near, Some(nack_reason::NO_ROUTE)));
    bench.route("/localhop/x", local, 9);
    assert_eq!(faces(&bench.interest(near, "/localhop/x/3", 3)), [local]);
}

#[test]
fn a_face_that_goes_takes_its_routes_along() {
    let mut bench = Bench::new();
    let (consumer, other, producer) = (bench.local(), bench.local(), bench.local());
    bench.route("/a", producer, 0);
    bench.route("/a/b", other, 0);
    bench.interest(consumer, "/a/1", 1);
    bench.forwarder.remove_face(consumer);
    assert_eq!(bench.data(producer, "/a/1", 0), [], "nobody is there to get it");
    bench.forwarder.remove_face(producer);
    assert_eq!(bench.forwarder.next_hops(&name("/a")), None);
    let below = bench.forwarder.next_hops(&name("/a/b")).unwrap();
    assert_eq!(below.len(), 1, "the inherited hop is gone, the own one stays");
    let sent = bench.interest(other, "/a/2", 2);
    assert_eq!(sent[0].nack, Some(nack_reason::NO_ROUTE));
    assert_eq!(bench.interest(producer, "/a/3", 3), []);
    assert_eq!(bench.last_drop, Some(DropReason::UnknownFace));
}

#[test]
fn a_face_without_link_is_passed_over_until_it_is_back() {
    let mut bench = Bench::new();
    let (consumer, best, second) = (bench.local(), bench.remote(), bench.remote());
    bench.route("/a", best, 0);
    bench.route("/a", second, 10);
    bench.forwarder.set_face_up(best, false);
    assert_eq!(faces(&bench.interest(consumer, "/a/1", 1)), [second]);
    bench.forwarder.set_face_up(best, true);
    assert_eq!(faces(&bench.interest(consumer, "/a/2", 2)), [best]);
}

#[test]
fn what_was_sent_over_a_lost_link_is_asked_elsewhere_or_refused() {
    let mut bench = Bench::new();
    let (consumer, only, other) = (bench.local(), bench.remote(), bench.remote());
    bench.route("/a", only, 0);
    bench.interest(consumer, "/a/1", 1);
    bench.forwarder.set_face_up(only, false);
    let sent = bench.interest(consumer, "/a/1", 2);
    assert_eq!((sent[0].face, sent[0].nack), (consumer, Some(nack_reason::NO_ROUTE)));
    bench.forwarder.set_face_up(only, true);
    bench.interest(consumer, "/a/2", 3);
    bench.route("/a", other, 10);
    bench.forwarder.set_face_up(only, false);
    assert_eq!(faces(&bench.interest(consumer, "/a/2", 4)), [other]);
}

#[test]
fn what_a_face_was_asked_that_goes_is_asked_elsewhere_or_refused_at_once() {
    let mut bench = Bench::new();
    let (consumer, first, second) = (bench.local(), bench.remote(), bench.remote());
    bench.route("/a", first, 0);
    bench.route("/a", second, 10);
    assert_eq!(faces(&bench.interest(consumer, "/a/1", 1)), [first]);
    bench.forwarder.remove_face(first);
    assert_eq!(bench.forwarder.poll_timeout(), Some(0));
    assert_eq!(faces(&bench.after_ms(0)), [second]);
    bench.forwarder.set_face_up(second, false);
    let sent = bench.after_ms(0);
    assert_eq!((sent[0].face, sent[0].nack), (consumer, Some(nack_reason::NO_ROUTE)));
    assert_eq!(bench.forwarder.pending_count(), 0);
    // Two were asked: the other one may still answer.
    bench.forwarder.set_face_up(second, true);
    let third = bench.remote();
    bench.route("/a", third, 20);
    bench.interest(consumer, "/a/2", 2);
    bench.wait_ms(500);
    assert_eq!(faces(&bench.interest(consumer, "/a/2", 3)), [third]);
    bench.forwarder.remove_face(second);
    assert_eq!(bench.after_ms(0), []);
    assert_eq!(faces(&bench.data(third, "/a/2", 0)), [consumer]);
}

#[test]
fn lifetimes_end_and_are_told_in_advance() {
    let mut bench = Bench::new();
    let (consumer, producer) = (bench.local(), bench.local());
    bench.route("/a", producer, 0);
    assert_eq!(bench.forwarder.poll_timeout(), None);
    bench.interest_with(consumer, "/a/1", 1, |i| i.lifetime_ms(100));
    let due_ns = bench.now_ns + 100 * MS;
    bench.wait_ms(99);
    assert_eq!(bench.forwarder.pending_count(), 1);
    // The forwarder may ask to be called earlier to look at its timers, but ends nothing early.
    while let Some(next_ns) = bench.forwarder.poll_timeout() {
        assert!(next_ns < due_ns + 2 * MS, "not told in time");
        bench.wait_until(next_ns);
        assert_eq!(bench.forwarder.pending_count(), usize::from(next_ns < due_ns));
    }
    assert_eq!(bench.forwarder.counters().unsatisfied_interests, 1);
    assert_eq!(bench.data(producer, "/a/1", 0), []);
    bench.interest_with(consumer, "/a/2", 2, |i| i.lifetime_ms(u64::MAX));
    let due_ns = bench.forwarder.poll_timeout().unwrap();
    assert!(due_ns <= bench.now_ns + 600_000 * MS, "no entry lives for ever");
}

#[test]
fn a_full_table_sheds_new_interests_and_keeps_old_ones() {
    let mut bench = Bench::with(Config { pit_entries_max: 2, ..Config::default() });
    let (consumer, producer) = (bench.local(), bench.local());
    bench.route("/a", producer, 0);
    bench.interest(consumer, "/a/1", 1);
    bench.interest(consumer, "/a/2", 2);
    assert_eq!(bench.interest(consumer, "/a/3", 3), []);
    assert_eq!(bench.last_drop, Some(DropReason::PitFull));
    assert_eq!(bench.forwarder.counters().drops(DropReason::PitFull), 1);
    assert_eq!(faces(&bench.data(producer, "/a/1", 0)), [consumer]);
    assert_eq!(faces(&bench.interest(consumer, "/a/3", 4)), [producer]);
}

#[test]
fn greedy_faces_leave_room_in_the_table_for_others() {
    let mut bench = Bench::with(Config { pit_entries_max: 64, ..Config::default() });
    let (greedy, second, producer) = (bench.remote(), bench.remote(), bench.local());
    bench.route("/a", producer, 0);
    for face in [greedy, second] {
        for nonce in 0..100 {
            bench.interest(face, &format!("/a/{}/{nonce}", face.0), nonce + 1);
        }
        assert_eq!(bench.last_drop, Some(DropReason::PitFull));
    }
    let modest = bench.remote();
    for nonce in 0..8 {
        let sent = bench.interest(modest, &format!("/a/modest/{nonce}"), nonce + 1);
        assert_eq!(faces(&sent), [producer]);
    }
}

#[test]
fn what_only_a_gone_face_waited_for_ends_with_it() {
    let mut bench = Bench::with(Config { pit_entries_max: 64, ..Config::default() });
    let (other, producer) = (bench.remote(), bench.local());
    bench.route("/a", producer, 0);
    for round in 0..20u8 {
        let greedy = bench.remote();
        for nonce in 0..100 {
            bench.interest(greedy, &format!("/a/{round}/{nonce}"), nonce);
        }
        bench.interest(other, &format!("/a/{round}/1"), 200);
        bench.forwarder.remove_face(greedy);
        assert_eq!(bench.forwarder.pending_count(), usize::from(round) + 1);
    }
    for round in 0..20 {
        assert_eq!(faces(&bench.data(producer, &format!("/a/{round}/1"), 0)), [other]);
    }
    assert_eq!(bench.forwarder.pending_count(), 0);
}

#[test]
fn an_interest_never_goes_back_where_it_came_from() {
    let mut bench = Bench::new();
    let both = bench.local();
    bench.route("/a", both, 0);
    let sent = bench.interest(both, "/a/1", 1);
    assert_eq!((sent[0].face, sent[0].nack), (both, Some(nack_reason::NO_ROUTE)));
}

#[test]
fn header_fields_that_do_not_belong_are_refused() {
    let mut bench = Bench::new();
    let (consumer, producer) = (bench.local(), bench.local());
    bench.route("/a", producer, 0);
    let mut wire = Vec::new();
    InterestBuilder::new(name("/a/1").view()).nonce([1; 4]).encode(&mut wire);
    let next_hop = LpHeader { next_hop_face_id: Some(producer.0), ..LpHeader::default() };
    assert_eq!(bench.packet(consumer, &next_hop, &wire), []);
    assert_eq!(bench.last_drop, Some(DropReason::LocalFieldsDisabled));
    let policy = LpHeader { cache_policy: Some(CACHE_POLICY_NO_CACHE), ..LpHeader::default() };
    assert_eq!(bench.packet(consumer, &policy, &wire), []);
    assert_eq!(bench.last_drop, Some(DropReason::ForbiddenHeader));
    let nacked_data = LpHeader { nack: Some(0), ..LpHeader::default() };
    assert_eq!(bench.packet(consumer, &nacked_data, &data("/a/1", 0)), []);
    assert_eq!(bench.last_drop, Some(DropReason::ForbiddenHeader));
    assert_eq!(bench.packet(consumer, &LpHeader::default(), b"\x05\x02\x07\x00"), []);
    assert_eq!(bench.last_drop, Some(DropReason::Malformed));
}

#[test]
fn congestion_marks_are_passed_on_both_ways() {
    let mut bench = Bench::new();
    let (consumer, producer) = (bench.local(), bench.local());
    bench.route("/a", producer, 0);
    let marked = LpHeader { congestion_mark: Some(1), ..LpHeader::default() };
    let mut wire = Vec::new();
    InterestBuilder::new(name("/a/1").view()).nonce([1; 4]).encode(&mut wire);
    assert_eq!(bench.packet(consumer, &marked, &wire)[0].congestion_mark, Some(1));
    let sent = bench.packet(producer, &marked, &data("/a/1", 0));
    assert_eq!(sent[0].congestion_mark, Some(1));
}

#[test]
fn face_counters_count_what_passed() {
    let mut bench = Bench::new();
    let (consumer, producer) = (bench.local(), bench.local());
    bench.route("/a", producer, 0);
    let out = bench.interest(consumer, "/a/1", 1);
    let back = bench.data(producer, "/a/1", 0);
    let (asked, given) = (out[0].wire.len() as u64, back[0].wire.len() as u64);
    let expected = FaceCounters {
        in_interests: 1,
        out_data: 1,
        in_bytes: asked,
        out_bytes: given,
        ..FaceCounters::default()
    };
    assert_eq!(bench.forwarder.face_counters(consumer), Some(expected));
    let expected = FaceCounters {
        out_interests: 1,
        in_data: 1,
        in_bytes: given,
        out_bytes: asked,
        ..FaceCounters::default()
    };
    assert_eq!(bench.forwarder.face_counters(producer), Some(expected));
}
