//! Asks, and judges the answers. Sans-I/O.
//!
//! The owner of a consumer
//! * tells it what happened: [`Consumer::handle_packet`], [`Consumer::handle_timeout`];
//! * takes what is to be sent: [`Consumer::poll_interest`], and when to come back:
//!   [`Consumer::poll_timeout`];
//! * stops when [`Consumer::is_done`] and reads [`Consumer::report`].
//!
//! Every Interest that waits has a slot; its PIT token is the slot's number and generation, so an
//! answer finds its question without a look-up by name. With a fixed rate, times count from when
//! an Interest was due: a generator that was held up does not make the forwarder look better.

use std::collections::{BTreeMap, HashSet};

use byname_packet::lp::LpHeader;
use byname_packet::{Data, Interest, NameRef};

use crate::error::TrafficError;
use crate::latency::Latency;
use crate::numbers::{Random, Sequence};
use crate::pattern::{Pattern, TOKEN_BYTES, Template};
use crate::payload::{Payload, Sizes};

mod slots;
#[cfg(test)]
mod tests;

use slots::{SlotId, Slots};

/// Interests that may wait for an answer at a time.
pub const OUTSTANDING_MAX: usize = 1 << 16;

const SECOND_NS: u64 = 1_000_000_000;

/// The load: a window or a rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Load {
    /// So many Interests wait at any time.
    Window(usize),
    /// So many Interests per second, whatever the answers.
    Rate {
        /// Interests per second.
        per_second: f64,
        /// Interests that may wait; those due beyond are skipped and counted.
        outstanding_max: usize,
    },
}

impl Load {
    fn outstanding_max(self) -> usize {
        match self {
            Load::Window(window) => window,
            Load::Rate { outstanding_max, .. } => outstanding_max,
        }
    }
}

/// Settings of a consumer: patterns, load and duration.
#[derive(Debug, Clone)]
pub struct ConsumerConfig {
    /// The mix.
    pub patterns: Vec<Pattern>,
    /// Window or rate.
    pub load: Load,
    /// No Interest after this time.
    pub duration_ns: Option<u64>,
    /// No Interest after so many.
    pub count: Option<u64>,
    /// Lengths that contents must have; without it only what they say is checked.
    pub sizes: Option<Sizes>,
    /// True if contents are compared with what they must be.
    pub checks_content: bool,
}

/// Counters of one part of the mix.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PatternCounters {
    /// Interests sent.
    pub interests: u64,
    /// Right answers.
    pub data: u64,
    /// Answers with other content than the name says.
    pub mismatches: u64,
    /// Nacks.
    pub nacks: u64,
    /// Interests without any answer within their lifetime.
    pub timeouts: u64,
}

/// The report of a run.
#[derive(Debug, Clone, Default)]
pub struct ConsumerReport {
    /// By part of the mix, in its order.
    pub patterns: Vec<PatternCounters>,
    /// Nacks by reason.
    pub nacks: BTreeMap<u64, u64>,
    /// Packets that nobody waited for, too late ones included.
    pub unexpected: u64,
    /// Interests that were due while too many others waited.
    pub skipped: u64,
    /// Octets of content in right answers.
    pub content_bytes: u64,
    /// Octets of the packets of right answers.
    pub packet_bytes: u64,
    /// From the first Interest to the last answer, or to the end if there was none.
    pub elapsed_ns: u64,
    /// Times from Interest to right answer.
    pub latency: Latency,
}

impl ConsumerReport {
    /// All parts of the mix together.
    pub fn total(&self) -> PatternCounters {
        let mut total = PatternCounters::default();
        for part in &self.patterns {
            total.interests += part.interests;
            total.data += part.data;
            total.mismatches += part.mismatches;
            total.nacks += part.nacks;
            total.timeouts += part.timeouts;
        }
        total
    }
}

