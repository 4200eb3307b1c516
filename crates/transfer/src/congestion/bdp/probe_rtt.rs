//! RTT probe: measures the undisturbed round trip, with little in flight, when there is reason to
//! doubt the one that is believed.
//!
//! A probe that shows something much shorter may still show half of our own queue, and one that
//! shows something longer may have met somebody who pauses: both are repeated with less in flight.
//! A path is as long with less. The shortest of what was shown is what counts.

use super::tuning::{PATH_CHANGE_ROUNDS, PROBE_RTT_PAUSE_NS, PROBE_RTT_PAUSE_TRIPS, WINDOW_LEAST};

/// Outcome of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProbeOutcome {
    /// Less has to be in flight to tell.
    Unsure,
    /// More than twice what was believed.
    Longer,
    /// About what was believed, or less.
    Same,
}

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct ProbeRtt {
    /// Rounds in a row that look like another path.
    path_change_rounds: u32,
    /// When the last probe ended, and what it showed.
    ended_ns: Option<u64>,
    seen_ns: u64,
    /// The belief before this probe, and the least that it has shown; 0 for nothing.
    believed_ns: u64,
    shown_ns: u64,
    /// The shortest round trip of a single answer since it began; 0 for none.
    least_ns: u64,
    window: f64,
}

impl ProbeRtt {
    /// An answer came during the probe.
    pub(super) fn on_answer(&mut self, rtt_ns: u64) {
        self.least_ns = if self.least_ns == 0 { rtt_ns } else { self.least_ns.min(rtt_ns) };
    }

    pub(super) fn on_round(&mut self, has_path_changed: bool) {
        self.path_change_rounds = if has_path_changed { self.path_change_rounds + 1 } else { 0 };
    }

    /// True if it is time to probe: the stream has slowed down as on another path, or the believed
    /// round trip `is_long`.
    pub(super) fn is_due(&self, is_long: bool, now_ns: u64) -> bool {
        let pause_ns = PROBE_RTT_PAUSE_NS.max(PROBE_RTT_PAUSE_TRIPS * self.seen_ns);
        let is_early = self.ended_ns.is_some_and(|ended| now_ns.saturating_sub(ended) < pause_ns);
        !is_early && (is_long || self.path_change_rounds >= PATH_CHANGE_ROUNDS)
    }

    pub(super) fn begin(&mut self, believed_ns: u64, window: f64) {
        (self.believed_ns, self.shown_ns, self.window) = (believed_ns, 0, window);
        self.least_ns = 0;
    }

    /// With this window the round trip was `mean_ns`.
    pub(super) fn on_seen(&mut self, mean_ns: u64, least_ns: u64, now_ns: u64) -> ProbeOutcome {
        let is_first = self.shown_ns == 0;
        let before_ns = if is_first { self.believed_ns } else { self.shown_ns };
        let is_shorter = mean_ns < before_ns - before_ns / 4;
        let is_longer = is_first && mean_ns > before_ns + before_ns / 4;
        self.shown_ns = if is_first { mean_ns } else { mean_ns.min(before_ns) };
        self.end(self.shown_ns, now_ns);
        if (is_shorter || is_longer) && mean_ns > 2 * least_ns && self.window > WINDOW_LEAST {
            self.window /= 2.0;
            return ProbeOutcome::Unsure;
        }
        if self.shown_ns > self.believed_ns.saturating_mul(2) {
            ProbeOutcome::Longer
        } else {
            ProbeOutcome::Same
        }
    }

    /// The probe is over and `seen_ns` is what is gone by.
    pub(super) fn end(&mut self, seen_ns: u64, now_ns: u64) {
        (self.ended_ns, self.seen_ns) = (Some(now_ns), seen_ns);
        self.path_change_rounds = 0;
    }

    /// The shortest round trip of a single answer during the last probe.
    pub(super) fn least_ns(&self) -> u64 {
        self.least_ns
    }

    /// Result of the last probe, 0 for nothing.
    pub(super) fn seen_ns(&self) -> u64 {
        self.seen_ns
    }

    pub(super) fn ended_ns(&self) -> Option<u64> {
        self.ended_ns
    }

    /// Segments that are in flight during a probe.
    pub(super) fn window(&self) -> f64 {
        self.window
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::MS;
    use super::ProbeOutcome::*;
    use super::*;

    /// Results of probes one after the other on a path believed to take `believed_ms`, and what is
    /// believed then. Single answers took as little as a tenth of a millisecond.
    fn probe(believed_ms: u64, shown_ms: &[u64]) -> (Vec<ProbeOutcome>, u64) {
        let mut probe = ProbeRtt::default();
        probe.begin(believed_ms * MS, 64.0);
        let seen = shown_ms.iter().map(|ms| probe.on_seen(ms * MS, MS / 10, MS)).collect();
        (seen, probe.seen_ns() / MS)
    }

    #[test]
    fn a_longer_path_is_as_long_with_less_in_flight() {
        assert_eq!(probe(2, &[20, 20]), (vec![Unsure, Longer], 20));
        assert_eq!(probe(20, &[20]), (vec![Same], 20));
    }

    #[test]
    fn a_queue_becomes_shorter_with_less_in_flight() {
        let seen = probe(8, &[4, 2, 1, 1]);
        assert_eq!(seen, (vec![Unsure, Unsure, Unsure, Same], 1));
    }

    #[test]
    fn who_pauses_during_a_probe_makes_no_path_longer() {
        assert_eq!(probe(1, &[30, 1, 1]), (vec![Unsure, Unsure, Same], 1));
        assert_eq!(probe(4, &[2, 30]), (vec![Unsure, Same], 2));
    }

    #[test]
    fn the_shortest_answer_is_that_of_the_last_probe() {
        let mut probe = ProbeRtt::default();
        for shortest_ns in [3 * MS, MS] {
            probe.begin(MS, 64.0);
            [4 * MS, shortest_ns, 5 * MS].into_iter().for_each(|rtt_ns| probe.on_answer(rtt_ns));
            assert_eq!(probe.least_ns(), shortest_ns);
        }
        probe.begin(MS, 64.0);
        probe.on_answer(2 * MS);
        assert_eq!(probe.least_ns(), 2 * MS);
    }

    #[test]
    fn probes_end_with_the_smallest_window() {
        let mut probe = ProbeRtt::default();
        probe.begin(1 << 40, 64.0);
        let count = (1..40).find(|bits| probe.on_seen(1 << (40 - bits), 0, MS) != Unsure);
        assert_eq!(count, Some(5), "64, 32, 16, 8 and 4 segments");
        assert_eq!(probe.window(), WINDOW_LEAST);
    }
}
