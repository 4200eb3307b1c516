//! Count of answers that were not what they should be, and the point at which that is enough.
//!
//! A network that flips bits spoils one packet here and one there, and hardly ever the same one
//! many times; somebody who makes packets up spoils one every time, or most of them. So a segment
//! may be spoiled a few times, and the whole in proportion to what was good.
//!
//! Invariant: memory is bounded; what is forgotten is counted in the whole all the same.

use std::collections::HashMap;

/// Refusals without regard to what was good: a transfer may begin badly.
const REFUSED_FREE: u64 = 64;
/// Beyond that, answers for each refusal.
const ANSWERS_PER_REFUSAL: u64 = 8;
/// Segments of which the number is kept.
const SEGMENTS_MAX: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Refusals {
    counts: HashMap<u64, u32>,
    total: u64,
    answers: u64,
}

impl Refusals {
    /// Something came that was wanted. It may be refused later.
    pub(super) fn on_answer(&mut self) {
        self.answers += 1;
    }

    /// True if this segment has been refused for the last time, or there were too many in all.
    pub(super) fn add(&mut self, segment: u64, times_max: u32) -> bool {
        self.total += 1;
        if self.counts.len() >= SEGMENTS_MAX && !self.counts.contains_key(&segment) {
            self.counts.clear();
        }
        let count = self.counts.entry(segment).or_insert(0);
        *count += 1;
        *count >= times_max || self.total > REFUSED_FREE + self.answers / ANSWERS_PER_REFUSAL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_segment_may_be_spoiled_a_few_times_and_others_do_not_count_for_it() {
        let mut refusals = Refusals::default();
        assert!((1..5).all(|_| !refusals.add(7, 5)));
        assert!(!refusals.add(8, 5));
        assert!(refusals.add(7, 5), "the fifth time");
    }

    #[test]
    fn a_network_that_spoils_one_packet_in_a_hundred_is_borne_with_for_ever() {
        let mut refusals = Refusals::default();
        for segment in 0..1_000_000 {
            refusals.on_answer();
            assert!(segment % 100 != 0 || !refusals.add(segment, 5), "{segment}");
        }
        assert!(refusals.counts.len() <= SEGMENTS_MAX);
    }

    #[test]
    fn who_makes_everything_up_is_not_asked_for_everything() {
        let mut refusals = Refusals::default();
        let mut is_enough = |segment| {
            refusals.on_answer();
            refusals.add(segment, 5)
        };
        let first = (0..1_000_000).find(|segment| is_enough(*segment));
        assert!(first.is_some_and(|segment| segment < 100), "{first:?}");
    }
}
