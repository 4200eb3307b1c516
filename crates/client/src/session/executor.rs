//! The engine: a thread that owns the connection and works for any number of handles.
//!
//! Handles send commands through a bounded [`CommandQueue`]; the thread turns each into a job of
//! the [`Driver`] and leaves the answer in the caller's completion. It sleeps in the poller, also
//! when there is nothing to do, so that a lost connection is noticed and a command wakes it.
//!
//! Invariants: the thread never waits for a caller; every command is answered exactly once, if
//! only by telling that the answer is lost; the thread ends with the last handle.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::{Arc, Weak};
use std::time::Duration;

use byname_packet::{Data, Name, NameRef};
use byname_security::trust::Trusted;
use byname_transfer::discovery::Discovered;
use byname_transfer::error::{ProtocolProblem, ReadError};
use byname_transfer::fetch::NackKind;
use byname_transfer::flow::Flow;
use byname_transfer::reader::ObjectPlan;
use byname_transfer::request::{Context, Request};

use crate::config::ClientConfig;
use crate::download::context::FileContext;
use crate::download::file_job::FileJob;
use crate::download::part_file::Target;
use crate::download::progress::{FileReport, NoProgress};
use crate::engine::completion::Reply;
use crate::engine::job::{Job, JobSource};
use crate::error::{ClientError, Limit};
use crate::lookup::list_job::ListJob;
use crate::lookup::listing::Listing;
use crate::lookup::name::LookupJob;
use crate::read::counters::Counters;
use crate::read::open_file::{FileReads, Inbox, Share};
use crate::read::operation::{Operation, RangesRead, ReadRequest};
use crate::session::command::{Command, CommandQueue, EngineHandle, FileGuard, FileId, Opened};
use crate::session::driver::Driver;

/// Files that may be open at once in a session.
pub const FILES_OPEN_MAX: usize = 4096;
/// Nodes that an open file may keep whatever the number of files.
const NODES_MIN: usize = 8;
/// Cache that an open file may have whatever the number of files.
const CACHE_BYTES_MIN: usize = 64 << 10;
const NODE_BYTES: usize = 8192;
/// How long the thread sleeps when nobody wants anything; it is woken when somebody does.
const IDLE_SLEEP: Duration = Duration::from_secs(60);

/// How much memory a session takes for what it may need again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionOptions {
    /// Proved tree nodes of all open files; 4 MiB cover 1 GiB of content.
    pub node_bytes_max: usize,
    /// Proved content of all open files.
    pub cache_bytes_max: usize,
    /// Content fetched ahead, per file; 0 switches prefetch off.
    pub prefetch_bytes_max: usize,
}

impl Default for SessionOptions {
    fn default() -> Self {
        SessionOptions {
            node_bytes_max: 16 << 20,
            cache_bytes_max: 16 << 20,
            prefetch_bytes_max: 4 << 20,
        }
    }
}

/// Runs until the last handle is gone.
pub(crate) fn run(mut driver: Driver, mut source: Source) {
    while !source.queue.is_abandoned() {
        if let Err(error) = driver.run(&mut source, usize::MAX) {
            tracing::debug!(%error, "everything under way is given up");
            source.give_up();
        }
        if source.queue.has_commands() || source.queue.is_abandoned() {
            continue;
        }
        if let Err(error) = driver.idle(IDLE_SLEEP) {
            tracing::debug!(%error, "the connection ended while nothing was under way");
        }
    }
}

struct OpenFile {
    plan: ObjectPlan,
    inbox: Rc<RefCell<Inbox>>,
    counters: Arc<Counters>,
    /// `None` while the driver has it.
    job: Option<Box<FileReads>>,
}

/// Turns commands into jobs.
pub(crate) struct Source {
    queue: Arc<CommandQueue>,
    engine: Weak<EngineHandle>,
    config: ClientConfig,
    options: SessionOptions,
    files: BTreeMap<FileId, OpenFile>,
    next_file: FileId,
    ready: VecDeque<EngineJob>,
    commands: VecDeque<Command>,
    cancelled_count: u64,
}

