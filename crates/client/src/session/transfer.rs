//! One download as a state machine, for whoever has frames from elsewhere than a socket: it neither
//! waits nor looks at a clock. Files are written as they always are.
//!
//! *Handle*: [`Transfer::handle_frame`] for each frame of the connection in use,
//! [`Transfer::handle_timeout`] when the time of [`Transfer::poll_timeout`] has come,
//! [`Transfer::handle_disconnected`]. *Poll*, after each of these: [`Transfer::poll_connect`]
//! (answered by [`Transfer::handle_connected`] or [`Transfer::handle_connect_failed`]) and
//! [`Transfer::poll_frame`] until there is nothing more, then [`Transfer::outcome`].
//!
//! Dropping a transfer is what a crash is: nothing is finished or cleaned up.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::rc::Rc;

use byname_packet::{MAX_PACKET_BYTES, Name};
use byname_transfer::congestion::WINDOW_MAX;
use byname_transfer::sharing::PROMPT_RESERVE;
use byname_transfer::versions::NAMES_MAX;

use crate::config::{ClientConfig, Stop, TRANSFERS_MAX, nanoseconds};
use crate::download::context::{DownloadOptions, FileContext};
use crate::download::file_job::FileJob;
use crate::download::part_file::Target;
use crate::download::progress::{FileReport, Progress};
use crate::download::small_files::BATCH_MAX;
use crate::download::tree::{BATCHES_MAX, BESIDE_FILES_MAX, Filter, TreeReport, TreeSource};
use crate::engine::job::{JobSource, Single};
use crate::engine::machine::{Machine, Outlet, Shared};
use crate::engine::random::Random;
use crate::engine::run::Run;
use crate::engine::sources::Sources;
use crate::error::ClientError;

pub use crate::engine::machine::{Channel, Now};
pub use crate::engine::sources::Connect;

/// Unsent bytes above which no further request is made.
const QUEUE_BYTES_MAX: usize = 256 << 10;
/// Files, batches of files and directories that are fetched at the same time.
const JOBS_MAX: usize = TRANSFERS_MAX + BESIDE_FILES_MAX;
/// Of one file or directory: its descriptions, versions that came and went, certificates.
const NAMES_OF_JOB_MAX: usize = 64;
/// Objects and packets that are waited for. Batches ask for a description of each of their files.
const NAMES_ASKED_MAX: usize = JOBS_MAX * NAMES_OF_JOB_MAX + 2 * BATCHES_MAX * BATCH_MAX;
/// Jobs that are kept from sending have deadlines they cannot meet; they are asked that often.
const BLOCKED_SLEEP_NS: u64 = 5_000_000;

/// What to fetch, and how.
pub struct Order {
    /// The published file or directory.
    pub name: Name,
    /// Where it goes.
    pub target: PathBuf,
    /// As for a [`Client`](crate::Client).
    pub config: ClientConfig,
    /// As for a [`Client`](crate::Client).
    pub options: DownloadOptions,
    /// Hears what happens.
    pub progress: Box<dyn Progress>,
}

/// Who may be asked.
#[derive(Clone, Copy, Debug)]
pub struct Peers {
    /// So many sources, of which the first is connected to.
    pub source_count: usize,
    /// What the first connection delivers.
    pub channel: Channel,
    /// Nonces are made from this.
    pub seed: u64,
}

/// How a transfer ended.
#[derive(Debug)]
pub enum Outcome {
    /// Of one file.
    File(Result<FileReport, ClientError>),
    /// Of a directory.
    Tree(Result<TreeReport, ClientError>),
}

/// How full the tables of a transfer are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Levels {
    /// Files, batches of files and directories that are being fetched.
    pub jobs: usize,
    /// Requests under way.
    pub requests: usize,
    /// Objects and packets of which something was asked for.
    pub names: usize,
    /// Names with the newest version seen.
    pub versions: usize,
    /// Octets of requests that were not sent yet.
    pub unsent_bytes: usize,
}

impl Levels {
    /// The first table that holds more than it may, with what it holds and may hold.
    pub fn overfull(&self) -> Option<(&'static str, usize, usize)> {
        let tables = [
            ("files under way", self.jobs, JOBS_MAX),
            ("requests under way", self.requests, WINDOW_MAX + PROMPT_RESERVE),
            ("names asked for", self.names, NAMES_ASKED_MAX),
            ("names with versions", self.versions, NAMES_MAX),
            ("octets of unsent requests", self.unsent_bytes, QUEUE_BYTES_MAX + MAX_PACKET_BYTES),
        ];
        tables.into_iter().find(|(_, held, max)| held > max)
    }
}

