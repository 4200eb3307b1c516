//! The way back: one place per call, in which the engine leaves the answer.
//!
//! A [`Reply`] that is dropped unused tells the caller that its answer was lost, so nobody waits
//! for ever whatever ends the engine. A caller that is gone marks the slot; the engine looks.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use super::port::Port;
use crate::error::ClientError;

#[derive(Debug)]
enum State<T> {
    Waiting(Option<Waker>),
    Answered(Result<T, ClientError>),
    /// The engine gave up without an answer.
    Lost,
    /// The caller has its answer, or is gone.
    Over,
}

/// Shared by the two ends.
#[derive(Debug)]
pub(crate) struct Slot<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

impl<T> Slot<T> {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Slot { state: Mutex::new(State::Waiting(None)), changed: Condvar::new() })
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, state: State<T>) {
        let mut now = self.lock();
        if let State::Waiting(waker) = &mut *now {
            let waker = waker.take();
            *now = state;
            drop(now);
            self.changed.notify_all();
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    /// Blocks until there is an answer.
    pub(crate) fn wait(&self, port: &Port) -> Result<T, ClientError> {
        let mut state = self.lock();
        while matches!(*state, State::Waiting(_)) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        answer(&mut state, port)
    }

    pub(crate) fn poll(&self, context: &Context<'_>, port: &Port) -> Poll<Result<T, ClientError>> {
        let mut state = self.lock();
        if let State::Waiting(waker) = &mut *state {
            *waker = Some(context.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(answer(&mut state, port))
    }

    /// The answer, if it is there.
    pub(crate) fn take(&self) -> Option<Result<T, ClientError>> {
        let mut state = self.lock();
        match std::mem::replace(&mut *state, State::Over) {
            State::Answered(answer) => Some(answer),
            _ => None,
        }
    }

    /// The caller does not want the answer any more. True if there was none yet.
    pub(crate) fn cancel(&self) -> bool {
        let mut state = self.lock();
        let before = std::mem::replace(&mut *state, State::Over);
        drop(state);
        matches!(before, State::Waiting(_))
    }
}

fn answer<T>(state: &mut State<T>, port: &Port) -> Result<T, ClientError> {
    match std::mem::replace(state, State::Over) {
        State::Answered(answer) => answer,
        State::Waiting(_) | State::Lost | State::Over => Err(port.lost()),
    }
}

/// The engine's end. Where there is a port, it holds one of the places in its count of calls.
#[derive(Debug)]
pub(crate) struct Reply<T> {
    slot: Arc<Slot<T>>,
    port: Option<Arc<Port>>,
}

impl<T> Reply<T> {
    /// Only the port makes these, because each takes a place.
    pub(super) fn new(slot: Arc<Slot<T>>, port: Arc<Port>) -> Self {
        Reply { slot, port: Some(port) }
    }

    /// For a caller that runs the driver itself.
    pub(crate) fn unqueued(slot: Arc<Slot<T>>) -> Self {
        Reply { slot, port: None }
    }

    /// Leaves the answer.
    pub(crate) fn send(self, answer: Result<T, ClientError>) {
        self.slot.set(State::Answered(answer));
    }

    /// The caller is gone.
    pub(crate) fn is_cancelled(&self) -> bool {
        matches!(*self.slot.lock(), State::Over)
    }
}

impl<T> Drop for Reply<T> {
    fn drop(&mut self) {
        self.slot.set(State::Lost);
        if let Some(port) = &self.port {
            port.release();
        }
    }
}
