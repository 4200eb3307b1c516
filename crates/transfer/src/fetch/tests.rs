//! A network in virtual time between one fetch and a server that answers by rule.

use super::*;
use crate::congestion::{Congestion, WINDOW_MAX};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

const BYTES: u64 = 8192;

/// Fate of the n-th request that is sent.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Answer { after_ns: u64 },
    AnswerTwice,
    Lose,
    Nack(NackKind),
}

struct Outcome {
    arrived: BTreeSet<u64>,
    duplicates: u64,
    failure: Option<FetchFailure>,
    requests: u64,
    end_ns: u64,
}

/// Runs to the end; `fate(request number, segment)` decides; `last` stands in every answer.
fn run(mut fetch: Fetch, last: u64, fate: &mut dyn FnMut(u64, u64) -> Fate) -> Outcome {
    let mut flow = Flow::default();
    let mut events: BinaryHeap<Reverse<(u64, u64, u64, u8)>> = BinaryHeap::new();
    let mut outcome =
        Outcome { arrived: BTreeSet::new(), duplicates: 0, failure: None, requests: 0, end_ns: 0 };
    let mut now_ns = 0;
    let mut nacks = Vec::new();
    for _ in 0..1_000_000 {
        while let Some(segment) = fetch.poll_segment(now_ns, 4096, BYTES, &mut flow) {
            outcome.requests += 1;
            let number = outcome.requests;
            match fate(number, segment) {
                Fate::Answer { after_ns } => {
                    events.push(Reverse((now_ns + after_ns, number, segment, 0)));
                }
                Fate::AnswerTwice => {
                    events.push(Reverse((now_ns + MS, number, segment, 0)));
                    events.push(Reverse((now_ns + 3 * MS, number, segment, 0)));
                }
                Fate::Lose => {}
                Fate::Nack(kind) => {
                    nacks.push(kind);
                    events.push(Reverse((now_ns + MS, number, segment, nacks.len() as u8)));
                }
            }
        }
        if fetch.is_finished() || fetch.failure().is_some() {
            break;
        }
        let event_ns = events.peek().map(|Reverse(event)| event.0);
        let deadline_ns = fetch.poll_deadline(&flow);
        let flow_ns = flow.poll_deadline();
        let next_ns = [event_ns, deadline_ns, flow_ns].into_iter().flatten().min();
        now_ns = now_ns.max(next_ns.expect("an unfinished fetch waits for something"));
        if event_ns == Some(now_ns) || event_ns.is_some_and(|at| at <= now_ns) {
            let Reverse((_, _, segment, nack)) = events.pop().expect("peeked");
            if nack > 0 {
                fetch.handle_nack(segment, nacks[usize::from(nack) - 1], now_ns, &mut flow);
            } else if segment <= last && fetch.handle_data(segment, false, now_ns, &mut flow) {
                fetch.set_last_segment(last, &mut flow);
                assert!(outcome.arrived.insert(segment), "segment {segment} was taken twice");
            } else {
                outcome.duplicates += 1;
            }
        }
        fetch.handle_timeout(now_ns, &mut flow);
    }
    outcome.failure = fetch.failure();
    outcome.end_ns = now_ns;
    fetch.abandon(&mut flow);
    assert_eq!(flow.in_flight(), 0, "every request is accounted for once");
    outcome
}

fn whole(last: u64) -> Fetch {
    Fetch::new(SegmentRuns::up_to(last), Some(last), FetchConfig::default())
}

fn random(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}

#[test]
fn every_segment_is_asked_once_on_a_clean_path() {
    let outcome = run(whole(999), 999, &mut |_, _| Fate::Answer { after_ns: MS });
    assert_eq!((outcome.arrived.len(), outcome.requests), (1000, 1000));
    assert_eq!((outcome.failure, outcome.duplicates), (None, 0));
}

#[test]
fn loss_reordering_and_duplicates_do_not_matter() {
    for seed in 1..30 {
        let mut random = random(seed);
        let outcome = run(whole(700), 700, &mut |_, _| match random() % 10 {
            0..2 => Fate::Lose,
            2 => Fate::AnswerTwice,
            3 => Fate::Nack(NackKind::Congestion),
            4 => Fate::Nack(NackKind::Duplicate),
            _ => Fate::Answer { after_ns: random() % (40 * MS) },
        });
        assert_eq!(outcome.failure, None, "seed {seed}");
        assert_eq!(outcome.arrived, (0..=700).collect(), "seed {seed}");
    }
}

#[test]
fn an_unknown_end_is_learned_from_the_first_answer() {
    let fetch = Fetch::new(SegmentRuns::from(0), None, FetchConfig::default());
    let mut beyond = 0;
    let outcome = run(fetch, 40, &mut |_, segment| {
        beyond += u64::from(segment > 40);
        Fate::Answer { after_ns: MS }
    });
    assert_eq!(outcome.arrived, (0..=40).collect());
    assert_eq!(beyond, 0, "nothing is asked for beyond the end");
}

