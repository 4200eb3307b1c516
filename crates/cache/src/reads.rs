//! What waits to be read, and how it is answered.

use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use byname_security::tree::NodeId;

use crate::known::{ContentState, lock};
use crate::pieces::{Buffer, Piece};

/// Threads that read: so many requests the disk has at once.
const THREADS_MAX: usize = 4;
/// Requests that may wait; more are not taken.
const WAITING_MAX: usize = 4096;

/// Units and nodes as they were found on the disk. Nothing about them is verified.
#[derive(Debug, Default)]
pub struct Found {
    /// The units that were asked for.
    pub units: Range<u64>,
    /// Runs of whole units: index of the first, and their bytes.
    pub runs: Vec<(u64, Vec<u8>)>,
    /// Nodes of the tree that were asked for and found, in the order asked.
    pub nodes: Vec<(NodeId, Vec<u8>)>,
}

/// A request for units and nodes.
pub(crate) struct UnitsWork {
    pub(crate) content: Arc<ContentState>,
    pub(crate) units: Range<u64>,
    pub(crate) nodes: Vec<NodeId>,
    pub(crate) answer: Box<dyn FnOnce(Found) + Send>,
}

/// A request for the file that has all of a content.
pub(crate) struct WholeWork {
    pub(crate) content: Arc<ContentState>,
    pub(crate) answer: Box<dyn FnOnce(Option<File>) + Send>,
}

/// A piece to be filled. Who waits for it is told if nothing comes of that.
pub(crate) struct PieceWork {
    pub(crate) content: Arc<ContentState>,
    pub(crate) piece: Arc<Piece>,
    /// `None` if there was no memory for it.
    pub(crate) buffer: Option<Buffer>,
    /// Past the kernel's memory.
    pub(crate) is_direct: bool,
}

impl Drop for PieceWork {
    fn drop(&mut self) {
        self.piece.fail();
    }
}

/// A request.
pub(crate) enum ReadWork {
    Units(UnitsWork),
    Whole(WholeWork),
    Piece(PieceWork),
}

impl fmt::Debug for ReadWork {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, content) = match self {
            ReadWork::Units(work) => ("Units", &work.content),
            ReadWork::Whole(work) => ("Whole", &work.content),
            ReadWork::Piece(work) => ("Piece", &work.content),
        };
        out.debug_tuple(kind).field(&content.key).finish()
    }
}

#[derive(Debug, Default)]
struct QueueState {
    work: VecDeque<ReadWork>,
    thread_count: usize,
    idle_count: usize,
    is_over: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct ReadQueue {
    state: Mutex<QueueState>,
    has_work: Condvar,
}

impl ReadQueue {
    /// Takes a request; hands it back if there is no room for it.
    pub(crate) fn push(&self, work: ReadWork) -> Result<(), ReadWork> {
        let mut state = lock(&self.state);
        if state.is_over || state.work.len() >= WAITING_MAX {
            return Err(work);
        }
        state.work.push_back(work);
        self.has_work.notify_one();
        Ok(())
    }

    /// Number of a thread that should be started, if there is more to do than threads wait for.
    pub(crate) fn wants_thread(&self) -> Option<usize> {
        let mut state = lock(&self.state);
        let is_wanted = state.work.len() > state.idle_count && state.thread_count < THREADS_MAX;
        state.thread_count += usize::from(is_wanted);
        // Number 0 is the writer.
        is_wanted.then_some(state.thread_count)
    }

    /// A thread could not be started. False if there is none at all.
    pub(crate) fn lose_thread(&self) -> bool {
        let mut state = lock(&self.state);
        state.thread_count -= 1;
        if state.thread_count == 0 {
            state.work.clear();
        }
        state.thread_count > 0
    }

    /// Nothing more comes.
    pub(crate) fn end(&self) {
        let mut state = lock(&self.state);
        state.is_over = true;
        let work = std::mem::take(&mut state.work);
        drop(state);
        drop(work);
        self.has_work.notify_all();
    }

    /// The next request, waited for; `None` when none will come.
    pub(crate) fn next(&self) -> Option<ReadWork> {
        let mut state = lock(&self.state);
        loop {
            if let Some(work) = state.work.pop_front() {
                return Some(work);
            }
            if state.is_over {
                return None;
            }
            state.idle_count += 1;
            state = self.has_work.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle_count -= 1;
        }
    }
}
