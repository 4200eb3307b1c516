//! The writer without I/O: commands, orders and files in flight.
//!
//! * command: [`WriterCore::send`], [`WriterCore::ask`], [`WriterCore::forget_commands`],
//!   [`WriterCore::put`], [`WriterCore::stop`], [`WriterCore::begin_session`],
//!   [`WriterCore::end_session`];
//! * handle: [`WriterCore::handle_packet`], [`WriterCore::handle_timeout`];
//! * poll, after each of them: [`WriterCore::poll_transmit`], [`WriterCore::poll_answer`],
//!   [`WriterCore::poll_event`]; [`WriterCore::poll_timeout`].
//!
//! [`Writer`](crate::Writer) runs it over a connection, the simulator in virtual time.

mod questions;
mod receiving;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use byname_catalog::id::SessionId;
use byname_catalog::{Command, Entry, Refusal};
use byname_face::CommandClock;
use byname_packet::{Interest, Name};
use byname_security::key::KeySigner;
use byname_security::trust::{TrustPolicy, Validator};
use byname_site::{
    Claim, CommandPacket, DiskName, Insert, Keyring, SeedSource, SiteAnswer, SiteName, SpeaksFor,
    Stamp, Ticket, library_seeds,
};

use self::questions::Told;
use crate::asks::Asks;
use crate::error::WriterError;
use crate::job::{Action, Job};
use crate::producer::Producer;
use crate::put::{Put, PutEvent};
use crate::slots::Slots;
use crate::source::Source;

const MS_NS: u64 = 1_000_000;
/// How often session and attempts are kept open: they last ten minutes and an hour.
const RENEW_NS: u64 = 180_000 * MS_NS;

/// Identity of a writer.
#[derive(Debug, Clone)]
pub struct WriterConfig {
    /// The site.
    pub site: SiteName,
    /// The namespace of the key: a user's or a door's.
    pub namespace: Name,
    /// The user for whom a door writes.
    pub speaks_for: Option<SpeaksFor>,
    /// The key, with the name of its certificate.
    pub signer: KeySigner,
    /// Whose answers count: the site's key.
    pub trust: TrustPolicy,
    /// A head that has not answered yet is waited for as one that has, though there is no route to
    /// it: whoever writes has said that there is time.
    pub waits_for_head: bool,
}

/// Clocks at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// Monotonic nanoseconds.
    pub now_ns: u64,
    /// Nanoseconds since 1970.
    pub unix_ns: u64,
}

/// A packet to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// The packet: an Interest of the writer's own, or what a disk has asked for. It may be lost
    /// where there is no room for it: either is asked for again.
    pub wire: Vec<u8>,
    /// The token of the Interest that it replies to.
    pub pit_token: Option<Vec<u8>>,
    /// Reason, if it is a Nack.
    pub nack: Option<u64>,
}

/// Who waits for the answer to a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// Whoever sent it under this number.
    Caller(usize),
    /// A file.
    Job(usize),
    /// Nobody: the session, or an attempt, is kept open.
    Nobody,
}

/// What an Interest in flight is about.
#[derive(Debug, Clone)]
enum About {
    Command {
        owner: Owner,
        packet: Arc<CommandPacket>,
        /// Which keys of the session it is under, unless it is signed.
        sealed: Option<u64>,
    },
    Question {
        number: usize,
        question: Arc<[u8]>,
        /// As of a command.
        sealed: Option<u64>,
    },
    Agree,
    Insert {
        job: usize,
        disk: DiskName,
    },
    Certificate,
}

/// See the module.
pub struct WriterCore {
    config: WriterConfig,
    number: u64,
    command_clock: CommandClock,
    random: Box<dyn FnMut() -> u64 + Send>,
    validator: Validator,
    asks: Asks<About>,
    producer: Producer,
    slots: Option<Slots>,
    keyring: Keyring,
    jobs: BTreeMap<usize, Job>,
    /// Files that begin when others are there: with those they would reserve too much.
    held: Vec<(usize, Job)>,
    /// A file has ended since what is held back was looked at.
    has_ended: bool,
    /// Answers to the caller's commands, by their numbers.
    answers: VecDeque<(usize, Result<SiteAnswer, WriterError>)>,
    /// The same for questions.
    told: VecDeque<Told>,
    events: VecDeque<PutEvent>,
    replies: VecDeque<Outgoing>,
    /// When session and attempts are kept open for longer.
    renew_ns: u64,
    /// The head has answered, or is waited for: should it be gone, it is expected back.
    is_head_known: bool,
}

