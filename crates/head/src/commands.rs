//! The queue of commands: Interests in, batches out, answers in, packets out. Sans-I/O.
//!
//! Commands wait by asker and are taken in turn, so that whoever sends many delays himself. All
//! that wait when the one batch in flight has ended make up the next: under load a batch grows to
//! what came while the last one was made durable, and without load nothing waits for company.
//!
//! * handle: [`Commands::handle_interest`], [`Commands::handle_answers`];
//! * poll, after each of them: [`Commands::poll_batch`] (execute it and hand the answers back),
//!   [`Commands::poll_transmit`].
//!
//! Invariants: every command that is taken is answered by one packet, or counted as expired; one
//! that is in a batch is never executed by another at the same time: a repeated Interest joins it.
//! An Interest whose name has not the digest of its parameters is dropped first, so that it cannot
//! pass for the command whose name it bears. Of number and octets nobody holds more than is free.

use std::collections::{BTreeMap, HashMap, VecDeque};

use byname_packet::Interest;
use byname_packet::lp::nack_reason;
use byname_transfer::server::{Arrival, Asker, Echo, FaceId, Now, Outgoing};

/// Commands that wait or are in flight, at most.
const COMMANDS_MAX: usize = 4096;
/// Octets of them, at most.
const COMMAND_BYTES_MAX: usize = 8 << 20;
/// Commands of a batch, at most.
const BATCH_MAX: usize = 256;
/// Askers that one command is answered to, at most.
const ECHOES_MAX: usize = 16;

/// Key of an asker in the order of turns.
type AskerKey = (u64, Option<u64>);

/// One command for a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// The Interest.
    pub wire: Vec<u8>,
    /// Its name, TLV-VALUE.
    name: Vec<u8>,
    /// When it came.
    came_ns: u64,
}

/// Whoever waits for the answer to a command.
#[derive(Debug, Default)]
struct Awaited {
    /// Where it came from, and the Nonce that it had last: the one by which a forwarder knows a
    /// Nack.
    echoes: Vec<(Echo, Option<[u8; 4]>)>,
    /// When nobody waits any more.
    expires_ns: u64,
}

impl Awaited {
    fn add(&mut self, echo: Echo, arrival: &Arrival<'_>, now_ns: u64) {
        let lifetime_ns = arrival.interest.lifetime_ms_or_default().saturating_mul(1_000_000);
        self.expires_ns = self.expires_ns.max(now_ns.saturating_add(lifetime_ns));
        let came = (echo, arrival.interest.nonce);
        let known = self.echoes.iter().position(|(other, _)| other.asker() == came.0.asker());
        match known {
            Some(at) => self.echoes[at] = came,
            None if self.echoes.len() < ECHOES_MAX => self.echoes.push(came),
            None => {}
        }
    }
}

/// Answer to a command of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandAnswer {
    /// A Data packet.
    Data(Vec<u8>),
    /// It is no command, or cannot be answered by a packet.
    Nack,
}

/// Commands of one asker, and their octets.
#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Waiting>,
    bytes: usize,
}

/// Counts since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CommandCounters {
    /// Interests taken.
    pub commands: u64,
    /// Of them, repetitions of one that was waiting or in flight.
    pub joined: u64,
    /// Refused, because too many waited.
    pub congested: u64,
    /// Dropped, because nobody waited for the answer any more.
    pub expired: u64,
    /// Batches.
    pub batches: u64,
    /// Answers that are no Data.
    pub nacked: u64,
    /// Interests whose parameters are not those that the name has the digest of.
    pub forged: u64,
    /// Nanoseconds that commands have waited for their batches, in all and at most.
    pub waited_ns: u64,
    /// The longest of these times.
    pub longest_wait_ns: u64,
}

/// What is in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CommandLevels {
    /// Commands that wait for a batch.
    pub waiting: usize,
    /// Commands of the batch in flight.
    pub in_flight: usize,
    /// Octets of all these.
    pub bytes: usize,
}

/// The queue. See the module's documentation for the order of calls.
#[derive(Debug, Default)]
pub struct Commands {
    /// Waiting commands by asker.
    queues: BTreeMap<AskerKey, Queue>,
    /// Whose turn was the last.
    turn: Option<AskerKey>,
    /// Whom to answer, by the name of the command.
    awaited: HashMap<Vec<u8>, Awaited>,
    in_flight: Vec<Waiting>,
    is_busy: bool,
    bytes: usize,
    out: VecDeque<Outgoing>,
    counters: CommandCounters,
}

