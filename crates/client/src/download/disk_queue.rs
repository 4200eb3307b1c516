//! Disk queue: all that a download does to one target on the local disk, in order.
//!
//! A disk may take its time, and an engine serves many calls. So no job touches the disk by itself:
//! it submits a step here and polls its outcome. Where a [`DiskRunner`] is given, steps are carried
//! out on its threads. Without one they are carried out when they are submitted: that is for an
//! engine that serves one call, which would wait for them anyway, and needs no copy of the bytes.
//!
//! Invariants: steps of one queue are carried out one after the other in the order of their coming,
//! also when whoever submitted them is gone; a call's [`Lease`] lives until the last of its steps
//! is over, so its caller can be answered when nothing touches its files any more.

use std::any::Any;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};

use crate::download::part_file::disk_error;
use crate::error::ClientError;

/// A step, ready to be carried out on any thread.
pub(crate) type Work = Box<dyn FnOnce() + Send>;

/// Carries out steps on threads other than the engine's.
pub(crate) trait DiskRunner {
    /// The queue of a target: the same one for as long as anything is in it.
    fn queue(&self, target: &Path) -> Arc<dyn WorkQueue>;
}

/// Queue of steps: one after the other, side by side with those of other queues.
pub(crate) trait WorkQueue: Send + Sync {
    fn push(self: Arc<Self>, work: Work);
    /// Makes the engine look at its jobs.
    fn wake(&self);
}

/// Dropped when no step of a call is left.
pub(crate) type Lease = Arc<dyn Any + Send + Sync>;

/// Access of a call to the local disk.
#[derive(Clone)]
pub(crate) struct DiskAccess {
    runner: Option<Rc<dyn DiskRunner>>,
    lease: Lease,
}

impl DiskAccess {
    /// Without a runner, steps are carried out where they are submitted.
    pub(crate) fn new(runner: Option<Rc<dyn DiskRunner>>, lease: Lease) -> Self {
        DiskAccess { runner, lease }
    }

    pub(crate) fn queue(&self, target: &Path) -> DiskQueue {
        let queue = self.runner.as_ref().map(|runner| runner.queue(target));
        DiskQueue { queue, lease: Arc::clone(&self.lease), shown: target.to_owned() }
    }
}

/// Queue of the steps at one target.
#[derive(Clone)]
pub(crate) struct DiskQueue {
    /// `None` if steps are carried out at once.
    queue: Option<Arc<dyn WorkQueue>>,
    lease: Lease,
    shown: PathBuf,
}

impl DiskQueue {
    /// True if a step is over when [`submit`](DiskQueue::submit) or [`post`](DiskQueue::post)
    /// returns.
    pub(crate) fn is_immediate(&self) -> bool {
        self.queue.is_none()
    }

    /// Carries out a step behind those submitted before. The engine is woken when it is over.
    pub(crate) fn submit<T: Send + 'static>(
        &self,
        act: impl FnOnce() -> Result<T, ClientError> + Send + 'static,
    ) -> DiskTask<T> {
        let Some(queue) = &self.queue else {
            return DiskTask { outcome: Some(act()), receiver: None, shown: PathBuf::new() };
        };
        let (sender, receiver) = sync_channel(1);
        let (waking, lease) = (Arc::clone(queue), Arc::clone(&self.lease));
        Arc::clone(queue).push(Box::new(move || {
            // The job may be gone.
            let _ = sender.send(act());
            drop(lease);
            waking.wake();
        }));
        DiskTask { outcome: None, receiver: Some(receiver), shown: self.shown.clone() }
    }

    /// The same for a step whose outcome nobody waits for. It is given what wakes the engine.
    pub(crate) fn post(&self, act: impl FnOnce(Wake<'_>) + Send + 'static) {
        let Some(queue) = &self.queue else { return act(Wake(None)) };
        let (waking, lease) = (Arc::clone(queue), Arc::clone(&self.lease));
        Arc::clone(queue).push(Box::new(move || {
            act(Wake(Some(&*waking)));
            drop(lease);
        }));
    }
}

/// Wakes the engine, if that is on another thread.
pub(crate) struct Wake<'a>(Option<&'a dyn WorkQueue>);

impl Wake<'_> {
    pub(crate) fn wake(&self) {
        if let Some(queue) = self.0 {
            queue.wake();
        }
    }
}

/// A step that was submitted.
pub(crate) struct DiskTask<T> {
    outcome: Option<Result<T, ClientError>>,
    /// `None` once the outcome is here.
    receiver: Option<Receiver<Result<T, ClientError>>>,
    shown: PathBuf,
}

impl<T> DiskTask<T> {
    /// True if the step is over.
    pub(crate) fn is_ready(&mut self) -> bool {
        if let Some(receiver) = &self.receiver {
            match receiver.try_recv() {
                Err(TryRecvError::Empty) => return false,
                Ok(outcome) => self.outcome = Some(outcome),
                Err(TryRecvError::Disconnected) => {
                    let error = io::Error::other("a step at the disk broke off");
                    self.outcome = Some(Err(disk_error(&self.shown, error)));
                }
            }
            self.receiver = None;
        }
        true
    }

    /// True if [`is_ready`](DiskTask::is_ready) has said so.
    pub(crate) fn is_over(&self) -> bool {
        self.receiver.is_none()
    }

    /// The outcome once the step is over.
    pub(crate) fn take(&mut self) -> Option<Result<T, ClientError>> {
        if self.is_ready() { self.outcome.take() } else { None }
    }

    /// The outcome; that of a step that is not over is an interruption.
    pub(crate) fn into_outcome(mut self) -> Result<T, ClientError> {
        self.take().unwrap_or(Err(ClientError::Interrupted))
    }
}
