//! Spreads requests over time.
//!
//! Both limits are a bucket: [`Pacer`] for what the path can carry (shallow, its rate changes all
//! the time), [`TokenBucket`] for what the user allows. The pacer keeps one number, the time at
//! which the bucket is level, so that a request costs an addition. A pause earns no more than
//! `BURST_NS` or a part of the round trip; and nobody is woken for less than `QUANTUM_NS` worth of
//! requests.

const SECOND_NS: u64 = 1_000_000_000;
/// Burst that may be sent at once after a pause, in time at the pace. More than the granularity of
/// timers, or a late wake-up would cost throughput.
const BURST_NS: u64 = 2_000_000;
/// The same as a part of the round trip: whoever shares a processor is kept from it for longer than
/// timers are, and the path has been idle meanwhile.
const BURST_PART: u64 = 8;
/// Requests are let out in portions worth this much.
const QUANTUM_NS: u64 = 500_000;
/// Whatever the pace, this much may go at once.
const BURST_BYTES_MIN: u64 = 4 * 8192;

/// Keeps a pace.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pacer {
    /// Nanoseconds a byte takes, times 2^16.
    cost: u64,
    /// Up to now, everything allowed was sent until then.
    level_ns: u64,
    burst_ns: u64,
    bytes_per_s: u64,
}

impl Pacer {
    /// `None` lets everything out. The round trip is that of the path, if it is known.
    pub(crate) fn set_pace(&mut self, bytes_per_s: Option<u64>, rtt_ns: Option<u64>) {
        let bytes_per_s = bytes_per_s.unwrap_or(0);
        let rtt_ns = rtt_ns.unwrap_or(0);
        if bytes_per_s == self.bytes_per_s {
            return;
        }
        self.bytes_per_s = bytes_per_s;
        if bytes_per_s == 0 {
            self.cost = 0;
            return;
        }
        self.cost = (SECOND_NS << 16) / bytes_per_s;
        self.burst_ns = BURST_NS.max(rtt_ns / BURST_PART).max(self.time_of(BURST_BYTES_MIN));
    }

    pub(crate) fn allows(&self, now_ns: u64) -> bool {
        self.cost == 0 || self.level_ns <= now_ns
    }

    pub(crate) fn take(&mut self, now_ns: u64, bytes: u64) {
        if self.cost > 0 {
            let earliest_ns = now_ns.saturating_sub(self.burst_ns);
            let level_ns = self.level_ns.max(earliest_ns);
            self.level_ns = level_ns.saturating_add(self.time_of(bytes));
        }
    }

    /// When a portion worth waking up for may go.
    pub(crate) fn deadline_ns(&self) -> u64 {
        self.level_ns.saturating_add(QUANTUM_NS)
    }

    fn time_of(&self, bytes: u64) -> u64 {
        let time = (u128::from(bytes) * u128::from(self.cost)) >> 16;
        u64::try_from(time).unwrap_or(u64::MAX)
    }
}

/// A bucket that fills at a constant rate and may go below zero by one request.
#[derive(Clone, Debug)]
pub(crate) struct TokenBucket {
    bytes_per_second: u64,
    depth_bytes: i64,
    tokens: i64,
    filled_ns: u64,
}

impl TokenBucket {
    pub(crate) fn new(bytes_per_second: u64, now_ns: u64) -> Self {
        let bytes_per_second = bytes_per_second.max(1);
        // A tenth of a second of traffic, so that short files do not escape the limit.
        let depth_bytes = i64::try_from(bytes_per_second / 10).unwrap_or(i64::MAX).max(1);
        TokenBucket { bytes_per_second, depth_bytes, tokens: depth_bytes, filled_ns: now_ns }
    }

    pub(crate) fn has_tokens(&mut self, now_ns: u64) -> bool {
        let elapsed_ns = now_ns.saturating_sub(self.filled_ns);
        let earned = u128::from(elapsed_ns) * u128::from(self.bytes_per_second) / 1_000_000_000;
        if earned > 0 {
            let earned = i64::try_from(earned).unwrap_or(i64::MAX);
            self.tokens = self.tokens.saturating_add(earned).min(self.depth_bytes);
            self.filled_ns = now_ns;
        }
        self.tokens > 0
    }

    pub(crate) fn take(&mut self, bytes: u64) {
        self.tokens = self.tokens.saturating_sub(i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    pub(crate) fn refill_deadline_ns(&self) -> Option<u64> {
        if self.tokens > 0 {
            return None;
        }
        let missing = u128::from(self.tokens.unsigned_abs()) + 1;
        let wait_ns = missing * 1_000_000_000 / u128::from(self.bytes_per_second) + 1;
        Some(self.filled_ns.saturating_add(u64::try_from(wait_ns).unwrap_or(u64::MAX)))
    }
}