impl WriterCore {
    /// A writer that nobody else has the number of.
    pub fn new(
        config: WriterConfig,
        number: u64,
        command_clock: CommandClock,
        random: Box<dyn FnMut() -> u64 + Send>,
    ) -> Self {
        Self {
            validator: Validator::new(config.trust.clone()),
            is_head_known: config.waits_for_head,
            config,
            number,
            command_clock,
            random,
            asks: Asks::new(),
            producer: Producer::default(),
            slots: None,
            keyring: Keyring::new(library_seeds()),
            jobs: BTreeMap::new(),
            held: Vec::new(),
            has_ended: false,
            answers: VecDeque::new(),
            told: VecDeque::new(),
            events: VecDeque::new(),
            replies: VecDeque::new(),
            renew_ns: u64::MAX,
        }
    }

    /// Draws private numbers of sessions from somewhere else than the cryptographic library.
    pub fn draw_seeds_from(&mut self, seeds: SeedSource) {
        self.keyring.draw_seeds_from(seeds);
    }

    /// Agrees upon keys of the session after so many commands; with `u32::MAX`, never.
    pub fn agree_after(&mut self, commands: u32) {
        self.keyring.agree_after(commands);
    }

    /// True while commands are under keys of the session.
    pub fn has_keys(&self) -> bool {
        self.keyring.has_keys()
    }

    /// Prefix under which the writer is asked for what it writes.
    pub fn prefix(&self) -> Name {
        self.config.site.writer(&self.config.namespace, self.number)
    }

    /// The head has opened a session: commands are numbered in it from now on.
    pub fn begin_session(&mut self, session: SessionId, now: Now) {
        self.slots = Some(Slots::new(session));
        self.renew_ns = now.now_ns.saturating_add(RENEW_NS);
    }

    /// The Interest that ends the session, if there is one. Nobody waits for its answer.
    pub fn end_session(&mut self, now: Now) -> Option<Vec<u8>> {
        let request = self.slots.take()?.take();
        let packet = CommandPacket::new(request, Command::EndSession);
        let packet = packet.spoken_for(self.config.speaks_for.clone());
        let (wire, _) = self.encoded(&packet, now).ok()?;
        let (mut out, nonce) = (Vec::with_capacity(wire.len() + 8), (self.random)() as u32);
        Interest::decode(&wire).ok()?.encode_forwarded(nonce.to_be_bytes(), None, &mut out);
        Some(out)
    }

    /// Sends a command that writes no content, under a number of its own; its answer comes by
    /// [`WriterCore::poll_answer`].
    ///
    /// # Errors
    /// [`WriterError::Sign`] if it fits no packet.
    pub fn send(&mut self, number: usize, command: Command, now: Now) -> Result<(), WriterError> {
        self.send_command(Owner::Caller(number), CommandPacket::new(None, command), now)
    }

    /// An answer to a command that was sent, with its number.
    pub fn poll_answer(&mut self) -> Option<(usize, Result<SiteAnswer, WriterError>)> {
        self.answers.pop_front()
    }

    /// Forgets all commands and questions that were sent: their answers are none to what is sent
    /// later.
    pub fn forget_commands(&mut self) {
        self.answers.clear();
        self.told.clear();
        let is_sent = |about: &About| {
            let is_command = matches!(about, About::Command { owner: Owner::Caller(_), .. });
            is_command || matches!(about, About::Question { .. })
        };
        self.asks.retain(|about| !is_sent(about));
    }

    /// Begins to write a file, which has a number of its own.
    ///
    /// # Errors
    /// What ends all files.
    pub fn put(&mut self, number: usize, put: Put, now: Now) -> Result<(), WriterError> {
        self.jobs.insert(number, Job::new(put.create, put.keep_time, put.source));
        self.act(number, now)
    }

