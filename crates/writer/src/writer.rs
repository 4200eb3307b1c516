//! The thread's loop: one connection, commands and files in flight.

mod receiving;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use byname_catalog::{Answer, Command, Create, Entry};
use byname_face::{CommandClock, Face, RegisterOptions, Registrar, Route, random_u64, register};
use byname_io::{Clock, Connection, Interest as Watch, Poller, Token, Waker};
use byname_link::ReassemblyLimits;
use byname_packet::lp::LpHeader;
use byname_security::key::KeySigner;
use byname_security::trust::{TrustPolicy, Validator};
use byname_site::{Claim, CommandPacket, DiskName, Insert, RequestId, SiteAnswer, SiteName, Stamp};

use crate::asks::Asks;
use crate::error::WriterError;
use crate::job::{Action, Job};
use crate::producer::Producer;
use crate::slots::Slots;
use crate::source::Source;

/// Most files written at a time.
pub const FILES_IN_FLIGHT_MAX: usize = 16;

const CONNECTION: Token = Token(0);
const MS_NS: u64 = 1_000_000;
/// How often the loop looks at whether it shall stop.
const STOP_CHECK: Duration = Duration::from_millis(200);
/// Time for attempts to be given up when all shall stop.
const STOP_NS: u64 = 3000 * MS_NS;
/// How often session and attempts are kept open: they last ten minutes and an hour.
const RENEW_NS: u64 = 180_000 * MS_NS;
/// Octets of a packet that arrives in pieces.
const REASSEMBLY: ReassemblyLimits = ReassemblyLimits {
    messages_max: 64,
    bytes_max: 1 << 20,
    fragments_max: 64,
    lifetime_ns: 500_000_000,
};

/// Identity of a writer.
#[derive(Debug, Clone)]
pub struct WriterConfig {
    /// The site.
    pub site: SiteName,
    /// The user.
    pub user: String,
    /// His key, with the name of its certificate.
    pub signer: KeySigner,
    /// Whose answers count: the site's key.
    pub trust: TrustPolicy,
}

/// A file to be written.
#[derive(Debug, Clone)]
pub struct Put {
    /// Where to.
    pub create: Create,
    /// It gets the local file's time of modification.
    pub keep_time: bool,
    /// The file.
    pub source: Arc<Source>,
}

/// The next file to be written.
#[derive(Debug)]
pub enum Next {
    /// It, with a number of its own.
    Put(usize, Put),
    /// It is not ready; whoever has it ready wakes the writer ([`Writer::waker`]).
    Later,
    /// There is none any more.
    End,
}

/// Something that happened to a file, which is told by its number.
#[derive(Debug)]
pub enum PutEvent {
    /// The slowest of its disks has so many octets.
    Progress {
        /// The file.
        number: usize,
        /// The octets.
        received_bytes: u64,
    },
    /// It has a new version, or not.
    Done {
        /// The file.
        number: usize,
        /// What came of it.
        result: Result<Box<Entry>, WriterError>,
    },
}

/// Who waits for the answer to a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// A call of [`Writer::execute`].
    Caller,
    /// A file.
    Job(usize),
    /// Nobody: the session, or an attempt, is kept open.
    Nobody,
}