enum Work {
    File(Box<Run<Single<FileJob<'static>>>>),
    Tree(Box<Run<TreeSource<'static>>>),
    Done(Outcome),
}

/// See the module.
pub struct Transfer {
    machine: Machine,
    work: Work,
    outbox: Outbox,
    stop: Stop,
    /// Nothing can be done before.
    blocked_until_ns: u64,
}

/// Frames that wait to be polled.
struct Outbox {
    frames: VecDeque<Vec<u8>>,
    bytes: usize,
    is_connected: bool,
}

impl Outlet for Outbox {
    fn has_room(&self) -> bool {
        self.is_connected && self.bytes < QUEUE_BYTES_MAX
    }

    fn queue(&mut self, parts: &[&[u8]]) {
        let frame = parts.concat();
        self.bytes += frame.len();
        self.frames.push_back(frame);
    }
}

impl Transfer {
    /// Will fetch one file.
    ///
    /// # Errors
    /// If there is no such place for it on the disk.
    pub fn file(order: Order, peers: Peers, now: Now) -> Result<Self, ClientError> {
        let Order { name, target, config, options, progress } = order;
        let target = Target::at(&target, &config.disk)?;
        let context = Rc::new(FileContext::new(&config, options, progress));
        let job = FileJob::new(context, name, target, now.now_ns);
        Ok(Transfer::new(Work::File(Box::new(Run::new(Single::new(job), 1))), &config, peers, now))
    }

    /// Will fetch a directory with everything below it that `filter` accepts.
    pub fn tree(order: Order, filter: Box<Filter<'static>>, peers: Peers, now: Now) -> Self {
        let Order { name, target, config, options, progress } = order;
        let mut context = FileContext::new(&config, options, progress);
        context.is_batched = options.sync;
        let source = TreeSource::new(Rc::new(context), (name, target), filter);
        let at_once = source.at_once();
        Transfer::new(Work::Tree(Box::new(Run::new(source, at_once))), &config, peers, now)
    }

    fn new(work: Work, config: &ClientConfig, peers: Peers, now: Now) -> Self {
        let shared = Shared::new(config, now.now_ns);
        let sources = Sources::new(peers.source_count, nanoseconds(config.timeout));
        let random = Random::Seeded(peers.seed);
        let mut transfer = Transfer {
            machine: Machine::new(shared, sources, peers.channel, random),
            work,
            outbox: Outbox { frames: VecDeque::new(), bytes: 0, is_connected: true },
            stop: config.stop.clone(),
            blocked_until_ns: 0,
        };
        transfer.advance(now);
        transfer
    }

    /// How it ended, if it did.
    pub fn outcome(&self) -> Option<&Outcome> {
        match &self.work {
            Work::Done(outcome) => Some(outcome),
            Work::File(_) | Work::Tree(_) => None,
        }
    }

    /// How full its tables are.
    pub fn levels(&self) -> Levels {
        let shared = &self.machine.shared;
        Levels {
            jobs: match &self.work {
                Work::File(run) => run.len(),
                Work::Tree(run) => run.len(),
                Work::Done(_) => 0,
            },
            requests: shared.flow.in_flight(),
            names: self.machine.name_count(),
            versions: shared.versions.name_count(),
            unsent_bytes: self.outbox.bytes,
        }
    }

    /// Requests that may be under way.
    pub fn window(&self) -> usize {
        self.machine.shared.flow.window()
    }

    /// A frame came over the connection in use.
    pub fn handle_frame(&mut self, frame: &[u8], now: Now) {
        match &mut self.work {
            Work::File(run) => take_frame(&mut self.machine, run, frame, now),
            Work::Tree(run) => take_frame(&mut self.machine, run, frame, now),
            Work::Done(_) => {}
        }
        self.advance(now);
    }

    /// The time of [`Transfer::poll_timeout`] has come.
    pub fn handle_timeout(&mut self, now: Now) {
        match &mut self.work {
            Work::File(run) => time_out(&mut self.machine, run, now),
            Work::Tree(run) => time_out(&mut self.machine, run, now),
            Work::Done(_) => {}
        }
        self.advance(now);
    }

    /// The source of the last [`Transfer::poll_connect`] is there, and the one before is not used
    /// any more.
    pub fn handle_connected(&mut self, channel: Channel, now: Now) {
        self.outbox = Outbox { frames: VecDeque::new(), bytes: 0, is_connected: true };
        self.machine.handle_connected(channel, now.now_ns, &mut self.outbox);
        self.advance(now);
    }

    /// The source of the last [`Transfer::poll_connect`] cannot be had.
    pub fn handle_connect_failed(&mut self, now: Now) {
        match &mut self.work {
            Work::File(run) => self.machine.handle_connect_failed(run, now),
            Work::Tree(run) => self.machine.handle_connect_failed(run, now),
            Work::Done(_) => {}
        }
        self.advance(now);
    }

    /// The connection in use is gone.
    pub fn handle_disconnected(&mut self, now: Now) {
        self.outbox = Outbox { frames: VecDeque::new(), bytes: 0, is_connected: false };
        self.machine.handle_disconnected(now.now_ns);
        self.advance(now);
    }

    /// Whom to connect to now.
    pub fn poll_connect(&mut self, now: Now) -> Option<Connect> {
        match &self.work {
            Work::Done(_) => None,
            Work::File(_) | Work::Tree(_) => self.machine.poll_connect(now.now_ns),
        }
    }

    /// The next frame for the connection in use.
    pub fn poll_frame(&mut self, now: Now) -> Option<Vec<u8>> {
        let was_full = !self.outbox.has_room();
        let frame = self.outbox.frames.pop_front()?;
        self.outbox.bytes -= frame.len();
        if was_full && self.outbox.has_room() {
            self.advance(now);
        }
        Some(frame)
    }

    /// When [`Transfer::handle_timeout`] has something to do.
    pub fn poll_timeout(&mut self) -> Option<u64> {
        let deadline_ns = match &mut self.work {
            Work::File(run) => self.machine.poll_deadline(run),
            Work::Tree(run) => self.machine.poll_deadline(run),
            Work::Done(_) => None,
        };
        deadline_ns.map(|at_ns| at_ns.max(self.blocked_until_ns))
    }

    /// Sends what there is to send, and ends when everything is done.
    fn advance(&mut self, now: Now) {
        let Transfer { machine, outbox, stop, .. } = self;
        let ended = if stop.is_requested() {
            Some(Err(ClientError::Interrupted))
        } else {
            match &mut self.work {
                Work::File(run) => drive(machine, run, outbox, now),
                Work::Tree(run) => drive(machine, run, outbox, now),
                Work::Done(_) => return,
            }
        };
        let blocked_ns = if self.outbox.has_room() { 0 } else { BLOCKED_SLEEP_NS };
        self.blocked_until_ns = now.now_ns.saturating_add(blocked_ns);
        if let Some(ended) = ended {
            self.finish(ended);
        }
    }

    fn finish(&mut self, ended: Result<(), ClientError>) {
        let interrupted = Outcome::File(Err(ClientError::Interrupted));
        let outcome = match std::mem::replace(&mut self.work, Work::Done(interrupted)) {
            Work::File(run) => {
                let done = run.end(&mut self.machine).into_done();
                let done = done.map_or(Err(ClientError::Interrupted), FileJob::into_outcome);
                Outcome::File(ended.and(done))
            }
            Work::Tree(run) => {
                let mut source = run.end(&mut self.machine);
                source.place_batch();
                Outcome::Tree(ended.and_then(|()| source.into_outcome()))
            }
            Work::Done(outcome) => outcome,
        };
        self.work = Work::Done(outcome);
    }
}

fn take_frame<S: JobSource>(machine: &mut Machine, run: &mut Run<S>, frame: &[u8], now: Now) {
    machine.handle_frame(run, frame, now);
    machine.end_burst(run, now);
}

fn time_out<S: JobSource>(machine: &mut Machine, run: &mut Run<S>, now: Now) {
    machine.end_burst(run, now);
    machine.handle_timeout(run, now);
}

/// How it ended, if it did.
fn drive<S: JobSource>(
    machine: &mut Machine,
    run: &mut Run<S>,
    outbox: &mut Outbox,
    now: Now,
) -> Option<Result<(), ClientError>> {
    run.retire(machine);
    loop {
        run.refill(machine, now.now_ns);
        if run.is_empty() {
            return Some(Ok(()));
        }
        if machine.take_end().is_some() {
            let endpoint = "every source".to_owned();
            return Some(Err(ClientError::Disconnected { endpoint, source: None }));
        }
        machine.send(run, &|| now, outbox);
        if !run.retire(machine) {
            return None;
        }
    }
}