impl Commands {
    /// Takes a command.
    pub fn handle_interest(&mut self, arrival: &Arrival<'_>, now: Now) {
        let echo = Echo::of(arrival);
        let (wire, name) = (arrival.interest.wire(), arrival.interest.name.value());
        self.counters.commands += 1;
        // No Nack: forwarders would give it to whoever has sent the command itself.
        if !arrival.interest.check_parameters_digest() {
            self.counters.forged += 1;
            return;
        }
        if let Some(awaited) = self.awaited.get_mut(name) {
            self.counters.joined += 1;
            return awaited.add(echo, arrival, now.now_ns);
        }
        let asker = key_of(echo.asker());
        if !self.has_room(asker, wire.len()) {
            self.counters.congested += 1;
            return self.out.push_back(echo.nack(wire, nack_reason::CONGESTION));
        }
        let waiting = Waiting { wire: wire.to_vec(), name: name.to_vec(), came_ns: now.now_ns };
        self.bytes += wire.len();
        self.awaited.entry(name.to_vec()).or_default().add(echo, arrival, now.now_ns);
        let queue = self.queues.entry(asker).or_default();
        queue.bytes += wire.len();
        queue.waiting.push_back(waiting);
    }

    /// Nobody holds more than is free, so there is room for whoever comes next.
    fn has_room(&self, asker: AskerKey, bytes: usize) -> bool {
        let free = COMMANDS_MAX.saturating_sub(self.awaited.len());
        let free_bytes = COMMAND_BYTES_MAX.saturating_sub(self.bytes);
        let held = self.queues.get(&asker);
        let (held, held_bytes) = held.map_or((0, 0), |of| (of.waiting.len(), of.bytes));
        held < free && held_bytes + bytes <= free_bytes
    }

    /// Commands to be executed together; none while others are.
    pub fn poll_batch(&mut self, now: Now) -> Option<Vec<Waiting>> {
        if self.is_busy {
            return None;
        }
        while self.in_flight.len() < BATCH_MAX
            && let Some(waiting) = self.next_in_turn()
        {
            let waited_ns = now.now_ns.saturating_sub(waiting.came_ns);
            self.counters.waited_ns = self.counters.waited_ns.saturating_add(waited_ns);
            self.counters.longest_wait_ns = self.counters.longest_wait_ns.max(waited_ns);
            let awaited = self.awaited.get(&waiting.name);
            if awaited.is_none_or(|awaited| awaited.expires_ns <= now.now_ns) {
                self.counters.expired += 1;
                self.forget(&waiting);
            } else {
                self.in_flight.push(waiting);
            }
        }
        if self.in_flight.is_empty() {
            return None;
        }
        self.is_busy = true;
        self.counters.batches += 1;
        Some(self.in_flight.clone())
    }

    fn next_in_turn(&mut self) -> Option<Waiting> {
        let behind = self.turn.and_then(|turn| {
            let behind = (std::ops::Bound::Excluded(turn), std::ops::Bound::Unbounded);
            self.queues.range(behind).next().map(|(key, _)| *key)
        });
        let key = behind.or_else(|| self.queues.keys().next().copied())?;
        self.turn = Some(key);
        let queue = self.queues.get_mut(&key)?;
        let waiting = queue.waiting.pop_front()?;
        queue.bytes -= waiting.wire.len();
        if queue.waiting.is_empty() {
            self.queues.remove(&key);
        }
        Some(waiting)
    }

    fn forget(&mut self, waiting: &Waiting) -> Awaited {
        self.bytes -= waiting.wire.len();
        self.awaited.remove(&waiting.name).unwrap_or_default()
    }

    /// Takes the answers of the batch in flight, in its order.
    pub fn handle_answers(&mut self, answers: Vec<CommandAnswer>) {
        let batch = std::mem::take(&mut self.in_flight);
        self.is_busy = false;
        for (waiting, answer) in batch.into_iter().zip(answers) {
            for (echo, nonce) in self.forget(&waiting).echoes {
                let packet = match &answer {
                    CommandAnswer::Data(data) => echo.wrap(data),
                    CommandAnswer::Nack => {
                        self.counters.nacked += 1;
                        echo.nack(&with_nonce(&waiting.wire, nonce), nack_reason::NONE)
                    }
                };
                self.out.push_back(packet);
            }
        }
    }

    /// The next packet to send.
    pub fn poll_transmit(&mut self) -> Option<Outgoing> {
        self.out.pop_front()
    }

    /// Counts since the start.
    pub fn counters(&self) -> CommandCounters {
        self.counters
    }

    /// What waits and what is in flight.
    pub fn levels(&self) -> CommandLevels {
        let in_flight = self.in_flight.len();
        let waiting = self.pending().saturating_sub(in_flight);
        CommandLevels { waiting, in_flight, bytes: self.bytes }
    }

    /// Commands that wait or are in flight.
    pub fn pending(&self) -> usize {
        self.awaited.len()
    }
}

/// The Interest as it came with another Nonce. Nobody takes a Nack to a Nonce that it has replaced.
fn with_nonce(wire: &[u8], nonce: Option<[u8; 4]>) -> Vec<u8> {
    let (Ok(interest), Some(nonce)) = (Interest::decode(wire), nonce) else { return wire.to_vec() };
    let mut repeated = Vec::with_capacity(wire.len());
    interest.encode_forwarded(nonce, interest.hop_limit, &mut repeated);
    repeated
}

fn key_of(Asker { face: FaceId(face), behind }: Asker) -> AskerKey {
    (face, behind)
}

#[cfg(test)]
mod tests;
