//! Executor: commands become jobs of the engine, and their outcomes answers of the callers.
//!
//! There is one, and it neither waits nor looks at a clock. The
//! [`client`](super::client) façade runs it on its caller's thread, a [`handle`](super::handle)'s
//! session on a thread of its own, and [`transfer`](super::transfer) over frames and time from
//! elsewhere.
//!
//! Invariants: no command holds up another; every command is answered exactly once, if only by
//! dropping its [`Reply`](crate::engine::completion::Reply); a caller that is gone, or has asked to
//! stop, costs nothing from the next turn on.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use byname_packet::Name;
use byname_transfer::discovery::DiscoveryConfig;
use byname_transfer::error::ReadError;
use byname_transfer::fetch::FetchConfig;
use byname_transfer::reader::ObjectPlan;

use crate::config::{ClientConfig, Stop};
use crate::download::context::{DownloadOptions, FileContext};
use crate::download::copies::DirectoryPacket;
use crate::download::disk_queue::{DiskAccess, DiskRunner, Lease};
use crate::download::download_job::{DownloadContext, DownloadJob};
use crate::download::progress::{Event, FileReport};
use crate::download::striped::StripeRunner;
use crate::download::tree::{Filter, TreeSource};
use crate::download::tree_report::TreeReport;
use crate::engine::completion::Reply;
use crate::engine::job::JobSource;
use crate::engine::shared::Shared;
use crate::engine::source_names::SourceNames;
use crate::error::ClientError;
use crate::lookup::list_job::{ListJob, Wanted};
use crate::lookup::listing::Listing;
use crate::lookup::name::LookupJob;
use crate::read::operation::{RangesRead, ReadRequest};
use crate::read::stream::{Extent, NodeSink, ReadJob, Sink, StreamSource};
use crate::session::answer::DiskAnswer;
use crate::session::command::{
    Call, Command, FileId, ListDetail, OpenTarget, Opened, StreamRequest,
};
use crate::session::executor_job::{ExecutorJob, TreeId};
use crate::session::files::OpenFiles;

/// Largest listing that is kept in the site cache.
const CACHED_LISTING_BYTES_MAX: usize = 4 << 20;

/// State that outlives the calls: open files, and what was learnt of the publisher.
pub(crate) struct ExecutorState {
    pub(crate) config: ClientConfig,
    pub(crate) files: OpenFiles,
    /// The form of listing that this publisher is asked for.
    wanted: Wanted,
    source_names: Arc<SourceNames>,
    threads: Threads,
}

/// Threads besides the engine's.
#[derive(Clone, Default)]
pub(crate) struct Threads {
    /// Fetch from several sources, where there are several.
    pub(crate) stripes: Option<Rc<dyn StripeRunner>>,
    /// Work at the local disk; without them it is done on the engine's.
    pub(crate) disk: Option<Rc<dyn DiskRunner>>,
}

impl ExecutorState {
    pub(crate) fn new(
        config: ClientConfig,
        files: OpenFiles,
        source_names: Arc<SourceNames>,
        threads: Threads,
    ) -> Self {
        ExecutorState { config, files, wanted: Wanted::Either, source_names, threads }
    }
}

/// A tree that is being downloaded.
struct TreeCall<'a> {
    source: TreeSource<'a>,
    /// Jobs of it that the engine has.
    active: usize,
    answer: Arc<DiskAnswer<TreeReport>>,
    stop: Stop,
    /// Ends its jobs.
    jobs_stop: Stop,
}

/// See the module.
pub(crate) struct Executor<'a> {
    state: ExecutorState,
    commands: VecDeque<Command<'a>>,
    ready: VecDeque<ExecutorJob<'a>>,
    trees: BTreeMap<TreeId, TreeCall<'a>>,
    next_tree: TreeId,
}

impl<'a> Executor<'a> {
    pub(crate) fn new(state: ExecutorState) -> Self {
        let (commands, ready) = Default::default();
        Executor { state, commands, ready, trees: BTreeMap::new(), next_tree: 0 }
    }

    /// State that outlives the calls, for the next executor.
    pub(crate) fn into_state(self) -> ExecutorState {
        self.state
    }

    /// Takes a command; it begins with the next turn of the engine.
    pub(crate) fn push(&mut self, command: Command<'a>) {
        self.commands.push_back(command);
    }

    /// Some callers went away.
    pub(crate) fn note_cancelled(&self) {
        self.state.files.note_cancelled();
    }

    /// The engine has dropped all its jobs: ends everything else in good order. Callers find their
    /// answers lost.
    pub(crate) fn give_up(&mut self) {
        self.ready.clear();
        for (_, mut tree) in std::mem::take(&mut self.trees) {
            drop(tree.source.place_batch());
        }
        for command in std::mem::take(&mut self.commands) {
            // Closing is the one thing that needs no connection.
            if let Command::Close { file } = command {
                self.state.files.close(file);
            }
        }
        self.state.files.give_up();
    }

