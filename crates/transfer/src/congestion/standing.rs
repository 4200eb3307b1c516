//! A queue that does not go away, seen from its end: what a forwarder that marks would say.
//!
//! Where nobody marks, flows that hold what their model allows keep a full queue full, and who came
//! with the longer round trip, or later, holds most of it. So each gives way as if it were marked
//! while answers are late, all at the same intervals of time. Flows that fill every queue never do
//! so in return; therefore it ends at a part of the rate that there has been lately.

use super::MS;
use super::filter::MaxFilter;

/// Lateness that is no reason to give way, and the time for which more of it is none.
/// spec: RFC 8289 §4.3, §4.4, the same for marks
const TARGET_NS: u64 = 5 * MS;
const INTERVAL_NS: u64 = 100 * MS;
/// Fewer late rounds in a row may be what the flow's own bandwidth probe has queued.
const LATE_ROUNDS: u32 = 3;
/// Answers over which their differences are averaged.
const ANSWERS: f64 = 64.0;
/// Time for which a rate once delivered is a claim, and its part: with more, flows of one kind need
/// longer to become equal; with less, little is left beside flows that fill queues.
const CLAIM_NS: u64 = 15_000 * MS;
const CLAIM_PART: u64 = 2;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Standing {
    late_since_ns: Option<u64>,
    late_rounds: u32,
    next_ns: u64,
    delivered: MaxFilter,
    mean_ns: f64,
    /// Mean difference of round trips from those before.
    deviation_ns: f64,
}

impl Standing {
    /// An answer came. Near and far ones in turn are caches on the path, and their mean says
    /// nothing about a queue.
    pub(super) fn on_answer(&mut self, rtt_ns: u64) {
        let difference_ns = rtt_ns as f64 - self.mean_ns;
        self.mean_ns += difference_ns / ANSWERS;
        self.deviation_ns += (difference_ns.abs() - self.deviation_ns) / ANSWERS;
    }

    /// A round ended, so late, with so much a second. True if it is time to give way.
    pub(super) fn is_due(&mut self, late_ns: u64, bytes_per_s: u64, now_ns: u64) -> bool {
        self.delivered.push_for(bytes_per_s, now_ns, CLAIM_NS);
        if late_ns <= TARGET_NS.max(2 * self.deviation_ns as u64) {
            self.late_since_ns = None;
            (self.next_ns, self.late_rounds) = (0, 0);
            return false;
        }
        self.late_rounds = self.late_rounds.saturating_add(1);
        let since_ns = *self.late_since_ns.get_or_insert(now_ns);
        let is_early = now_ns < self.next_ns.max(since_ns.saturating_add(INTERVAL_NS));
        if is_early || self.late_rounds < LATE_ROUNDS {
            return false;
        }
        self.next_ns = now_ns.saturating_add(INTERVAL_NS);
        bytes_per_s > self.delivered.max() / CLAIM_PART
    }

    /// The path is another one.
    pub(super) fn clear(&mut self) {
        *self = Standing::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of reductions due in rounds of 20 ms, at this lateness and this rate.
    fn count(standing: &mut Standing, from_ms: u64, to_ms: u64, late_ms: u64, came: u64) -> usize {
        let rounds = (from_ms..to_ms).step_by(20);
        rounds.filter(|at_ms| standing.is_due(late_ms * MS, came, at_ms * MS)).count()
    }

    #[test]
    fn only_a_queue_that_lasts_counts() {
        let mut standing = Standing::default();
        assert_eq!(count(&mut standing, 0, 10_000, 4, 1000), 0);
        for from_ms in (10_000..12_000).step_by(200) {
            assert_eq!(count(&mut standing, from_ms, from_ms + 100, 50, 1000), 0);
            assert_eq!(count(&mut standing, from_ms + 100, from_ms + 200, 1, 1000), 0);
        }
        assert_eq!(count(&mut standing, 12_000, 13_000, 50, 1000), 9);
    }

    #[test]
    fn answers_from_near_and_far_are_no_queue() {
        let mut standing = Standing::default();
        (0..1000).for_each(|place| standing.on_answer(if place % 2 == 0 { MS } else { 50 * MS }));
        assert_eq!(count(&mut standing, 0, 10_000, 20, 1000), 0);
        (0..1000).for_each(|_| standing.on_answer(50 * MS));
        assert!(count(&mut standing, 10_000, 20_000, 20, 1000) > 0);
    }

    #[test]
    fn it_gives_way_to_half_of_what_it_had_and_to_less_later() {
        let mut standing = Standing::default();
        assert_eq!(count(&mut standing, 0, 1000, 1, 1000), 0);
        assert!(count(&mut standing, 1000, 2000, 50, 600) > 0);
        assert_eq!(count(&mut standing, 2000, 10_000, 50, 500), 0);
        assert!(count(&mut standing, 10_000, 40_000, 50, 500) > 0);
    }
}
