//! Phases of the [model](super), and which follows which at the end of a round.

use super::Bdp;
use super::probe_rtt::ProbeOutcome;
use super::tuning::*;
use crate::congestion::Round;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Doubling, until the rate no longer follows.
    Start,
    /// Letting go what the start has queued.
    Drain,
    /// Asking for more than was delivered.
    Up,
    /// Draining it, and seeing what it gave.
    Down,
    /// At the measured rate, for so many rounds.
    Cruise(u32),
    /// Nearly empty for so many rounds, to measure the undisturbed round trip.
    ProbeRtt(u32),
    /// Beginning anew after everything was lost.
    Restart,
}

impl Bdp {
    pub(super) fn next_phase(
        &mut self,
        round: &Round,
        is_full: bool,
        in_flight: usize,
        now_ns: u64,
    ) {
        let rate = self.rate.max();
        let is_base_old = now_ns.saturating_sub(self.base_seen_ns) > BASE_AGE_NS;
        let has_grown = rate > self.rate_before + self.rate_before / 8;
        let is_queueing = self.is_late(round.rtt_mean_ns);
        self.is_queueing = is_queueing;
        self.phase = match self.phase {
            Phase::Start => self.leave_start(is_full, is_queueing),
            Phase::Drain if in_flight as f64 > self.capacity() + self.held_in(QUEUE_TARGET_NS) => {
                Phase::Drain
            }
            Phase::ProbeRtt(0) if self.is_meaningful(round, now_ns) => {
                self.leave_probe_rtt(round.rtt_mean_ns, now_ns)
            }
            Phase::ProbeRtt(0) => {
                // Too few answers to requests that were sent once: probed again later.
                self.probe_rtt.end(self.least_ns, now_ns);
                Phase::Cruise(1)
            }
            Phase::ProbeRtt(left) => Phase::ProbeRtt(left - 1),
            Phase::Restart if self.window < self.target() => Phase::Restart,
            _ if self.is_in_doubt(now_ns) => self.enter_probe_rtt(),
            _ if is_base_old && is_full && !self.is_local_path() => self.enter_probe_rtt(),
            Phase::Drain | Phase::Restart => Phase::Cruise(2),
            Phase::Up => Phase::Down,
            // The rate of this round is the answer to what was asked for in the one before.
            Phase::Down if has_grown && !is_queueing && !self.was_reduced => {
                self.found_count += 1;
                self.probe_bandwidth()
            }
            Phase::Down => {
                self.found_count = 0;
                Phase::Cruise(CRUISE_ROUNDS)
            }
            Phase::Cruise(0) if is_full && is_queueing && !self.has_passed => {
                self.has_passed = true;
                Phase::Down
            }
            Phase::Cruise(0) if is_full => self.probe_bandwidth(),
            Phase::Cruise(left) => Phase::Cruise(left.saturating_sub(1)),
        };
    }

    /// True if the round trip that the model uses has to be seen undisturbed: the start may have
    /// taken its own queue for the path, and later the path may be another one.
    fn is_in_doubt(&self, now_ns: u64) -> bool {
        let is_settled = matches!(self.phase, Phase::Cruise(0));
        let is_long = match self.probe_rtt.ended_ns() {
            Some(_) => self.base_ns > 2 * self.probe_rtt.seen_ns(),
            None => is_settled && self.base_ns > 2 * self.least_ns,
        };
        // On a local path little is in flight whatever the model believes.
        self.probe_rtt.is_due(is_long && !self.is_local_path(), now_ns)
    }

    fn enter_probe_rtt(&mut self) -> Phase {
        self.probe_rtt.begin(self.base_ns, PROBE_RTT_PART * self.capacity());
        Phase::ProbeRtt(PROBE_RTT_ROUNDS)
    }

    /// Takes what the probe has shown.
    fn leave_probe_rtt(&mut self, mean_ns: u64, now_ns: u64) -> Phase {
        let outcome = self.probe_rtt.on_seen(mean_ns, self.least_ns, now_ns);
        (self.base_ns, self.base_seen_ns) = (self.probe_rtt.seen_ns(), now_ns);
        match outcome {
            ProbeOutcome::Unsure => return Phase::ProbeRtt(PROBE_RTT_ROUNDS),
            ProbeOutcome::Longer => {
                self.standing.clear();
                self.least_ns = self.probe_rtt.least_ns();
            }
            ProbeOutcome::Same => {}
        }
        Phase::Cruise(1)
    }

    fn probe_bandwidth(&mut self) -> Phase {
        self.rate_before = self.rate.max();
        self.has_passed = false;
        Phase::Up
    }

    fn leave_start(&mut self, is_full: bool, is_queueing: bool) -> Phase {
        let rate = self.rate.max();
        if rate > self.rate_before + self.rate_before / 4 {
            self.rate_before = rate;
            self.flat_rounds = 0;
        } else if is_full {
            self.flat_rounds += 1;
        }
        let is_enough = is_queueing || self.is_wide();
        let is_over = self.flat_rounds >= 3 || (self.flat_rounds >= 2 && is_enough);
        if is_over || self.was_reduced { Phase::Drain } else { Phase::Start }
    }
}
