//! One question that several tasks wait for.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use crate::snapshot::Snapshot;

/// The answer: a snapshot and the time at which it was current, or an errno.
pub(crate) type Answer = Result<(Arc<Snapshot>, u64), i32>;

#[derive(Debug, Default)]
struct State {
    /// What came; inside `None` if whoever asked was interrupted.
    answer: Option<Option<Answer>>,
    waiting: Vec<Waker>,
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
    pub(crate) fn land(&self, answer: Option<Answer>) {
        let mut state = self.lock();
        state.answer.get_or_insert(answer);
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Waits for the answer; `None` if whoever asked does not wait for it any more.
    pub(crate) async fn landed(&self) -> Option<Answer> {
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
