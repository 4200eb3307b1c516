//! Sees the undisturbed round trip, with little under way, when there is reason to doubt the one
//! that is believed.
//!
//! A look that shows something much shorter may still show half of our own queue, and one that
//! shows something longer may have met somebody who pauses: both are looked at again with less
//! under way. A path is as long with less. The shortest of what was shown is what counts.

use super::tuning::{LOOK_PAUSE_NS, LOOK_PAUSE_TRIPS, MOVED_ROUNDS, WINDOW_LEAST};

/// What a look has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// Less has to be under way to tell.
    Unsure,
    /// More than twice what was believed.
    Longer,
    /// About what was believed, or less.
    Same,
}

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct Look {
    /// Rounds in a row that look like another path.
    moved_rounds: u32,
    /// When the last look ended, and what it showed.
    ended_ns: Option<u64>,
    seen_ns: u64,
    /// What was believed before this look, and the least that it has shown; 0 for nothing.
    believed_ns: u64,
    shown_ns: u64,
    /// The shortest round trip of a single answer since it began; 0 for none.
    least_ns: u64,
    window: f64,
}

impl Look {
    /// An answer came while looking.
    pub(super) fn on_answer(&mut self, rtt_ns: u64) {
        self.least_ns = if self.least_ns == 0 { rtt_ns } else { self.least_ns.min(rtt_ns) };
    }

    pub(super) fn on_round(&mut self, has_moved: bool) {
        self.moved_rounds = if has_moved { self.moved_rounds + 1 } else { 0 };
    }

    /// Whether it is time to look: the stream has slowed down as on another path, or the round trip
    /// that is believed `is_long`.
    pub(super) fn is_due(&self, is_long: bool, now_ns: u64) -> bool {
        let pause_ns = LOOK_PAUSE_NS.max(LOOK_PAUSE_TRIPS * self.seen_ns);
        let is_early = self.ended_ns.is_some_and(|ended| now_ns.saturating_sub(ended) < pause_ns);
        !is_early && (is_long || self.moved_rounds >= MOVED_ROUNDS)
    }

    pub(super) fn begin(&mut self, believed_ns: u64, window: f64) {
        (self.believed_ns, self.shown_ns, self.window) = (believed_ns, 0, window);
        self.least_ns = 0;
    }

    /// With this window the round trip was `mean_ns`.
    pub(super) fn on_seen(&mut self, mean_ns: u64, least_ns: u64, now_ns: u64) -> Seen {
        let is_first = self.shown_ns == 0;
        let before_ns = if is_first { self.believed_ns } else { self.shown_ns };
        let is_shorter = mean_ns < before_ns - before_ns / 4;
        let is_longer = is_first && mean_ns > before_ns + before_ns / 4;
        self.shown_ns = if is_first { mean_ns } else { mean_ns.min(before_ns) };
        self.end(self.shown_ns, now_ns);
        if (is_shorter || is_longer) && mean_ns > 2 * least_ns && self.window > WINDOW_LEAST {
            self.window /= 2.0;
            return Seen::Unsure;
        }
        if self.shown_ns > self.believed_ns.saturating_mul(2) { Seen::Longer } else { Seen::Same }
    }

    /// The look is over and `seen_ns` is what is gone by.
    pub(super) fn end(&mut self, seen_ns: u64, now_ns: u64) {
        (self.ended_ns, self.seen_ns) = (Some(now_ns), seen_ns);
        self.moved_rounds = 0;
    }

    /// The shortest round trip of a single answer during the last look.
    pub(super) fn least_ns(&self) -> u64 {
        self.least_ns
    }

    /// What the last look has shown, 0 for nothing.
    pub(super) fn seen_ns(&self) -> u64 {
        self.seen_ns
    }

    pub(super) fn ended_ns(&self) -> Option<u64> {
        self.ended_ns
    }

    /// Segments that are under way while looking.
    pub(super) fn window(&self) -> f64 {
        self.window
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::MS;
    use super::*;

    /// What looks show one after the other on a path believed to take `believed_ms`, and what is
    /// believed then. Single answers took as little as a tenth of a millisecond.
    fn look(believed_ms: u64, shown_ms: &[u64]) -> (Vec<Seen>, u64) {
        let mut look = Look::default();
        look.begin(believed_ms * MS, 64.0);
        let seen = shown_ms.iter().map(|ms| look.on_seen(ms * MS, MS / 10, MS)).collect();
        (seen, look.seen_ns() / MS)
    }

    #[test]
    fn a_longer_path_is_as_long_with_less_under_way() {
        assert_eq!(look(2, &[20, 20]), (vec![Seen::Unsure, Seen::Longer], 20));
        assert_eq!(look(20, &[20]), (vec![Seen::Same], 20));
    }

    #[test]
    fn a_queue_becomes_shorter_with_less_under_way() {
        let seen = look(8, &[4, 2, 1, 1]);
        assert_eq!(seen, (vec![Seen::Unsure, Seen::Unsure, Seen::Unsure, Seen::Same], 1));
    }

    #[test]
    fn who_pauses_during_a_look_makes_no_path_longer() {
        assert_eq!(look(1, &[30, 1, 1]), (vec![Seen::Unsure, Seen::Unsure, Seen::Same], 1));
        assert_eq!(look(4, &[2, 30]), (vec![Seen::Unsure, Seen::Same], 2));
    }

    #[test]
    fn the_shortest_answer_is_that_of_the_last_look() {
        let mut look = Look::default();
        for shortest_ns in [3 * MS, MS] {
            look.begin(MS, 64.0);
            [4 * MS, shortest_ns, 5 * MS].into_iter().for_each(|rtt_ns| look.on_answer(rtt_ns));
            assert_eq!(look.least_ns(), shortest_ns);
        }
        look.begin(MS, 64.0);
        look.on_answer(2 * MS);
        assert_eq!(look.least_ns(), 2 * MS);
    }

    #[test]
    fn looks_end_with_the_smallest_window() {
        let mut look = Look::default();
        look.begin(1 << 40, 64.0);
        let count = (1..40).find(|bits| look.on_seen(1 << (40 - bits), 0, MS) != Seen::Unsure);
        assert_eq!(count, Some(5), "64, 32, 16, 8 and 4 segments");
        assert_eq!(look.window(), WINDOW_LEAST);
    }
}