/// One pattern at work.
#[derive(Debug)]
struct Part {
    template: Template,
    sequence: Sequence,
    lifetime_ns: u64,
    /// Sum of weights up to and including this part.
    weight: u64,
    /// Numbers in flight, kept only where one could be drawn twice.
    in_flight: Option<HashSet<u64>>,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Consumer {
    config: ConsumerConfig,
    parts: Vec<Part>,
    weight: u64,
    slots: Slots,
    random: Random,
    payload: Payload,
    start_ns: Option<u64>,
    last_answer_ns: u64,
    /// Interests that were due so far, sent or skipped.
    due: u64,
    sent: u64,
    report: ConsumerReport,
}

impl Consumer {
    /// A consumer; `seed` makes nonces and random numbers.
    ///
    /// # Errors
    /// [`TrafficError`] of what the configuration asks for in vain.
    pub fn new(config: ConsumerConfig, seed: u64) -> Result<Self, TrafficError> {
        let window = config.load.outstanding_max();
        if window == 0 || window > OUTSTANDING_MAX {
            return Err(TrafficError::BadWindow { wanted: window, max: OUTSTANDING_MAX });
        }
        if let Load::Rate { per_second, .. } = config.load
            && !(per_second.is_finite() && per_second > 0.0)
        {
            return Err(TrafficError::BadRate(per_second));
        }
        let mut parts = Vec::with_capacity(config.patterns.len());
        let mut weight = 0;
        for pattern in &config.patterns {
            pattern.check(window)?;
            let sequence = Sequence::new(&pattern.numbers)?;
            weight += u64::from(pattern.weight);
            parts.push(Part {
                template: Template::new(pattern)?,
                in_flight: sequence.repeats().then(HashSet::new),
                sequence,
                lifetime_ns: pattern.lifetime_ms.saturating_mul(1_000_000),
                weight,
            });
        }
        if weight == 0 {
            return Err(TrafficError::NoPattern);
        }
        let patterns = vec![PatternCounters::default(); parts.len()];
        Ok(Self {
            slots: Slots::new(window, parts.len()),
            parts,
            weight,
            config,
            random: Random::new(seed),
            payload: Payload::default(),
            start_ns: None,
            last_answer_ns: 0,
            due: 0,
            sent: 0,
            report: ConsumerReport { patterns, ..ConsumerReport::default() },
        })
    }

    /// The next frame to send now, if any.
    pub fn poll_interest(&mut self, now_ns: u64) -> Option<&[u8]> {
        let start_ns = *self.start_ns.get_or_insert(now_ns);
        if !self.is_asking(now_ns) {
            return None;
        }
        let due_ns = match self.config.load {
            Load::Window(_) => now_ns,
            Load::Rate { per_second, .. } => {
                let due_ns = self.due_ns(start_ns, per_second);
                if due_ns > now_ns {
                    return None;
                }
                due_ns
            }
        };
        if self.slots.is_full() {
            self.skip_due(start_ns, now_ns);
            return None;
        }
        let index = self.choose_part();
        let part = self.parts.get_mut(index)?;
        let mut number = part.sequence.draw(&mut self.random);
        if let Some(in_flight) = &mut part.in_flight {
            while !in_flight.insert(number) {
                number = part.sequence.after(number);
            }
        }
        let deadline_ns = now_ns + part.lifetime_ns;
        let id = self.slots.take(index, number, (due_ns, deadline_ns))?;
        self.due += 1;
        self.sent += 1;
        self.report.patterns[index].interests += 1;
        let nonce = self.random.next() as u32;
        Some(self.parts[index].template.patch(token(id), nonce, number))
    }

    /// Takes what came in.
    pub fn handle_packet(&mut self, header: &LpHeader<'_>, packet: &[u8], now_ns: u64) {
        if let Some(reason) = header.nack {
            return self.handle_nack(header, packet, reason, now_ns);
        }
        let Ok(data) = Data::decode(packet) else {
            self.report.unexpected += 1;
            return;
        };
        let Some(id) = self.waiting(header.pit_token, data.name) else {
            self.report.unexpected += 1;
            return;
        };
        let (index, number, due_ns) = self.release(id, now_ns);
        let counters = &mut self.report.patterns[index];
        let (sizes, content) = (self.config.sizes.as_ref(), data.content);
        let is_other_len = sizes.is_some_and(|sizes| sizes.of(number) != content.len());
        let is_checked = self.config.checks_content;
        if is_other_len || is_checked && !self.payload.is_content(number, content) {
            counters.mismatches += 1;
            return;
        }
        counters.data += 1;
        self.report.content_bytes += data.content.len() as u64;
        self.report.packet_bytes += packet.len() as u64;
        self.report.latency.record(now_ns.saturating_sub(due_ns));
    }

    fn handle_nack(&mut self, header: &LpHeader<'_>, packet: &[u8], reason: u64, now_ns: u64) {
        let name = Interest::decode(packet).ok().map(|interest| interest.name);
        let Some(id) = name.and_then(|name| self.waiting(header.pit_token, name)) else {
            self.report.unexpected += 1;
            return;
        };
        let (index, ..) = self.release(id, now_ns);
        self.report.patterns[index].nacks += 1;
        *self.report.nacks.entry(reason).or_default() += 1;
    }

