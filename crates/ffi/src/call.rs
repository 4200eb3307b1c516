//! Calls in both forms: waited for, or started with a call-back at the end.
//!
//! [`Work`] is a call before it is known which form it takes. A started one becomes a future that
//! is polled when its waker says so: first by whoever starts it, so that its request leaves at
//! once, then by the session's [`dispatcher`](crate::dispatcher). Cancelling drops what the engine
//! works on; a call that has lent buffers then still waits until the engine has let go of them.

use std::ffi::c_void;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use byname_client::Pending;

use crate::abi;
use crate::dispatcher::Task;
use crate::fault::Fault;
use crate::guard;
use crate::handles::{Kind, Table};
use crate::session::{ActiveCall, SessionState};

/// Started calls of all sessions.
pub(crate) static CALLS: Table<StartedCall> = Table::new(Kind::Call, CALLS_OF_PROCESS_MAX);

const CALLS_OF_PROCESS_MAX: usize = 1 << 20;

/// Hears that lent buffers are not touched any more.
#[derive(Default)]
pub(crate) struct Returned {
    state: Mutex<ReturnState>,
    changed: Condvar,
}

#[derive(Default)]
struct ReturnState {
    is_returned: bool,
    waker: Option<Waker>,
}

impl Returned {
    /// The buffers are the caller's again.
    pub(crate) fn note(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_returned = true;
        let waker = state.waker.take();
        drop(state);
        self.changed.notify_all();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn wait(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while !state.is_returned {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn poll(&self, context: &Context<'_>) -> Poll<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.is_returned {
            return Poll::Ready(());
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

/// Turns the engine's answer into what the caller gets: results are written to their places, and a
/// handle or a number is returned.
type Finish<T> = Box<dyn FnOnce(T) -> Result<i64, Fault> + Send>;

/// A call before it begins.
pub(crate) struct Work<T> {
    active: ActiveCall,
    pending: Pending<T>,
    returned: Option<Arc<Returned>>,
    finish: Finish<T>,
}

impl<T: Send + 'static> Work<T> {
    pub(crate) fn new(
        active: ActiveCall,
        pending: Pending<T>,
        finish: impl FnOnce(T) -> Result<i64, Fault> + Send + 'static,
    ) -> Self {
        Work { active, pending, returned: None, finish: Box::new(finish) }
    }

    /// Does not end before the buffers are returned.
    pub(crate) fn lending(mut self, returned: Arc<Returned>) -> Self {
        self.returned = Some(returned);
        self
    }

    /// Waits for the end.
    pub(crate) fn wait(self) -> Result<i64, Fault> {
        let Work { active, pending, returned, finish } = self;
        // Not skipped by a panic: the caller's buffers are at stake.
        let answer = guard::catch(|| Ok(pending.wait()?));
        if let Some(returned) = returned {
            returned.wait();
        }
        let outcome = finish(answer?);
        drop(active);
        outcome
    }

    /// Begins the call; `write` is given what [`wait`](Work::wait) would have returned.
    pub(crate) fn start(
        self,
        completion: abi::Completion,
        write: impl FnOnce(i64) + Send + 'static,
    ) -> Result<i64, Fault> {
        let Work { active, pending, returned, finish } = self;
        let callback = Callback::new(completion)?;
        let counted = Counted::new(active)?;
        let session = Arc::clone(&counted.active);
        session.dispatcher.start()?;
        let finish: Finish<T> = Box::new(move |answer| {
            write(finish(answer)?);
            Ok(0)
        });
        let running = Box::new(Running { pending: Some(pending), answer: None, returned, finish });
        let started = Started { handle: 0, running, callback, counted };
        let (state, flags) = (Mutex::new(Some(started)), Flags::default());
        StartedCall::begin(Arc::new(StartedCall { session, state, flags }))
    }
}

/// A started call counts until it has ended.
struct Counted {
    active: ActiveCall,
}

impl Counted {
    fn new(active: ActiveCall) -> Result<Self, Fault> {
        let before = active.totals.started_calls.fetch_add(1, Ordering::Relaxed);
        let counted = Counted { active };
        let max = abi::BYNAME_CALLS_MAX;
        if before >= max { Err(Fault::TooManyCalls { max }) } else { Ok(counted) }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.active.totals.started_calls.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The caller's function and what it is given.
struct Callback {
    done: unsafe extern "C" fn(*mut c_void, *const abi::Error),
    context: *mut c_void,
}

// SAFETY: byname.h says that `done` is called from a thread of the library, with this context.
unsafe impl Send for Callback {}

impl Callback {
    fn new(completion: abi::Completion) -> Result<Self, Fault> {
        let done = completion.done.ok_or(Fault::Null { argument: "completion.done" })?;
        Ok(Callback { done, context: completion.context })
    }

    fn call(self, outcome: &Result<i64, Fault>) {
        let error = guard::error_of(outcome.as_ref().err());
        // SAFETY: the caller gave a function of this type, and `error` lives during the call.
        unsafe { (self.done)(self.context, &raw const error) }
    }
}

/// A call that the engine works on, whatever it answers.
trait Progress: Send {
    /// Looks for the answer; ready when the call touches nothing of the caller any more.
    fn poll(&mut self, context: &mut Context<'_>, is_cancelled: bool) -> Poll<()>;
    /// Takes the call back: this is its answer.
    fn abandon(&mut self, fault: Fault);
    /// Writes the results. The call is ready.
    fn finish(self: Box<Self>) -> Result<i64, Fault>;
}

struct Running<T> {
    /// `None` once there is an answer.
    pending: Option<Pending<T>>,
    answer: Option<Result<T, Fault>>,
    returned: Option<Arc<Returned>>,
    finish: Finish<T>,
}

impl<T: Send> Progress for Running<T> {
    fn poll(&mut self, context: &mut Context<'_>, is_cancelled: bool) -> Poll<()> {
        if let Some(pending) = &mut self.pending {
            match Pin::new(pending).poll(context) {
                Poll::Ready(answer) => self.answer = Some(answer.map_err(Fault::from)),
                Poll::Pending if is_cancelled => self.answer = Some(Err(Fault::Cancelled)),
                Poll::Pending => return Poll::Pending,
            }
            self.pending = None;
        }
        self.returned.as_ref().map_or(Poll::Ready(()), |returned| returned.poll(context))
    }

    fn abandon(&mut self, fault: Fault) {
        self.pending = None;
        self.answer = Some(Err(fault));
    }

    fn finish(self: Box<Self>) -> Result<i64, Fault> {
        let Running { answer, finish, .. } = *self;
        finish(answer.unwrap_or(Err(Fault::Cancelled))?)
    }
}

struct Started {
    handle: i64,
    running: Box<dyn Progress>,
    callback: Callback,
    counted: Counted,
}

#[derive(Default)]
struct Flags {
    is_cancelled: AtomicBool,
    is_queued: AtomicBool,
}

/// A call that was started; also the waker of its future.
pub(crate) struct StartedCall {
    session: Arc<SessionState>,
    /// `None` once it has ended.
    state: Mutex<Option<Started>>,
    flags: Flags,
}

impl StartedCall {
    fn lock(&self) -> MutexGuard<'_, Option<Started>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(call: Arc<Self>) -> Result<i64, Fault> {
        let handle = CALLS.insert(Arc::clone(&call))?;
        if let Some(started) = &mut *call.lock() {
            started.handle = handle;
        }
        // Its request leaves at once. Its end is for the dispatcher, if it has come already.
        if call.poll().is_ready() {
            call.wake();
        }
        Ok(handle)
    }

    /// Asks it to end.
    pub(crate) fn cancel(self: &Arc<Self>) {
        self.flags.is_cancelled.store(true, Ordering::Release);
        Arc::clone(self).wake();
    }

    fn poll(self: &Arc<Self>) -> Poll<()> {
        let mut state = self.lock();
        let Some(started) = &mut *state else { return Poll::Pending };
        let waker = Waker::from(Arc::clone(self));
        let mut context = Context::from_waker(&waker);
        let is_cancelled = self.flags.is_cancelled.load(Ordering::Acquire);
        let polled = guard::catch(|| Ok(started.running.poll(&mut context, is_cancelled)));
        polled.unwrap_or_else(|fault| {
            started.running.abandon(fault);
            started.running.poll(&mut context, true)
        })
    }
}

impl Wake for StartedCall {
    fn wake(self: Arc<Self>) {
        if !self.flags.is_queued.swap(true, Ordering::AcqRel) {
            let session = Arc::clone(&self.session);
            session.dispatcher.push(self);
        }
    }
}

impl Task for StartedCall {
    fn run(self: Arc<Self>) {
        // Whoever wakes it from here on wants it to be looked at again.
        self.flags.is_queued.store(false, Ordering::Release);
        if self.poll().is_pending() {
            return;
        }
        let Some(Started { handle, running, callback, counted }) = self.lock().take() else {
            return;
        };
        let outcome = guard::catch(|| running.finish());
        // It may be gone already only if it was never there.
        let _ = CALLS.remove(handle);
        callback.call(&outcome);
        drop(counted);
    }
}
