//! Retransmissions and Nacks: how another way is found, and how bad news travels.

use std::sync::Arc;

use byname_packet::lp::nack_reason;

use crate::counters::DropReason;
use crate::face::{FaceId, FaceInfo, LinkType};
use crate::strategy::Multicast;
use crate::testing::{Bench, faces, name};

fn two_ways() -> (Bench, FaceId, FaceId, FaceId) {
    let mut bench = Bench::new();
    let (consumer, best, second) = (bench.local(), bench.remote(), bench.remote());
    bench.route("/a", best, 10);
    bench.route("/a", second, 20);
    (bench, consumer, best, second)
}

#[test]
fn after_a_nack_the_next_best_way_is_tried_and_then_the_nack_passed_on() {
    let (mut bench, consumer, best, second) = two_ways();
    let first = bench.interest_with_token(consumer, "/a/1", 1, b"t");
    assert_eq!(faces(&first), [best]);
    let sent = bench.nack(best, &first[0].wire, nack_reason::NO_ROUTE);
    assert_eq!(faces(&sent), [second]);
    assert_eq!(sent[0].nack, None);
    let sent = bench.nack(second, &sent[0].wire, nack_reason::CONGESTION);
    assert_eq!(faces(&sent), [consumer]);
    assert_eq!(sent[0].nack, Some(nack_reason::CONGESTION), "the mildest reason");
    assert_eq!(sent[0].token.as_deref(), Some(&b"t"[..]));
    assert_eq!(sent[0].interest().name, name("/a/1").view());
    assert_eq!(bench.forwarder.pending_count(), 0);
}

/// The answer of the best way was lost, and no other way leads anywhere.
#[test]
fn a_refused_retransmission_comes_back_to_who_was_asked_first() {
    let (mut bench, consumer, best, second) = two_ways();
    let third = bench.remote();
    bench.route("/a", third, 30);
    assert_eq!(faces(&bench.interest(consumer, "/a/1", 1)), [best]);
    bench.wait_ms(210);
    let sent = bench.interest(consumer, "/a/1", 2);
    assert_eq!(faces(&sent), [second]);
    let sent = bench.nack(second, &sent[0].wire, nack_reason::NO_ROUTE);
    assert_eq!(faces(&sent), [third]);
    let sent = bench.nack(third, &sent[0].wire, nack_reason::NO_ROUTE);
    assert_eq!(faces(&sent), [best]);
    assert_eq!(sent[0].interest().nonce, Some([2; 4]), "another nonce, or it would be a loop");
    bench.wait_ms(10);
    assert_eq!(faces(&bench.data(best, "/a/1", 0)), [consumer]);
}

#[test]
fn a_refusal_disturbs_nobody_whose_answer_may_still_come() {
    let (mut bench, consumer, best, second) = two_ways();
    assert_eq!(faces(&bench.interest(consumer, "/a/1", 1)), [best]);
    bench.wait_ms(20);
    let sent = bench.interest(consumer, "/a/1", 2);
    assert_eq!(faces(&sent), [second]);
    assert_eq!(bench.nack(second, &sent[0].wire, nack_reason::NO_ROUTE), []);
}

/// The silent one is asked once for each retransmission, whatever the others say.
/// A consumer repeats what the second way was asked for and did not answer, so that it stays
/// pending for longer than an answer takes. The second way is away meanwhile and comes back: it is
/// asked, and not only the one that refuses. Without it the consumer hears that there is none.
#[test]
fn who_did_not_answer_in_time_is_asked_again() {
    for comes_back in [true, false] {
        let (mut bench, consumer, best, second) = two_ways();
        let first = bench.interest(consumer, "/a/1", 1);
        let sent = bench.nack(best, &first[0].wire, nack_reason::NO_ROUTE);
        assert_eq!(faces(&sent), [second]);
        assert!(bench.forwarder.remove_route(&name("/a"), second, 0));
        for nonce in 2..5 {
            bench.wait_ms(1300);
            let sent = bench.interest(consumer, "/a/1", nonce);
            assert_eq!(faces(&sent), [best]);
            assert_eq!(bench.nack(best, &sent[0].wire, nack_reason::NO_ROUTE), [], "it may come");
        }
        if comes_back {
            bench.route("/a", second, 20);
        }
        bench.wait_ms(1300);
        let sent = bench.interest(consumer, "/a/1", 5);
        assert_eq!(faces(&sent), [best]);
        let sent = bench.nack(best, &sent[0].wire, nack_reason::NO_ROUTE);
        let next = if comes_back { second } else { consumer };
        assert_eq!((faces(&sent), sent[0].nack.is_some()), (vec![next], !comes_back));
    }
}

#[test]
fn refusals_do_not_go_round() {
    let (mut bench, consumer, best, second) = two_ways();
    bench.interest(consumer, "/a/1", 1);
    for nonce in 2..10 {
        bench.wait_ms(300);
        let mut sent = bench.interest(consumer, "/a/1", nonce);
        if faces(&sent) == [second] {
            sent = bench.nack(second, &sent[0].wire, nack_reason::NO_ROUTE);
        }
        assert_eq!(faces(&sent), [best]);
        assert_eq!(bench.nack(second, &sent[0].wire, nack_reason::NO_ROUTE), []);
    }
}

