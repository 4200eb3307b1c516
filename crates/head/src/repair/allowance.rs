//! Octets that may be moved, bounded in time.

const SECOND_NS: u64 = 1_000_000_000;
/// Time in which the allowance gathers at most.
const BURST_NS: u64 = SECOND_NS;

/// Octets that may be moved now; below zero after something large.
#[derive(Debug, Default)]
pub(super) struct Allowance {
    bytes: i128,
    refilled_ns: u64,
}

impl Allowance {
    pub(super) fn is_left(&self) -> bool {
        self.bytes > 0
    }

    pub(super) fn take(&mut self, bytes: u64) {
        self.bytes -= i128::from(bytes);
    }

    /// Adds what has gathered at a rate since the last time.
    pub(super) fn refill(&mut self, bytes_per_s: u64, now_ns: u64) {
        let rate = i128::from(bytes_per_s);
        let passed_ns = now_ns.saturating_sub(self.refilled_ns).min(2 * BURST_NS);
        // What is less than an octet is not lost: the time begins later then.
        let gained = rate * i128::from(passed_ns) / i128::from(SECOND_NS);
        if gained > 0 || rate == 0 {
            self.refilled_ns = now_ns;
        }
        let most = (rate * i128::from(BURST_NS) / i128::from(SECOND_NS)).max(1);
        self.bytes = (self.bytes + gained).min(most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_moved_stays_within_the_rate_whatever_the_sizes() {
        for (rate, size) in [(1_000_u64, 10_u64), (1_000, 7_000), (3, 1), (1_000_000, 999)] {
            let mut allowance = Allowance { refilled_ns: 5 * SECOND_NS, ..Allowance::default() };
            let mut moved = 0;
            for step in 1..=100_000_u64 {
                allowance.refill(rate, 5 * SECOND_NS + step * 1_000_000);
                while allowance.is_left() {
                    allowance.take(size);
                    moved += size;
                }
            }
            let wanted = rate * 100;
            let most = wanted + rate + size;
            assert!(moved <= most && moved * 10 >= wanted * 9, "{moved} of {wanted}");
        }
    }
}
