//! Rules that every controller keeps, and the formulas of the classic ones. Whole paths are in
//! `tests/congestion.rs`.

use super::*;

fn data(now_ns: u64, is_limiting: bool) -> DataSample {
    DataSample {
        now_ns,
        sent_ns: now_ns.saturating_sub(1),
        rtt_ns: Some(1),
        bytes: 8192,
        is_marked: false,
        in_flight: 0,
        is_limiting,
        round: None,
    }
}

fn mark(now_ns: u64, sent_ns: u64) -> DataSample {
    DataSample { sent_ns, is_marked: true, ..data(now_ns, true) }
}

fn loss(now_ns: u64, sent_ns: u64) -> LossSample {
    LossSample { now_ns, sent_ns, kind: LossKind::TimeOut, in_flight: 0, is_path_alive: false }
}

#[test]
fn slow_start_doubles_then_growth_is_linear() {
    let mut aimd = Aimd::new(512);
    (0..WINDOW_INITIAL).for_each(|_| aimd.on_data(&data(1, true)));
    assert_eq!(aimd.window(), 2 * WINDOW_INITIAL);
    aimd.on_loss(&loss(10, 5));
    assert_eq!(aimd.window(), WINDOW_INITIAL);
    (0..=WINDOW_INITIAL).for_each(|_| aimd.on_data(&data(20, true)));
    assert_eq!(aimd.window(), WINDOW_INITIAL + 1);
}

#[test]
fn one_full_queue_is_one_reduction() {
    let mut aimd = Aimd::new(512);
    (0..100).for_each(|sent_ns| aimd.on_data(&mark(100, sent_ns)));
    assert_eq!(aimd.window(), 11);
    aimd.on_data(&mark(200, 101));
    assert_eq!(aimd.window(), 7);
}

#[test]
fn every_window_keeps_its_bounds_and_ignores_an_idle_reader() {
    for (_, congestion) in NAMED {
        let mut controller = congestion.controller(512);
        (0..10_000).for_each(|now_ns| controller.on_data(&data(now_ns, false)));
        assert_eq!(controller.window(), WINDOW_INITIAL, "{congestion}");
        (0..10_000).for_each(|now_ns| controller.on_data(&data(now_ns, true)));
        assert_eq!(controller.window(), 512, "{congestion}");
        (1..200).for_each(|at_ns| controller.on_loss(&loss(at_ns * 20_000, at_ns * 20_000 - 1)));
        assert!(controller.window() <= 2 * WINDOW_MIN, "{congestion}: {}", controller.window());
    }
}

#[test]
fn cubic_returns_to_where_the_path_was_full_after_k_seconds() {
    let mut cubic = Cubic::new(10_000);
    (0..984).for_each(|_| cubic.on_data(&data(1, true)));
    assert_eq!(cubic.window(), 1000);
    cubic.on_loss(&loss(10, 5));
    assert_eq!(cubic.window(), 700);
    // K = cbrt(300 / 0.4) = 9.09 s; a window of answers every 100 ms.
    let mut reached_s = None;
    for round in 0..120u64 {
        for place in 0..cubic.window() as u64 {
            let now_ns = 20 + round * 100_000_000 + place;
            cubic.on_data(&DataSample { rtt_ns: Some(100_000_000), ..data(now_ns, true) });
        }
        if reached_s.is_none() && cubic.window() >= 998 {
            reached_s = Some(round as f64 / 10.0);
        }
    }
    let reached_s = reached_s.expect("it returns");
    assert!((7.0..10.0).contains(&reached_s), "{reached_s}");
}

#[test]
fn names_of_controllers_are_read_and_written() {
    let words = NAMED.iter().map(|(word, _)| *word);
    for text in words.chain(["fixed=256"]) {
        let congestion: Congestion = text.parse().expect("a known one");
        assert_eq!(congestion.to_string(), text);
        assert!(text.starts_with(congestion.controller(WINDOW_MAX).name()));
    }
    for text in ["", "reno", "fixed", "fixed=", "fixed=0", "fixed=-1", "fixed=99999999", "BDP"] {
        let error = text.parse::<Congestion>().expect_err(text).to_string();
        assert!(error.contains("bdp, cubic, aimd, scavenger, fixed=N"), "{error}");
    }
}

/// Plays rounds of a path that takes `trip_ns` and in each round carries so many octets a second;
/// the first answers come in `first_ns`. Gives the windows after the first hundred rounds, and the
/// pace at the end.
fn windows_on(
    first_ns: u64,
    trip_ns: u64,
    bytes_per_s: impl Fn(u64) -> u64,
) -> (Vec<usize>, Option<u64>) {
    const BYTES: u64 = 8192;
    let mut bdp = Congestion::Bdp.controller(16_384);
    let mut now_ns = 1;
    let mut windows = Vec::new();
    for round in 0..400 {
        let window = bdp.window() as u64;
        windows.push(bdp.window());
        let held_ns = (window * BYTES * 1_000_000_000 / bytes_per_s(round)).max(trip_ns);
        let rtt_ns = if round == 0 { first_ns } else { held_ns };
        for place in 0..window {
            let round = (place + 1 == window).then_some(Round {
                duration_ns: held_ns,
                bytes: window * BYTES,
                segment_count: window,
                bytes_per_s: window * BYTES * 1_000_000_000 / held_ns,
                rtt_mean_ns: rtt_ns,
                rtt_count: window,
                is_reader_limited: false,
            });
            now_ns += held_ns / window;
            let in_flight = window as usize;
            let rtt_ns = Some(rtt_ns);
            bdp.on_data(&DataSample { rtt_ns, in_flight, round, ..data(now_ns, true) });
        }
    }
    (windows.split_off(100), bdp.pacing_bytes_per_s())
}

#[test]
fn first_answers_from_a_cache_do_not_make_a_path_local() {
    let (windows, pace) = windows_on(200_000, 8_000_000, |_| 400_000_000);
    let window = windows[windows.len() - 1];
    assert!(window > 390, "{window}: what a path of 8 ms holds");
    assert!(pace.is_some());
}

#[test]
fn a_pause_on_a_local_path_is_no_longer_path() {
    for pause in 1..8 {
        let paused = |round| if round % 20 < pause { 100_000_000 } else { 1_000_000_000 };
        let (windows, _) = windows_on(150_000, 150_000, paused);
        let most = windows.iter().max();
        assert!(most < Some(&600), "{pause} of 20 rounds paused: {most:?}");
    }
}