    /// Begins to write the content of an attempt that is open already.
    ///
    /// # Errors
    /// What ends all files.
    pub fn put_into(
        &mut self,
        number: usize,
        (ticket, source): (Ticket, Arc<Source>),
        now: Now,
    ) -> Result<(), WriterError> {
        self.jobs.insert(number, Job::under(ticket, source));
        self.act(number, now)
    }

    /// Something that happened to a file.
    pub fn poll_event(&mut self) -> Option<PutEvent> {
        self.events.pop_front()
    }

    /// Files in flight.
    pub fn in_flight(&self) -> usize {
        self.jobs.len() + self.held.len()
    }

    /// Forgets all files; what they have reserved comes back when their attempts end.
    pub fn forget(&mut self) {
        self.jobs.clear();
        self.held.clear();
    }

    /// Gives up what is in flight, so that what it has reserved comes back.
    ///
    /// # Errors
    /// What ends all files.
    pub fn stop(&mut self, now: Now) -> Result<(), WriterError> {
        for (number, _) in std::mem::take(&mut self.held) {
            let result = Err(WriterError::Stopped);
            self.events.push_back(PutEvent::Done { number, result });
        }
        let numbers: Vec<usize> = self.jobs.keys().copied().collect();
        for number in numbers {
            if let Some(job) = self.jobs.get_mut(&number) {
                job.stop();
            }
            self.act(number, now)?;
        }
        Ok(())
    }

    /// Does what is due.
    ///
    /// # Errors
    /// What ends all files.
    pub fn handle_timeout(&mut self, now: Now) -> Result<(), WriterError> {
        if now.now_ns >= self.renew_ns {
            self.renew_ns = now.now_ns + RENEW_NS;
            self.renew(now)?;
        }
        self.asks.handle_time(now.now_ns);
        while let Some((about, why)) = self.asks.poll_given_up(now.now_ns) {
            self.give_up(about, why, now)?;
        }
        Ok(())
    }

    /// When [`WriterCore::handle_timeout`] or [`WriterCore::poll_transmit`] has something to do.
    pub fn poll_timeout(&self) -> u64 {
        self.asks.poll_deadline().unwrap_or(u64::MAX).min(self.renew_ns)
    }

    /// The next packet to send.
    pub fn poll_transmit(&mut self, now: Now) -> Option<Outgoing> {
        if let Some(reply) = self.replies.pop_front() {
            return Some(reply);
        }
        let wire = self.asks.poll_send(now.now_ns, (self.random)())?;
        Some(Outgoing { wire, pit_token: None, nack: None })
    }

    fn stamp(&mut self, now: Now) -> Stamp {
        let time_ms = self.command_clock.next_ms(now.unix_ns);
        Stamp { time_ms, nonce: (self.random)().to_be_bytes() }
    }

    fn send_command(
        &mut self,
        owner: Owner,
        mut packet: CommandPacket,
        now: Now,
    ) -> Result<(), WriterError> {
        packet.request = self.slots.as_mut().and_then(Slots::take);
        packet.speaks_for = self.config.speaks_for.clone();
        self.express(owner, Arc::new(packet), now)?;
        self.agree(now)
    }

    /// Sends a command, under the session's keys if there are any.
    fn express(
        &mut self,
        owner: Owner,
        packet: Arc<CommandPacket>,
        now: Now,
    ) -> Result<(), WriterError> {
        let (wire, sealed) = self.encoded(&packet, now)?;
        let about = About::Command { owner, packet, sealed };
        self.asks.ask_head(about, wire, (now.now_ns, self.is_head_known));
        Ok(())
    }

    /// A command under the session's keys, and which these are, or signed.
    fn encoded(
        &mut self,
        packet: &CommandPacket,
        now: Now,
    ) -> Result<(Vec<u8>, Option<u64>), WriterError> {
        if let Some(sealed) = self.keyring.seal(&self.config.site, packet) {
            return Ok(sealed.map(|(wire, keys)| (wire, Some(keys)))?);
        }
        let stamp = self.stamp(now);
        Ok((packet.encode(&self.config.site, &self.config.signer, stamp)?, None))
    }

