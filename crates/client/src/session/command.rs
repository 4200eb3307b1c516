//! Commands: what a façade asks of the [`executor`](super::executor), and who asks.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use byname_packet::Name;
use byname_transfer::discovery::Discovered;
use byname_transfer::reader::ObjectPlan;
use byname_transfer::versions::VersionMemory;

use crate::config::Stop;
use crate::download::context::DownloadOptions;
use crate::download::progress::{FileReport, Progress};
use crate::download::tree::Filter;
use crate::download::tree_report::TreeReport;
use crate::engine::completion::Reply;
use crate::engine::shared::Shared;
use crate::error::ClientError;
use crate::lookup::listing::Listing;
use crate::lookup::resolved::ResolvedEntry;
use crate::read::counters::Counters;
use crate::read::nowait::NowaitReads;
use crate::read::operation::{RangesRead, ReadRequest};
use crate::read::stream::{Extent, NodeSink, Sink};
use crate::session::queue;

/// An open file of an executor.
pub(crate) type FileId = u64;

/// One call: where its answer goes, what ends it early, and who watches it.
pub(crate) struct Call<'a, T> {
    pub(crate) reply: Reply<T>,
    pub(crate) stop: Stop,
    pub(crate) events: Box<dyn Progress + 'a>,
}

impl<T> Call<'_, T> {
    /// Nobody wants the answer any more.
    pub(crate) fn is_ended(&self) -> bool {
        self.stop.is_requested() || self.reply.is_cancelled()
    }

    pub(crate) fn answer(self, answer: Result<T, ClientError>) {
        self.reply.send(answer);
    }

    /// The call ends before its job is done.
    pub(crate) fn interrupt(self) {
        self.reply.send(Err(ClientError::Interrupted));
    }
}

/// Detail that is wanted of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListDetail {
    /// The names of its entries.
    Names,
    /// All that its publisher says of them.
    Resolved,
}

/// The file to open.
pub(crate) enum OpenTarget {
    /// The current version of this name.
    Name(Name),
    /// A version that a listing has resolved.
    Entry(Box<ResolvedEntry>),
}

impl OpenTarget {
    /// The current version in place of one that is older than another seen meanwhile.
    pub(crate) fn unless_older(self, versions: &VersionMemory) -> Self {
        match self {
            OpenTarget::Entry(entry) if entry.is_older(versions) => {
                OpenTarget::Name(entry.into_parts().0)
            }
            target => target,
        }
    }
}

/// Bytes for a sink.
pub(crate) struct StreamRequest<'a> {
    pub(crate) file: FileId,
    pub(crate) range: Range<u64>,
    pub(crate) is_ordered: bool,
    pub(crate) sink: Box<Sink<'a>>,
}

/// Looks at, or changes, what all calls share; it is given the endpoint in use.
pub(crate) type Inspect<'a> = dyn FnOnce(&mut Shared, &str) + 'a;

/// Request to the session.
pub(crate) enum Command<'a> {
    Lookup {
        name: Name,
        /// A version will do although its publisher still computes the root.
        takes_pending: bool,
        call: Call<'a, Discovered>,
    },
    List {
        name: Name,
        detail: ListDetail,
        call: Call<'a, Listing>,
    },
    Download {
        name: Name,
        target: PathBuf,
        options: DownloadOptions,
        call: Call<'a, FileReport>,
    },
    DownloadTree {
        name: Name,
        target: PathBuf,
        options: DownloadOptions,
        filter: Box<Filter<'a>>,
        call: Call<'a, TreeReport>,
    },
    Open {
        target: OpenTarget,
        call: Call<'a, Opened>,
    },
    Read {
        file: FileId,
        request: ReadRequest,
        reply: Reply<RangesRead>,
    },
    /// A version, of which somebody else has said what it is.
    Fetch {
        plan: ObjectPlan,
        extent: Extent,
        sink: Box<Sink<'a>>,
        nodes: Box<NodeSink<'a>>,
        call: Call<'a, u64>,
    },
    Stream {
        request: StreamRequest<'a>,
        call: Call<'a, u64>,
    },
    Inspect(Box<Inspect<'a>>),
    Close {
        file: FileId,
    },
}

/// A command sent to another thread, where it is made.
pub(crate) type SentCommand = Box<dyn FnOnce() -> Command<'static> + Send>;

pub(crate) type CommandQueue = queue::CommandQueue<SentCommand>;
pub(crate) type EngineHandle = queue::EngineHandle<SentCommand>;

/// An open file, as its executor hands it out.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) discovered: Discovered,
    pub(crate) name: Name,
    pub(crate) size: Option<u64>,
    pub(crate) guard: FileGuard,
    pub(crate) counters: Arc<Counters>,
    pub(crate) nowait: Option<Arc<NowaitReads>>,
}

/// Files of a caller's own thread that are to be closed before its next call.
pub(crate) type ClosedFiles = Arc<Mutex<Vec<FileId>>>;

/// Where it is said that a file is not used any more.
pub(crate) enum FileCloser {
    /// To an engine on a thread of its own, which lives for as long as its files are open.
    Engine(Weak<EngineHandle>),
    /// To an executor on the caller's thread.
    Caller(ClosedFiles),
}

impl FileCloser {
    /// A guard for a file; `None` if no caller is left.
    pub(crate) fn guard(&self, id: FileId) -> Option<FileGuard> {
        let owner = match self {
            FileCloser::Engine(engine) => FileOwner::Engine(engine.upgrade()?),
            FileCloser::Caller(closed) => FileOwner::Caller(Arc::clone(closed)),
        };
        Some(FileGuard { id, owner })
    }
}

#[derive(Debug)]
enum FileOwner {
    Engine(Arc<EngineHandle>),
    Caller(ClosedFiles),
}

/// Keeps a file open.
#[derive(Debug)]
pub(crate) struct FileGuard {
    pub(crate) id: FileId,
    owner: FileOwner,
}

impl FileGuard {
    /// True if the file was opened by the executor of this caller's thread.
    pub(crate) fn is_of(&self, caller: &ClosedFiles) -> bool {
        matches!(&self.owner, FileOwner::Caller(closed) if Arc::ptr_eq(closed, caller))
    }
}

impl Drop for FileGuard {
    fn drop(&mut self) {
        let file = self.id;
        match &self.owner {
            // A file needs no place in the queue: there are no more closes than opens.
            FileOwner::Engine(engine) => {
                engine.queue().send_unanswered(Box::new(move || Command::Close { file }));
            }
            FileOwner::Caller(closed) => {
                closed.lock().unwrap_or_else(PoisonError::into_inner).push(file);
            }
        }
    }
}
