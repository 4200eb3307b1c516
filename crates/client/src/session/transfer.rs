//! One download as a state machine, for whoever has frames from elsewhere than a socket: the
//! [`executor`](super::executor) of all façades, which neither waits nor looks at a clock. Files
//! are written as they always are.
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
use std::sync::Arc;

use byname_packet::{MAX_PACKET_BYTES, Name};
use byname_retry::Jitter;
use byname_transfer::congestion::WINDOW_MAX;
use byname_transfer::sharing::PROMPT_RESERVE;
use byname_transfer::versions::NAMES_MAX;

use crate::config::{ClientConfig, Stop, TRANSFERS_MAX, nanoseconds};
use crate::download::context::DownloadOptions;
use crate::download::progress::{FileReport, Progress};
use crate::download::small_files::BATCH_MAX;
use crate::download::tree::{BATCHES_MAX, BESIDE_FILES_MAX, Filter};
use crate::download::tree_report::TreeReport;
use crate::engine::completion::{Completion, Reply};
use crate::engine::machine::{Machine, Outlet};
use crate::engine::random::Random;
use crate::engine::run::Run;
use crate::engine::shared::Shared;
use crate::engine::source_names::SourceNames;
use crate::engine::sources::{Patience, Sources};
use crate::error::ClientError;
use crate::session::command::{Call, ClosedFiles, Command, FileCloser};
use crate::session::executor::{Executor, ExecutorState, Threads};
use crate::session::files::{OpenFiles, SessionOptions};

pub use crate::engine::machine::Channel;
pub use crate::engine::shared::Now;
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

/// Order of a transfer: the name, its target, the settings.
pub struct TransferOrder {
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
    /// Kind of frames that the first connection delivers.
    pub channel: Channel,
    /// Nonces are made from this.
    pub seed: u64,
}

/// Outcome of a transfer.
#[derive(Debug)]
pub enum TransferOutcome {
    /// Of one file.
    File(Result<FileReport, ClientError>),
    /// Of a directory.
    Tree(Result<TreeReport, ClientError>),
}

/// Levels of the tables of a transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Levels {
    /// Files, batches of files and directories that are being fetched.
    pub jobs: usize,
    /// Requests in flight.
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
            ("files in flight", self.jobs, JOBS_MAX),
            ("requests in flight", self.requests, WINDOW_MAX + PROMPT_RESERVE),
            ("names asked for", self.names, NAMES_ASKED_MAX),
            ("names with versions", self.versions, NAMES_MAX),
            ("octets of unsent requests", self.unsent_bytes, QUEUE_BYTES_MAX + MAX_PACKET_BYTES),
        ];
        tables.into_iter().find(|(_, held, max)| held > max)
    }
}

/// The call that the transfer works on, or its outcome.
enum TransferState {
    File(Arc<Completion<FileReport>>),
    Tree(Arc<Completion<TreeReport>>),
    Done(TransferOutcome),
}

/// See the module.
pub struct Transfer {
    machine: Machine,
    /// `None` when all is done.
    run: Option<Box<Run<Executor<'static>>>>,
    state: TransferState,
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
    pub fn file(order: TransferOrder, peers: Peers, now: Now) -> Self {
        let TransferOrder { name, target, config, options, progress: events } = order;
        let completion = Completion::new();
        let (reply, stop) = (Reply::new(Arc::clone(&completion)), Stop::default());
        let call = Call { reply, stop, events };
        let command = Command::Download { name, target, options, call };
        Transfer::new((command, TransferState::File(completion)), config, peers, now)
    }

    /// Will fetch a directory with everything below it that `filter` accepts.
    pub fn tree(
        order: TransferOrder,
        filter: Box<Filter<'static>>,
        peers: Peers,
        now: Now,
    ) -> Self {
        let TransferOrder { name, target, config, options, progress: events } = order;
        let completion = Completion::new();
        let (reply, stop) = (Reply::new(Arc::clone(&completion)), Stop::default());
        let call = Call { reply, stop, events };
        let command = Command::DownloadTree { name, target, options, filter, call };
        Transfer::new((command, TransferState::Tree(completion)), config, peers, now)
    }

