//! One question that several tasks wait for.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use rustix::io::Errno;

use crate::snapshot::Snapshot;

/// The answer: a snapshot and the time at which it was current, or an errno.
pub(crate) type Answer = Result<(Arc<Snapshot>, u64), i32>;

#[derive(Debug, Default)]
struct State {
    answer: Option<Answer>,
    waiting: Vec<Waker>,
}

/// Lands a flight when dropped, should nobody have done so.
#[derive(Debug)]
pub(crate) struct Landing(pub(crate) Arc<Flight>);

impl Drop for Landing {
    fn drop(&mut self) {
        self.0.land(Err(Errno::IO.raw_os_error()));
    }
}

/// A question in flight. Whoever made it lands it.
#[derive(Debug)]
pub(crate) struct Flight {
    began_ns: u64,
    state: Mutex<State>,
}

impl Flight {
    pub(crate) fn new(began_ns: u64) -> Self {
        Flight { began_ns, state: Mutex::default() }
    }

    /// Time from which its answer is current.
    pub(crate) fn began_ns(&self) -> u64 {
        self.began_ns
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the answer to all who wait.
    pub(crate) fn land(&self, answer: Answer) {
        let mut state = self.lock();
        state.answer.get_or_insert(answer);
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Waits for the answer.
    pub(crate) async fn landed(&self) -> Answer {
        poll_fn(|context| {
            let mut state = self.lock();
            if let Some(answer) = &state.answer {
                return Poll::Ready(answer.clone());
            }
            if !state.waiting.iter().any(|waker| waker.will_wake(context.waker())) {
                state.waiting.push(context.waker().clone());
            }
            Poll::Pending
        })
        .await
    }
}
