//! Bounds of a flow by itself; how it does on a path is in `tests/congestion.rs`.

use super::*;
use crate::congestion::Aimd;

const SECOND: u64 = 1_000_000_000;

fn sent_at(sent_ns: u64) -> Sent {
    Sent { sent_ns, order: 1, bytes: 8192, was_sent_once: true }
}

#[test]
fn the_window_limits_what_is_under_way() {
    let (mut flow, mut share) = (Flow::default(), Share::default());
    let mut sent = 0;
    while flow.may_send(&mut share, 0) {
        flow.on_sent(&mut share, 8192, 0);
        sent += 1;
    }
    assert_eq!(sent, flow.window());
    flow.on_released(sent);
    assert_eq!(flow.in_flight(), 0);
}

#[test]
fn a_whole_window_lost_backs_off_once() {
    let mut flow = Flow::new(Box::new(Aimd::new(512)), 0);
    let mut share = Share::default();
    // A path of 1 ms, so that there is something to double.
    flow.on_sent(&mut share, 8192, 1);
    flow.on_data(MS, &sent_at(1), false);
    let before = flow.rto_ns();
    for sent_ns in 2 * MS..2 * MS + 16 {
        flow.on_sent(&mut share, 8192, sent_ns);
        flow.on_time_out(SECOND, &sent_at(sent_ns));
    }
    assert!((before..=2 * before).contains(&flow.rto_ns()), "{}", flow.rto_ns());
    assert_eq!(flow.window(), 8);
}

#[test]
fn a_rate_limit_is_kept_over_ten_seconds() {
    let (mut flow, mut share) = (Flow::default(), Share::default());
    flow.limit_rate(1_000_000, 0);
    let (mut now_ns, mut bytes) = (0, 0);
    while now_ns < 10 * SECOND {
        while flow.may_send(&mut share, now_ns) {
            flow.on_sent(&mut share, 8192, now_ns);
            flow.on_released(1);
            bytes += 8192;
        }
        now_ns = flow.poll_deadline().expect("the bucket is empty");
    }
    assert!((10_000_000..10_200_000).contains(&bytes), "{bytes}");
}

/// A busy publisher answers late and rarely for a while. What is paced after that has each answer
/// before the next request leaves.
#[test]
fn a_pace_at_which_nothing_overlaps_is_left_again() {
    let (mut flow, mut share) = (Flow::default(), Share::default());
    let mut in_flight = std::collections::VecDeque::new();
    let (mut now_ns, mut last_ns, mut late_bytes) = (0, 0, 0);
    while now_ns < 6 * SECOND {
        let is_busy = now_ns < 2 * SECOND;
        while flow.may_send(&mut share, now_ns) {
            let order = flow.on_sent(&mut share, 8192, now_ns);
            let (took_ns, gap_ns) = if is_busy { (12 * MS, 5 * MS) } else { (MS / 4, MS / 10) };
            last_ns = (last_ns + gap_ns).max(now_ns + took_ns);
            in_flight.push_back((last_ns, Sent { order, ..sent_at(now_ns) }));
        }
        let came = in_flight.front().map(|(at_ns, _)| *at_ns);
        let next_ns = came.into_iter().chain(flow.poll_deadline()).min();
        now_ns = next_ns.expect("something is awaited").max(now_ns + 1);
        flow.settle(now_ns);
        while let Some((_, sent)) = in_flight.pop_front_if(|(at_ns, _)| *at_ns <= now_ns) {
            flow.on_data(now_ns, &sent, false);
            late_bytes += if now_ns > 5 * SECOND { 8192 } else { 0 };
        }
    }
    assert!(late_bytes > 40_000_000, "{late_bytes} in the last second");
}

#[test]
fn a_prompt_request_finds_room_beyond_a_full_window() {
    let (mut flow, mut bulk) = (Flow::default(), Share::default());
    let mut prompt = Share::new(Class::Prompt);
    while flow.may_send(&mut bulk, 0) {
        flow.on_sent(&mut bulk, 8192, 0);
    }
    let mut beyond = 0;
    while flow.may_send(&mut prompt, 0) {
        flow.on_sent(&mut prompt, 8192, 0);
        beyond += 1;
    }
    assert_eq!(beyond, PROMPT_RESERVE);
}

#[test]
fn answers_that_come_after_all_make_it_patient_and_losses_impatient_again() {
    let (mut flow, mut share) = (Flow::default(), Share::default());
    let mut order = flow.on_sent(&mut share, 8192, 0);
    for now_ns in (0..100).map(|round| round * 100 * MS) {
        let next = flow.on_sent(&mut share, 8192, now_ns + 100 * MS);
        flow.on_data(now_ns + 100 * MS, &Sent { order, ..sent_at(now_ns) }, false);
        order = next;
    }
    let before_ns = flow.overtaken_after_ns();
    assert!((120 * MS..150 * MS).contains(&before_ns), "{before_ns}");
    flow.on_verdict(false);
    assert!(flow.overtaken_after_ns() > before_ns + 20 * MS);
    (0..RIGHT_MAX).for_each(|_| flow.on_verdict(true));
    assert_eq!(flow.overtaken_after_ns(), before_ns);
}

#[test]
fn a_fetch_without_work_does_not_hide_that_another_one_waits_for_room() {
    let (mut flow, mut bulk, mut idle) = (Flow::default(), Share::default(), Share::default());
    let mut order = 0;
    while flow.may_send(&mut bulk, 0) {
        order = flow.on_sent(&mut bulk, 8192, 0);
    }
    let before = flow.window();
    flow.on_idle(&mut idle);
    flow.on_data(20 * MS, &Sent { order, ..sent_at(0) }, false);
    assert_eq!(flow.window(), before + 1);
    flow.on_idle(&mut bulk);
    flow.on_data(20 * MS, &Sent { order: order - 1, ..sent_at(0) }, false);
    assert_eq!(flow.window(), before + 1, "now nobody wants more");
}

#[test]
fn what_nobody_waits_for_any_more_wakes_nobody() {
    let (mut flow, mut share) = (Flow::default(), Share::default());
    flow.limit_rate(1_000_000, 0);
    while flow.may_send(&mut share, 0) {
        flow.on_sent(&mut share, 8192, 0);
        flow.on_released(1);
    }
    let at_ns = flow.poll_deadline().expect("the bucket is empty");
    flow.leave(&mut share);
    flow.settle(at_ns - 1);
    assert_eq!(flow.poll_deadline(), Some(at_ns), "others may wait");
    flow.settle(at_ns);
    assert_eq!(flow.poll_deadline(), None, "else drivers never sleep again");
}