/// What an Interest in flight is about.
#[derive(Debug, Clone)]
enum About {
    Command { owner: Owner, request: Option<RequestId>, what: &'static str },
    Insert { job: usize, disk: DiskName },
    Certificate,
}

/// Writes to a site. See the crate's documentation.
pub struct Writer {
    config: WriterConfig,
    number: u64,
    face: Face,
    poller: Poller,
    clock: Clock,
    command_clock: CommandClock,
    validator: Validator,
    asks: Asks<About>,
    producer: Producer,
    slots: Option<Slots>,
    jobs: BTreeMap<usize, Job>,
    /// Answer to the command that the caller waits for.
    answer: Option<Result<SiteAnswer, WriterError>>,
    events: Vec<PutEvent>,
    /// When session and attempts are kept open for longer.
    renew_ns: u64,
    /// The head has answered: should it be gone, it is expected back.
    is_head_known: bool,
    waker: Waker,
}

impl Writer {
    /// Takes over a connection to a forwarder, and registers the writer's prefix there.
    ///
    /// # Errors
    /// [`WriterError`] of what cannot be registered, or opened.
    pub fn connect(
        connection: Connection,
        config: WriterConfig,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Self, WriterError> {
        let is_datagram = connection.remote_uri().starts_with("udp");
        let options = match connection.is_local() && !is_datagram {
            true => RegisterOptions::local(),
            false => RegisterOptions::remote(),
        };
        let mut writer = Self::over(connection, config)?;
        let prefix = writer.config.site.writer(&writer.config.user, writer.number);
        let signer = Some(Arc::new(writer.config.signer.clone()) as _);
        let route = Route { prefix, signer, face_id: None };
        let clock = writer.command_clock.clone();
        let mut registrar = Registrar::new(std::iter::once(route), options, clock);
        register(&mut writer.face, &mut registrar, is_stopped)?;
        writer.open_session(is_stopped)?;
        Ok(writer)
    }

    fn over(connection: Connection, config: WriterConfig) -> Result<Self, WriterError> {
        let mut poller = Poller::new()?;
        poller.add(&connection, CONNECTION, Watch::READ)?;
        let waker = poller.waker(Token(1))?;
        Ok(Self {
            number: random_u64(),
            face: Face::new(connection, REASSEMBLY),
            poller,
            clock: Clock::new(),
            command_clock: CommandClock::new(),
            validator: Validator::new(config.trust.clone()),
            asks: Asks::new(),
            producer: Producer::default(),
            slots: None,
            jobs: BTreeMap::new(),
            answer: None,
            events: Vec::new(),
            renew_ns: u64::MAX,
            is_head_known: false,
            waker,
            config,
        })
    }

    fn open_session(&mut self, is_stopped: &dyn Fn() -> bool) -> Result<(), WriterError> {
        match self.execute(Command::OpenSession, is_stopped)? {
            Answer::Session { session, .. } => {
                self.slots = Some(Slots::new(session));
                self.renew_ns = self.clock.now_ns() + RENEW_NS;
                Ok(())
            }
            _ => Err(WriterError::OtherAnswer),
        }
    }

    /// Sends a command that writes no content and waits for its answer.
    ///
    /// # Errors
    /// [`WriterError`]; [`WriterError::Refused`] if the catalog says no.
    pub fn execute(
        &mut self,
        command: Command,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Answer, WriterError> {
        self.answer = None;
        self.send_command(Owner::Caller, CommandPacket::new(None, command))?;
        loop {
            if let Some(answer) = self.answer.take() {
                return match answer? {
                    SiteAnswer::Plain(answer) => Ok(answer),
                    SiteAnswer::Ticket(_) => Err(WriterError::OtherAnswer),
                };
            }
            self.turn(is_stopped)?;
        }
    }

    /// Ends the writer's waiting, from any thread: there is a next file.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Writes files, several at a time, in the order in which `next` gives them, each with a number
    /// of its own.
    ///
    /// # Errors
    /// What ends all of them: the connection, or a wish to stop, at which what is in flight is
    /// given up. What ends one file is its event.
    pub fn put_all(
        &mut self,
        next: &mut dyn FnMut() -> Next,
        on_event: &mut dyn FnMut(PutEvent),
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<(), WriterError> {
        let mut is_last = false;
        loop {
            while !is_last && self.jobs.len() < FILES_IN_FLIGHT_MAX {
                match next() {
                    Next::Put(number, put) => self.begin(number, put)?,
                    Next::Later => break,
                    Next::End => is_last = true,
                }
            }
            self.events.drain(..).for_each(&mut *on_event);
            if is_last && self.jobs.is_empty() {
                return Ok(());
            }
            if let Err(error) = self.turn(is_stopped) {
                if matches!(error, WriterError::Stopped) {
                    self.stop()?;
                }
                self.jobs.clear();
                self.events.drain(..).for_each(&mut *on_event);
                return Err(error);
            }
        }
    }

    fn begin(&mut self, number: usize, put: Put) -> Result<(), WriterError> {
        self.jobs.insert(number, Job::new(put.create, put.keep_time, put.source));
        self.act(number)
    }

    /// Gives up what is in flight, so that what it has reserved comes back.
    fn stop(&mut self) -> Result<(), WriterError> {
        let numbers: Vec<usize> = self.jobs.keys().copied().collect();
        for number in numbers {
            if let Some(job) = self.jobs.get_mut(&number) {
                job.stop();
            }
            self.act(number)?;
        }
        let until_ns = self.clock.now_ns() + STOP_NS;
        while !self.jobs.is_empty() && self.clock.now_ns() < until_ns {
            self.turn(&|| false)?;
        }
        Ok(())
    }

    fn stamp(&self) -> Stamp {
        let time_ms = self.command_clock.next_ms(self.clock.unix_ns());
        Stamp { time_ms, nonce: random_u64().to_be_bytes() }
    }

    fn send_command(&mut self, owner: Owner, mut packet: CommandPacket) -> Result<(), WriterError> {
        packet.request = self.slots.as_mut().and_then(Slots::take);
        let what = packet.command.name();
        let wire = packet.encode(&self.config.site, &self.config.signer, self.stamp())?;
        let about = About::Command { owner, request: packet.request, what };
        let now_ns = self.clock.now_ns();
        match self.is_head_known {
            true => self.asks.ask_known(about, wire, now_ns),
            false => self.asks.ask(about, wire, now_ns),
        }
        Ok(())
    }

    /// Keeps the session and all attempts open for longer.
    fn renew(&mut self) -> Result<(), WriterError> {
        let tickets = self.jobs.values().filter_map(Job::ticket);
        let contents: Vec<_> = tickets.map(|ticket| ticket.terms().content).collect();
        let extend = contents.into_iter().map(|content| Command::Extend { content });
        for command in std::iter::once(Command::RenewSession).chain(extend) {
            self.send_command(Owner::Nobody, CommandPacket::new(None, command))?;
        }
        Ok(())
    }

    /// Does what a file wants done.
    fn act(&mut self, number: usize) -> Result<(), WriterError> {
        while let Some(action) = self.jobs.get_mut(&number).and_then(Job::poll_action) {
            match action {
                Action::Command(packet) => self.send_command(Owner::Job(number), *packet)?,
                Action::Produce(content) => {
                    if let Some(job) = self.jobs.get(&number) {
                        self.producer.add(&self.config.site, content, job.source().clone());
                    }
                }
                Action::Insert { disk, pause_ms } => self.insert(number, disk, pause_ms)?,
                Action::Done(result) => self.end(number, *result),
            }
        }
        Ok(())
    }

    fn insert(&mut self, number: usize, disk: DiskName, pause_ms: u64) -> Result<(), WriterError> {
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
            hint: site.writer(&self.config.user, self.number),
        };
        let wire = order.encode(site, &disk, &signer, self.stamp())?;
        let clock = (self.clock.now_ns(), pause_ms * MS_NS);
        self.asks.ask_again(About::Insert { job: number, disk }, wire, clock);
        Ok(())
    }

    fn end(&mut self, number: usize, result: Result<Entry, WriterError>) {
        let job = self.jobs.remove(&number);
        let ticket = job.as_ref().and_then(Job::ticket);
        if let Some(content) = ticket.map(|ticket| ticket.terms().content) {
            self.producer.remove(&self.config.site, content);
        }
        self.asks.retain(|about| !matches!(about, About::Insert { job, .. } if *job == number));
        self.events.push(PutEvent::Done { number, result: result.map(Box::new) });
    }

    /// Waits for something to happen, and deals with it.
    fn turn(&mut self, is_stopped: &dyn Fn() -> bool) -> Result<(), WriterError> {
        if is_stopped() {
            return Err(WriterError::Stopped);
        }
        let now_ns = self.clock.now_ns();
        if now_ns >= self.renew_ns {
            self.renew_ns = now_ns + RENEW_NS;
            self.renew()?;
        }
        while let Some((about, why)) = self.asks.poll_given_up(now_ns) {
            self.give_up(about, why)?;
        }
        while let Some(wire) = self.asks.poll_send(now_ns, random_u64()) {
            self.face.send(&LpHeader::default(), &wire, now_ns)?;
        }
        self.face.flush()?;
        let write = self.face.connection().wants_write();
        self.poller.modify(self.face.connection(), CONNECTION, Watch { read: true, write })?;
        let due_ns = self.asks.poll_deadline().unwrap_or(u64::MAX);
        let wait = Duration::from_nanos(due_ns.saturating_sub(now_ns)).min(STOP_CHECK);
        let mut ready = Vec::new();
        self.poller.wait(&mut ready, Some(wait))?;
        if ready.iter().any(|it| it.token == CONNECTION && (it.readable || it.hangup)) {
            self.receive()?;
        }
        Ok(())
    }
}