#[test]
fn only_the_missing_segments_are_asked_for() {
    let mut runs = SegmentRuns::default();
    runs.push(3..5);
    runs.push(90..200);
    let fetch = Fetch::new(runs, Some(99), FetchConfig::default());
    let outcome = run(fetch, 99, &mut |_, _| Fate::Answer { after_ns: MS });
    assert_eq!(outcome.arrived, (3..5).chain(90..100).collect());
}

#[test]
fn silence_is_reported_when_its_time_is_up_and_not_much_later() {
    let outcome = run(whole(10), 10, &mut |_, _| Fate::Lose);
    assert!(matches!(outcome.failure, Some(FetchFailure::Silence { .. })));
    assert_eq!(outcome.end_ns, 15_000 * MS);
}

#[test]
fn one_dead_segment_fails_the_fetch_after_its_retries() {
    let outcome = run(whole(3000), 3000, &mut |_, segment| match segment {
        77 => Fate::Lose,
        _ => Fate::Answer { after_ns: MS },
    });
    assert_eq!(outcome.failure, Some(FetchFailure::Silence { segment: 77 }));
    assert_eq!(outcome.arrived.len(), 3000);
}

/// On a bad path a few of many segments are lost again and again, which is no reason to give up a
/// file that comes; one that never comes is given up all the same.
#[test]
fn a_segment_is_asked_for_much_longer_while_others_come() {
    let (mut flow, mut fetch, mut tries) = (Flow::default(), whole(1000), 0);
    let mut now_ns = 0;
    while fetch.failure().is_none() {
        assert!(now_ns < 60_000 * MS, "some day it is enough");
        let polled: Vec<u64> =
            (0..3).map_while(|_| fetch.poll_segment(now_ns, 8, BYTES, &mut flow)).collect();
        now_ns += 500 * MS;
        for segment in polled {
            tries += u32::from(segment == 0);
            if segment != 0 {
                fetch.handle_data(segment, false, now_ns, &mut flow);
            }
        }
        fetch.handle_timeout(now_ns, &mut flow);
    }
    assert_eq!(fetch.failure(), Some(FetchFailure::Silence { segment: 0 }));
    let patience_ns = FetchConfig::default().silence_ns;
    assert!(now_ns > patience_ns && tries > 2 * FetchConfig::default().retries, "{tries} tries");
}

#[test]
fn no_route_is_believed_within_a_second() {
    let outcome = run(whole(10), 10, &mut |_, _| Fate::Nack(NackKind::NoRoute));
    assert_eq!(outcome.failure, Some(FetchFailure::NoRoute));
    assert!(outcome.end_ns < 1_000 * MS);
}

#[test]
fn a_route_that_comes_back_saves_the_fetch() {
    let outcome = run(whole(100), 100, &mut |number, _| match number {
        20..60 => Fate::Nack(NackKind::NoRoute),
        _ => Fate::Answer { after_ns: MS },
    });
    assert_eq!((outcome.failure, outcome.arrived.len()), (None, 101));
}

#[test]
fn a_version_that_is_gone_ends_the_fetch_at_once() {
    let outcome = run(whole(100), 100, &mut |number, _| match number {
        50 => Fate::Nack(NackKind::Gone),
        _ => Fate::Answer { after_ns: MS },
    });
    assert!(matches!(outcome.failure, Some(FetchFailure::Gone { .. })));
}

#[test]
fn wrong_content_is_asked_for_again_a_bounded_number_of_times() {
    let mut flow = Flow::default();
    let mut fetch = whole(0);
    assert_eq!(fetch.poll_segment(0, 8, BYTES, &mut flow), Some(0));
    assert!(fetch.handle_data(0, false, MS, &mut flow));
    fetch.refuse(0, MS);
    assert_eq!(fetch.poll_segment(MS, 8, BYTES, &mut flow), None);
    for _ in 1..FetchConfig::default().refusals_max {
        assert!(!fetch.is_finished() && fetch.failure().is_none());
        let due_ns = fetch.poll_deadline(&flow).expect("it will be asked for again");
        assert_eq!(fetch.poll_segment(due_ns, 8, BYTES, &mut flow), Some(0));
        assert!(fetch.handle_data(0, false, due_ns, &mut flow));
        fetch.refuse(0, due_ns);
    }
    assert_eq!(fetch.failure(), Some(FetchFailure::Refused { segment: 0 }));
}

/// Pauses before each of `count` repetitions of a segment, made necessary by `spoil`.
fn pauses(count: usize, seed: u64, spoil: &dyn Fn(&mut Fetch, u64, &mut Flow)) -> Vec<u64> {
    let controller = Congestion::Fixed(WINDOW_MAX).controller(WINDOW_MAX);
    let (mut flow, mut fetch) = (Flow::new(controller, seed), whole(0));
    let (mut now_ns, mut pauses) = (0, Vec::new());
    for _ in 0..count {
        assert_eq!(fetch.poll_segment(now_ns, 8, BYTES, &mut flow), Some(0));
        spoil(&mut fetch, now_ns, &mut flow);
        assert_eq!(fetch.poll_segment(now_ns, 8, BYTES, &mut flow), None, "not at once");
        let due_ns = fetch.poll_deadline(&flow).expect("it will be asked for again");
        pauses.push(due_ns - now_ns);
        now_ns = due_ns;
    }
    pauses
}

