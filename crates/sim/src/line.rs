//! One direction of a link: a queue before a line, the way to the other end, and what may happen
//! to frames on it.

use crate::queue::{Fate, Queue, QueueConfig};
use crate::random::Random;

/// What may happen to frames behind the queue. Everything zero: nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Faults {
    /// Probability that a frame is lost.
    pub loss: f64,
    /// Frames lost in a row, once one is lost.
    pub burst: u64,
    /// Probability that a frame comes twice.
    pub duplication: f64,
    /// Probability of being late by up to `late_ns`, and so perhaps out of order.
    pub disorder: f64,
    /// See `disorder`.
    pub late_ns: u64,
    /// Probability that one bit of a frame is flipped.
    pub corruption: f64,
}

/// Settings of one direction.
#[derive(Clone, Copy, Debug)]
pub struct LineConfig {
    /// The queue and the rate.
    pub queue: QueueConfig,
    /// Propagation.
    pub delay_ns: u64,
    /// Random part of the delay that keeps the order.
    pub jitter_ns: u64,
    /// See [`Faults`].
    pub faults: Faults,
}

/// A frame on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When it comes.
    pub at_ns: u64,
    /// What comes.
    pub frame: Vec<u8>,
}

/// What a line did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineCounters {
    /// Frames and octets handed to it.
    pub frames: u64,
    /// See `frames`.
    pub bytes: u64,
    /// Dropped by a full queue.
    pub overflows: u64,
    /// Lost by a fault or because the link was down.
    pub losses: u64,
}

/// One direction of a link.
#[derive(Clone, Debug)]
pub struct Line {
    /// May be changed at any time.
    pub config: LineConfig,
    /// A link that is down loses everything.
    pub is_up: bool,
    queue: Queue,
    burst_left: u64,
    /// Jitter keeps the order: nothing comes before what was sent earlier.
    last_ns: u64,
    counters: LineCounters,
}

impl Line {
    /// A line that is up.
    pub fn new(config: LineConfig) -> Self {
        let queue = Queue::new(config.queue);
        let counters = LineCounters::default();
        Line { config, is_up: true, queue, burst_left: 0, last_ns: 0, counters }
    }

    /// What it did so far.
    pub fn counters(&self) -> LineCounters {
        self.counters
    }

    /// Octets that wait in the queue.
    pub fn queued_bytes(&self, now_ns: u64) -> u64 {
        self.queue.queued_bytes(now_ns)
    }

    /// Takes a frame; says when it comes out at the other end, if it does, and how often.
    pub fn send(&mut self, now_ns: u64, frame: Vec<u8>, random: &mut Random) -> Vec<Arrival> {
        self.counters.frames += 1;
        self.counters.bytes += frame.len() as u64;
        let Fate::Leaves { at_ns, .. } = self.queue.push(now_ns, frame.len() as u64) else {
            self.counters.overflows += 1;
            return Vec::new();
        };
        if self.is_lost(random) {
            self.counters.losses += 1;
            return Vec::new();
        }
        let faults = self.config.faults;
        let sent_ns = at_ns + self.config.delay_ns + random.below(self.config.jitter_ns + 1);
        self.last_ns = self.last_ns.max(sent_ns);
        let mut first = Arrival { at_ns: self.last_ns, frame };
        if random.chance(faults.disorder) {
            first.at_ns += random.below(faults.late_ns + 1);
        }
        if random.chance(faults.corruption) {
            let bit = random.below(first.frame.len() as u64 * 8) as usize;
            first.frame[bit / 8] ^= 1 << (bit % 8);
        }
        if random.chance(faults.duplication) {
            let again = Arrival { at_ns: first.at_ns + random.below(faults.late_ns + 1), ..first };
            return vec![Arrival { at_ns: first.at_ns, frame: again.frame.clone() }, again];
        }
        vec![first]
    }

    fn is_lost(&mut self, random: &mut Random) -> bool {
        if self.burst_left > 0 {
            self.burst_left -= 1;
            return true;
        }
        let is_lost = random.chance(self.config.faults.loss);
        if is_lost {
            self.burst_left = self.config.faults.burst.saturating_sub(1);
        }
        is_lost || !self.is_up
    }
}
