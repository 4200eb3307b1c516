//! One direction of a link: a queue before a line, the way to the other end, and what may happen
//! to frames on it.
//!
//! With a plain queue it is known on arrival when a frame has left, so nothing more happens to it
//! here. CoDel decides when a frame leaves, which depends on what came behind it: then the world
//! calls [`Line::depart`] at the time of [`Line::next_departure`].

use crate::codel::Codel;
use crate::frame::Frame;
use crate::queue::{Discipline, Fate, Queue, QueueConfig};
use crate::random::Random;

/// Losses in bursts: a chain of a good and a bad state, one step a frame (Gilbert–Elliott, with
/// nothing lost in the good state and everything in the bad one).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bursts {
    /// Probability that the bad state begins with a frame.
    pub begin: f64,
    /// Probability that it ends with one; its mean length is 1/`end` frames.
    pub end: f64,
}

/// Faults of frames behind the queue. Everything zero: nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Faults {
    /// Probability that a frame is lost.
    pub loss: f64,
    /// Frames lost in a row, once one is lost.
    pub burst: u64,
    /// Further losses, by state.
    pub bursts: Bursts,
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
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LineConfig {
    /// The queue and the rate; not changed after the start.
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
    /// When its last bit has left the queue's end.
    pub sent_ns: u64,
    /// The frame.
    pub frame: Frame,
    /// True if others may overtake it.
    pub is_late: bool,
}

/// Counters of a line so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineCounters {
    /// Frames and octets handed to it.
    pub frames: u64,
    /// See `frames`.
    pub bytes: u64,
    /// Dropped by a full queue.
    pub overflows: u64,
    /// Dropped by CoDel.
    pub drops: u64,
    /// Marked by CoDel.
    pub marks: u64,
    /// Lost by a fault or because the link was down.
    pub losses: u64,
}

#[derive(Clone, Debug)]
enum Before {
    Plain(Queue),
    Codel(Box<Codel<Frame>>),
}

/// One direction of a link.
#[derive(Clone, Debug)]
pub struct Line {
    /// May be changed at any time, but for the queue.
    pub config: LineConfig,
    /// A link that is down loses everything.
    pub is_up: bool,
    before: Before,
    /// When the line will be free, in picoseconds; only with CoDel.
    free_at_ps: u128,
    burst_left: u64,
    is_bad: bool,
    /// Jitter keeps the order: nothing comes before what was sent earlier.
    last_ns: u64,
    counters: LineCounters,
}

impl Line {
    /// A line that is up.
    pub fn new(config: LineConfig) -> Self {
        let limit_bytes = config.queue.buffer_bytes;
        let before = match config.queue.discipline {
            Discipline::DropTail => Before::Plain(Queue::new(config.queue)),
            Discipline::CodelMarks => Before::Codel(Box::new(Codel::new(limit_bytes, true))),
            Discipline::Codel => Before::Codel(Box::new(Codel::new(limit_bytes, false))),
        };
        Line {
            config,
            is_up: true,
            before,
            free_at_ps: 0,
            burst_left: 0,
            is_bad: false,
            last_ns: 0,
            counters: LineCounters::default(),
        }
    }

    /// Counters so far.
    pub fn counters(&self) -> LineCounters {
        let mut counters = self.counters;
        if let Before::Codel(codel) = &self.before {
            counters.drops = codel.drop_count();
            counters.marks = codel.mark_count();
        }
        counters
    }

    /// Octets that wait in the queue.
    pub fn queued_bytes(&self, now_ns: u64) -> u64 {
        match &self.before {
            Before::Plain(queue) => queue.queued_bytes(now_ns),
            Before::Codel(codel) => codel.bytes(),
        }
    }