    fn begin(&mut self, command: Command<'a>, shared: &mut Shared, now_ns: u64) {
        match command {
            Command::Lookup { name, takes_pending, call } => {
                let config = DiscoveryConfig { takes_pending, ..self.state.config.discovery() };
                let job = LookupJob::new(name, config, now_ns);
                self.ready.push_back(ExecutorJob::Lookup(Box::new(job), call));
            }
            Command::List { name, detail, call } => self.list(name, detail, call, now_ns),
            Command::Open { target, call } => {
                let target = target.unless_older(&shared.versions);
                self.open(target, call, now_ns);
            }
            Command::Read { file, request, reply } => self.read(file, request, reply),
            Command::Fetch { plan, extent, sink, nodes, call } => {
                self.fetch((plan, extent), (sink, nodes), call);
            }
            Command::Stream { request, call } => self.stream(request, call),
            Command::Download { name, target, options, call } => {
                self.download(name, target, options, call);
            }
            Command::DownloadTree { name, target, options, filter, call } => {
                self.download_tree((name, target), options, filter, call);
            }
            Command::Inspect(act) => {
                act(shared, self.state.source_names.current());
            }
            Command::Close { file } => self.state.files.close(file),
        }
    }

    fn list(&mut self, name: Name, detail: ListDetail, call: Call<'a, Listing>, now_ns: u64) {
        let wanted = match detail {
            ListDetail::Names => Wanted::Plain,
            ListDetail::Resolved => self.state.wanted,
        };
        let job = ListJob::new(name.clone(), wanted, self.state.config.discovery(), now_ns);
        self.ready.push_back(ExecutorJob::List { job: Box::new(job), name, detail, call });
    }

    fn open(&mut self, target: OpenTarget, call: Call<'a, Opened>, now_ns: u64) {
        match target {
            OpenTarget::Name(name) => {
                let config = self.state.config.discovery_to_read();
                let job = Box::new(LookupJob::new(name.clone(), config, now_ns));
                self.ready.push_back(ExecutorJob::Open { job, name, call });
            }
            OpenTarget::Entry(entry) => {
                let (name, discovered) = entry.into_parts();
                let opened = self.state.files.open(name, discovered);
                call.answer(opened);
            }
        }
    }

    fn read(&mut self, file: FileId, request: ReadRequest, reply: Reply<RangesRead>) {
        self.ready.extend(self.state.files.read(file, request, reply).map(ExecutorJob::File));
    }

    fn stream(&mut self, request: StreamRequest<'a>, call: Call<'a, u64>) {
        let StreamRequest { file, range, is_ordered, sink } = request;
        let Some(state) = self.state.files.state(file) else { return };
        let fetch = self.state.config.fetch_begun();
        let source =
            StreamSource { plan: state.plan.clone(), site: state.site.clone(), older: None };
        let job = ReadJob::new(source, range, is_ordered, fetch, sink);
        self.ready.push_back(ExecutorJob::Stream(Box::new(job), call));
    }

    fn fetch(
        &mut self,
        (plan, extent): (ObjectPlan, Extent),
        (sink, nodes): (Box<Sink<'a>>, Box<NodeSink<'a>>),
        call: Call<'a, u64>,
    ) {
        let config = &self.state.config;
        // Whoever is asked is named by the plan. If no route leads there any more, it is gone.
        let no_route_ns = config.fetch().no_route_ns;
        let fetch = FetchConfig { no_route_ns, ..config.fetch_begun() };
        let is_all_new = matches!(extent, Extent::Whole { older: None });
        let (range, older) = match extent {
            Extent::Whole { older } => (0..u64::MAX, older),
            Extent::Range(range) => (range, None),
        };
        let source = StreamSource { plan, site: None, older };
        let mut job = ReadJob::new(source, range, true, fetch, sink);
        job.hand_nodes(nodes);
        if is_all_new {
            job.verify_whole();
        }
        self.ready.push_back(ExecutorJob::Stream(Box::new(job), call));
    }

    fn download(
        &mut self,
        name: Name,
        target: PathBuf,
        options: DownloadOptions,
        call: Call<'a, FileReport>,
    ) {
        let Call { reply, stop, events } = call;
        let answer = DiskAnswer::new(reply);
        let context = DownloadContext {
            config: self.config_for(&stop),
            options,
            events,
            source_names: Arc::clone(&self.state.source_names),
            stripes: self.state.threads.stripes.clone(),
            disk: self.disk_for(answer.lease()),
        };
        let job = Box::new(DownloadJob::new(name, target, context));
        self.ready.push_back(ExecutorJob::Download { job, answer, stop });
    }

    fn download_tree(
        &mut self,
        root: (Name, PathBuf),
        options: DownloadOptions,
        filter: Box<Filter<'a>>,
        call: Call<'a, TreeReport>,
    ) {
        let Call { reply, stop, events } = call;
        let answer = DiskAnswer::new(reply);
        let disk = self.disk_for(answer.lease());
        let (config, names) = (self.config_for(&stop), Arc::clone(&self.state.source_names));
        let mut context = FileContext::new(&config, options, events, disk, names);
        context.is_batched = options.sync;
        let source = TreeSource::new(Rc::new(context), root, filter);
        let tree = TreeCall { source, active: 0, answer, stop, jobs_stop: Stop::default() };
        self.next_tree += 1;
        self.trees.insert(self.next_tree, tree);
    }

