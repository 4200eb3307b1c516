//! A writer: the production core of `byname_writer`, doing one thing after another. What it is
//! told goes into the history.

use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use byname_catalog::{Answer, Command, Create, Place, PolicyChanges, Publish, Refusal, Rename};
use byname_face::CommandClock;
use byname_packet::Signer;
use byname_packet::lp::LpPacket;
use byname_site::SiteAnswer;
use byname_writer::{Put, PutEvent, Source, WriterConfig, WriterCore, WriterError};

use super::history::{Kind, Outcome, TREE_PATHS};
use super::record::SharedRecord;
use super::serving::frame;
use crate::disk::content;
use crate::program::{Crash, Now, Program};
use crate::random::Random;
use crate::world::{MS, SECOND};

/// Name of the directory that some paths are in.
const TREE: &str = "d";
/// Pause after something that ends a process, until it is started again.
const AGAIN_NS: u64 = SECOND;
/// Commands that it signs before it agrees upon keys are fewer.
const SIGNED_MAX: u64 = 5;
/// Contents from this number on are the states of files that grow.
const GROWN: u64 = 1 << 32;
/// Octets of a file that grows, before it does.
const GROWN_BYTES: u64 = 90_000;
/// States of such a file.
const STATES: u64 = 256;

/// Something to do: an operation after a pause, with octets if it writes.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// The operation; what it writes is made from its content's number.
    pub kind: Kind,
    /// Octets to be written.
    pub size: u64,
    /// Pause before it.
    pub pause_ns: u64,
    /// The file is had for writing alone meanwhile, if it is there already.
    pub has_lease: bool,
}

impl Step {
    /// An operation after a pause, which writes nothing.
    pub fn new(kind: Kind, pause_ns: u64) -> Self {
        Self { kind, size: 0, pause_ns, has_lease: false }
    }

    /// A writer's file in a state that has all that was in those before it.
    pub fn grown(path: u8, (writer, state): (u64, u64), pause_ns: u64) -> Self {
        let state = state % STATES;
        let content = GROWN + writer * STATES + state;
        let size = GROWN_BYTES + state * 17_001;
        Self { size, ..Self::new(Kind::Put { path, content }, pause_ns) }
    }
}

enum Stage {
    /// Nothing until this time.
    Pausing(u64),
    /// Waiting for a session.
    Opening,
    /// Waiting for somebody's rights to be taken away.
    Removing,
    /// Waiting for the lease of the file that this writes.
    Leasing(Step),
    /// Waiting for the end of a lease.
    Returning,
    /// Waiting for the answer to an operation of the record.
    Waiting(usize),
}

/// See the module.
pub struct SiteWriter {
    config: WriterConfig,
    core: Option<WriterCore>,
    has_session: bool,
    stage: Stage,
    steps: VecDeque<Step>,
    /// Path of the file that it has for writing alone.
    leased: Option<u8>,
    record: SharedRecord,
    random: Random,
    lives: u64,
    is_down: bool,
    /// A command that takes somebody's rights away; then, when that was acknowledged.
    removal: Option<(Command, Option<u64>)>,
    out: VecDeque<Vec<u8>>,
}

/// Path of a number.
pub fn path(number: u8) -> String {
    match number < TREE_PATHS {
        true => format!("f{number}"),
        false => format!("{TREE}/f{number}"),
    }
}

/// The directory that some paths are in.
pub(super) fn tree() -> Place {
    Place::path(TREE).expect("a short name")
}

fn place(number: u8) -> Place {
    Place::path(path(number)).expect("a short name")
}

/// A file whose octets are made from a number.
pub(super) fn source(number: u64, size: u64) -> Source {
    let mut octets = vec![0; size as usize];
    let seed = if number < GROWN { number } else { number - number % STATES };
    content(seed, 0, &mut octets);
    let name = "byname-sim";
    let file = rustix::fs::memfd_create(name, rustix::fs::MemfdFlags::CLOEXEC);
    let file = File::from(file.expect("a file in memory"));
    file.write_all_at(&octets, 0).expect("room in memory");
    Source::of_file(Path::new(name), file, &|| false).expect("it does not change")
}

