//! The thread of a session: an executor that takes its commands from a queue.
//!
//! It sleeps in the poller, also when there is nothing to do, so that it notices a lost connection
//! and a command wakes it at once. It never waits for a caller, and ends with the last handle.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::engine::job::JobSource;
use crate::engine::shared::Shared;
use crate::error::ClientError;
use crate::session::command::{CommandQueue, SentCommand};
use crate::session::driver::Driver;
use crate::session::executor::Executor;
use crate::session::executor_job::ExecutorJob;

/// Longest sleep while nobody wants anything; somebody who does wakes the thread.
const IDLE_SLEEP: Duration = Duration::from_secs(60);

/// An executor behind a queue.
pub(crate) struct QueuedExecutor {
    executor: Executor<'static>,
    queue: Arc<CommandQueue>,
    taken: VecDeque<SentCommand>,
    cancelled_count: u64,
}

impl QueuedExecutor {
    pub(crate) fn new(executor: Executor<'static>, queue: Arc<CommandQueue>) -> Self {
        QueuedExecutor { executor, queue, taken: VecDeque::new(), cancelled_count: 0 }
    }

    /// Runs until the last handle is gone.
    pub(crate) fn run(mut self, mut driver: Driver) {
        while !self.queue.is_abandoned() {
            if let Err(error) = driver.run(&mut self, usize::MAX) {
                tracing::debug!(%error, "everything in flight is given up");
                // What is asked from now on is not, unless all shall stop: whoever was told may ask
                // for what is here.
                if matches!(error, ClientError::Interrupted) {
                    self.take_commands();
                }
                self.executor.give_up();
            }
            if self.queue.has_commands() || self.queue.is_abandoned() {
                continue;
            }
            if let Err(error) = driver.idle(IDLE_SLEEP) {
                tracing::debug!(%error, "the connection ended while nothing was in flight");
            }
        }
    }

    fn take_commands(&mut self) {
        let cancelled_count = self.queue.take(&mut self.taken);
        if cancelled_count != self.cancelled_count {
            self.cancelled_count = cancelled_count;
            self.executor.note_cancelled();
        }
        for command in self.taken.drain(..) {
            self.executor.push(command());
        }
    }
}

impl Drop for QueuedExecutor {
    fn drop(&mut self) {
        self.queue.end();
    }
}

impl JobSource for QueuedExecutor {
    type Job = ExecutorJob<'static>;

    fn next_job(&mut self, shared: &mut Shared, now_ns: u64) -> Option<ExecutorJob<'static>> {
        self.take_commands();
        self.executor.next_job(shared, now_ns)
    }

    fn take_done(&mut self, job: ExecutorJob<'static>) {
        self.executor.take_done(job);
    }

    fn handle_failure(&mut self, error: &ClientError) {
        self.queue.set_lost(error);
    }
}
