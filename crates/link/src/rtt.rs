//! Time-outs of acknowledgements.
//!
//! spec: RFC 6298, from 200 ms as NFD's links. The upper bound is lower than NFD's minute: all
//! transmissions of a fragment must fit the time for which its receiver keeps the others.

use std::time::Duration;

const INITIAL_RTO: Duration = Duration::from_secs(1);
const RTO_MIN: Duration = Duration::from_millis(200);
const RTO_MAX: Duration = Duration::from_secs(2);

/// Smoothed round-trip time, its variation, and the time-out that follows.
#[derive(Debug, Clone)]
pub(crate) struct RttEstimator {
    /// Smoothed time and variation, once there is a sample.
    smoothed_ns: Option<(u64, u64)>,
}

impl RttEstimator {
    pub(crate) fn new() -> Self {
        Self { smoothed_ns: None }
    }

    /// Takes the round trip of a frame that was sent once.
    pub(crate) fn on_sample(&mut self, rtt_ns: u64) {
        // Longer ones say nothing more and would overflow.
        let rtt_ns = rtt_ns.min(RTO_MAX.as_nanos() as u64);
        self.smoothed_ns = Some(match self.smoothed_ns {
            None => (rtt_ns, rtt_ns / 2),
            Some((srtt, variation)) => {
                let variation = (3 * variation + srtt.abs_diff(rtt_ns)) / 4;
                ((7 * srtt + rtt_ns) / 8, variation)
            }
        });
    }

    pub(crate) fn rto_ns(&self) -> u64 {
        let rto = match self.smoothed_ns {
            None => INITIAL_RTO,
            Some((srtt, variation)) => Duration::from_nanos(srtt + 4 * variation),
        };
        rto.clamp(RTO_MIN, RTO_MAX).as_nanos() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn the_time_out_follows_the_samples_within_bounds() {
        let mut rtt = RttEstimator::new();
        assert_eq!(rtt.rto_ns(), 1000 * MS);
        rtt.on_sample(100 * MS);
        assert_eq!(rtt.rto_ns(), 300 * MS, "srtt 100, variation 50");
        rtt.on_sample(200 * MS);
        assert_eq!(rtt.rto_ns(), 362_500_000, "srtt 112.5, variation 62.5");
        for _ in 0..100 {
            rtt.on_sample(MS);
        }
        assert_eq!(rtt.rto_ns(), 200 * MS);
        for _ in 0..100 {
            rtt.on_sample(u64::MAX);
        }
        assert_eq!(rtt.rto_ns(), 2000 * MS);
    }
}