    /// Asks for keys of the session when it is time.
    fn agree(&mut self, now: Now) -> Result<(), WriterError> {
        let Some(session) = self.slots.as_ref().map(Slots::session) else { return Ok(()) };
        if !self.keyring.note_sent(now.now_ns) {
            return Ok(());
        }
        let Some(agree) = self.keyring.begin(session, now.now_ns) else { return Ok(()) };
        let stamp = self.stamp(now);
        let wire = agree.encode(&self.config.site, &self.config.signer, stamp)?;
        self.asks.ask_head(About::Agree, wire, (now.now_ns, true));
        Ok(())
    }

    /// Keeps the session and all attempts open for longer.
    fn renew(&mut self, now: Now) -> Result<(), WriterError> {
        let tickets = self.jobs.values().filter_map(Job::ticket);
        let contents: Vec<_> = tickets.map(|ticket| ticket.terms().content).collect();
        let extend = contents.into_iter().map(|content| Command::Extend { content });
        for command in std::iter::once(Command::RenewSession).chain(extend) {
            self.send_command(Owner::Nobody, CommandPacket::new(None, command), now)?;
        }
        Ok(())
    }

    /// Does what a file wants done.
    fn act(&mut self, number: usize, now: Now) -> Result<(), WriterError> {
        while let Some(action) = self.jobs.get_mut(&number).and_then(Job::poll_action) {
            match action {
                Action::Command(packet) => self.send_command(Owner::Job(number), *packet, now)?,
                Action::Produce(content) => {
                    if let Some(job) = self.jobs.get(&number) {
                        self.producer.add(&self.config.site, content, job.source().clone());
                    }
                }
                Action::Insert { disk, pause_ms } => self.insert(number, (disk, pause_ms), now)?,
                Action::Done(result) => {
                    self.end(number, *result);
                    self.begin_held(now)?;
                }
            }
        }
        Ok(())
    }

    /// Begins what was held back, since something has ended.
    fn begin_held(&mut self, now: Now) -> Result<(), WriterError> {
        if !self.has_ended {
            return Ok(());
        }
        self.has_ended = false;
        for (number, mut job) in std::mem::take(&mut self.held) {
            job.begin_again();
            self.jobs.insert(number, job);
            self.act(number, now)?;
        }
        Ok(())
    }

    fn insert(
        &mut self,
        number: usize,
        (disk, pause_ms): (DiskName, u64),
        now: Now,
    ) -> Result<(), WriterError> {
        let stamp = self.stamp(now);
        let Some(job) = self.jobs.get(&number) else { return Ok(()) };
        let Some(ticket) = job.ticket() else { return Ok(()) };
        let site = &self.config.site;
        let certificate = ticket.certificate().name().to_name();
        let signer = KeySigner::new(Arc::clone(self.config.signer.key()), certificate);
        let (size, root) = (job.source().size(), job.source().root());
        let claim = Claim { content: ticket.terms().content, size, root };
        let order = Insert {
            ticket: ticket.clone(),
            claim: claim.encode(site, &signer)?,
            hint: self.prefix(),
        };
        let wire = order.encode(site, &disk, &signer, stamp)?;
        let clock = (now.now_ns, pause_ms * MS_NS);
        self.asks.ask_again(About::Insert { job: number, disk }, wire, clock);
        Ok(())
    }

    fn end(&mut self, number: usize, result: Result<Entry, WriterError>) {
        let mut job = self.jobs.remove(&number);
        let is_too_much = matches!(result, Err(WriterError::Refused(Refusal::TooMuchReserved)));
        // What is in flight is a part of it, and will be there.
        if let Some(job) = job.take_if(|_| is_too_much && !self.jobs.is_empty()) {
            return self.held.push((number, job));
        }
        self.has_ended = true;
        let ticket = job.as_ref().and_then(Job::ticket);
        if let Some(content) = ticket.map(|ticket| ticket.terms().content) {
            self.producer.remove(&self.config.site, content);
        }
        self.asks.retain(|about| !matches!(about, About::Insert { job, .. } if *job == number));
        self.events.push_back(PutEvent::Done { number, result: result.map(Box::new) });
    }
}