impl SiteWriter {
    pub(super) fn new(
        config: WriterConfig,
        record: SharedRecord,
        steps: VecDeque<Step>,
        seed: u64,
    ) -> Self {
        Self {
            config,
            core: None,
            has_session: false,
            stage: Stage::Pausing(0),
            steps,
            leased: None,
            record,
            random: Random::new(seed),
            lives: 0,
            is_down: false,
            removal: None,
            out: VecDeque::new(),
        }
    }

    /// True if nothing is left to do, or nobody to do it.
    pub fn is_done(&self) -> bool {
        self.is_down
            || self.steps.is_empty()
                && !self.is_removing()
                && matches!(self.stage, Stage::Pausing(_) | Stage::Opening | Stage::Removing)
    }

    /// True while its commands are under keys of its session.
    pub fn has_keys(&self) -> bool {
        self.core.as_ref().is_some_and(WriterCore::has_keys)
    }

    /// How often it was started.
    pub fn lives(&self) -> u64 {
        self.lives
    }

    /// Name of its user's key.
    pub fn key_name(&self) -> Vec<u8> {
        let locator = self.config.signer.key_locator();
        let name = locator.map(|name| name.without_last(2).value().to_vec());
        name.unwrap_or_default()
    }

    /// Has somebody's rights taken away before anything else is done; the writer is an operator.
    pub fn take_rights(&mut self, by: Command) {
        self.removal = Some((by, None));
    }

    /// When it was told that they are gone.
    pub fn rights_taken_ns(&self) -> Option<u64> {
        self.removal.as_ref()?.1
    }

    /// Gives it more to do.
    pub fn add(&mut self, step: Step) {
        self.steps.push_back(step);
    }

    fn begin_life(&mut self, now: Now) {
        self.lives += 1;
        let config = self.config.clone();
        let mut random = Random::new(self.random.draw());
        let number = random.draw();
        let mut seeds = Random::new(random.draw());
        let commands_before = random.below(SIGNED_MAX) as u32;
        let random = Box::new(move || random.draw());
        let mut core = WriterCore::new(config, number, CommandClock::new(), random);
        core.draw_seeds_from(Box::new(move || Some(seeds.seed())));
        core.agree_after(commands_before);
        let sent = core.send(0, Command::OpenSession, clock(now));
        sent.expect("a command without elements fits a packet");
        (self.core, self.has_session, self.stage) = (Some(core), false, Stage::Opening);
    }

    /// The process ends, as it does when a command says so; another one is started later.
    fn end_life(&mut self, now: Now) {
        (self.core, self.leased) = (None, None);
        self.out.clear();
        self.stage = Stage::Pausing(now.now_ns + AGAIN_NS);
    }

    fn work(&mut self, now: Now) {
        if self.is_down {
            return;
        }
        match self.stage {
            Stage::Pausing(at_ns) if at_ns > now.now_ns => {}
            Stage::Pausing(_) if self.steps.is_empty() && !self.is_removing() => {}
            Stage::Pausing(_) if self.core.is_none() => self.begin_life(now),
            Stage::Pausing(_) => self.begin_step(now),
            Stage::Opening => self.take_session(now),
            Stage::Removing => self.take_removal(now),
            Stage::Leasing(step) => self.take_lease(step, now),
            Stage::Returning => self.take_return(now),
            Stage::Waiting(number) => self.take_outcome(number, now),
        }
        let Some(core) = &mut self.core else { return };
        while let Some(sent) = core.poll_transmit(clock(now)) {
            self.out.push_back(frame((sent.pit_token.as_deref(), sent.nack), &sent.wire));
        }
    }

