//! Pauses that double from failure to failure up to a maximum, with jitter.

use crate::jitter::jittered;

/// Bounds of the pauses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackOff {
    /// The first.
    pub min_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

impl BackOff {
    /// Pause after so many failures in a row: between half and all of what doubling gives,
    /// by `random`. It does not wait after no failure.
    pub fn pause_ns(&self, failures: u32, random: u64) -> u64 {
        jittered(self.longest_ns(failures), random)
    }

    /// What doubling gives after so many failures in a row, without jitter.
    pub fn longest_ns(&self, failures: u32) -> u64 {
        let Some(doublings) = failures.checked_sub(1) else { return 0 };
        let factor = 1u64.checked_shl(doublings).unwrap_or(u64::MAX);
        self.min_ns.saturating_mul(factor).min(self.max_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_maximum_with_jitter_below() {
        let bounds = BackOff { min_ns: 100, max_ns: 1000 };
        let longest = |failures| (0..1000).map(|it| bounds.pause_ns(failures, it)).max();
        let shortest = |failures| (0..1000).map(|it| bounds.pause_ns(failures, it)).min();
        for (failures, ns) in [(1, 100), (2, 200), (3, 400), (4, 800), (5, 1000), (u32::MAX, 1000)]
        {
            assert_eq!(longest(failures), Some(ns), "{failures}");
            assert_eq!(shortest(failures), Some(ns / 2), "{failures}");
        }
        assert_eq!(bounds.pause_ns(0, 99), 0);
    }

    #[test]
    fn no_bounds_overflow() {
        for failures in [1, 2, 64, 65, 70, u32::MAX] {
            let all = BackOff { min_ns: u64::MAX, max_ns: u64::MAX };
            assert!(all.pause_ns(failures, u64::MAX) >= u64::MAX / 2);
            assert_eq!(BackOff { min_ns: 0, max_ns: 0 }.pause_ns(failures, 7), 0);
        }
    }
}
