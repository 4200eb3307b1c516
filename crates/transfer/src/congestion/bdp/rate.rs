//! Delivery rate: the largest of the last values.

use super::super::Round;
use super::super::filter::MaxFilter;

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct PathRate {
    filter: MaxFilter,
    bytes: u64,
    duration_ns: u64,
}

impl PathRate {
    /// Takes a round into account, together with those before until they have lasted `span_ns`:
    /// what was held back comes at once, and in a round of its own it would be the largest value.
    pub(super) fn on_round(&mut self, round: &Round, span_ns: u64) {
        self.bytes += round.bytes;
        self.duration_ns += round.duration_ns;
        if self.duration_ns < span_ns {
            return;
        }
        let rate = u128::from(self.bytes) * 1_000_000_000 / u128::from(self.duration_ns.max(1));
        let rate = u64::try_from(rate).unwrap_or(u64::MAX);
        (self.bytes, self.duration_ns) = (0, 0);
        if !round.is_reader_limited || rate > self.max() {
            self.filter.push(rate);
        }
    }

    pub(super) fn scale(&mut self, factor: f64) {
        self.filter.scale(factor);
    }

    /// Octets per second.
    pub(super) fn max(&self) -> u64 {
        self.filter.max()
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::MS;
    use super::*;

    fn round(bytes: u64, ms: u64) -> Round {
        Round {
            duration_ns: ms * MS,
            bytes,
            segment_count: 1,
            bytes_per_s: bytes * 1000 / ms,
            rtt_mean_ns: MS,
            rtt_count: 1,
            is_reader_limited: false,
        }
    }

    #[test]
    fn what_was_held_back_is_averaged_with_the_pause_before_it() {
        let rounds = [round(0, 4), round(5000, 1)];
        let (mut each, mut averaged) = (PathRate::default(), PathRate::default());
        for round in rounds.iter().cycle().take(20) {
            each.on_round(round, 0);
            averaged.on_round(round, 5 * MS);
        }
        assert_eq!((each.max(), averaged.max()), (5_000_000, 1_000_000));
    }
}
