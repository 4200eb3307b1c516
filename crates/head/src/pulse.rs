//! Whether a head is still where it can do its work: its engine answers, and a forwarder has its
//! routes. Each of its two threads notes what it hears and asks for what the other one has heard.
//!
//! A head whose engine is silent lets its routes end, so that others are asked. One that no
//! forwarder has routes to does not lead.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Renewals in the time of a lease.
pub(crate) const RENEWALS: u64 = 5;

/// What a head hears of both.
#[derive(Debug)]
pub(crate) struct Pulses {
    /// Of its engine.
    pub(crate) engine: Pulse,
    /// Of the forwarder that it is registered with.
    pub(crate) forwarder: Pulse,
}

impl Pulses {
    /// For a head that hears of both five times in the time of a lease.
    pub(crate) fn new(lease_ns: u64) -> Self {
        // A lease that is not renewed and routes that are not registered again end at about the
        // same time, so what ends first may not take much longer than the other.
        let engine = Pulse::new(Duration::from_nanos(lease_ns / RENEWALS * 2));
        Self { engine, forwarder: Pulse::new(Duration::from_nanos(lease_ns)) }
    }
}

/// When somebody was heard of last.
#[derive(Debug)]
pub(crate) struct Pulse {
    began: Instant,
    /// Since then.
    beat_ns: AtomicU64,
    silence_max: Duration,
}

impl Pulse {
    /// Somebody who is there now. After so long a silence he is believed to be gone.
    pub(crate) fn new(silence_max: Duration) -> Self {
        Self { began: Instant::now(), beat_ns: AtomicU64::new(0), silence_max }
    }

    /// He has answered.
    pub(crate) fn beat(&self) {
        self.beat_ns.store(self.age_ns(), Ordering::Relaxed);
    }

    /// True if it did a moment ago.
    pub(crate) fn is_there(&self) -> bool {
        let silent_ns = self.age_ns().saturating_sub(self.beat_ns.load(Ordering::Relaxed));
        Duration::from_nanos(silent_ns) <= self.silence_max
    }

    fn age_ns(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_not_answered_for_too_long_is_gone_until_he_answers() {
        let pulse = Pulse::new(Duration::from_secs(3600));
        assert!(pulse.is_there());
        let pulse = Pulse::new(Duration::ZERO);
        std::thread::sleep(Duration::from_millis(1));
        assert!(!pulse.is_there());
        let patient = Pulse { silence_max: Duration::from_secs(3600), ..pulse };
        patient.beat();
        assert!(patient.is_there());
    }
}
