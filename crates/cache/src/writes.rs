//! What waits to be written: bounded by bytes, and filled without waiting.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use byname_packet::Name;
use byname_security::tree::{NodeId, UNIT_BYTES};

use crate::known::{ContentState, lock};
use crate::version::{Description, DirectoryPacket};

/// Octets that are written together, if they come one behind the other.
const MERGED_BYTES_MAX: usize = 1 << 20;
/// Memory that a piece of work takes besides its bytes, roughly.
const OVERHEAD_BYTES: usize = 512;
/// Work waits until nothing more has come for so long, but at most for the longer time: what is
/// written takes processors from those who read, a small file more than reading it took.
const LINGER: Duration = Duration::from_millis(20);
const LINGER_MAX: Duration = Duration::from_secs(1);
/// Long pieces wait no longer when there are so many bytes of them, others when there are so many
/// pieces, and all when half of the room is taken.
const BATCH_BYTES_MIN: usize = 2 * MERGED_BYTES_MAX;
const BATCH_PIECES_MAX: usize = 16 << 10;
/// Octets from which on a run of units is a long one, and gets a buffer of the greatest length.
const LONG_RUN_BYTES: usize = 64 << 10;
/// Uses that wait to be noted; more are forgotten. Whoever may read a service's files may say so as
/// often as they like, and takes no room from what is brought.
const TOUCHES_MAX: usize = 256;
/// Buffers kept for further runs, as many as may wait, until nothing has come for a while. A new
/// one costs the kernel a page for each 4 KiB.
const SPARES_MAX: usize = 32;
const SPARES_AGE_MAX: Duration = Duration::from_secs(1);

/// A content that something was brought of, and the user of a service to whom that is counted.
#[derive(Clone, Debug)]
pub(crate) struct Brought {
    pub(crate) content: Arc<ContentState>,
    pub(crate) owner: Option<u32>,
}

impl Brought {
    fn is_same(&self, other: &Brought) -> bool {
        Arc::ptr_eq(&self.content, &other.content) && self.owner == other.owner
    }
}

/// A piece of work.
#[derive(Debug)]
pub(crate) enum Work {
    Units {
        brought: Brought,
        first: u64,
        bytes: Vec<u8>,
    },
    Node {
        brought: Brought,
        node: NodeId,
        bytes: Vec<u8>,
    },
    Describe {
        content: Arc<ContentState>,
        description: Description,
    },
    Directory {
        name: Name,
        packet: DirectoryPacket,
    },
    /// One more use of an entry, if there is one.
    Touch {
        content: Arc<ContentState>,
    },
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
                Work::Touch { .. } => 0,
            }
    }

    /// The bytes of units of this content and user, if these follow them and there is room.
    fn merged_with(&mut self, other: &Brought, next: u64, length: usize) -> Option<&mut Vec<u8>> {
        let Work::Units { brought, first, bytes } = self else { return None };
        let follows = bytes.len().is_multiple_of(UNIT_BYTES)
            && *first + (bytes.len() / UNIT_BYTES) as u64 == next;
        let fits = bytes.len() + length <= MERGED_BYTES_MAX;
        (follows && fits && brought.is_same(other)).then_some(bytes)
    }
}

#[derive(Debug, Default)]
struct QueueState {
    work: VecDeque<Work>,
    /// Empty, and as long as a run of units may be.
    spares: Vec<Vec<u8>>,
    /// Of what waits and of what is being written.
    bytes: usize,
    touches: usize,
    /// When something came last.
    come: Option<Instant>,
    has_thread: bool,
    is_over: bool,
    /// Somebody waits until all of it is done.
    is_awaited: bool,
}

impl QueueState {
    /// True if what waits is worth a wake: it is much, or somebody waits for it.
    fn is_much(&self, bytes_max: usize) -> bool {
        let has_long = self.bytes >= BATCH_BYTES_MIN.max(self.work.len() * LONG_RUN_BYTES);
        let is_full = self.bytes >= bytes_max / 2 || self.work.len() >= BATCH_PIECES_MAX;
        has_long || is_full || self.is_over || self.is_awaited
    }

    fn pop(&mut self) -> Option<Work> {
        let work = self.work.pop_front();
        self.touches -= usize::from(matches!(work, Some(Work::Touch { .. })));
        work
    }

