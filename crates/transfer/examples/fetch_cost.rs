//! Cost of asking for a segment and taking its answer in the fetch engine, without packets:
//! `cargo run --release -p byname-transfer --example fetch_cost`.

use std::collections::VecDeque;
use std::time::Instant;

use byname_transfer::congestion::Congestion;
use byname_transfer::fetch::{Fetch, FetchConfig, SegmentRuns};
use byname_transfer::flow::Flow;

const SEGMENTS: u64 = 4_000_000;

fn main() {
    let all = [
        (Congestion::Bdp, 512),
        (Congestion::Bdp, 16_384),
        (Congestion::Aimd, 512),
        (Congestion::Cubic, 512),
        (Congestion::Fixed(256), 512),
    ];
    for (congestion, window_max) in all {
        for loss_every in [u64::MAX, 1000] {
            let nanoseconds = run(congestion, window_max, loss_every);
            let loss = if loss_every == u64::MAX { "no loss" } else { "0.1 % lost" };
            println!("{congestion:<10} window <= {window_max:<6} {loss:<10} {nanoseconds:>6.1} ns");
        }
    }
}

/// Nanoseconds of this machine per segment. Time on the path is virtual: 2 ms round trip, answers
/// in bursts of 32.
fn run(congestion: Congestion, window_max: usize, loss_every: u64) -> f64 {
    let mut flow = Flow::new(congestion.controller(window_max), 0);
    let last = SEGMENTS - 1;
    let mut fetch = Fetch::new(SegmentRuns::up_to(last), Some(last), FetchConfig::default());
    let mut path = VecDeque::new();
    let (mut now_ns, mut sent, mut arrived) = (0, 0u64, 0u64);
    let begin = Instant::now();
    while !fetch.is_finished() {
        while let Some(segment) = fetch.poll_segment(now_ns, usize::MAX, 8192, &mut flow) {
            sent += 1;
            if !sent.is_multiple_of(loss_every) {
                path.push_back((now_ns + 2_000_000, segment));
            }
        }
        let deadline_ns = fetch.poll_deadline(&flow).into_iter().chain(flow.poll_deadline()).min();
        let arrival_ns = path.front().map(|(at_ns, _)| *at_ns);
        let next_ns = arrival_ns.into_iter().chain(deadline_ns).min();
        now_ns = next_ns.map_or(now_ns, |at_ns| at_ns.max(now_ns));
        for _ in 0..32 {
            let Some(&(at_ns, segment)) = path.front() else { break };
            if at_ns > now_ns {
                break;
            }
            path.pop_front();
            arrived += u64::from(fetch.handle_data(segment, false, now_ns, &mut flow));
            now_ns += 100;
        }
        fetch.handle_timeout(now_ns, &mut flow);
    }
    assert_eq!(arrived, SEGMENTS, "every segment arrives once");
    begin.elapsed().as_nanos() as f64 / SEGMENTS as f64
}
