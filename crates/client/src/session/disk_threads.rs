//! Threads of a session that work at the local disk, so that its engine never waits for one.
//!
//! Each target has a queue, each queue has one thread at a time: steps of a file keep their order,
//! and a file whose disk does not answer holds up no other while there are threads left. Threads
//! begin when there is something to do for them and end when there was nothing for a while.
//!
//! Invariants: a queue is in the list of ready ones, or with a thread, if and only if it has steps;
//! what was submitted is carried out although the session is gone.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use byname_io::Waker;

use crate::download::disk_queue::{DiskRunner, Work, WorkQueue};

/// Threads of one session: so many disks may hang before downloads to others wait.
const THREADS_MAX: usize = 16;
/// A thread that has had nothing to do for so long ends.
const IDLE: Duration = Duration::from_secs(5);
/// Steps of one queue before the next has its turn.
const TURN: usize = 16;

/// Queues by their targets, and the threads.
pub(crate) struct DiskThreads {
    pool: Arc<Pool>,
    queues: RefCell<BTreeMap<PathBuf, Weak<TargetQueue>>>,
}

impl DiskThreads {
    /// The waker is that of the engine.
    pub(crate) fn new(waker: Waker) -> Self {
        let pool = Pool { state: Mutex::default(), has_ready: Condvar::new(), waker };
        DiskThreads { pool: Arc::new(pool), queues: RefCell::default() }
    }
}

impl DiskRunner for DiskThreads {
    fn queue(&self, target: &Path) -> Arc<dyn WorkQueue> {
        let mut queues = self.queues.borrow_mut();
        if let Some(queue) = queues.get(target).and_then(Weak::upgrade) {
            return queue;
        }
        queues.retain(|_, queue| queue.strong_count() > 0);
        let pool = Arc::clone(&self.pool);
        let queue = Arc::new(TargetQueue { pool, state: Mutex::default() });
        queues.insert(target.to_owned(), Arc::downgrade(&queue));
        queue
    }
}

impl Drop for DiskThreads {
    /// Threads end when nothing is left.
    fn drop(&mut self) {
        self.pool.lock().is_over = true;
        self.pool.has_ready.notify_all();
    }
}

#[derive(Default)]
struct QueueState {
    work: VecDeque<Work>,
    /// It is in the list of ready ones, or with a thread.
    is_scheduled: bool,
}

/// Steps at one target.
struct TargetQueue {
    pool: Arc<Pool>,
    state: Mutex<QueueState>,
}

impl TargetQueue {
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Carries out some steps. True if there may be more.
    fn take_turn(&self) -> bool {
        for _ in 0..TURN {
            let mut state = self.lock();
            let Some(work) = state.work.pop_front() else {
                state.is_scheduled = false;
                return false;
            };
            drop(state);
            if catch_unwind(AssertUnwindSafe(work)).is_err() {
                tracing::error!("a step at the local disk broke off");
                self.wake();
            }
        }
        true
    }
}

impl WorkQueue for TargetQueue {
    fn push(self: Arc<Self>, work: Work) {
        let mut state = self.lock();
        state.work.push_back(work);
        let was_scheduled = std::mem::replace(&mut state.is_scheduled, true);
        drop(state);
        if !was_scheduled {
            let pool = Arc::clone(&self.pool);
            pool.add(self);
        }
    }

    fn wake(&self) {
        self.pool.waker.wake();
    }
}

#[derive(Default)]
struct PoolState {
    ready: VecDeque<Arc<TargetQueue>>,
    thread_count: usize,
    idle_count: usize,
    /// The session is gone.
    is_over: bool,
}

struct Pool {
    state: Mutex<PoolState>,
    has_ready: Condvar,
    waker: Waker,
}

impl Pool {
    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a queue to the threads.
    fn add(self: &Arc<Self>, queue: Arc<TargetQueue>) {
        let mut state = self.lock();
        state.ready.push_back(queue);
        if state.ready.len() <= state.idle_count {
            return self.has_ready.notify_one();
        }
        if state.thread_count >= THREADS_MAX {
            return;
        }
        state.thread_count += 1;
        drop(state);
        let pool = Arc::clone(self);
        let thread = std::thread::Builder::new().name("byname-disk".to_owned());
        if let Err(error) = thread.spawn(move || pool.run()) {
            tracing::debug!(%error, "no thread for the local disk");
            self.run_without_thread();
        }
    }

    fn run(&self) {
        while let Some(queue) = self.next() {
            self.take_turn(queue);
        }
    }

    /// A thread was not to be had: if there is no other, its work is done here.
    fn run_without_thread(&self) {
        let mut state = self.lock();
        state.thread_count -= 1;
        if state.thread_count > 0 {
            return;
        }
        drop(state);
        loop {
            let Some(queue) = self.lock().ready.pop_front() else { return };
            self.take_turn(queue);
        }
    }

    fn take_turn(&self, queue: Arc<TargetQueue>) {
        if queue.take_turn() {
            self.lock().ready.push_back(queue);
        }
    }

    /// The next queue for a thread; `None` if it shall end.
    fn next(&self) -> Option<Arc<TargetQueue>> {
        let mut state = self.lock();
        let mut was_idle = false;
        loop {
            if let Some(queue) = state.ready.pop_front() {
                return Some(queue);
            }
            if state.is_over || was_idle {
                state.thread_count -= 1;
                return None;
            }
            state.idle_count += 1;
            let waited = self.has_ready.wait_timeout(state, IDLE);
            let (guard, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            state = guard;
            state.idle_count -= 1;
            was_idle = timeout.timed_out();
        }
    }
}
