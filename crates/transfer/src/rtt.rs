//! Round-trip time and retransmission time-out, after RFC 6298.
//!
//! Samples come only from requests that were sent once (Karn's rule: after a retransmission one
//! cannot know which of the two was answered). The back-off is forgotten with the next sample.
//!
//! Backed-off time-outs have jitter: one that stays the same meets a link that fails as regularly
//! at the same moment each time. It is drawn once for each back-off, so that of two requests the
//! earlier one is due first.

use byname_retry::{jittered, jittered_above};

/// Time-out before the first sample.
pub const RTO_INITIAL_NS: u64 = 1_000_000_000;
/// Shortest time beyond the usual round trip: a disk that has to wake up must not look like a
/// loss, nor must a queue on a path without jitter, however long.
pub const RTO_MIN_NS: u64 = 200_000_000;
/// Longest time-out without back-off; equals the default lifetime of an Interest.
pub const RTO_MAX_NS: u64 = 4_000_000_000;
/// Longest time-out that the back-off leads to, unless round trips themselves ask for more. Who
/// gives up after 15 s of silence must have asked often enough to know that it is one: where two
/// packets in five are lost, five attempts in that time are all lost now and then. A forwarder on
/// the path that still waits sends the same Interest on rarely, and an answer comes only once.
pub const RTO_BACKED_OFF_MAX_NS: u64 = 1_000_000_000;

const BACK_OFF_SHIFT_MAX: u32 = 5;

/// Smoothed round-trip time, its variation and the time-out that follows from them.
#[derive(Clone, Debug, Default)]
pub struct RttEstimator {
    smoothed_ns: Option<u64>,
    variation_ns: u64,
    back_off_shift: u32,
    /// Random number of the last back-off.
    random: u64,
}

impl RttEstimator {
    /// Takes the round trip of a request that was sent exactly once.
    pub fn on_sample(&mut self, rtt_ns: u64) {
        match self.smoothed_ns {
            None => {
                self.smoothed_ns = Some(rtt_ns);
                self.variation_ns = rtt_ns / 2;
            }
            Some(smoothed) => {
                // spec: RFC 6298 §2.3, beta = 1/4 before alpha = 1/8
                let difference = smoothed.abs_diff(rtt_ns);
                self.variation_ns = self.variation_ns - self.variation_ns / 4 + difference / 4;
                self.smoothed_ns = Some(smoothed - smoothed / 8 + rtt_ns / 8);
            }
        }
        self.back_off_shift = 0;
    }

    /// A round trip took at least this long; says nothing if that is not unusual.
    pub fn on_least(&mut self, least_ns: u64) {
        if self.smoothed_ns.is_some_and(|smoothed| least_ns > smoothed) {
            self.on_sample(least_ns);
        }
    }

    /// Doubles the time-out until the next sample, with jitter by `random`.
    pub fn back_off(&mut self, random: u64) {
        self.random = random;
        self.back_off_shift = (self.back_off_shift + 1).min(BACK_OFF_SHIFT_MAX);
    }

    /// Smoothed round-trip time, `None` before the first sample.
    pub fn smoothed_ns(&self) -> Option<u64> {
        self.smoothed_ns
    }

    /// Mean deviation of round trips from the smoothed one.
    pub fn variation_ns(&self) -> u64 {
        self.variation_ns
    }

    /// Retransmission time-out.
    pub fn rto_ns(&self) -> u64 {
        let base = match self.smoothed_ns {
            None => RTO_INITIAL_NS,
            Some(smoothed) => smoothed
                .saturating_add(self.variation_ns.saturating_mul(4).max(RTO_MIN_NS))
                .min(RTO_MAX_NS),
        };
        if self.back_off_shift == 0 {
            return base;
        }
        let longest = (base << self.back_off_shift).min(RTO_BACKED_OFF_MAX_NS).max(base);
        // Never less than what round trips ask for.
        match longest / 2 >= base {
            true => jittered(longest, self.random),
            false => jittered_above(base, self.random),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn first_sample_sets_three_times_its_value() {
        let mut rtt = RttEstimator::default();
        assert_eq!(rtt.rto_ns(), RTO_INITIAL_NS);
        rtt.on_sample(300 * MS);
        assert_eq!(rtt.rto_ns(), 900 * MS);
    }

    fn steady(rtt_ns: u64) -> RttEstimator {
        let mut rtt = RttEstimator::default();
        (0..200).for_each(|_| rtt.on_sample(rtt_ns));
        rtt
    }

    /// Time-outs after a number of back-offs, for many random numbers: the shortest and longest.
    fn backed_off(rtt: &RttEstimator, count: u32) -> (u64, u64) {
        let of = |seed: u64| {
            let (mut rtt, mut jitter) = (rtt.clone(), byname_retry::Jitter::new(seed));
            (0..count).for_each(|_| rtt.back_off(jitter.next_u64()));
            rtt.rto_ns()
        };
        let all: Vec<u64> = (0..10_000).map(of).collect();
        (*all.iter().min().expect("some"), *all.iter().max().expect("some"))
    }

    #[test]
    fn steady_samples_settle_near_the_floor_and_back_off_doubles_up_to_the_ceiling() {
        let mut rtt = steady(MS);
        let floor_ns = MS + RTO_MIN_NS;
        assert_eq!(rtt.rto_ns(), floor_ns);
        let (shortest, longest) = backed_off(&rtt, 1);
        assert!(shortest >= floor_ns && longest <= 2 * floor_ns, "{shortest} to {longest}");
        assert!(shortest < floor_ns + MS && longest > 2 * floor_ns - MS);
        let (shortest, longest) = backed_off(&rtt, 100);
        assert!(shortest >= RTO_BACKED_OFF_MAX_NS / 2 && longest <= RTO_BACKED_OFF_MAX_NS);
        rtt.back_off(7);
        rtt.on_sample(MS);
        assert_eq!(rtt.rto_ns(), floor_ns);
    }

    #[test]
    fn no_backed_off_time_out_is_the_same_each_time() {
        // Nothing was measured; a path as long as the ceiling; a short one.
        for mut rtt in [RttEstimator::default(), steady(800 * MS), steady(MS)] {
            (0..100).for_each(|_| rtt.back_off(0));
            let (shortest, longest) = backed_off(&rtt, 1);
            assert!(longest - shortest > 400 * MS, "{shortest} to {longest}");
        }
    }

    #[test]
    fn back_off_never_shortens_what_a_long_path_needs() {
        let rtt = steady(1500 * MS);
        let needed_ns = rtt.rto_ns();
        assert!(needed_ns > 1500 * MS);
        let (shortest, longest) = backed_off(&rtt, 1);
        assert!(shortest >= needed_ns && longest <= needed_ns + needed_ns / 2);
    }

    #[test]
    fn absurd_samples_stay_within_the_bounds() {
        let mut rtt = RttEstimator::default();
        for sample in [u64::MAX, 0, u64::MAX, u64::MAX / 2, 1] {
            rtt.on_sample(sample);
            assert!((RTO_MIN_NS..=RTO_MAX_NS).contains(&rtt.rto_ns()));
        }
    }
}
