//! Threads that read and frame bursts beside the serving thread, so that one large file is not
//! bound to it.
//!
//! A burst is one range of one file, and readers do not mind in which order bursts come; so
//! whichever helper is free takes the next one: it reads from the page cache into a queue of its
//! own, compares the file's state and gives the burst back. The serving thread only hands the queue
//! to the link. What finds the helpers busy is read by the serving thread itself: it is one
//! worker among them, never idles while they are behind, and without helpers nothing is different
//! from a server that knows none.
//!
//! Invariants: at most [`BURSTS_MAX`] bursts a helper, and [`FACE_BURSTS_MAX`] of one face, are
//! with helpers, so that what comes back fits the face's queue; nothing here waits for a disk.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

use byname_io::{Connection, IoError, Waker};
use byname_transfer::server::{FaceId, SegmentBurst};

use super::sending::{AtOnce, send_ready};
use crate::content::Content;
use crate::error::StoreError;

/// Bursts that wait for or are with a helper, for each helper.
const BURSTS_MAX: usize = 2;
/// The same of one face: more than its queue has room for must not come back.
const FACE_BURSTS_MAX: usize = 3;
/// A smaller burst is sent sooner than another thread wakes up.
const SEGMENTS_MIN: usize = 8;

/// A burst to be read.
#[derive(Debug)]
struct BurstOrder {
    content: Arc<dyn Content>,
    burst: SegmentBurst,
    packets: Connection,
}

/// A burst that was read and framed, as far as it was in memory.
#[derive(Debug)]
pub(crate) struct Framed {
    pub(super) content: Arc<dyn Content>,
    pub(super) burst: SegmentBurst,
    pub(super) at_once: AtOnce,
    /// Packets to be sent.
    pub(crate) packets: Connection,
}

impl Framed {
    /// To whom it goes.
    pub(crate) fn face(&self) -> FaceId {
        self.burst.face()
    }
}

#[derive(Debug, Default)]
struct Waiting {
    orders: VecDeque<BurstOrder>,
    is_over: bool,
}

#[derive(Debug)]
struct Shared {
    waiting: Mutex<Waiting>,
    ready: Condvar,
    done: Mutex<VecDeque<Framed>>,
    waker: Waker,
}

/// The threads. Dropping stops them.
#[derive(Debug)]
pub(super) struct Helpers {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    /// Bursts that are with them, by face; nothing of faces that have none.
    faces: HashMap<FaceId, usize>,
    count: usize,
    /// Bursts that they were ever given.
    taken: u64,
    spare: Vec<Connection>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Helpers {
    pub(super) fn start(count: usize, waker: Waker) -> Result<Self, StoreError> {
        let (waiting, done) = (Mutex::default(), Mutex::default());
        let shared = Arc::new(Shared { waiting, ready: Condvar::new(), done, waker });
        let spare: Result<Vec<_>, IoError> =
            (0..count * BURSTS_MAX).map(|_| Connection::held()).collect();
        let (faces, spare) = (HashMap::new(), spare?);
        let (threads, shared_by_all) = (Vec::new(), shared.clone());
        let mut helpers = Self { shared: shared_by_all, threads, faces, count: 0, taken: 0, spare };
        for _ in 0..count {
            let shared = shared.clone();
            let thread = Builder::new().name("byname-data".to_owned());
            let thread = thread.spawn(move || work(&shared)).map_err(StoreError::Thread)?;
            helpers.threads.push(thread);
        }
        Ok(helpers)
    }

    /// Gives a burst to a helper; back if they have enough to do or it is not worth it.
    pub(super) fn take(
        &mut self,
        content: Arc<dyn Content>,
        burst: SegmentBurst,
    ) -> Option<SegmentBurst> {
        let of_face = self.faces.get(&burst.face()).copied().unwrap_or_default();
        if burst.len() < SEGMENTS_MIN || of_face >= FACE_BURSTS_MAX {
            return Some(burst);
        }
        // There are as many queues as there may be bursts.
        let Some(packets) = self.spare.pop() else { return Some(burst) };
        *self.faces.entry(burst.face()).or_default() += 1;
        self.count += 1;
        self.taken += 1;
        locked(&self.shared.waiting).orders.push_back(BurstOrder { content, burst, packets });
        self.shared.ready.notify_one();
        None
    }

    /// A burst that a helper has done.
    pub(super) fn take_done(&mut self) -> Option<Framed> {
        if self.count == 0 {
            return None;
        }
        let framed = locked(&self.shared.done).pop_front()?;
        self.count -= 1;
        if let Some(count) = self.faces.get_mut(&framed.face()) {
            *count -= 1;
            if *count == 0 {
                self.faces.remove(&framed.face());
            }
        }
        Some(framed)
    }

    /// Bursts that they were ever given.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// Takes back a queue, which is empty.
    pub(super) fn recycle(&mut self, packets: Connection) {
        self.spare.push(packets);
    }
}

impl Drop for Helpers {
    fn drop(&mut self) {
        let mut waiting = locked(&self.shared.waiting);
        waiting.is_over = true;
        waiting.orders.clear();
        drop(waiting);
        self.shared.ready.notify_all();
        for thread in self.threads.drain(..) {
            // One that panicked has said so; the others still end.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn next(&self) -> Option<BurstOrder> {
        let mut waiting = locked(&self.waiting);
        loop {
            if waiting.is_over {
                return None;
            }
            match waiting.orders.pop_front() {
                Some(order) => return Some(order),
                None => {
                    waiting = self.ready.wait(waiting).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}

fn work(shared: &Shared) {
    while let Some(BurstOrder { content, burst, mut packets }) = shared.next() {
        let at_once = send_ready(&*content, &burst, &mut packets);
        locked(&shared.done).push_back(Framed { content, burst, at_once, packets });
        shared.waker.wake();
    }
}