    fn new(
        (command, state): (Command<'static>, TransferState),
        config: ClientConfig,
        peers: Peers,
        now: Now,
    ) -> Self {
        let mut random = Random::Seeded(Jitter::new(peers.seed));
        let shared = Shared::new(&config, now.now_ns, &mut random);
        let patience = Patience {
            first_ns: nanoseconds(config.timeout),
            begun_ns: nanoseconds(config.outage()),
        };
        let sources = Sources::new(peers.source_count, patience);
        let stop = config.stop.clone();
        let closer = FileCloser::Caller(ClosedFiles::default());
        let files = OpenFiles::new(SessionOptions::CALLERS_THREAD, config.fetch_begun(), closer);
        let names = Arc::new(SourceNames::new(Vec::new(), "every source"));
        let mut executor =
            Executor::new(ExecutorState::new(config, files, names, Threads::default()));
        executor.push(command);
        let mut transfer = Transfer {
            machine: Machine::new(shared, sources, peers.channel, random),
            run: Some(Box::new(Run::new(executor, usize::MAX))),
            state,
            outbox: Outbox { frames: VecDeque::new(), bytes: 0, is_connected: true },
            stop,
            blocked_until_ns: 0,
        };
        transfer.advance(now);
        transfer
    }

    /// The outcome, once there is one.
    pub fn outcome(&self) -> Option<&TransferOutcome> {
        match &self.state {
            TransferState::Done(outcome) => Some(outcome),
            TransferState::File(_) | TransferState::Tree(_) => None,
        }
    }

    /// Levels of its tables.
    pub fn levels(&self) -> Levels {
        let shared = &self.machine.shared;
        Levels {
            jobs: self.run.as_ref().map_or(0, |run| run.len()),
            requests: shared.flow.in_flight(),
            names: self.machine.name_count(),
            versions: shared.versions.name_count(),
            unsent_bytes: self.outbox.bytes,
        }
    }

    /// Requests that may be in flight.
    pub fn window(&self) -> usize {
        self.machine.shared.flow.window()
    }

    /// A frame came over the connection in use.
    pub fn handle_frame(&mut self, frame: &[u8], now: Now) {
        if let Some(run) = &mut self.run {
            self.machine.handle_frame(run, frame, now);
            self.machine.end_burst(run, now);
        }
        self.advance(now);
    }

    /// The time of [`Transfer::poll_timeout`] has come.
    pub fn handle_timeout(&mut self, now: Now) {
        if let Some(run) = &mut self.run {
            self.machine.end_burst(run, now);
            self.machine.handle_timeout(run, now);
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
        if let Some(run) = &mut self.run {
            self.machine.handle_connect_failed(run, now);
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
        self.run.is_some().then(|| self.machine.poll_connect(now.now_ns)).flatten()
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
        let deadline_ns = self.machine.poll_deadline(self.run.as_deref_mut()?);
        deadline_ns.map(|at_ns| at_ns.max(self.blocked_until_ns))
    }

    /// Sends what there is to send, and ends when everything is done.
    fn advance(&mut self, now: Now) {
        let Some(run) = &mut self.run else { return };
        let ended = match self.stop.is_requested() {
            true => Some(Err(ClientError::Interrupted)),
            false => drive(&mut self.machine, run, &mut self.outbox, now),
        };
        let blocked_ns = if self.outbox.has_room() { 0 } else { BLOCKED_SLEEP_NS };
        self.blocked_until_ns = now.now_ns.saturating_add(blocked_ns);
        if let Some(ended) = ended {
            self.finish(ended);
        }
    }

    fn finish(&mut self, ended: Result<(), ClientError>) {
        if let Some(run) = self.run.take() {
            run.end(&mut self.machine).give_up();
        }
        let outcome = match &self.state {
            TransferState::File(completion) => TransferOutcome::File(answer(completion, ended)),
            TransferState::Tree(completion) => TransferOutcome::Tree(answer(completion, ended)),
            TransferState::Done(_) => return,
        };
        self.state = TransferState::Done(outcome);
    }
}

fn answer<T>(completion: &Completion<T>, ended: Result<(), ClientError>) -> Result<T, ClientError> {
    let lost = || Err(ended.err().unwrap_or(ClientError::Interrupted));
    completion.take().unwrap_or_else(lost)
}

/// The outcome, once there is one.
fn drive(
    machine: &mut Machine,
    run: &mut Run<Executor<'static>>,
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
