//! The thread of a session's call-backs.
//!
//! Call-backs run neither on the engine's thread, which a slow one would hold up, nor inside the
//! call that starts them. The thread begins with the first started call and ends with the session.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, ThreadId};

use crate::fault::Fault;

/// Work for the thread.
pub(crate) trait Task: Send + Sync {
    /// Does what there is to do.
    fn run(self: Arc<Self>);
}

#[derive(Default)]
struct State {
    ready: VecDeque<Arc<dyn Task>>,
    thread: Option<JoinHandle<()>>,
    is_over: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// A queue of tasks and the thread that runs them, one after the other.
#[derive(Default)]
pub(crate) struct Dispatcher {
    shared: Arc<Shared>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut state = self.lock();
        loop {
            if let Some(task) = state.ready.pop_front() {
                drop(state);
                task.run();
                state = self.lock();
            } else if state.is_over {
                return;
            } else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

impl Dispatcher {
    /// Makes sure that there is a thread.
    pub(crate) fn start(&self) -> Result<(), Fault> {
        let mut state = self.shared.lock();
        if state.thread.is_none() {
            let shared = Arc::clone(&self.shared);
            let thread = std::thread::Builder::new().name("byname-calls".to_owned());
            state.thread = Some(thread.spawn(move || shared.run()).map_err(Fault::Thread)?);
        }
        Ok(())
    }

    /// Hands a task to the thread.
    pub(crate) fn push(&self, task: Arc<dyn Task>) {
        self.shared.lock().ready.push_back(task);
        self.shared.changed.notify_one();
    }

    /// True on the thread itself.
    pub(crate) fn is_current(&self) -> bool {
        self.thread_id() == Some(std::thread::current().id())
    }

    fn thread_id(&self) -> Option<ThreadId> {
        self.shared.lock().thread.as_ref().map(|thread| thread.thread().id())
    }

    /// Ends the thread when its tasks are done, and waits for that.
    pub(crate) fn end(&self) {
        let mut state = self.shared.lock();
        state.is_over = true;
        let thread = state.thread.take();
        drop(state);
        self.shared.changed.notify_all();
        if let Some(thread) = thread {
            // A task that panics has been reported by the panic itself.
            let _ = thread.join();
        }
    }
}