    fn disk_for(&self, lease: Lease) -> DiskAccess {
        DiskAccess::new(self.state.threads.disk.clone(), lease)
    }

    /// The configuration of a call that may be stopped alone.
    fn config_for(&self, stop: &Stop) -> ClientConfig {
        let config = self.state.config.clone();
        ClientConfig { stop: config.stop.or(stop), ..config }
    }

    /// The next job of a tree, and the answers of trees that have come to their end.
    fn next_of_trees(&mut self, shared: &mut Shared, now_ns: u64) -> Option<ExecutorJob<'a>> {
        let mut ended = Vec::new();
        let mut next = None;
        for (id, tree) in &mut self.trees {
            if tree.stop.is_requested() || tree.answer.is_cancelled() {
                tree.jobs_stop.request();
            }
            let is_stopped = tree.jobs_stop.is_requested();
            if !is_stopped
                && tree.active < tree.source.at_once()
                && let Some(job) = tree.source.next_job(shared, now_ns)
            {
                tree.active += 1;
                let (id, stop, job) = (*id, tree.jobs_stop.clone(), Box::new(job));
                next = Some(ExecutorJob::Tree { id, stop, job });
                break;
            }
            if tree.active == 0 {
                ended.push(*id);
            }
        }
        for id in ended {
            let Some(mut tree) = self.trees.remove(&id) else { continue };
            drop(tree.source.place_batch());
            tree.answer.set(match tree.jobs_stop.is_requested() {
                true => Err(ClientError::Interrupted),
                false => tree.source.into_outcome(),
            });
        }
        next
    }

    /// Keeps the packet of a directory in the site cache, with the copies of its files.
    fn keep_listing(&self, listing: &Listing) {
        let Some(cache) = &self.state.config.cache else { return };
        let (is_manifest, payload) = (listing.is_manifest(), listing.payload());
        if payload.len() > CACHED_LISTING_BYTES_MAX {
            return;
        }
        if let Some(packet) = DirectoryPacket::new(is_manifest, &listing.discovered, payload) {
            cache.keep_directory(listing.name.clone(), packet.into_cached());
        }
    }

    fn take_listing(
        &mut self,
        name: Name,
        detail: ListDetail,
        mut call: Call<'a, Listing>,
        outcome: Result<Listing, ClientError>,
    ) {
        if let Ok(listing) = &outcome {
            self.keep_listing(listing);
            // What the one publisher has, the next one asked most likely has too.
            if detail == ListDetail::Resolved {
                let is_manifest = listing.is_manifest();
                self.state.wanted = if is_manifest { Wanted::Manifest } else { Wanted::Either };
            }
            let entry_count = listing.entry_count();
            call.events.on_event(Event::DirectoryListed { name: &name, entry_count });
        }
        match outcome {
            // A mirror of what was fetched by manifest has no plain listing.
            Err(ClientError::Read(ReadError::NoRoute { .. })) if detail == ListDetail::Names => {
                let detail = ListDetail::Resolved;
                self.commands.push_back(Command::List { name, detail, call });
            }
            outcome => call.answer(outcome),
        }
    }
}

impl<'a> JobSource for Executor<'a> {
    type Job = ExecutorJob<'a>;

    fn next_job(&mut self, shared: &mut Shared, now_ns: u64) -> Option<ExecutorJob<'a>> {
        while let Some(command) = self.commands.pop_front() {
            self.begin(command, shared, now_ns);
        }
        self.ready.pop_front().or_else(|| self.next_of_trees(shared, now_ns))
    }

    fn take_done(&mut self, job: ExecutorJob<'a>) {
        let is_done = job.has_outcome();
        match job {
            ExecutorJob::File(job) => {
                self.ready.extend(self.state.files.take_idle(job).map(ExecutorJob::File));
            }
            ExecutorJob::Tree { id, job, .. } => {
                let Some(tree) = self.trees.get_mut(&id) else { return };
                tree.active -= 1;
                if is_done {
                    tree.source.take_done(*job);
                }
            }
            ExecutorJob::Lookup(job, call) if is_done => call.answer(job.into_outcome()),
            ExecutorJob::List { job, name, detail, call } if is_done => {
                self.take_listing(name, detail, call, job.into_outcome());
            }
            ExecutorJob::Open { job, name, call } if is_done => {
                let found = job.into_outcome();
                call.answer(found.and_then(|found| self.state.files.open(name, found)));
            }
            ExecutorJob::Stream(job, call) if is_done => call.answer(job.into_outcome()),
            ExecutorJob::Download { job, answer, .. } if is_done => {
                answer.set(job.into_outcome());
            }
            ExecutorJob::Lookup(_, call) => call.interrupt(),
            ExecutorJob::List { call, .. } => call.interrupt(),
            ExecutorJob::Open { call, .. } => call.interrupt(),
            ExecutorJob::Stream(_, call) => call.interrupt(),
            ExecutorJob::Download { answer, .. } => answer.set(Err(ClientError::Interrupted)),
        }
    }
}
