//! The default controller: a model of the path instead of a rule about losses.
//!
//! Two things are measured once a round trip: how much comes in a second (the largest of the last
//! ten rounds), and how long an answer takes when no queue is in its way. Their product is what
//! the path holds; a little more than that is kept in flight, at the measured rate. Every few
//! rounds the rate is tried a quarter higher, and whatever queue that built is drained again.
//!
//! Differences from models for byte streams are due to NDN. Answers come from caches near and
//! publishers far away, in any mixture, so the *mean* round trip of a round is what counts (by
//! Little's law it, not the smallest one, says how many requests a rate needs). A mean that rises
//! while the rate collapses is a path that has changed, or somebody on it who pauses; a start that
//! ends has a queue in its mean. Both are probed with little in flight before they are believed. A
//! lost packet is a lost packet: only marks, refusals, rising delay, and losses well above a
//! per-cent are congestion. Delay that stays is taken for a mark ([`standing`](super::standing)).
//!
//! Invariants: the window stays within [`WINDOW_MIN`] and its configured maximum; one window of
//! signals is one reduction.

mod phases;
mod probe_rtt;
mod rate;
mod tuning;

use super::standing::Standing;
use super::{
    CongestionController, DataSample, LossKind, LossSample, MS, Round, WINDOW_INITIAL, WINDOW_MIN,
};
use phases::Phase;
use probe_rtt::ProbeRtt;
use rate::PathRate;
use tuning::*;

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Bdp {
    phase: Phase,
    window: f64,
    window_max: f64,
    rate: PathRate,
    /// Round trip of an answer that no queue delays.
    base_ns: u64,
    base_seen_ns: u64,
    /// The shortest round trip of a single answer; 0 if there was none.
    least_ns: u64,
    segment_bytes: f64,
    /// The rate at the last bandwidth probe, and for how many rounds it has not grown.
    rate_before: u64,
    flat_rounds: u32,
    /// Number of bandwidth probes in a row that found more.
    found_count: usize,
    late_count: u32,
    /// The least late of those answers in a row, and when it came.
    late_least_ns: u64,
    late_since_ns: u64,
    probe_rtt: ProbeRtt,
    /// The path was not tried for more last time, because there was a queue.
    has_passed: bool,
    is_queueing: bool,
    /// Bound learned from congestion; grows slowly.
    cap: f64,
    reduced_ns: Option<u64>,
    was_reduced: bool,
    delivered_count: u64,
    lost_count: u64,
    pace: Option<u64>,
    standing: Standing,
}

impl Bdp {
    /// Never has more than `window_max` in flight.
    pub fn new(window_max: usize) -> Self {
        let window_max = window_max.max(WINDOW_MIN) as f64;
        Bdp {
            phase: Phase::Start,
            window: (WINDOW_INITIAL as f64).min(window_max),
            window_max,
            rate: PathRate::default(),
            base_ns: 0,
            base_seen_ns: 0,
            least_ns: 0,
            segment_bytes: 8192.0,
            rate_before: 0,
            flat_rounds: 0,
            found_count: 0,
            late_count: 0,
            late_least_ns: 0,
            late_since_ns: 0,
            probe_rtt: ProbeRtt::default(),
            has_passed: false,
            is_queueing: false,
            cap: f64::INFINITY,
            reduced_ns: None,
            was_reduced: false,
            delivered_count: 0,
            lost_count: 0,
            pace: None,
            standing: Standing::default(),
        }
    }

    /// Segments that the path holds, with the queue that is tolerated.
    fn capacity(&self) -> f64 {
        self.held_in(self.base_ns)
    }

    /// Rate of the smallest window.
    fn rate_least(&self) -> f64 {
        WINDOW_LEAST * self.segment_bytes * 1e9 / self.base_ns.max(1) as f64
    }

    /// Rate if the model is right.
    fn usual_rate(&self) -> f64 {
        (self.rate.max() as f64).max(self.rate_least())
    }