    /// Appends units to those that were queued last, if they follow them.
    fn merge(&mut self, brought: &Brought, first: u64, more: &[u8]) -> bool {
        let Self { work, spares, bytes: waiting, .. } = self;
        let last = work.back_mut();
        let Some(bytes) = last.and_then(|last| last.merged_with(brought, first, more.len())) else {
            return false;
        };
        if bytes.len() + more.len() > bytes.capacity() && bytes.len() >= LONG_RUN_BYTES {
            let mut long = spares.pop().unwrap_or_else(|| Vec::with_capacity(MERGED_BYTES_MAX));
            long.extend_from_slice(bytes);
            *bytes = long;
        }
        bytes.extend_from_slice(more);
        *waiting += more.len();
        self.come = Some(Instant::now());
        true
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct WriteQueue {
    state: Mutex<QueueState>,
    bytes_max: usize,
    /// The longest time that work waits for more.
    linger_max: Duration,
    has_work: Condvar,
    is_drained: Condvar,
}

impl WriteQueue {
    pub(crate) fn new(bytes_max: usize) -> Self {
        let (state, has_work, is_drained) = Default::default();
        WriteQueue { state, bytes_max, linger_max: LINGER_MAX, has_work, is_drained }
    }

    /// The same for a service, and for who brings it something: a service has no readers of its
    /// own to make way for, and what it is asked for depends on what it was brought.
    pub(crate) fn of_service(bytes_max: usize) -> Self {
        WriteQueue { linger_max: LINGER, ..Self::new(bytes_max) }
    }

    /// Queues a copy of some units; false if there is no room.
    pub(crate) fn push_units(&self, brought: Brought, first: u64, bytes: &[u8]) -> bool {
        let mut state = lock(&self.state);
        if state.is_over || state.bytes + bytes.len() + OVERHEAD_BYTES > self.bytes_max {
            return false;
        }
        if state.merge(&brought, first, bytes) {
            return true;
        }
        self.add(&mut state, Work::Units { brought, first, bytes: bytes.to_vec() });
        true
    }

    /// Queues anything else; false if there is no room.
    pub(crate) fn push(&self, work: Work) -> bool {
        let mut state = lock(&self.state);
        let is_touch = matches!(work, Work::Touch { .. });
        let has_room = state.bytes + work.cost() <= self.bytes_max
            && !(is_touch && state.touches >= TOUCHES_MAX);
        let is_taken = !state.is_over && has_room;
        if is_taken {
            state.touches += usize::from(is_touch);
            self.add(&mut state, work);
        }
        is_taken
    }

    fn add(&self, state: &mut QueueState, work: Work) {
        state.bytes += work.cost();
        state.work.push_back(work);
        state.come = Some(Instant::now());
        if state.work.len() == 1 || state.is_much(self.bytes_max) {
            self.has_work.notify_one();
        }
    }

    /// True once, when there is work and no thread for it: the caller starts one.
    pub(crate) fn wants_thread(&self) -> bool {
        let mut state = lock(&self.state);
        let is_wanted = !state.has_thread && !state.work.is_empty();
        state.has_thread |= is_wanted;
        is_wanted
    }

    /// The next piece of work, waited for; `None` when there is none and none will come. Little
    /// work waits until no more comes.
    pub(crate) fn next(&self) -> Option<Work> {
        let mut state = lock(&self.state);
        let mut until_max = None;
        loop {
            if state.work.is_empty() {
                if state.is_over {
                    return None;
                }
                state = self.wait_for_work(state);
                continue;
            }
            let now = Instant::now();
            let until_max = *until_max.get_or_insert(now + self.linger_max);
            let until = until_max.min(state.come.unwrap_or(now) + LINGER);
            let left = until.saturating_duration_since(now);
            if left.is_zero() || state.is_much(self.bytes_max) {
                return state.pop();
            }
            let waited = self.has_work.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits for work, and lets go of spare buffers if none comes.
    fn wait_for_work<'a>(&self, state: MutexGuard<'a, QueueState>) -> MutexGuard<'a, QueueState> {
        if state.spares.is_empty() {
            return self.has_work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let waited = self.has_work.wait_timeout(state, SPARES_AGE_MAX);
        let (mut state, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() && state.work.is_empty() {
            state.spares.clear();
        }
        state
    }

    /// Takes back the buffer of units that were written.
    pub(crate) fn recycle(&self, mut bytes: Vec<u8>) {
        if bytes.capacity() >= MERGED_BYTES_MAX {
            bytes.clear();
            let mut state = lock(&self.state);
            if state.spares.len() < SPARES_MAX {
                state.spares.push(bytes);
            }
        }
    }

    /// The next piece of work if it is there.
    pub(crate) fn try_next(&self) -> Option<Work> {
        lock(&self.state).pop()
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
        state.spares.clear();
        (state.bytes, state.touches) = (0, 0);
        self.is_drained.notify_all();
    }

    /// Nothing more comes; what is there is still written.
    pub(crate) fn end(&self) {
        lock(&self.state).is_over = true;
        self.has_work.notify_all();
    }

    /// Waits until everything is written, at most for so long. True if it is.
    pub(crate) fn drain(&self, patience: Duration) -> bool {
        lock(&self.state).is_awaited = true;
        self.has_work.notify_all();
        let is_drained = self.wait_until(patience, |state| state.bytes == 0);
        lock(&self.state).is_awaited = false;
        is_drained
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

#[cfg(test)]
mod tests {
    use byname_security::tree::Hash;

    use super::*;
    use crate::layout::ContentKey;

    fn describe(queue: &WriteQueue, number: u8) {
        let key = ContentKey { root: Hash([number; 32]), size: 100 };
        let brought = Brought { content: Arc::new(ContentState::new(key)), owner: None };
        assert!(queue.push_units(brought, 0, &[number; 100]));
    }

    #[test]
    fn small_pieces_wait_while_more_come_but_not_for_ever() {
        let queue = WriteQueue::new(32 << 20);
        let is_over = std::sync::atomic::AtomicBool::new(false);
        let begun = Instant::now();
        let taken = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    describe(&queue, 1);
                    std::thread::sleep(LINGER / 10);
                }
            });
            let first = queue.next();
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
            first.is_some().then(|| begun.elapsed())
        });
        assert!(taken.unwrap() > LINGER, "it waited for more than one pause");
        assert!(taken.unwrap() < 10 * LINGER_MAX);
        // Nothing more comes now.
        assert!(queue.next().is_some());
    }

    #[test]
    fn what_somebody_waits_for_does_not_wait_for_more() {
        let queue = WriteQueue::new(1 << 20);
        describe(&queue, 1);
        lock(&queue.state).is_awaited = true;
        assert!(lock(&queue.state).is_much(queue.bytes_max));
        lock(&queue.state).is_awaited = false;
        assert!(!lock(&queue.state).is_much(queue.bytes_max));
        (0..BATCH_PIECES_MAX).for_each(|_| {
            queue.push(Work::Touch {
                content: Arc::new(ContentState::new(ContentKey { root: Hash([9; 32]), size: 1 })),
            });
        });
        assert!(!lock(&queue.state).is_much(queue.bytes_max), "uses are bounded");
        (0..700).for_each(|_| describe(&queue, 2));
        assert!(lock(&queue.state).is_much(queue.bytes_max), "half of the room is taken");
    }

    #[test]
    fn uses_without_end_take_no_room_from_what_is_brought() {
        let queue = WriteQueue::new(1 << 20);
        let content =
            Arc::new(ContentState::new(ContentKey { root: Hash([7; 32]), size: 1 << 20 }));
        let touch = || queue.push(Work::Touch { content: Arc::clone(&content) });
        for _ in 0..20_000 {
            touch();
        }
        assert_eq!(lock(&queue.state).work.len(), TOUCHES_MAX);
        let brought = Brought { content: Arc::clone(&content), owner: Some(7) };
        assert!(queue.push_units(brought, 0, &[0; 800_000]));
        let taken: Vec<Work> = std::iter::from_fn(|| queue.try_next()).collect();
        assert_eq!(taken.len(), TOUCHES_MAX + 1);
        touch();
        assert_eq!(lock(&queue.state).work.len(), 1, "there is room for them again");
    }
}
