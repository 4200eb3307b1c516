//! Suppression of retransmissions, which most algorithms share.

use super::parameters::Parameters;

/// Exponential suppression of retransmissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Suppression {
    /// They are held back for this long after the first sending,
    pub(super) initial_ns: u64,
    /// then this many times as long after each further one,
    pub(super) multiplier: u64,
    /// up to this.
    pub(super) max_ns: u64,
}

impl Default for Suppression {
    fn default() -> Self {
        Self { initial_ns: 10_000_000, multiplier: 2, max_ns: 250_000_000 }
    }
}

/// Parameters are given in milliseconds.
pub(super) const MS_NS: u64 = 1_000_000;
const INITIAL: &str = "retx-suppression-initial";
const MULTIPLIER: &str = "retx-suppression-multiplier";
const MAX: &str = "retx-suppression-max";

impl Suppression {
    /// Takes the parameters with the names that NFD uses, in milliseconds.
    pub(super) fn take(parameters: &mut Parameters) -> Option<Self> {
        let default = Self::default();
        let mut ms = |key, default_ns: u64| {
            parameters.take(key).unwrap_or(default_ns / MS_NS).checked_mul(MS_NS)
        };
        let taken = Self {
            initial_ns: ms(INITIAL, default.initial_ns)?,
            max_ns: ms(MAX, default.max_ns)?,
            multiplier: parameters.take(MULTIPLIER).unwrap_or(default.multiplier),
        };
        let is_sound =
            taken.initial_ns > 0 && taken.multiplier > 0 && taken.initial_ns <= taken.max_ns;
        is_sound.then_some(taken)
    }

    pub(super) fn parameters(&self) -> Vec<(&'static str, u64)> {
        let default = Self::default();
        let all = [
            (INITIAL, self.initial_ns / MS_NS, default.initial_ns / MS_NS),
            (MAX, self.max_ns / MS_NS, default.max_ns / MS_NS),
            (MULTIPLIER, self.multiplier, default.multiplier),
        ];
        let changed = all.into_iter().filter(|(_, value, default)| value != default);
        changed.map(|(key, value, _)| (key, value)).collect()
    }

    /// Returns whether a retransmission that comes `age_ns` after the last sending is held back.
    /// `interval_ns` is the state, 0 at first.
    pub(super) fn holds_back(&self, interval_ns: &mut u64, age_ns: u64) -> bool {
        let interval = (*interval_ns).max(self.initial_ns);
        if age_ns < interval {
            *interval_ns = interval;
            return true;
        }
        *interval_ns = interval.saturating_mul(self.multiplier).min(self.max_ns);
        false
    }
}