    /// Gives up Interests whose lifetime is over.
    pub fn handle_timeout(&mut self, now_ns: u64) {
        while let Some(id) = self.slots.expired(now_ns) {
            let (index, number, _) = self.slots.free(id);
            self.forget(index, number);
            self.report.patterns[index].timeouts += 1;
        }
    }

    /// When to come back if nothing comes in.
    pub fn poll_timeout(&self) -> Option<u64> {
        let next_due = self.next_due_ns();
        [self.slots.next_deadline_ns(), next_due].into_iter().flatten().min()
    }

    /// True if everything was asked and answered or given up.
    pub fn is_done(&self, now_ns: u64) -> bool {
        self.start_ns.is_some() && !self.is_asking(now_ns) && self.slots.is_empty()
    }

    /// The report so far.
    pub fn report(&self, now_ns: u64) -> ConsumerReport {
        let start_ns = self.start_ns.unwrap_or(now_ns);
        let end_ns = if self.last_answer_ns == 0 { now_ns } else { self.last_answer_ns };
        let mut report = self.report.clone();
        report.elapsed_ns = end_ns.saturating_sub(start_ns);
        report
    }

    fn is_asking(&self, now_ns: u64) -> bool {
        let is_early = match (self.config.duration_ns, self.start_ns) {
            (Some(duration_ns), Some(start_ns)) => now_ns < start_ns.saturating_add(duration_ns),
            _ => true,
        };
        is_early && self.config.count.is_none_or(|count| self.due < count)
    }

    /// With a rate, when the next Interest is due.
    fn next_due_ns(&self) -> Option<u64> {
        let (Load::Rate { per_second, .. }, Some(start_ns)) = (self.config.load, self.start_ns)
        else {
            return None;
        };
        Some(self.due_ns(start_ns, per_second))
    }

    fn due_ns(&self, start_ns: u64, per_second: f64) -> u64 {
        start_ns + (self.due as f64 * SECOND_NS as f64 / per_second) as u64
    }

    /// With a rate and no room, Interests that are due now will never be sent.
    fn skip_due(&mut self, start_ns: u64, now_ns: u64) {
        if let Load::Rate { per_second, .. } = self.config.load {
            let elapsed_s = now_ns.saturating_sub(start_ns) as f64 / SECOND_NS as f64;
            let due = (elapsed_s * per_second) as u64 + 1;
            let due = due.min(self.config.count.unwrap_or(u64::MAX));
            self.report.skipped += due.saturating_sub(self.due);
            self.due = self.due.max(due);
        }
    }

    fn choose_part(&mut self) -> usize {
        if self.parts.len() == 1 {
            return 0;
        }
        let share = self.random.below(self.weight);
        self.parts.iter().position(|part| share < part.weight).unwrap_or(0)
    }

    /// The slot whose Interest a packet of this name answers.
    fn waiting(&self, token: Option<&[u8]>, name: NameRef<'_>) -> Option<SlotId> {
        let is_answered = |(index, number)| {
            let part: &Part = &self.parts[index];
            part.template.is_answered_by(name, number)
        };
        match token.and_then(slot_of) {
            Some(id) => self.slots.get(id).filter(|slot| is_answered(*slot)).map(|_| id),
            // Whoever answers without our token makes us search.
            None => self.slots.find(is_answered),
        }
    }

    fn release(&mut self, id: SlotId, now_ns: u64) -> (usize, u64, u64) {
        let (index, number, due_ns) = self.slots.free(id);
        self.forget(index, number);
        self.last_answer_ns = now_ns;
        (index, number, due_ns)
    }

    fn forget(&mut self, index: usize, number: u64) {
        if let Some(in_flight) = &mut self.parts[index].in_flight {
            in_flight.remove(&number);
        }
    }
}

fn token(id: SlotId) -> [u8; TOKEN_BYTES] {
    let [a, b, c, d] = id.index.to_be_bytes();
    let [e, f] = id.generation.to_be_bytes();
    [a, b, c, d, e, f]
}

fn slot_of(token: &[u8]) -> Option<SlotId> {
    let [a, b, c, d, e, f] = *token else { return None };
    let index = u32::from_be_bytes([a, b, c, d]);
    Some(SlotId { index, generation: u16::from_be_bytes([e, f]) })
}
