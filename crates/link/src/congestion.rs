//! When to tell receivers that a link is congested.
//!
//! A queue that is long for a moment is a burst; one that stays long for an interval is congestion.
//! Then one packet is marked, and while it stays long others follow, the n-th after the n-1-th by
//! interval/√(n-1): consumers slow down once per round trip, so marks come faster the longer they
//! have no effect. A queue that is short once ends it.
//!
//! spec: NDNLPv2 "Congestion marking" (after CoDel, RFC 8289).

/// Default queue, in octets, above which a link may be congested.
pub const CONGESTION_THRESHOLD_BYTES: usize = 65_536;

/// Default time for which the queue must stay above it.
pub const CONGESTION_INTERVAL_NS: u64 = 100_000_000;

/// Decides which packets of one link are marked.
#[derive(Debug, Clone)]
pub struct CongestionMarker {
    threshold_bytes: usize,
    interval_ns: u64,
    /// When the next mark is due; `None` while the queue is short.
    next_ns: Option<u64>,
    /// Marks since the queue became long.
    marks: u32,
    marked: u64,
}

impl Default for CongestionMarker {
    fn default() -> Self {
        Self::new(CONGESTION_THRESHOLD_BYTES, CONGESTION_INTERVAL_NS)
    }
}

impl CongestionMarker {
    /// A marker for a queue that is long above `threshold_bytes`.
    pub fn new(threshold_bytes: usize, interval_ns: u64) -> Self {
        Self { threshold_bytes, interval_ns, next_ns: None, marks: 0, marked: 0 }
    }

    /// Says how long the queue is with the packet that was just put into it, or is about to be;
    /// true if that packet shall be marked.
    pub fn on_queued(&mut self, queue_bytes: usize, now_ns: u64) -> bool {
        if queue_bytes <= self.threshold_bytes {
            self.next_ns = None;
            self.marks = 0;
            return false;
        }
        let due_ns = *self.next_ns.get_or_insert(now_ns.saturating_add(self.interval_ns));
        if now_ns < due_ns {
            return false;
        }
        self.marks = self.marks.saturating_add(1);
        self.marked += 1;
        let wait_ns = self.interval_ns as f64 / f64::from(self.marks).sqrt();
        // Nothing was sent for a while: what is overdue is not made up for at once.
        let from_ns = due_ns.max(now_ns.saturating_sub(self.interval_ns));
        self.next_ns = Some(from_ns.saturating_add(wait_ns as u64));
        true
    }

    /// Packets marked so far.
    pub fn marked_count(&self) -> u64 {
        self.marked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// The times, in ms, of the marks of a queue that has `queue(ms)` octets.
    fn marks(marker: &mut CongestionMarker, ms: u64, queue: impl Fn(u64) -> usize) -> Vec<u64> {
        (0..ms).filter(|at| marker.on_queued(queue(*at), at * MS)).collect()
    }

    #[test]
    fn a_lasting_queue_is_marked_by_the_formula() {
        let mut expected = Vec::new();
        let mut due = 100.0f64;
        for n in 1..=30u32 {
            expected.push(due.ceil() as u64);
            due += 100.0 / f64::from(n).sqrt();
        }
        let end = *expected.last().unwrap() + 1;
        assert_eq!(marks(&mut CongestionMarker::default(), end, |_| 65_537), expected);
    }

    #[test]
    fn bursts_and_queues_at_the_threshold_are_not_marked() {
        let mut marker = CongestionMarker::default();
        assert!(marks(&mut marker, 1000, |_| 65_536).is_empty());
        // Long for 99 ms, then empty for one.
        let burst = |at: u64| if at % 100 == 99 { 0 } else { 1 << 20 };
        assert!(marks(&mut marker, 1000, burst).is_empty());
        assert_eq!(marker.marked_count(), 0);
    }

    #[test]
    fn congestion_that_ended_starts_over() {
        let mut marker = CongestionMarker::new(1000, 10 * MS);
        let queue = |at: u64| if (50..60).contains(&at) { 0 } else { 2000 };
        let times = marks(&mut marker, 81, queue);
        assert_eq!(times, [10, 20, 28, 33, 38, 43, 47, 70, 80]);
        assert_eq!(marker.marked_count(), 9);
    }
}
