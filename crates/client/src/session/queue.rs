//! Command queue: from the handles of a session to its engine, bounded.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task;

use crate::config::Stop;
use crate::engine::completion::{CallObserver, Completion, Reply};
use crate::error::ClientError;

/// Calls that may be in flight at once; the next one waits for one of them to end.
pub const CALLS_MAX: usize = 1024;

#[derive(Debug)]
struct QueueState<C> {
    commands: VecDeque<C>,
    in_flight: usize,
    waiting: Vec<task::Waker>,
    /// Counts calls whose callers went away.
    cancelled_count: u64,
    /// No handle is left.
    is_abandoned: bool,
    /// No engine is left.
    is_over: bool,
    /// Why answers were lost the last time.
    lost: Option<ClientError>,
}

/// Shared by the handles and the engine.
pub(crate) struct CommandQueue<C> {
    state: Mutex<QueueState<C>>,
    has_room: Condvar,
    waker: byname_io::Waker,
    endpoint: String,
    stop: Stop,
}

impl<C: Send + 'static> CommandQueue<C> {
    pub(crate) fn new(waker: byname_io::Waker, endpoint: String, stop: Stop) -> Self {
        let state = QueueState {
            commands: VecDeque::new(),
            in_flight: 0,
            waiting: Vec::new(),
            cancelled_count: 0,
            is_abandoned: false,
            is_over: false,
            lost: None,
        };
        let (state, has_room) = (Mutex::new(state), Condvar::new());
        CommandQueue { state, has_room, waker, endpoint, stop }
    }

    fn lock(&self) -> MutexGuard<'_, QueueState<C>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a command that is made with the engine's end of a completion, once there is room.
    pub(crate) fn send<T>(
        self: &Arc<Self>,
        completion: Arc<Completion<T>>,
        make: impl FnOnce(Reply<T>) -> C,
    ) -> Result<(), ClientError> {
        let mut state = self.lock();
        while state.in_flight >= CALLS_MAX && !state.is_over {
            state = self.has_room.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        self.push(state, completion, make)
    }

    /// The same without blocking. `None` if there is no room: the task is woken when there is.
    pub(crate) fn poll_send<T, F>(
        self: &Arc<Self>,
        context: &task::Context<'_>,
        completion: Arc<Completion<T>>,
        (unsent, make): (&mut Option<F>, impl FnOnce(F, Reply<T>) -> C),
    ) -> Option<Result<(), ClientError>> {
        let mut state = self.lock();
        if state.in_flight >= CALLS_MAX && !state.is_over {
            if !state.waiting.iter().any(|waker| waker.will_wake(context.waker())) {
                state.waiting.push(context.waker().clone());
            }
            return None;
        }
        let unsent = unsent.take()?;
        Some(self.push(state, completion, |reply| make(unsent, reply)))
    }

    fn push<T>(
        self: &Arc<Self>,
        mut state: MutexGuard<'_, QueueState<C>>,
        completion: Arc<Completion<T>>,
        make: impl FnOnce(Reply<T>) -> C,
    ) -> Result<(), ClientError> {
        if state.is_over {
            drop(state);
            return Err(self.lost());
        }
        state.in_flight += 1;
        let observer = Arc::clone(self) as Arc<dyn CallObserver>;
        let command = make(Reply::observed(completion, observer));
        self.tell(state, command);
        Ok(())
    }

    /// Leaves a command to the engine, which takes all that are there when it is woken: only the
    /// first of them wakes it.
    fn tell(&self, mut state: MutexGuard<'_, QueueState<C>>, command: C) {
        let is_first = state.commands.is_empty();
        state.commands.push_back(command);
        drop(state);
        if is_first {
            self.waker.wake();
        }
    }

    /// Sends a command that nobody waits for and that needs no room: the caller bounds them.
    pub(crate) fn send_unanswered(&self, command: C) {
        let state = self.lock();
        if !state.is_over {
            self.tell(state, command);
        }
    }

    /// A caller went away before its answer came.
    pub(crate) fn note_cancelled(&self) {
        self.lock().cancelled_count += 1;
        self.waker.wake();
    }

    /// No handle is left.
    fn abandon(&self) {
        self.lock().is_abandoned = true;
        self.waker.wake();
    }

    /// Commands to work on, oldest first, and the count of cancelled calls.
    pub(crate) fn take(&self, into: &mut VecDeque<C>) -> u64 {
        let mut state = self.lock();
        into.append(&mut state.commands);
        state.cancelled_count
    }

    /// True if nobody will send anything any more.
    pub(crate) fn is_abandoned(&self) -> bool {
        let state = self.lock();
        state.is_abandoned && state.commands.is_empty()
    }

    pub(crate) fn has_commands(&self) -> bool {
        !self.lock().commands.is_empty()
    }

    /// The engine has ended: whoever waits hears of it.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        state.is_over = true;
        let commands = std::mem::take(&mut state.commands);
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        // Dropping them answers them, which takes the lock.
        drop(commands);
        self.has_room.notify_all();
        waiting.into_iter().for_each(task::Waker::wake);
    }

    /// Everything in flight is about to be given up for this reason.
    pub(crate) fn set_lost(&self, error: &ClientError) {
        self.lock().lost = error.repeated();
    }

    /// The error of a call that got no answer.
    pub(crate) fn lost(&self) -> ClientError {
        if self.stop.is_requested() {
            return ClientError::Interrupted;
        }
        let reason = self.lock().lost.as_ref().and_then(ClientError::repeated);
        let endpoint = || self.endpoint.clone();
        reason.unwrap_or_else(|| ClientError::Disconnected { endpoint: endpoint(), source: None })
    }
}

impl<C: Send> CallObserver for CommandQueue<C> {
    /// A call has ended; its place is free.
    fn on_end(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.in_flight = state.in_flight.saturating_sub(1);
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        self.has_room.notify_one();
        waiting.into_iter().for_each(task::Waker::wake);
    }
}

/// Shared by all handles of an engine, which ends when this is dropped.
pub(crate) struct EngineHandle<C: Send + 'static> {
    queue: Arc<CommandQueue<C>>,
}

impl<C: Send + 'static> EngineHandle<C> {
    pub(crate) fn new(queue: Arc<CommandQueue<C>>) -> Self {
        EngineHandle { queue }
    }

    pub(crate) fn queue(&self) -> &Arc<CommandQueue<C>> {
        &self.queue
    }
}

impl<C: Send + 'static> Drop for EngineHandle<C> {
    fn drop(&mut self) {
        self.queue.abandon();
    }
}

impl<C: Send + 'static> std::fmt::Debug for EngineHandle<C> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("EngineHandle").finish_non_exhaustive()
    }
}