    /// True if the other end is in this machine or next to it. Where processes wait for their turn
    /// the mean says so only roughly, and the shortest round trip says it alone where all answers
    /// come from one place.
    fn is_local_path(&self) -> bool {
        self.least_ns < PACED_FROM_NS && self.base_ns < LOCAL_BASE_NS
    }

    fn held_in(&self, time_ns: u64) -> f64 {
        self.rate.max() as f64 * (time_ns as f64 / 1e9) / self.segment_bytes
    }

    fn target(&self) -> f64 {
        let slack = match self.phase {
            Phase::Start => GAIN_START,
            Phase::Drain => 1.0,
            // Where nothing is paced the window alone has to drain the queue.
            Phase::Down if self.is_local_path() => 1.0,
            Phase::Down => SLACK,
            Phase::Up => SLACK_UP * self.gain(),
            Phase::Cruise(_) | Phase::Restart => SLACK,
            Phase::ProbeRtt(_) => return self.probe_rtt.window(),
        };
        let queue = if self.is_local_path() { LOCAL_QUEUE_NS } else { QUEUE_TARGET_NS };
        let more = if self.phase == Phase::Up { UP_SEGMENTS } else { 0.0 };
        let wanted = slack * self.capacity() + self.held_in(queue) + more;
        // Means of rounds are longer than so short a path.
        if self.is_local_path() { wanted.min(self.local_bound()) } else { wanted }
    }

    fn local_bound(&self) -> f64 {
        LOCAL_SEGMENTS.max(self.held_in(LOCAL_ROUND_TRIPS * self.least_ns))
    }

    fn gain(&self) -> f64 {
        match self.phase {
            Phase::Start => GAIN_START,
            Phase::Drain => 1.0 / GAIN_START,
            Phase::Up => GAIN_UP[self.found_count.min(GAIN_UP.len() - 1)],
            Phase::Down => GAIN_DOWN,
            Phase::Cruise(_) | Phase::ProbeRtt(_) | Phase::Restart => 1.0,
        }
    }

    fn on_round(&mut self, round: &Round, now_ns: u64, in_flight: usize) {
        let bytes = round.bytes as f64 / round.segment_count.max(1) as f64;
        self.segment_bytes += (bytes.max(1.0) - self.segment_bytes) / 4.0;
        let is_full = !round.is_reader_limited;
        // The start has to see each round; on a local path one is as short as a turn of a process.
        let is_rough = self.is_local_path() && self.phase != Phase::Start;
        self.rate.on_round(round, if is_rough { LOCAL_RATE_NS } else { 0 });
        self.measure_base(round, now_ns);
        self.give_way(round, now_ns);
        if !self.was_reduced {
            let step = match self.phase {
                Phase::Up if self.found_count > 0 => self.gain() - 1.0,
                Phase::Up => 0.1,
                _ => 0.02,
            };
            self.cap += (1.0 + self.cap * step).max((self.capacity() - self.cap) / 4.0);
            if self.cap > 2.0 * (self.capacity() + self.held_in(QUEUE_TARGET_NS)) {
                self.cap = f64::INFINITY;
            }
        }
        self.next_phase(round, is_full, in_flight, now_ns);
        self.was_reduced = false;
        if self.delivered_count + self.lost_count > 2 * OUTCOMES_MIN {
            self.delivered_count /= 2;
            self.lost_count /= 2;
        }
        self.apply();
    }

