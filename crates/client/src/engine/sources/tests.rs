//! Peers that accept and close, come back, or stay away, over minutes that take no time.

use super::*;

const MS: u64 = 1_000_000;
const PATIENCE_NS: u64 = 15_000 * MS;
const PATIENCE: Patience = Patience { first_ns: PATIENCE_NS, begun_ns: 4 * PATIENCE_NS };

/// Calls that a peer which behaves in one way sees within so long: the sources in their order.
fn play(
    mut sources: Sources,
    until_ns: u64,
    mut accept: impl FnMut(&mut Sources, u64, usize) -> bool,
) -> Vec<(u64, usize)> {
    let (mut now_ns, mut calls, mut random) = (0, Vec::new(), 1_u64);
    sources.handle_disconnected(now_ns, random);
    while now_ns <= until_ns {
        random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        let Some(connect) = sources.poll_connect(now_ns) else {
            now_ns = sources.poll_deadline().expect("it will try again");
            continue;
        };
        calls.push((now_ns, connect.source));
        assert!(calls.len() < 100_000, "no pause");
        if accept(&mut sources, now_ns, connect.source) {
            sources.handle_connected(now_ns);
            sources.ask(now_ns);
            sources.handle_disconnected(now_ns, random);
        } else if sources.handle_connect_failed(now_ns, random).is_some() {
            break;
        }
    }
    calls
}

#[test]
fn who_accepts_and_closes_is_not_called_without_a_pause() {
    let calls = play(Sources::new(1, PATIENCE), PATIENCE_NS, |_, _, _| true);
    // Six pauses up to the longest, then two to four a second.
    assert!((30..=70).contains(&calls.len()), "{}", calls.len());
    let pauses = calls.windows(2).map(|pair| pair[1].0 - pair[0].0).collect::<Vec<_>>();
    assert!(pauses.iter().all(|pause| (10 * MS..=500 * MS).contains(pause)), "{pauses:?}");
    assert!(pauses[10..].iter().any(|pause| *pause != pauses[10]), "no jitter: {pauses:?}");
}

#[test]
fn a_connection_that_has_delivered_is_made_again_at_once() {
    let mut sources = Sources::new(1, PATIENCE);
    sources.hear();
    sources.handle_disconnected(3_000 * MS, 7);
    assert!(sources.poll_connect(3_000 * MS).is_some());
    // And the pauses begin with the shortest again.
    sources.handle_connected(3_000 * MS);
    sources.handle_disconnected(3_001 * MS, 7);
    assert!(sources.poll_connect(3_001 * MS).is_none());
    assert!(sources.poll_connect(3_021 * MS).is_some());
}

#[test]
fn who_delivers_a_packet_and_closes_is_called_fifty_times_a_second_at_most() {
    let mut sources = Sources::new(1, PATIENCE);
    let (mut now_ns, mut calls) = (0, 0);
    while now_ns < 1_000 * MS {
        sources.hear();
        sources.handle_disconnected(now_ns, 7);
        now_ns = sources.poll_deadline().expect("it will try again").max(now_ns);
        assert!(sources.poll_connect(now_ns).is_some());
        sources.handle_connected(now_ns);
        calls += 1;
        assert!(calls <= 51, "no pause");
    }
}

#[test]
fn of_several_the_next_has_its_turn_after_one_that_accepts_and_closes() {
    let calls = play(Sources::new(3, PATIENCE), 2_000 * MS, |_, _, _| true);
    let order = calls.iter().map(|call| call.1).take(6).collect::<Vec<_>>();
    assert_eq!(order, [1, 2, 0, 1, 2, 0]);
}

#[test]
fn who_listens_again_is_found_within_a_second() {
    for back_ns in [0, 40 * MS, 700 * MS, 5_000 * MS, 14_000 * MS] {
        let mut found_ns = None;
        let calls = play(Sources::new(1, PATIENCE), PATIENCE_NS, |sources, now_ns, _| {
            if now_ns >= back_ns {
                sources.hear();
                found_ns.get_or_insert(now_ns);
            }
            now_ns >= back_ns
        });
        let found_ns = found_ns.expect("it was found");
        let attempt_ns = RECONNECT_TIMEOUT_NS;
        assert!(found_ns + attempt_ns <= back_ns + 1_000 * MS, "{back_ns}: {calls:?}");
    }
}

#[test]
fn a_lost_source_is_waited_for_as_long_as_patience_and_a_pause() {
    let mut ended_ns = 0;
    let calls = play(Sources::new(1, PATIENCE), u64::MAX, |_, now_ns, _| {
        ended_ns = now_ns;
        false
    });
    assert!((PATIENCE_NS..=PATIENCE_NS + PAUSES.max_ns).contains(&ended_ns), "{ended_ns}");
    assert!(calls.len() < 100, "{}", calls.len());
}

/// `via=tcp…&via=udp…` of one publisher that restarts: refused here, unreachable there.
#[test]
fn what_has_delivered_is_waited_for_at_all_its_addresses() {
    let mut sources = Sources::new(2, PATIENCE);
    sources.hear();
    sources.hear_data();
    sources.ask(0);
    sources.handle_disconnected(0, 7);
    let (mut now_ns, mut calls, mut end) = (0, [0, 0], None);
    while end.is_none() {
        let Some(connect) = sources.poll_connect(now_ns) else {
            now_ns = sources.poll_deadline().expect("it will try again");
            continue;
        };
        calls[connect.source] += 1;
        // The second is a datagram socket, which can always be had.
        end = if connect.source == 0 {
            sources.handle_connect_failed(now_ns, 7)
        } else {
            sources.handle_connected(now_ns);
            sources.ask(now_ns);
            sources.handle_unreachable(now_ns, 7)
        };
    }
    let outage_ns = 4 * PATIENCE_NS;
    assert!((outage_ns..outage_ns + 1_000 * MS).contains(&now_ns), "{now_ns}");
    assert!(calls.iter().all(|count| (60..=300).contains(count)), "{calls:?}");
}

#[test]
fn before_anything_was_delivered_nobody_listening_is_believed_at_once() {
    let mut sources = Sources::new(1, PATIENCE);
    sources.ask(0);
    assert_eq!(sources.handle_unreachable(0, 7), Some(End::Unreachable));
}

#[test]
fn an_outage_is_measured_from_when_something_was_owed() {
    let mut sources = Sources::new(1, PATIENCE);
    sources.hear();
    sources.hear_data();
    sources.handle_disconnected(0, 7);
    assert!(sources.poll_connect(PAUSES.min_ns).is_some());
    sources.handle_connected(PAUSES.min_ns);
    // Nobody asks anything for an hour; then the forwarder goes away.
    let hour_ns = 3_600_000 * MS;
    sources.handle_disconnected(hour_ns, 7);
    let at_ns = sources.poll_deadline().expect("it will try again");
    assert!(sources.poll_connect(at_ns).is_some());
    assert_eq!(sources.handle_connect_failed(at_ns, 7), None);
}
