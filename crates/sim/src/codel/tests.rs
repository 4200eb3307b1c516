//! Histories computed by hand from RFC 8289.

use super::*;

const MS: u64 = 1_000_000;
const PACKET: u64 = 1000;

/// A packet every millisecond goes in and one comes out that waited for `waited_ms`: the queue
/// stays as long as it is. Says when (in milliseconds) something was dropped or marked.
fn steady(waited_ms: u64, marks: bool, until_ms: u64) -> (Vec<u64>, Codel<u64>) {
    let mut queue = Codel::new(1 << 30, marks);
    let (mut events, mut seen) = (Vec::new(), 0);
    for now_ms in 0..until_ms {
        queue.push(now_ms * MS, PACKET, now_ms);
        // What is dropped is made up for, so that the waiting time does not change.
        while queue.waiting.front().is_some_and(|it| it.since_ns + waited_ms * MS <= now_ms * MS) {
            let Some(popped) = queue.pop(now_ms * MS) else { break };
            if popped.is_marked {
                events.push(now_ms);
            }
            for _ in seen..queue.drop_count() {
                events.push(now_ms);
            }
            seen = queue.drop_count();
        }
    }
    (events, queue)
}

#[test]
fn what_waits_less_than_the_target_is_left_alone() {
    let (events, queue) = steady(4, false, 2000);
    assert!(events.is_empty(), "{events:?}");
    assert_eq!(queue.drop_count(), 0);
}

#[test]
fn marks_come_after_an_interval_and_then_faster() {
    // Above the target from the first packet out, at 10 ms; the interval is over at 110. Then
    // 100/√1 later, 100/√2, 100/√3 …: 210, 280.7, 338.4, 388.4, 433.2 — seen by the next packet.
    let (events, queue) = steady(10, true, 450);
    assert_eq!(events, [110, 210, 281, 339, 389, 434]);
    assert_eq!((queue.mark_count(), queue.drop_count()), (6, 0));
}

#[test]
fn drops_follow_the_same_law() {
    // A drop brings the next packet, which has waited a millisecond less, but still too long.
    let (events, queue) = steady(10, false, 450);
    assert_eq!(events, [110, 210, 281, 339, 389, 434]);
    assert_eq!((queue.mark_count(), queue.drop_count()), (0, 6));
}

#[test]
fn a_short_wait_ends_it_and_a_soon_return_goes_on_at_the_old_rate() {
    let mut queue = Codel::new(1 << 30, true);
    let mut marked = Vec::new();
    let mut run = |queue: &mut Codel<()>, from_ms: u64, to_ms: u64, waited_ms: u64| {
        queue.waiting.clear();
        queue.bytes = 0;
        for now_ms in from_ms..to_ms {
            for since_ms in [now_ms - waited_ms; 3] {
                queue.push(since_ms * MS, PACKET, ());
            }
            // The one in front decides; three wait, so that it is not the last packet's size.
            if queue.pop(now_ms * MS).is_some_and(|it| it.is_marked) {
                marked.push(now_ms);
            }
            queue.waiting.clear();
            queue.bytes = 0;
        }
    };
    run(&mut queue, 1000, 1400, 10);
    run(&mut queue, 1400, 1401, 1);
    // Five marks (1100, 1200, 1271, 1329, 1379) were given; five less the one it began with are
    // four, so the first pause is 100/√4.
    run(&mut queue, 1401, 1560, 10);
    assert_eq!(marked, [1100, 1200, 1271, 1329, 1379, 1501, 1551]);
}

#[test]
fn the_last_packet_is_never_dropped() {
    let mut queue = Codel::new(1 << 30, false);
    let mut out = 0;
    for now_ms in 0..1000 {
        queue.push(now_ms * MS, PACKET, ());
        if now_ms >= 20 && queue.waiting.len() > 1 {
            // Everything but one packet is taken: that one has waited long, but is alone.
            out += u64::from(queue.pop(now_ms * MS + 50 * MS).is_some());
            queue.waiting.truncate(1);
            queue.bytes = PACKET;
        }
    }
    assert!(out > 400);
    assert_eq!(queue.drop_count(), 0);
}

#[test]
fn what_does_not_fit_is_dropped_at_the_tail() {
    let mut queue = Codel::new(3 * PACKET, false);
    let fits: Vec<bool> = (0..5).map(|number| queue.push(0, PACKET, number)).collect();
    assert_eq!(fits, [true, true, true, false, false]);
    assert_eq!(queue.overflow_count(), 2);
    assert_eq!(queue.pop(1).map(|it| it.item), Some(0));
}
