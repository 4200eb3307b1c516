//! Times between question and answer, in buckets that are 0.1 % wide.

use hdrhistogram::Histogram;

/// Longer times count as this long.
const LONGEST_NS: u64 = 60_000_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;

/// A histogram of times.
#[derive(Debug, Clone)]
pub struct Latency {
    histogram: Histogram<u64>,
}

impl Default for Latency {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST_NS, SIGNIFICANT_DIGITS)
            .expect("these bounds are constants that the library accepts");
        Self { histogram }
    }
}

impl Latency {
    #[inline]
    pub(crate) fn record(&mut self, ns: u64) {
        self.histogram.saturating_record(ns.max(1));
    }

    /// Count of times recorded.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The time, in nanoseconds, that `percent` of all do not exceed; 0 if there are none.
    pub fn percentile_ns(&self, percent: f64) -> u64 {
        self.histogram.value_at_percentile(percent)
    }

    /// The shortest.
    pub fn min_ns(&self) -> u64 {
        self.histogram.min()
    }

    /// The longest.
    pub fn max_ns(&self) -> u64 {
        self.histogram.max()
    }

    /// The mean.
    pub fn mean_ns(&self) -> f64 {
        self.histogram.mean()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_within_a_thousandth() {
        let mut latency = Latency::default();
        for ns in 1..=100_000 {
            latency.record(ns);
        }
        for percent in [50.0, 90.0, 99.0, 99.9] {
            let exact = percent * 1000.0;
            let error = latency.percentile_ns(percent) as f64 / exact - 1.0;
            assert!(error.abs() < 0.001, "p{percent}: {error}");
        }
        assert_eq!((latency.count(), latency.min_ns()), (100_000, 1));
        latency.record(u64::MAX);
        assert!(latency.max_ns() >= LONGEST_NS);
    }
}