impl Source {
    pub(crate) fn new(
        queue: Arc<CommandQueue>,
        engine: Weak<EngineHandle>,
        config: ClientConfig,
        options: SessionOptions,
    ) -> Self {
        Source {
            queue,
            engine,
            config,
            options,
            files: BTreeMap::new(),
            next_file: 0,
            ready: VecDeque::new(),
            commands: VecDeque::new(),
            cancelled_count: 0,
        }
    }

    fn take_commands(&mut self, now_ns: u64) {
        let cancelled_count = self.queue.take(&mut self.commands);
        if cancelled_count != self.cancelled_count {
            self.cancelled_count = cancelled_count;
            for file in self.files.values() {
                file.inbox.borrow_mut().has_cancelled = true;
            }
        }
        while let Some(command) = self.commands.pop_front() {
            self.begin(command, now_ns);
        }
    }

    fn begin(&mut self, command: Command, now_ns: u64) {
        let discovery = self.config.discovery();
        let job = match command {
            Command::Stat { name, reply } => {
                EngineJob::Stat(LookupJob::new(name, discovery, now_ns), reply)
            }
            Command::List { name, wanted, reply } => {
                let job = ListJob::new(name, wanted, discovery, now_ns);
                EngineJob::List(Box::new(job), reply)
            }
            Command::Download { name, target, options, reply } => {
                let target = match Target::at(&target, &self.config.disk) {
                    Ok(target) => target,
                    Err(error) => return reply.send(Err(error)),
                };
                let context = FileContext::new(&self.config, options, Box::new(NoProgress));
                let job = FileJob::new(Rc::new(context), name, target, now_ns);
                EngineJob::Download(Box::new(job), reply)
            }
            Command::Open { name, reply } => {
                let discovery = self.config.discovery_to_read();
                let job = LookupJob::new(name.clone(), discovery, now_ns);
                EngineJob::Open(name, job, reply)
            }
            Command::Read { file, request, reply } => return self.read(file, request, reply),
            Command::Close { file } => return self.close(file),
        };
        self.ready.push_back(job);
    }

    fn read(&mut self, id: FileId, request: ReadRequest, reply: Reply<RangesRead>) {
        let Some(file) = self.files.get_mut(&id) else { return };
        let operation = Operation::new(request, file.plan.size, reply);
        file.inbox.borrow_mut().operations.push_back(operation);
        if let Some(job) = file.job.take() {
            self.ready.push_back(EngineJob::File(job));
        }
    }

    fn close(&mut self, id: FileId) {
        if let Some(file) = self.files.remove(&id) {
            file.inbox.borrow_mut().is_closed = true;
            self.share_out();
        }
    }

    /// Divides the memory among the open files.
    fn share_out(&mut self) {
        let count = self.files.len().max(1);
        let share = Share {
            nodes_max: (self.options.node_bytes_max / NODE_BYTES / count).max(NODES_MIN),
            cache_bytes_max: (self.options.cache_bytes_max / count).max(CACHE_BYTES_MIN),
        };
        for file in self.files.values() {
            file.inbox.borrow_mut().share = Some(share);
        }
    }

    fn open(&mut self, name: &Name, discovered: Discovered) -> Result<Opened, ClientError> {
        if discovered.metadata.is_directory() {
            let problem = ProtocolProblem::Kind { is_directory: true };
            return Err(ReadError::Protocol { name: name.clone(), problem }.into());
        }
        if self.files.len() >= FILES_OPEN_MAX {
            return Err(ClientError::TooMany { what: Limit::OpenFiles, max: FILES_OPEN_MAX });
        }
        // Without a handle there is nobody to answer.
        let engine = self.engine.upgrade().ok_or(ClientError::Interrupted)?;
        let plan = ObjectPlan::new(&discovered.metadata, discovered.trust == Trusted::Insecure)?;
        self.next_file += 1;
        let (id, size) = (self.next_file, plan.size);
        let (inbox, counters) = Default::default();
        let mut file = OpenFile { plan, inbox, counters, job: None };
        file.job = Some(self.job_for(id, &file));
        let counters = Arc::clone(&file.counters);
        self.files.insert(id, file);
        self.share_out();
        Ok(Opened { discovered, size, guard: FileGuard { id, engine }, counters })
    }

    fn job_for(&self, id: FileId, file: &OpenFile) -> Box<FileReads> {
        let prefetch_bytes_max = self.options.prefetch_bytes_max as u64;
        Box::new(FileReads::new(
            id,
            file.plan.clone(),
            self.config.fetch(),
            Rc::clone(&file.inbox),
            (prefetch_bytes_max, Arc::clone(&file.counters)),
        ))
    }