    /// Takes a frame; pushes when it comes out at the other end, if it does, and how often.
    pub fn send(
        &mut self,
        now_ns: u64,
        frame: Frame,
        random: &mut Random,
        out: &mut impl FnMut(Arrival),
    ) {
        let bytes = frame.len() as u64;
        self.counters.frames += 1;
        self.counters.bytes += bytes;
        let fits = match &mut self.before {
            Before::Plain(queue) => match queue.push(now_ns, bytes) {
                Fate::Leaves { at_ns, .. } => {
                    self.travel(at_ns, frame, random, out);
                    true
                }
                Fate::Dropped => false,
            },
            Before::Codel(codel) => {
                let fits = codel.push(now_ns, bytes, frame);
                self.depart(now_ns, random, out);
                fits
            }
        };
        self.counters.overflows += u64::from(!fits);
    }

    /// The link is down: what waits is lost. Of a plain queue it is already on its way, and the
    /// world has to lose it.
    pub fn cut(&mut self, now_ns: u64) {
        self.is_up = false;
        match &mut self.before {
            Before::Plain(queue) => queue.clear(now_ns),
            Before::Codel(codel) => self.counters.losses += codel.clear(),
        }
    }

    /// Counts what was lost on its way.
    pub fn count_lost(&mut self, frames: u64) {
        self.counters.losses += frames;
    }

    /// When [`Line::depart`] has something to do.
    pub fn next_departure(&self) -> Option<u64> {
        match &self.before {
            Before::Codel(codel) if !codel.is_empty() => {
                Some(self.free_at_ps.div_ceil(1000) as u64)
            }
            _ => None,
        }
    }

    /// Lets everything leave for which the line has been free until now.
    pub fn depart(&mut self, now_ns: u64, random: &mut Random, out: &mut impl FnMut(Arrival)) {
        let now_ps = u128::from(now_ns) * 1000;
        while self.free_at_ps <= now_ps {
            let Before::Codel(codel) = &mut self.before else { return };
            let Some(popped) = codel.pop(now_ns) else { return };
            // When the line becomes free is not a whole nanosecond: nothing of it is wasted.
            let rest_ps = now_ps - self.free_at_ps;
            let from_ps = if rest_ps < 1000 { self.free_at_ps } else { now_ps };
            let rate = u128::from(self.config.queue.bits_per_s);
            self.free_at_ps = from_ps + u128::from(popped.bytes) * 8_000_000_000_000 / rate;
            let frame = match popped.is_marked {
                true => popped.item.with_mark().unwrap_or(popped.item),
                false => popped.item,
            };
            self.travel((self.free_at_ps / 1000) as u64, frame, random, out);
        }
    }

    /// A frame has left the queue and will have been sent at `sent_ns`.
    fn travel(
        &mut self,
        sent_ns: u64,
        frame: Frame,
        random: &mut Random,
        out: &mut impl FnMut(Arrival),
    ) {
        if self.is_lost(random) {
            self.counters.losses += 1;
            return;
        }
        let faults = self.config.faults;
        let there_ns = sent_ns + self.config.delay_ns + random.below(self.config.jitter_ns + 1);
        self.last_ns = self.last_ns.max(there_ns);
        let mut first = Arrival { at_ns: self.last_ns, sent_ns, frame, is_late: false };
        if random.chance(faults.disorder) {
            first.at_ns += random.below(faults.late_ns + 1);
            first.is_late = true;
        }
        if random.chance(faults.corruption) {
            first.frame = first.frame.with_flipped_bit(random.below(first.frame.len() as u64 * 8));
        }
        if random.chance(faults.duplication) {
            let at_ns = first.at_ns + random.below(faults.late_ns + 1);
            out(first.clone());
            return out(Arrival { at_ns, is_late: true, ..first });
        }
        out(first);
    }

    fn is_lost(&mut self, random: &mut Random) -> bool {
        let faults = self.config.faults;
        // A burst does not outlive the fault that began it.
        if self.burst_left > 0 && self.config.faults.loss > 0.0 {
            self.burst_left -= 1;
            return true;
        }
        let is_lost = random.chance(faults.loss);
        if is_lost {
            self.burst_left = faults.burst.saturating_sub(1);
        }
        let turn = if self.is_bad { faults.bursts.end } else { faults.bursts.begin };
        self.is_bad ^= random.chance(turn);
        is_lost || self.is_bad || !self.is_up
    }
}

#[cfg(test)]
mod tests;