#[test]
fn each_consumer_gets_the_nack_with_its_own_nonce() {
    let mut bench = Bench::new();
    let (one, two, producer) = (bench.local(), bench.local(), bench.remote());
    bench.route("/a", producer, 0);
    let first = bench.interest(one, "/a/1", 1);
    bench.interest(two, "/a/1", 2);
    let sent = bench.nack(producer, &first[0].wire, nack_reason::NO_ROUTE);
    let nonces: Vec<_> = sent.iter().map(|s| (s.face, s.interest().nonce)).collect();
    assert_eq!(nonces, [(one, Some([1; 4])), (two, Some([2; 4]))]);
}

#[test]
fn a_nack_that_answers_nothing_is_dropped() {
    let (mut bench, consumer, best, second) = two_ways();
    let sent = bench.interest(consumer, "/a/1", 1);
    assert_eq!(bench.nack(second, &sent[0].wire, nack_reason::NO_ROUTE), []);
    assert_eq!(bench.last_drop, Some(DropReason::UnexpectedNack), "it was not asked");
    let other = bench.interest(consumer, "/a/2", 9)[0].wire.clone();
    let stale = {
        let mut wire = sent[0].wire.clone();
        let at = wire.windows(4).position(|w| w == [1; 4]).unwrap();
        wire[at..at + 4].copy_from_slice(&[8; 4]);
        wire
    };
    assert_eq!(bench.nack(best, &stale, nack_reason::NO_ROUTE), [], "another nonce");
    assert_eq!(bench.last_drop, Some(DropReason::UnexpectedNack));
    bench.data(best, "/a/2", 0);
    assert_eq!(bench.nack(best, &other, nack_reason::NO_ROUTE), [], "already answered");
    assert_eq!(bench.last_drop, Some(DropReason::UnexpectedNack));
    assert_eq!(bench.forwarder.pending_count(), 1);
}

#[test]
fn a_retransmission_tries_the_next_way_once_the_first_had_its_time() {
    let (mut bench, consumer, best, second) = two_ways();
    assert_eq!(faces(&bench.interest(consumer, "/a/1", 1)), [best]);
    bench.wait_ms(9);
    assert_eq!(bench.interest(consumer, "/a/1", 2), []);
    assert_eq!(bench.last_drop, Some(DropReason::Suppressed));
    bench.wait_ms(1);
    assert_eq!(faces(&bench.interest(consumer, "/a/1", 3)), [second]);
    bench.wait_ms(19);
    assert_eq!(bench.interest(consumer, "/a/1", 4), [], "held back twice as long");
    bench.wait_ms(1);
    let sent = bench.interest(consumer, "/a/1", 5);
    assert_eq!(faces(&sent), [best], "all were tried: the one asked longest ago");
    assert_eq!(sent[0].interest().nonce, Some([5; 4]));
}

#[test]
fn a_retransmission_with_the_same_nonce_is_no_loop_on_a_link_with_one_peer() {
    let (mut bench, consumer, _, second) = two_ways();
    bench.interest(consumer, "/a/1", 1);
    bench.wait_ms(10);
    assert_eq!(faces(&bench.interest(consumer, "/a/1", 1)), [second]);
}

#[test]
fn links_with_several_peers_neither_get_nor_give_nacks() {
    let mut bench = Bench::new();
    let shared = bench
        .forwarder
        .add_face(FaceInfo { link_type: LinkType::MultiAccess, ..FaceInfo::default() });
    let consumer = bench.local();
    assert_eq!(bench.interest(shared, "/nowhere", 1), []);
    bench.route("/a", shared, 0);
    let sent = bench.interest(consumer, "/a/1", 2);
    assert_eq!(bench.nack(shared, &sent[0].wire, nack_reason::NO_ROUTE), []);
    assert_eq!(bench.forwarder.pending_count(), 1);
}

#[test]
fn multicast_asks_everybody_and_gives_up_when_everybody_has() {
    let (mut bench, consumer, best, second) = two_ways();
    bench.forwarder.set_strategy(&name("/a"), Arc::new(Multicast::default()));
    let sent = bench.interest(consumer, "/a/1", 1);
    assert_eq!(faces(&sent), [best, second]);
    assert_eq!(bench.nack(best, &sent[0].wire, nack_reason::NO_ROUTE), []);
    let passed = bench.nack(second, &sent[1].wire, nack_reason::NO_ROUTE);
    assert_eq!((passed[0].face, passed[0].nack), (consumer, Some(nack_reason::NO_ROUTE)));
    let sent = bench.interest(consumer, "/b", 1);
    assert_eq!(sent[0].nack, Some(nack_reason::NO_ROUTE), "elsewhere best-route still rules");
}

#[test]
fn a_nack_without_other_ways_reaches_the_consumer_and_frees_the_entry() {
    let mut bench = Bench::new();
    let (consumer, producer) = (bench.local(), bench.remote());
    bench.route("/a", producer, 0);
    let sent = bench.interest(consumer, "/a/1", 1);
    let passed = bench.nack(producer, &sent[0].wire, nack_reason::NONE);
    assert_eq!((passed[0].face, passed[0].nack), (consumer, Some(nack_reason::NONE)));
    // The consumer may ask again at once, with a nonce of its own.
    assert_eq!(faces(&bench.interest(consumer, "/a/1", 2)), [producer]);
}