    /// The driver has dropped all its jobs, and with them the places for the answers.
    fn give_up(&mut self) {
        self.ready.clear();
        self.queue.take(&mut self.commands);
        // Closing is the one thing that needs no connection.
        for command in std::mem::take(&mut self.commands) {
            if let Command::Close { file } = command {
                self.close(file);
            }
        }
        let ids: Vec<FileId> = self.files.keys().copied().collect();
        for id in ids {
            let Some(file) = self.files.get(&id) else { continue };
            file.inbox.borrow_mut().operations.clear();
            if file.job.is_none() {
                let job = self.job_for(id, file);
                self.files.entry(id).and_modify(|file| file.job = Some(job));
            }
        }
        self.share_out();
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        self.queue.end();
    }
}

impl JobSource for Source {
    type Job = EngineJob;

    fn next_job(&mut self, now_ns: u64) -> Option<EngineJob> {
        self.take_commands(now_ns);
        self.ready.pop_front()
    }

    fn take_done(&mut self, job: EngineJob) {
        match job {
            EngineJob::Stat(job, reply) if job.is_done() => reply.send(job.into_outcome()),
            EngineJob::List(job, reply) if job.is_done() => reply.send(job.into_outcome()),
            EngineJob::Open(name, job, reply) if job.is_done() => {
                let opened = job.into_outcome().and_then(|found| self.open(&name, found));
                reply.send(opened);
            }
            EngineJob::Download(job, reply) if job.is_done() => reply.send(job.into_outcome()),
            EngineJob::File(job) => {
                let Some(file) = self.files.get_mut(&job.id) else { return };
                if file.inbox.borrow().operations.is_empty() {
                    file.job = Some(job);
                } else {
                    self.ready.push_back(EngineJob::File(job));
                }
            }
            // Their callers are gone.
            EngineJob::Stat(..)
            | EngineJob::List(..)
            | EngineJob::Open(..)
            | EngineJob::Download(..) => {}
        }
    }
}

/// One of the things that the engine does.
pub(crate) enum EngineJob {
    Stat(LookupJob, Reply<Discovered>),
    List(Box<ListJob>, Reply<Listing>),
    Download(Box<FileJob<'static>>, Reply<FileReport>),
    Open(Name, LookupJob, Reply<Opened>),
    File(Box<FileReads>),
}

impl EngineJob {
    fn job(&mut self) -> &mut dyn Job {
        match self {
            EngineJob::Stat(job, _) | EngineJob::Open(_, job, _) => job,
            EngineJob::List(job, _) => job.as_mut(),
            EngineJob::Download(job, _) => job.as_mut(),
            EngineJob::File(job) => job.as_mut(),
        }
    }
}

impl Job for EngineJob {
    fn handle_data(&mut self, data: &Data<'_>, is_marked: bool, context: &mut Context<'_>) -> bool {
        self.job().handle_data(data, is_marked, context)
    }

    fn handle_nack(&mut self, name: NameRef<'_>, kind: NackKind, context: &mut Context<'_>) {
        self.job().handle_nack(name, kind, context);
    }

    fn handle_timeout(&mut self, context: &mut Context<'_>) {
        self.job().handle_timeout(context);
    }

    fn poll_request(&mut self, context: &mut Context<'_>) -> Option<Request> {
        self.job().poll_request(context)
    }

    fn poll_deadline(&mut self, flow: &Flow) -> Option<u64> {
        self.job().poll_deadline(flow)
    }

    fn is_done(&self) -> bool {
        match self {
            EngineJob::Stat(job, reply) => job.is_done() || reply.is_cancelled(),
            EngineJob::List(job, reply) => job.is_done() || reply.is_cancelled(),
            EngineJob::Download(job, reply) => job.is_done() || reply.is_cancelled(),
            EngineJob::Open(_, job, reply) => job.is_done() || reply.is_cancelled(),
            EngineJob::File(job) => job.is_done(),
        }
    }

    fn refused_count(&mut self) -> u64 {
        self.job().refused_count()
    }

    fn abandon(&mut self, flow: &mut Flow) {
        self.job().abandon(flow);
    }
}