#[test]
fn pauses_are_between_half_and_all_of_what_is_written_and_differ_from_seed_to_seed() {
    type Spoil = dyn Fn(&mut Fetch, u64, &mut Flow);
    let nack = |kind| {
        move |fetch: &mut Fetch, now_ns, flow: &mut Flow| fetch.handle_nack(0, kind, now_ns, flow)
    };
    let refuse = |fetch: &mut Fetch, now_ns, flow: &mut Flow| {
        fetch.handle_data(0, false, now_ns, flow);
        fetch.refuse(0, now_ns);
    };
    let cases: [(&Spoil, &[u64]); 4] = [
        (&nack(NackKind::Congestion), &[100, 200, 400, 800, 1600, 1600]),
        (&nack(NackKind::Duplicate), &[20, 40, 80, 160, 320, 640, 800, 800]),
        (&nack(NackKind::NoRoute), &[100; 4]),
        (&refuse, &[20; 4]),
    ];
    for (spoil, longest_ms) in cases {
        let count = longest_ms.len();
        for seed in 0..50 {
            for (pause_ns, longest_ms) in pauses(count, seed, spoil).iter().zip(longest_ms) {
                assert!((longest_ms * MS / 2..=longest_ms * MS).contains(pause_ns), "{pause_ns}");
            }
        }
        assert_eq!(pauses(count, 7, spoil), pauses(count, 7, spoil));
        let pairs = pauses(count, 7, spoil).into_iter().zip(pauses(count, 8, spoil));
        assert!(pairs.into_iter().all(|(one, other)| one != other));
    }
}

#[test]
fn two_different_ends_are_an_error() {
    let mut flow = Flow::default();
    let mut fetch = Fetch::new(SegmentRuns::from(0), None, FetchConfig::default());
    fetch.set_last_segment(5, &mut flow);
    fetch.set_last_segment(5, &mut flow);
    assert_eq!(fetch.failure(), None);
    fetch.set_last_segment(6, &mut flow);
    assert_eq!(fetch.failure(), Some(FetchFailure::EndMoved));
}

#[test]
fn a_stuck_segment_does_not_let_the_queue_grow() {
    let mut flow = Flow::default();
    let mut fetch = whole(1_000_000);
    assert_eq!(fetch.poll_segment(0, 8, BYTES, &mut flow), Some(0));
    for now_ns in 1..100_000 {
        let segment = fetch.poll_segment(now_ns, 8, BYTES, &mut flow).expect("room");
        fetch.handle_data(segment, false, now_ns, &mut flow);
        assert!(fetch.in_flight.len() <= 2);
    }
}

fn any_fate() -> impl proptest::strategy::Strategy<Value = Fate> {
    use proptest::prelude::*;
    prop_oneof![
        8 => (1..60u64).prop_map(|ms| Fate::Answer { after_ns: ms * MS }),
        1 => Just(Fate::AnswerTwice),
        2 => Just(Fate::Lose),
        1 => Just(Fate::Nack(NackKind::Congestion)),
        1 => Just(Fate::Nack(NackKind::Duplicate)),
        1 => Just(Fate::Nack(NackKind::NoRoute)),
    ]
}

#[test]
fn nothing_beyond_the_first_is_asked_for_while_it_waits_after_a_refusal() {
    let fetch = Fetch::new(SegmentRuns::from(0), None, FetchConfig::default());
    let outcome = run(fetch, 0, &mut |number, segment| {
        assert_eq!(segment, 0, "beyond the end");
        match number {
            1 => Fate::Nack(NackKind::Congestion),
            _ => Fate::Answer { after_ns: MS },
        }
    });
    assert_eq!((outcome.failure, outcome.requests), (None, 2));
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_the_network_does_each_segment_comes_once_or_the_fetch_says_why(
        last in 0..400u64,
        knows_end: bool,
        fates in proptest::collection::vec(any_fate(), 1..300),
    ) {
        let fetch = if knows_end {
            whole(last)
        } else {
            Fetch::new(SegmentRuns::from(0), None, FetchConfig::default())
        };
        let mut beyond = 0;
        // Beyond the list of fates the network is well again.
        let outcome = run(fetch, last, &mut |number, segment| {
            beyond += u64::from(segment > last);
            let fate = fates.get(number as usize - 1).copied();
            fate.unwrap_or(Fate::Answer { after_ns: 2 * MS })
        });
        proptest::prop_assert_eq!(beyond, 0);
        match outcome.failure {
            None => proptest::prop_assert_eq!(outcome.arrived, (0..=last).collect()),
            Some(failure) => proptest::prop_assert_eq!(failure, FetchFailure::NoRoute),
        }
    }
}
