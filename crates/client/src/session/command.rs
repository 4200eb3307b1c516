//! Commands: what the handles of a session ask of its engine.

use std::path::PathBuf;
use std::sync::Arc;

use byname_packet::Name;
use byname_transfer::discovery::Discovered;

use crate::download::context::DownloadOptions;
use crate::download::progress::FileReport;
use crate::engine::completion::Reply;
use crate::lookup::list_job::Wanted;
use crate::lookup::listing::Listing;
use crate::read::counters::Counters;
use crate::read::operation::{RangesRead, ReadRequest};
use crate::session::queue;

/// An open file of a session.
pub(crate) type FileId = u64;

/// What a handle asks for.
#[derive(Debug)]
pub(crate) enum Command {
    Stat { name: Name, reply: Reply<Discovered> },
    List { name: Name, wanted: Wanted, reply: Reply<Listing> },
    Download { name: Name, target: PathBuf, options: DownloadOptions, reply: Reply<FileReport> },
    Open { name: Name, reply: Reply<Opened> },
    Read { file: FileId, request: ReadRequest, reply: Reply<RangesRead> },
    Close { file: FileId },
}

pub(crate) type CommandQueue = queue::CommandQueue<Command>;
pub(crate) type EngineHandle = queue::EngineHandle<Command>;

/// What opening a file gives.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) discovered: Discovered,
    pub(crate) size: Option<u64>,
    pub(crate) guard: FileGuard,
    pub(crate) counters: Arc<Counters>,
}

/// Keeps a file open.
#[derive(Debug)]
pub(crate) struct FileGuard {
    pub(crate) id: FileId,
    pub(crate) engine: Arc<EngineHandle>,
}

impl Drop for FileGuard {
    fn drop(&mut self) {
        // A file needs no place: there are no more closes than opens.
        self.engine.queue().send_unanswered(Command::Close { file: self.id });
    }
}
