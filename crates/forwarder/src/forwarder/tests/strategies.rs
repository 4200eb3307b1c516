//! Strategies in a network in which paths are slow, fail and recover.

use byname_packet::lp::nack_reason;

use crate::face::FaceId;
use crate::strategy;
use crate::testing::{Bench, MS, faces, name};

fn choose(bench: &mut Bench, instance: &str) {
    let chosen = strategy::by_name(name(&format!("/localhost/nfd/strategy/{instance}")).view());
    bench.forwarder.set_strategy(&name("/a"), chosen.expect("a strategy"));
}

/// A consumer and two ways to `/a`, the first cheaper.
fn two_ways(instance: &str) -> (Bench, FaceId, FaceId, FaceId) {
    let mut bench = Bench::new();
    let (consumer, cheap, dear) = (bench.local(), bench.remote(), bench.remote());
    bench.route("/a", cheap, 10);
    bench.route("/a", dear, 20);
    choose(&mut bench, instance);
    (bench, consumer, cheap, dear)
}

/// Asks for the next name; after `rtt_ms` whoever was asked answers. Who that was.
fn exchange(bench: &mut Bench, consumer: FaceId, number: u64, rtt_ms: u64) -> Vec<FaceId> {
    let uri = format!("/a/{number}");
    let asked = faces(&bench.interest(consumer, &uri, number as u8));
    let retried = faces(&bench.after_ms(rtt_ms));
    assert_eq!(retried, [], "an answer in time is waited for");
    assert_eq!(faces(&bench.data(asked[0], &uri, 0)), [consumer]);
    asked
}

#[test]
fn a_path_that_dies_costs_two_round_trips_and_then_nothing() {
    let (mut bench, consumer, cheap, dear) = two_ways("asf/probing-interval~100000000");
    for number in 0..20 {
        let asked = exchange(&mut bench, consumer, number, 20);
        assert_eq!(asked[0], cheap);
    }
    // It dies: Interests are sent on without the consumer's help.
    for number in 20..23 {
        let uri = format!("/a/{number}");
        assert_eq!(faces(&bench.interest(consumer, &uri, 1)), [cheap]);
        assert_eq!(faces(&bench.after_ms(40)), [dear], "within two round trips");
        bench.wait_ms(20);
        assert_eq!(faces(&bench.data(dear, &uri, 0)), [consumer]);
    }
    for number in 23..30 {
        assert_eq!(exchange(&mut bench, consumer, number, 20), [dear], "{number}");
    }
}

#[test]
fn the_faster_path_is_found_by_a_probe() {
    let (mut bench, consumer, cheap, dear) = two_ways("asf/probing-interval~60000");
    let mut probes = 0;
    for number in 0..400 {
        let uri = format!("/a/{number}");
        let sent = bench.interest(consumer, &uri, number as u8);
        if let [first, second] = &sent[..] {
            probes += 1;
            assert_eq!((first.face, second.face), (cheap, dear));
            assert_ne!(first.interest().nonce, second.interest().nonce);
            bench.wait_ms(5);
            assert_eq!(faces(&bench.data(dear, &uri, 0)), [consumer]);
            break;
        }
        bench.wait_ms(50);
        assert_eq!(faces(&bench.data(cheap, &uri, 0)), [consumer]);
    }
    assert_eq!(probes, 1, "within the first five seconds");
    for number in 1000..1010 {
        assert_eq!(exchange(&mut bench, consumer, number, 5), [dear]);
    }
}

#[test]
fn a_nack_makes_the_adaptive_strategy_try_the_next_path() {
    let (mut bench, consumer, cheap, dear) = two_ways("asf/max-timeouts~1");
    let sent = bench.interest(consumer, "/a/1", 1);
    assert_eq!(faces(&sent), [cheap]);
    let sent = bench.nack(cheap, &sent[0].wire, nack_reason::CONGESTION);
    assert_eq!(faces(&sent), [dear]);
    assert_eq!(faces(&bench.interest(consumer, "/a/2", 2)), [dear], "the first counts as dead");
    let sent = bench.nack(dear, &sent[0].wire, nack_reason::NO_ROUTE);
    assert_eq!((sent[0].face, sent[0].nack), (consumer, Some(nack_reason::CONGESTION)));
}

#[test]
fn nobody_answers_and_the_interest_ends_in_time() {
    let (mut bench, consumer, cheap, dear) = two_ways("asf");
    assert_eq!(faces(&bench.interest(consumer, "/a/1", 1)), [cheap]);
    assert_eq!(faces(&bench.after_ms(300)), [dear]);
    assert_eq!(bench.after_ms(300), [], "there is no third");
    bench.wait_ms(3500);
    assert_eq!(bench.forwarder.pending_count(), 0);
}

#[test]
fn load_spreads_by_cost() {
    let mut bench = Bench::new();
    let (consumer, free, dear, far) =
        (bench.local(), bench.remote(), bench.remote(), bench.remote());
    for (face, cost) in [(free, 0), (dear, 3), (far, u64::MAX)] {
        bench.route("/a", face, cost);
    }
    choose(&mut bench, "random");
    let mut counts = [0; 3];
    for number in 0..2000u32 {
        let asked = faces(&bench.interest(consumer, &format!("/a/{number}"), 1));
        let at = [free, dear, far].iter().position(|face| asked == [*face]);
        counts[at.expect("one of them")] += 1;
    }
    assert!((1500..1700).contains(&counts[0]), "four fifths: {counts:?}");
    assert!((300..500).contains(&counts[1]), "one fifth: {counts:?}");
}

#[test]
fn a_random_choice_that_is_refused_is_made_again() {
    let (mut bench, consumer, cheap, dear) = two_ways("random");
    let sent = bench.interest(consumer, "/a/1", 1);
    let other = if sent[0].face == cheap { dear } else { cheap };
    let again = bench.nack(sent[0].face, &sent[0].wire, nack_reason::NO_ROUTE);
    assert_eq!(faces(&again), [other]);
    let passed = bench.nack(other, &again[0].wire, nack_reason::NO_ROUTE);
    assert_eq!(faces(&passed), [consumer]);
}

/// Sync Interests of routers: they are never answered, and each is forwarded at once.
#[test]
fn periodic_interests_without_answers_go_everywhere_each_time() {
    let (mut bench, consumer, cheap, dear) = two_ways("multicast");
    for round in 0..50 {
        let sent = bench.interest_with(consumer, "/a/sync", round, |i| i.lifetime_ms(1000));
        assert_eq!(faces(&sent), [cheap, dear], "round {round}");
        bench.wait_ms(400);
    }
}

#[test]
fn a_strategy_can_be_changed_while_interests_are_pending() {
    let (mut bench, consumer, cheap, dear) = two_ways("asf");
    bench.interest(consumer, "/a/1", 1);
    choose(&mut bench, "multicast");
    assert_eq!(faces(&bench.interest(consumer, "/a/2", 2)), [cheap, dear]);
    assert_eq!(faces(&bench.data(cheap, "/a/1", 0)), [consumer]);
    choose(&mut bench, "best-route/retx-suppression-initial~100");
    assert_eq!(faces(&bench.interest(consumer, "/a/3", 3)), [cheap]);
    bench.now_ns += 99 * MS;
    assert_eq!(bench.interest(consumer, "/a/3", 4), []);
    bench.now_ns += MS;
    assert_eq!(faces(&bench.interest(consumer, "/a/3", 5)), [dear]);
}