    fn measure_base(&mut self, round: &Round, now_ns: u64) {
        let mean_ns = round.rtt_mean_ns;
        if !self.is_meaningful(round, now_ns) {
            return;
        }
        // As long as the rate follows the window there is no queue, so this is the path, however
        // the first answers came; later a lower mean is a better one.
        let is_growing = self.phase == Phase::Start
            && round.bytes_per_s > self.rate_before + self.rate_before / 4;
        if self.base_ns == 0 || mean_ns <= self.base_ns || is_growing {
            self.base_ns = mean_ns;
            self.base_seen_ns = now_ns;
        } else if mean_ns <= self.base_ns + self.base_ns / 16 + QUEUE_TARGET_NS / 4 {
            // The same, but for the noise: follow slowly.
            self.base_ns += (mean_ns - self.base_ns) / 16;
            self.base_seen_ns = now_ns;
        } else if self.is_starved(round) && !self.is_local_path() {
            // The window, not the pace, is what limits: answers come from farther away than
            // before, or others keep the queue full. On a local path the processor is what is
            // shared, and no window gets more of that.
            self.base_ns += (mean_ns - self.base_ns) / 16;
        }
        // A queue of ours makes answers late and leaves the rate as it is. A longer path makes
        // them late and the rate small, because the window is made for a shorter one. So does
        // somebody who pauses, which is why the round trip is probed before it is believed.
        let is_late = mean_ns > self.base_ns.saturating_mul(2);
        let is_slow = (round.bytes_per_s as f64) < self.usual_rate() / 2.0;
        let has_path_changed = is_late && is_slow && !round.is_reader_limited;
        self.probe_rtt.on_round(has_path_changed);
    }

    /// True if there is a mean that says something: a handful of answers may all have come from a
    /// cache, and so have most of those that come while the window opens again.
    fn is_meaningful(&self, round: &Round, now_ns: u64) -> bool {
        let is_opening =
            self.probe_rtt.ended_ns() == Some(now_ns.saturating_sub(round.duration_ns));
        let is_many = round.rtt_count as f64 >= SAMPLES_MIN.min(self.window / 2.0);
        round.rtt_mean_ns > 0 && is_many && !is_opening
    }

    /// As if marked, if a queue has been standing for long.
    fn give_way(&mut self, round: &Round, now_ns: u64) {
        let is_silent = self.phase == Phase::Start || self.is_local_path();
        if is_silent || round.is_reader_limited || round.rtt_mean_ns == 0 {
            return;
        }
        let late_ns = round.rtt_mean_ns.saturating_sub(self.base_ns);
        if self.standing.is_due(late_ns, round.bytes_per_s, now_ns) {
            self.reduce(now_ns, now_ns, CUT_MARK);
        }
    }

    fn is_starved(&self, round: &Round) -> bool {
        let is_slow = (round.bytes_per_s as f64) < 0.85 * self.usual_rate();
        matches!(self.phase, Phase::Cruise(_)) && is_slow && !round.is_reader_limited
    }

    fn is_late(&self, rtt_ns: u64) -> bool {
        let tolerated_ns = (self.base_ns / 8).min(5 * MS) + 2 * QUEUE_TARGET_NS;
        self.base_ns > 0 && rtt_ns > self.base_ns + tolerated_ns
    }

    /// Half of what is in flight now was enough to make the queue that is seen now.
    fn check_start(&mut self, rtt_ns: u64, now_ns: u64) {
        if !self.is_late(rtt_ns) {
            self.late_count = 0;
            return;
        }
        if self.late_count == 0 || rtt_ns < self.late_least_ns {
            (self.late_count, self.late_least_ns, self.late_since_ns) = (0, rtt_ns, now_ns);
        }
        self.late_count += 1;
        let is_lasting = now_ns.saturating_sub(self.late_since_ns) >= self.base_ns / LATE_PART;
        let is_many = self.late_count >= LATE_IN_A_ROW && self.window > 4.0 * SAMPLES_MIN;
        if is_many && is_lasting {
            self.phase = Phase::Drain;
            self.window /= 2.0;
            self.clamp();
        }
    }

    /// Makes the window and the pace of the model.
    fn apply(&mut self) {
        if !matches!(self.phase, Phase::Start | Phase::Restart) {
            self.window = self.target();
        }
        self.clamp();
        let is_far = !self.is_local_path() && self.phase != Phase::Restart;
        let least = self.rate_least();
        let more = if self.phase == Phase::Up { UP_SEGMENTS / WINDOW_LEAST * least } else { 0.0 };
        let pace = (self.gain() * self.rate.max() as f64 + more).max(least) as u64;
        self.pace = (is_far && pace > 0).then_some(pace);
    }

