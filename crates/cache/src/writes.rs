//! What waits to be written: bounded by bytes, and filled without waiting.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use byname_packet::Name;
use byname_security::tree::{NodeId, UNIT_BYTES};

use crate::known::{ContentState, lock};
use crate::version::{Description, DirectoryPacket};

/// Octets that are written together, if they come one behind the other.
const MERGED_BYTES_MAX: usize = 1 << 20;
/// Memory that a piece of work takes besides its bytes, roughly.
const OVERHEAD_BYTES: usize = 128;

/// A piece of work.
#[derive(Debug)]
pub(crate) enum Work {
    Units { content: Arc<ContentState>, first: u64, bytes: Vec<u8> },
    Node { content: Arc<ContentState>, node: NodeId, bytes: Vec<u8> },
    Describe { content: Arc<ContentState>, description: Description },
    Directory { name: Name, packet: DirectoryPacket },
}

impl Work {
    pub(crate) fn cost(&self) -> usize {
        OVERHEAD_BYTES
            + match self {
                Work::Units { bytes, .. } | Work::Node { bytes, .. } => bytes.len(),
                Work::Describe { description, .. } => {
                    description.packet.as_ref().map_or(0, Vec::len)
                }
                Work::Directory { packet, .. } => packet.octets.len(),
            }
    }

    /// Appends units of the same content that follow these.
    fn merge(&mut self, other: &Arc<ContentState>, next: u64, more: &[u8]) -> bool {
        let Work::Units { content, first, bytes } = self else { return false };
        let follows = bytes.len().is_multiple_of(UNIT_BYTES)
            && *first + (bytes.len() / UNIT_BYTES) as u64 == next;
        let fits = bytes.len() + more.len() <= MERGED_BYTES_MAX;
        let is_merged = follows && fits && Arc::ptr_eq(content, other);
        if is_merged {
            bytes.extend_from_slice(more);
        }
        is_merged
    }
}

#[derive(Debug, Default)]
struct QueueState {
    work: VecDeque<Work>,
    /// Of what waits and of what is being written.
    bytes: usize,
    has_thread: bool,
    is_over: bool,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct WriteQueue {
    state: Mutex<QueueState>,
    bytes_max: usize,
    has_work: Condvar,
    is_drained: Condvar,
}

impl WriteQueue {
    pub(crate) fn new(bytes_max: usize) -> Self {
        let (state, has_work, is_drained) = Default::default();
        WriteQueue { state, bytes_max, has_work, is_drained }
    }

    /// Queues a copy of some units; false if there is no room.
    pub(crate) fn push_units(&self, content: &Arc<ContentState>, first: u64, bytes: &[u8]) -> bool {
        let mut state = lock(&self.state);
        if state.is_over || state.bytes + bytes.len() + OVERHEAD_BYTES > self.bytes_max {
            return false;
        }
        if state.work.back_mut().is_some_and(|last| last.merge(content, first, bytes)) {
            state.bytes += bytes.len();
            return true;
        }
        let (content, bytes) = (Arc::clone(content), bytes.to_vec());
        self.add(&mut state, Work::Units { content, first, bytes });
        true
    }

    /// Queues anything else; what finds no room is left out.
    pub(crate) fn push(&self, work: Work) {
        let mut state = lock(&self.state);
        if !state.is_over && state.bytes + work.cost() <= self.bytes_max {
            self.add(&mut state, work);
        }
    }

    fn add(&self, state: &mut QueueState, work: Work) {
        state.bytes += work.cost();
        state.work.push_back(work);
        self.has_work.notify_one();
    }

    /// True once, when there is work and no thread for it: the caller starts one.
    pub(crate) fn wants_thread(&self) -> bool {
        let mut state = lock(&self.state);
        let is_wanted = !state.has_thread && !state.work.is_empty();
        state.has_thread |= is_wanted;
        is_wanted
    }

    /// The next piece of work, waited for; `None` when there is none and none will come.
    pub(crate) fn next(&self) -> Option<Work> {
        let mut state = lock(&self.state);
        loop {
            if let Some(work) = state.work.pop_front() {
                return Some(work);
            }
            if state.is_over {
                return None;
            }
            state = self.has_work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The next piece of work if it is there.
    pub(crate) fn try_next(&self) -> Option<Work> {
        lock(&self.state).work.pop_front()
    }

    /// Work that cost so much is done.
    pub(crate) fn settle(&self, cost: usize) {
        let mut state = lock(&self.state);
        state.bytes -= cost;
        self.is_drained.notify_all();
    }

    /// The thread is gone.
    pub(crate) fn end_thread(&self) {
        let mut state = lock(&self.state);
        state.has_thread = false;
        state.work.clear();
        state.bytes = 0;
        self.is_drained.notify_all();
    }

    /// Nothing more comes; what is there is still written.
    pub(crate) fn end(&self) {
        lock(&self.state).is_over = true;
        self.has_work.notify_all();
    }

    /// Waits until everything is written, at most for so long. True if it is.
    pub(crate) fn drain(&self, patience: Duration) -> bool {
        self.wait_until(patience, |state| state.bytes == 0)
    }

    /// Waits until half of the room is free, at most for so long.
    pub(crate) fn wait_for_room(&self, patience: Duration) {
        self.wait_until(patience, |state| state.bytes <= self.bytes_max / 2);
    }

    /// Waits until the thread has ended, at most for so long.
    pub(crate) fn wait_for_end(&self, patience: Duration) {
        self.wait_until(patience, |state| !state.has_thread);
    }

    fn wait_until(&self, patience: Duration, is_so: impl Fn(&QueueState) -> bool) -> bool {
        let until = Instant::now() + patience;
        let mut state = lock(&self.state);
        while !is_so(&state) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.is_drained.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}
