//! Answer of a call that works at the local disk: given when nothing of it touches a file any more,
//! so that whoever has it can fetch to the same place again at once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::download::disk_queue::Lease;
use crate::engine::completion::Reply;
use crate::error::ClientError;

struct AnswerState<T> {
    reply: Option<Reply<T>>,
    answer: Option<Result<T, ClientError>>,
}

/// Shared by the executor and the steps at the disk. The last of them lets the answer go; without
/// one it is lost.
pub(crate) struct DiskAnswer<T>(Mutex<AnswerState<T>>);

impl<T: Send + 'static> DiskAnswer<T> {
    pub(crate) fn new(reply: Reply<T>) -> Arc<Self> {
        Arc::new(DiskAnswer(Mutex::new(AnswerState { reply: Some(reply), answer: None })))
    }

    fn lock(&self) -> MutexGuard<'_, AnswerState<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Held by steps at the disk.
    pub(crate) fn lease(self: &Arc<Self>) -> Lease {
        Arc::clone(self) as Lease
    }

    /// The caller is gone.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.lock().reply.as_ref().is_some_and(Reply::is_cancelled)
    }

    /// The answer to give.
    pub(crate) fn set(&self, answer: Result<T, ClientError>) {
        self.lock().answer = Some(answer);
    }
}

impl<T> Drop for DiskAnswer<T> {
    fn drop(&mut self) {
        let state = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let (Some(reply), Some(answer)) = (state.reply.take(), state.answer.take()) {
            reply.send(answer);
        }
    }
}