    fn clamp(&mut self) {
        self.window = self.window.min(self.cap).max(WINDOW_LEAST).min(self.window_max);
    }

    /// True if the next hop may be all of the path, and the window is more than it needs: to double
    /// it would fill a send queue before anything comes late.
    fn is_wide(&self) -> bool {
        self.least_ns < PACED_FROM_NS && self.window >= LOCAL_SEGMENTS
    }

    /// Grows by what was delivered, which doubles the window every round, or makes it half as large
    /// again.
    fn grow(&mut self) {
        // The start ends when the rate no longer follows, whatever a model made of few answers
        // says.
        if self.phase == Phase::Start || self.window < self.target() {
            self.window += if self.is_wide() { WIDE_STEP } else { 1.0 };
            self.clamp();
        }
    }

    fn reduce(&mut self, now_ns: u64, sent_ns: u64, factor: f64) {
        if self.reduced_ns.is_some_and(|reduced| sent_ns <= reduced) {
            return;
        }
        self.reduced_ns = Some(now_ns);
        self.was_reduced = true;
        self.cap = (factor * self.window).max(CUT_FLOOR * self.capacity());
        (self.delivered_count, self.lost_count) = (0, 0);
        // The best of the last rounds was more than our share.
        self.rate.scale(CUT_RATE);
        if matches!(self.phase, Phase::Start | Phase::Up) {
            self.phase = Phase::Drain;
        }
        self.apply();
    }

    fn restart(&mut self, now_ns: u64, sent_ns: u64) {
        if self.reduced_ns.is_some_and(|reduced| sent_ns <= reduced) {
            return;
        }
        self.reduced_ns = Some(now_ns);
        self.window = 0.0;
        if self.base_ns > 0 {
            self.phase = Phase::Restart;
        }
        self.apply();
    }
}

impl CongestionController for Bdp {
    fn on_data(&mut self, sample: &DataSample) {
        self.delivered_count += 1;
        if sample.is_marked {
            self.reduce(sample.now_ns, sample.sent_ns, CUT_MARK);
        }
        if let Some(rtt_ns) = sample.rtt_ns {
            self.standing.on_answer(rtt_ns);
            self.least_ns = if self.least_ns == 0 { rtt_ns } else { self.least_ns.min(rtt_ns) };
            match self.phase {
                Phase::Start => self.check_start(rtt_ns, sample.now_ns),
                Phase::ProbeRtt(_) => self.probe_rtt.on_answer(rtt_ns),
                _ => {}
            }
        }
        if sample.is_limiting && matches!(self.phase, Phase::Start | Phase::Restart) {
            self.grow();
        }
        if let Some(round) = &sample.round {
            self.on_round(round, sample.now_ns, sample.in_flight);
        }
    }

    fn on_loss(&mut self, sample: &LossSample) {
        match sample.kind {
            LossKind::Nack => return self.reduce(sample.now_ns, sample.sent_ns, CUT_LOSS),
            LossKind::TimeOut if !sample.is_path_alive => {
                return self.restart(sample.now_ns, sample.sent_ns);
            }
            LossKind::TimeOut | LossKind::Overtaken => self.lost_count += 1,
        }
        let outcomes = self.delivered_count + self.lost_count;
        // With a queue in sight losses most likely come from its being full.
        let tolerated = if self.is_queueing { LOSS_QUEUEING } else { LOSS_TOLERATED };
        if outcomes >= OUTCOMES_MIN && self.lost_count * 1000 > outcomes * tolerated {
            self.reduce(sample.now_ns, sample.sent_ns, CUT_LOSS);
        }
    }

    fn window(&self) -> usize {
        self.window as usize
    }

    fn pacing_bytes_per_s(&self) -> Option<u64> {
        self.pace
    }

    fn name(&self) -> &'static str {
        "bdp"
    }
}
