//! Pending answers of calls on another thread.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::config::Stop;
use crate::download::progress::{NoProgress, Progress};
use crate::engine::completion::{Completion, Reply};
use crate::error::ClientError;
use crate::session::command::{Call, Command, EngineHandle, SentCommand};

/// An answer that is not here yet: a future, or something to [`wait`](Pending::wait) for. The call
/// begins when it is first polled or waited for, and is taken back when this is dropped.
#[must_use = "the call begins when it is awaited"]
pub struct Pending<T> {
    call: Box<dyn PendingCall<T> + Send>,
}

/// Hides the type that the engine answers with.
trait PendingCall<T> {
    fn watch(&mut self, events: Box<dyn Progress + Send>);
    fn stop_with(&mut self, stop: Stop);
    fn wait(&mut self) -> Result<T, ClientError>;
    fn poll(&mut self, context: &Context<'_>) -> Poll<Result<T, ClientError>>;
}

/// A command that was not sent yet, in its parts.
struct Unsent<F> {
    make: F,
    stop: Stop,
    events: Box<dyn Progress + Send>,
}

impl<F> Unsent<F> {
    fn into_sent<A: Send + 'static>(self, reply: Reply<A>) -> SentCommand
    where
        F: FnOnce(Call<'static, A>) -> Command<'static> + Send + 'static,
    {
        let Unsent { make, stop, events } = self;
        Box::new(move || make(Call { reply, stop, events }))
    }
}

struct Typed<A, F, M> {
    completion: Arc<Completion<A>>,
    unsent: Option<Unsent<F>>,
    map: Option<M>,
    engine: Arc<EngineHandle>,
    is_sent: bool,
}

impl<T> Pending<T> {
    pub(crate) fn new<A, F, M>(engine: Arc<EngineHandle>, make: F, map: M) -> Self
    where
        A: Send + 'static,
        F: FnOnce(Call<'static, A>) -> Command<'static> + Send + 'static,
        M: FnOnce(A) -> T + Send + 'static,
    {
        let unsent = Unsent { make, stop: Stop::default(), events: Box::new(NoProgress) };
        let (completion, unsent, map) = (Completion::new(), Some(unsent), Some(map));
        Pending { call: Box::new(Typed { completion, unsent, map, engine, is_sent: false }) }
    }

    /// Hears what happens, on the thread of the session: it must not block. Only a call that has
    /// not begun can get a watcher.
    pub fn watched_by(mut self, events: impl Progress + Send + 'static) -> Self {
        self.call.watch(Box::new(events));
        self
    }

    /// Ends with [`ClientError::Interrupted`] when this is requested, within 200 ms; a download
    /// also waits for what the local disk has of it. Reads of ranges, which are short, end only
    /// when this is dropped. Only a call that has not begun can get one.
    pub fn stopped_by(mut self, stop: &Stop) -> Self {
        self.call.stop_with(stop.clone());
        self
    }

    /// Blocks until the answer is there.
    ///
    /// # Errors
    /// Those of the call.
    pub fn wait(mut self) -> Result<T, ClientError> {
        self.call.wait()
    }
}

impl<T> Future for Pending<T> {
    type Output = Result<T, ClientError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.call.poll(context)
    }
}

impl<T> std::fmt::Debug for Pending<T> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Pending").finish_non_exhaustive()
    }
}

impl<A, F, M, T> PendingCall<T> for Typed<A, F, M>
where
    A: Send + 'static,
    F: FnOnce(Call<'static, A>) -> Command<'static> + Send + 'static,
    M: FnOnce(A) -> T,
{
    fn watch(&mut self, events: Box<dyn Progress + Send>) {
        if let Some(unsent) = &mut self.unsent {
            unsent.events = events;
        }
    }

    fn stop_with(&mut self, stop: Stop) {
        if let Some(unsent) = &mut self.unsent {
            unsent.stop = stop;
        }
    }

    fn wait(&mut self) -> Result<T, ClientError> {
        if let Some(unsent) = self.unsent.take() {
            let completion = Arc::clone(&self.completion);
            self.engine.queue().send(completion, |reply| unsent.into_sent(reply))?;
            self.is_sent = true;
        }
        let answer = self.completion.wait();
        self.finish(answer)
    }

    fn poll(&mut self, context: &Context<'_>) -> Poll<Result<T, ClientError>> {
        let queue = self.engine.queue();
        if !self.is_sent {
            let completion = Arc::clone(&self.completion);
            match queue.poll_send(context, completion, (&mut self.unsent, Unsent::into_sent)) {
                None => return Poll::Pending,
                Some(sent) => sent?,
            }
            self.is_sent = true;
        }
        match self.completion.poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(answer) => Poll::Ready(self.finish(answer)),
        }
    }
}

impl<A, F, M> Typed<A, F, M> {
    fn finish<T>(&mut self, answer: Option<Result<A, ClientError>>) -> Result<T, ClientError>
    where
        M: FnOnce(A) -> T,
    {
        self.is_sent = false;
        let lost = || self.engine.queue().lost();
        let map = self.map.take().ok_or_else(lost)?;
        answer.unwrap_or_else(|| Err(lost())).map(map)
    }
}

impl<A, F, M> Drop for Typed<A, F, M> {
    fn drop(&mut self) {
        if self.is_sent && self.completion.cancel() {
            self.engine.queue().note_cancelled();
        }
    }
}