    fn take_session(&mut self, now: Now) {
        let Some(core) = &mut self.core else { return };
        match core.poll_answer() {
            None => {}
            Some((_, Ok(SiteAnswer::Plain(Answer::Session { session, .. })))) => {
                core.begin_session(session, clock(now));
                self.has_session = true;
                self.pause(now);
            }
            Some(_) => self.end_life(now),
        }
    }

    fn is_removing(&self) -> bool {
        matches!(self.removal, Some((_, None)))
    }

    fn take_removal(&mut self, now: Now) {
        let Some((_, answer)) = self.core.as_mut().and_then(WriterCore::poll_answer) else {
            return;
        };
        let is_gone = matches!(answer, Ok(_) | Err(WriterError::Refused(Refusal::UnknownKey)));
        if !is_gone {
            return self.end_life(now);
        }
        if let Some((_, at_ns)) = &mut self.removal {
            *at_ns = Some(now.now_ns);
        }
        self.pause(now);
    }

    fn pause(&mut self, now: Now) {
        let pause_ns = self.steps.front().map_or(0, |step| step.pause_ns);
        self.stage = Stage::Pausing(now.now_ns + pause_ns);
    }

    fn begin_step(&mut self, now: Now) {
        if let (Some(core), Some((command, None))) = (&mut self.core, &self.removal) {
            let sent = core.send(0, command.clone(), clock(now));
            sent.expect("short names fit a packet");
            self.stage = Stage::Removing;
            return;
        }
        let (Some(core), Some(step)) = (&mut self.core, self.steps.pop_front()) else { return };
        match step.kind {
            Kind::Put { path, .. } if step.has_lease => {
                let sent = core.send(0, Command::Lease { place: place(path) }, clock(now));
                sent.expect("a short name fits a packet");
                self.stage = Stage::Leasing(step);
            }
            _ => self.begin_operation(step, now),
        }
    }

    fn take_lease(&mut self, step: Step, now: Now) {
        let Some((_, answer)) = self.core.as_mut().and_then(WriterCore::poll_answer) else {
            return;
        };
        match answer {
            Ok(_) => {
                self.leased = match step.kind {
                    Kind::Put { path, .. } => Some(path),
                    _ => None,
                };
                self.begin_operation(step, now);
            }
            // There is no such file, or somebody else has it: the write is tried all the same.
            Err(error) if !error.ends_all() => self.begin_operation(step, now),
            Err(_) => self.end_life(now),
        }
    }

    fn take_return(&mut self, now: Now) {
        match self.core.as_mut().and_then(WriterCore::poll_answer) {
            None => {}
            Some((_, Err(error))) if error.ends_all() => self.end_life(now),
            Some(_) => self.pause(now),
        }
    }

    fn begin_operation(&mut self, step: Step, now: Now) {
        let Some(core) = &mut self.core else { return };
        let number = self.record.borrow_mut().begin(step.kind, now.now_ns);
        self.stage = Stage::Waiting(number);
        let sent = match step.kind {
            Kind::Put { path, content } => {
                let source = source(content, step.size);
                self.record.borrow_mut().contents.insert(source.root(), content);
                let create = Create {
                    place: place(path),
                    mode: 0o644,
                    size_max: step.size,
                    publish: Publish::AtCommit,
                    exclusive: false,
                    policy: PolicyChanges::default(),
                };
                let put = Put { create, keep_time: false, source: Arc::new(source) };
                core.put(number, put, clock(now))
            }
            Kind::Rename { from, to } => {
                let rename = Rename { from: place(from), to: place(to), no_replace: false };
                core.send(0, Command::Rename(rename), clock(now))
            }
            Kind::Unlink { path } => {
                core.send(0, Command::Unlink { place: place(path) }, clock(now))
            }
            Kind::RemoveTree => core.send(0, Command::RemoveAll { place: tree() }, clock(now)),
            Kind::MakeTree => {
                core.send(0, Command::MakeDirectory { place: tree(), mode: 0o755 }, clock(now))
            }
            Kind::Read { .. } => Ok(()),
        };
        if sent.is_err() {
            self.end_life(now);
        }
    }

