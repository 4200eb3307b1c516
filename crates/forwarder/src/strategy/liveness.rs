//! Liveness of a next hop: the evidence that it is dead, and for how long it is left alone.
//!
//! A *miss* is a name for which the next hop was asked in vain while another one answered it. What
//! nobody answers is no evidence: names that do not exist are silent at healthy holders, too. An
//! answer of any kind of name, late or in time, ends all suspicion. So a next hop is suspended only
//! if it missed several names and answered nothing at all since it was asked for the first of them.
//!
//! Suspension ends with an answer, not with time: when its time is over, one Interest is also sent
//! to the suspended next hop, beside the one in use. If that probe is in vain, too, the next one
//! comes after twice the time.

/// Misses in a row that suspend,
const MISSES_MAX: u32 = 3;

/// if they span at least this: a burst of losses is shorter.
const SILENCE_MIN_NS: u64 = 200_000_000;

/// Time until the first probe, and the longest between two.
const SUSPENDED_FIRST_NS: u64 = 1_000_000_000;
const SUSPENDED_MAX_NS: u64 = 30_000_000_000;

/// See the module.
#[derive(Debug, Clone, Copy, Default)]
pub struct Liveness {
    /// Names in a row that others answered.
    misses: u32,
    /// Time at which it was asked for the first of them.
    silent_since_ns: u64,
    suspension: Option<Suspension>,
}

#[derive(Debug, Clone, Copy)]
struct Suspension {
    probe_due_ns: u64,
    /// Time from this probe to the next.
    interval_ns: u64,
}

impl Liveness {
    /// It has answered.
    pub fn on_answer(&mut self) {
        *self = Self::default();
    }

    /// Another next hop answered what this one was asked for at `asked_ns`. Its answers are overdue
    /// after `timeout_ns`.
    pub fn on_miss(&mut self, asked_ns: u64, timeout_ns: u64, now_ns: u64) {
        if self.misses == 0 || asked_ns < self.silent_since_ns {
            self.silent_since_ns = asked_ns;
        }
        self.misses = self.misses.saturating_add(1);
        let silence_ns = now_ns.saturating_sub(self.silent_since_ns);
        let is_dead = self.misses >= MISSES_MAX && silence_ns >= timeout_ns.max(SILENCE_MIN_NS);
        if is_dead && self.suspension.is_none() {
            self.suspension = Some(Suspension {
                probe_due_ns: now_ns.saturating_add(SUSPENDED_FIRST_NS),
                interval_ns: 2 * SUSPENDED_FIRST_NS,
            });
        }
    }

    /// Returns whether it is not to be used while there is another one.
    pub fn is_suspended(&self) -> bool {
        self.suspension.is_some()
    }

    /// Returns whether a probe is to be sent now; the next one is then due later.
    pub fn take_probe(&mut self, now_ns: u64) -> bool {
        let Some(suspension) = self.suspension.as_mut() else { return false };
        if now_ns < suspension.probe_due_ns {
            return false;
        }
        suspension.probe_due_ns = now_ns.saturating_add(suspension.interval_ns);
        suspension.interval_ns = (2 * suspension.interval_ns).min(SUSPENDED_MAX_NS);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::MS;

    fn dead() -> Liveness {
        let mut hop = Liveness::default();
        (0..3).for_each(|number| hop.on_miss(number * MS, 20 * MS, 300 * MS));
        assert!(hop.is_suspended());
        hop
    }

    #[test]
    fn three_misses_suspend_if_they_span_long_enough() {
        let mut hop = Liveness::default();
        (0..10).for_each(|_| hop.on_miss(0, 20 * MS, 199 * MS));
        assert!(!hop.is_suspended(), "too short");
        hop.on_miss(0, 900 * MS, 899 * MS);
        assert!(!hop.is_suspended(), "too short for so long a path");
        hop.on_miss(100 * MS, 900 * MS, 900 * MS);
        assert!(hop.is_suspended());

        let mut hop = Liveness::default();
        hop.on_miss(0, 20 * MS, 5000 * MS);
        hop.on_miss(0, 20 * MS, 5000 * MS);
        assert!(!hop.is_suspended(), "too few");
    }

    #[test]
    fn any_answer_ends_suspicion_and_suspension() {
        let mut hop = Liveness::default();
        for round in 0..100 {
            hop.on_miss(round * 500 * MS, 20 * MS, (round * 500 + 300) * MS);
            hop.on_miss(round * 500 * MS, 20 * MS, (round * 500 + 300) * MS);
            hop.on_answer();
        }
        assert!(!hop.is_suspended());
        let mut hop = dead();
        hop.on_answer();
        assert!(!hop.is_suspended() && !hop.take_probe(u64::MAX));
    }

    #[test]
    fn probes_become_rarer_up_to_half_a_minute() {
        let mut hop = dead();
        let mut now_ns = 300 * MS;
        let mut pauses = Vec::new();
        for _ in 0..8 {
            let pause = (0..).find(|ms| hop.clone().take_probe(now_ns + ms * MS)).unwrap();
            now_ns += pause * MS;
            assert!(hop.take_probe(now_ns) && !hop.take_probe(now_ns), "one at a time");
            // Misses of a suspended next hop change nothing.
            hop.on_miss(now_ns, 20 * MS, now_ns + 300 * MS);
            pauses.push(pause);
        }
        assert_eq!(pauses, [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
    }
}
