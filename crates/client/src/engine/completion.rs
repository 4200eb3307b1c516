//! Completion of a call: one place, in which the engine leaves the answer.
//!
//! A [`Reply`] that is dropped unused says that the answer is lost, so nobody waits for ever
//! whatever ends the engine. A caller that is gone marks its completion; the engine looks.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::error::ClientError;

#[derive(Debug)]
enum CallState<T> {
    Waiting(Option<Waker>),
    Answered(Result<T, ClientError>),
    /// The engine gave up without an answer.
    Lost,
    /// The caller has its answer, or is gone.
    Over,
}

/// Hears that a call has ended, with or without an answer.
pub(crate) trait CallObserver: Send + Sync {
    /// The [`Reply`] is gone.
    fn on_end(&self);
}

/// The caller's end, shared with the engine's.
#[derive(Debug)]
pub(crate) struct Completion<T> {
    state: Mutex<CallState<T>>,
    changed: Condvar,
}

impl<T> Completion<T> {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Completion {
            state: Mutex::new(CallState::Waiting(None)),
            changed: Condvar::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, CallState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, state: CallState<T>) {
        let mut now = self.lock();
        if let CallState::Waiting(waker) = &mut *now {
            let waker = waker.take();
            *now = state;
            drop(now);
            self.changed.notify_all();
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    /// Blocks until there is an answer; `None` if it is lost.
    pub(crate) fn wait(&self) -> Option<Result<T, ClientError>> {
        let mut state = self.lock();
        while matches!(*state, CallState::Waiting(_)) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        answer(&mut state)
    }

    /// The answer once it is there; `None` if it is lost.
    pub(crate) fn poll(&self, context: &Context<'_>) -> Poll<Option<Result<T, ClientError>>> {
        let mut state = self.lock();
        if let CallState::Waiting(waker) = &mut *state {
            *waker = Some(context.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(answer(&mut state))
    }

    /// The answer, if it is there.
    pub(crate) fn take(&self) -> Option<Result<T, ClientError>> {
        answer(&mut self.lock())
    }

    /// The caller does not want the answer any more. True if there was none yet.
    pub(crate) fn cancel(&self) -> bool {
        let mut state = self.lock();
        let before = std::mem::replace(&mut *state, CallState::Over);
        drop(state);
        matches!(before, CallState::Waiting(_))
    }
}

fn answer<T>(state: &mut CallState<T>) -> Option<Result<T, ClientError>> {
    match std::mem::replace(state, CallState::Over) {
        CallState::Answered(answer) => Some(answer),
        CallState::Waiting(_) | CallState::Lost | CallState::Over => None,
    }
}

/// The engine's end.
pub(crate) struct Reply<T> {
    completion: Arc<Completion<T>>,
    observer: Option<Arc<dyn CallObserver>>,
}

impl<T> Reply<T> {
    /// Nobody but the caller hears of the end of the call.
    pub(crate) fn new(completion: Arc<Completion<T>>) -> Self {
        Reply { completion, observer: None }
    }

    /// The observer hears of the end too.
    pub(crate) fn observed(
        completion: Arc<Completion<T>>,
        observer: Arc<dyn CallObserver>,
    ) -> Self {
        Reply { completion, observer: Some(observer) }
    }

    /// Leaves the answer.
    pub(crate) fn send(self, answer: Result<T, ClientError>) {
        self.completion.set(CallState::Answered(answer));
    }

    /// The caller is gone.
    pub(crate) fn is_cancelled(&self) -> bool {
        matches!(*self.completion.lock(), CallState::Over)
    }
}

impl<T> Drop for Reply<T> {
    fn drop(&mut self) {
        self.completion.set(CallState::Lost);
        if let Some(observer) = &self.observer {
            observer.on_end();
        }
    }
}

impl<T> std::fmt::Debug for Reply<T> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Reply").finish_non_exhaustive()
    }
}