    fn take_outcome(&mut self, number: usize, now: Now) {
        let Some(core) = &mut self.core else { return };
        let result = match core.poll_event() {
            Some(PutEvent::Progress { .. }) => return self.take_outcome(number, now),
            Some(PutEvent::Done { result, .. }) => result.map(|_| ()),
            None => match core.poll_answer() {
                Some((_, answer)) => answer.map(|_| ()),
                None => return,
            },
        };
        let shared = Rc::clone(&self.record);
        let record = &mut *shared.borrow_mut();
        let is_put = record.operations.get(number).is_some_and(|it| {
            it.is_some_and(|operation| matches!(operation.kind, Kind::Put { .. }))
        });
        let column = match &result {
            Ok(()) => 0,
            Err(WriterError::Refused(_)) => 1,
            Err(_) => 2,
        };
        record.puts[column] += u64::from(is_put);
        let ends = match result {
            Ok(()) => {
                record.end(number, Outcome::Done, now.now_ns);
                false
            }
            Err(WriterError::Refused(Refusal::NotFound)) if !is_put => {
                record.end(number, Outcome::Absent, now.now_ns);
                false
            }
            // A catalog that was made again has no sessions: what was repeated may have happened.
            Err(WriterError::Refused(Refusal::UnknownSession)) => {
                WriterError::Refused(Refusal::UnknownSession).ends_all()
            }
            Err(WriterError::Refused(refusal)) => {
                record.operations[number] = None;
                WriterError::Refused(refusal).ends_all()
            }
            // Whether it happened is not known.
            Err(error) => error.ends_all(),
        };
        match self.leased.take() {
            _ if ends => self.end_life(now),
            None => self.pause(now),
            // By the name that it had: should it have another by now, the lease ends with the
            // session.
            Some(path) => {
                let sent = core.send(0, Command::EndLease { place: place(path) }, clock(now));
                sent.expect("a short name fits a packet");
                self.stage = Stage::Returning;
            }
        }
    }
}

pub(super) fn clock(now: Now) -> byname_writer::Now {
    byname_writer::Now { now_ns: now.now_ns, unix_ns: now.unix_ns }
}

impl Program for SiteWriter {
    fn handle_frame(&mut self, frame: &[u8], now: Now) {
        let Ok(link) = LpPacket::decode(frame) else { return };
        let (Some(core), Some(packet)) = (&mut self.core, link.fragment) else { return };
        let header = (link.header.nack, link.header.pit_token);
        if core.handle_packet(header, packet, clock(now)).is_err() {
            self.end_life(now);
        }
        self.work(now);
    }

    fn handle_timeout(&mut self, now: Now) {
        if let Some(core) = &mut self.core
            && core.handle_timeout(clock(now)).is_err()
        {
            self.end_life(now);
        }
        self.work(now);
    }

    fn poll_frame(&mut self, _now: Now) -> Option<Vec<u8>> {
        self.out.pop_front()
    }

    fn poll_timeout(&mut self) -> Option<u64> {
        if self.is_down {
            return None;
        }
        let core = self.core.as_ref().map(WriterCore::poll_timeout);
        let own = match self.stage {
            Stage::Pausing(at_ns) if !self.steps.is_empty() || self.is_removing() => Some(at_ns),
            _ => None,
        };
        [core, own].into_iter().flatten().filter(|at_ns| *at_ns != u64::MAX).min()
    }

    fn fault(&self) -> Option<String> {
        let waiting = self.out.len();
        (waiting > 10_000).then(|| format!("queues are bounded: {waiting} packets at a writer"))
    }

    fn crash(&mut self, _how: Crash, now: Now) {
        self.is_down = true;
        self.end_life(now);
    }

    fn restart(&mut self, now: Now) {
        self.is_down = false;
        self.stage = Stage::Pausing(now.now_ns + MS);
    }
}
