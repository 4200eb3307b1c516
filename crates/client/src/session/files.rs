//! Open files of an executor, and the memory that they share.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use byname_packet::Name;
use byname_security::trust::Trusted;
use byname_transfer::discovery::Discovered;
use byname_transfer::error::{ProtocolProblem, ReadError};
use byname_transfer::fetch::FetchConfig;
use byname_transfer::reader::ObjectPlan;

use crate::engine::completion::Reply;
use crate::error::{ClientError, Limit};
use crate::read::cache::memory::MemoryCache;
use crate::read::cache::{ContentCache, ContentId, UnitCache};
use crate::read::nowait::{NodeBudget, NowaitReads};
use crate::read::open_file::{FileReads, FileState, Share};
use crate::read::operation::{Operation, RangesRead, ReadRequest};
use crate::read::site_cache::{SiteCache, SiteContent};
use crate::session::command::{FileCloser, FileId, Opened};

/// Files that may be open at once.
pub const FILES_OPEN_MAX: usize = 4096;
/// Nodes that an open file may keep whatever the number of files.
const NODES_MIN: usize = 8;
const NODE_BYTES: usize = 8192;

/// Memory that a session takes for what it may need again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionOptions {
    /// Verified tree nodes of all open files; 4 MiB cover 1 GiB of content.
    pub node_bytes_max: usize,
    /// Verified content, and the tree nodes to go with it, of all files that were read, open or
    /// closed: whoever opens the same content again, under whatever name, finds it there.
    pub cache_bytes_max: usize,
    /// Content read ahead, per file; 0 switches readahead off.
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

impl SessionOptions {
    /// For whoever makes one call after the other on the thread of the engine: between two calls
    /// nobody takes what was read ahead.
    pub(crate) const CALLERS_THREAD: SessionOptions = SessionOptions {
        node_bytes_max: 16 << 20,
        cache_bytes_max: 16 << 20,
        prefetch_bytes_max: 0,
    };
}

struct OpenFile {
    state: FileState,
    /// `None` while the engine has it.
    job: Option<Box<FileReads>>,
}

/// The table of open files.
pub(crate) struct OpenFiles {
    options: SessionOptions,
    fetch: FetchConfig,
    closer: FileCloser,
    /// Outlives the files.
    cache: Rc<RefCell<dyn UnitCache>>,
    site_cache: Option<SiteCache>,
    node_budget: Arc<NodeBudget>,
    files: BTreeMap<FileId, OpenFile>,
    next: FileId,
}

impl OpenFiles {
    pub(crate) fn new(options: SessionOptions, fetch: FetchConfig, closer: FileCloser) -> Self {
        let cache = Rc::new(RefCell::new(MemoryCache::new(options.cache_bytes_max)));
        let (files, site_cache) = (BTreeMap::new(), None);
        let node_budget = Arc::new(NodeBudget(options.node_bytes_max / NODE_BYTES));
        OpenFiles { options, fetch, closer, cache, site_cache, node_budget, files, next: 0 }
    }

    /// Looks there for what is not in memory, and keeps there what came.
    pub(crate) fn set_site_cache(&mut self, site_cache: Option<SiteCache>) {
        self.site_cache = site_cache;
    }

    /// Opens a version of a file.
    pub(crate) fn open(
        &mut self,
        name: Name,
        discovered: Discovered,
    ) -> Result<Opened, ClientError> {
        if discovered.metadata.is_directory() {
            let problem = ProtocolProblem::Kind { is_directory: true };
            return Err(ReadError::Protocol { name, problem }.into());
        }
        self.close_returned();
        if self.files.len() >= FILES_OPEN_MAX {
            return Err(ClientError::TooMany { what: Limit::OpenFiles, max: FILES_OPEN_MAX });
        }
        let is_insecure = discovered.trust == Trusted::Insecure;
        let plan = ObjectPlan::new(&discovered.metadata, is_insecure)?;
        let (id, size) = (self.next + 1, plan.size);
        // Without a caller there is nobody to answer.
        let guard = self.closer.guard(id).ok_or(ClientError::Interrupted)?;
        self.next = id;
        let content = ContentId::of(&plan, is_insecure);
        let cache = ContentCache::new(Rc::clone(&self.cache) as _, content);
        let (inbox, counters) = Default::default();
        let site_cache = self.site_cache.as_ref();
        let site = site_cache.and_then(|cache| cache.open(&name, &discovered, &plan));
        let state = FileState { plan, inbox, cache, site, counters };
        let (counters, nowait) = (Arc::clone(&state.counters), self.nowait(&state));
        let job = Some(self.job_for(id, &state));
        self.files.insert(id, OpenFile { state, job });
        self.share_out();
        Ok(Opened { discovered, name, size, guard, counters, nowait })
    }

    fn nowait(&self, state: &FileState) -> Option<Arc<NowaitReads>> {
        let (content, root) =
            state.site.as_ref().map(SiteContent::content).zip(state.plan.root())?;
        let (budget, counters) = (Arc::clone(&self.node_budget), Arc::clone(&state.counters));
        Some(Arc::new(NowaitReads::new(content.clone(), root, budget, counters)))
    }

    /// Takes a call; the job to run if it does not run yet.
    pub(crate) fn read(
        &mut self,
        id: FileId,
        request: ReadRequest,
        reply: Reply<RangesRead>,
    ) -> Option<Box<FileReads>> {
        let file = self.files.get_mut(&id)?;
        let operation = Operation::new(request, file.state.plan.size, reply);
        file.state.inbox.borrow_mut().operations.push_back(operation);
        file.job.take()
    }

    /// The state of an open file.
    pub(crate) fn state(&self, id: FileId) -> Option<&FileState> {
        self.files.get(&id).map(|file| &file.state)
    }

    /// Nobody waits for anything of a file; the job to run if somebody does by now.
    pub(crate) fn take_idle(&mut self, job: Box<FileReads>) -> Option<Box<FileReads>> {
        let file = self.files.get_mut(&job.id)?;
        if !file.state.inbox.borrow().operations.is_empty() {
            return Some(job);
        }
        file.job = Some(job);
        None
    }

    /// Some callers went away; the jobs look which.
    pub(crate) fn note_cancelled(&self) {
        for file in self.files.values() {
            file.state.inbox.borrow_mut().has_cancelled = true;
        }
    }

    pub(crate) fn close(&mut self, id: FileId) {
        if let Some(file) = self.files.remove(&id) {
            file.state.inbox.borrow_mut().is_closed = true;
            self.share_out();
        }
    }

    /// Closes what the caller's thread has let go of.
    pub(crate) fn close_returned(&mut self) {
        let FileCloser::Caller(closed) = &self.closer else { return };
        let ids =
            std::mem::take(&mut *closed.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
        ids.into_iter().for_each(|id| self.close(id));
    }

    /// The engine has dropped all its jobs, and with them the completions of calls.
    pub(crate) fn give_up(&mut self) {
        let ids: Vec<FileId> = self.files.keys().copied().collect();
        for id in ids {
            let Some(file) = self.files.get(&id) else { continue };
            file.state.inbox.borrow_mut().operations.clear();
            if file.job.is_none() {
                let job = self.job_for(id, &file.state);
                self.files.entry(id).and_modify(|file| file.job = Some(job));
            }
        }
        self.share_out();
    }

    /// Divides the nodes and the readahead among the open files.
    fn share_out(&mut self) {
        let count = self.files.len().max(1);
        let share = Share {
            nodes_max: (self.options.node_bytes_max / NODE_BYTES / count).max(NODES_MIN),
            // Half of the cache in all, so that what was read ahead cannot push itself out.
            readahead_bytes_max: (self.options.cache_bytes_max / count / 2) as u64,
        };
        for file in self.files.values() {
            file.state.inbox.borrow_mut().share = Some(share);
        }
    }

    fn job_for(&self, id: FileId, state: &FileState) -> Box<FileReads> {
        let prefetch_bytes_max = self.options.prefetch_bytes_max as u64;
        Box::new(FileReads::new(id, state.clone(), self.fetch, prefetch_bytes_max))
    }
}
