//! The way in: a bounded queue of commands, and who is still there to send some.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task;

use byname_packet::Name;
use byname_transfer::discovery::Discovered;

use super::slot::{Reply, Slot};
use super::{FileId, Opened};
use crate::config::Stop;
use crate::error::ClientError;
use crate::file_job::DownloadOptions;
use crate::list_job::Wanted;
use crate::listing::Listing;
use crate::progress::FileReport;
use crate::ranges::{ReadDone, ReadRequest};

/// Calls that may be under way at once; the next one waits for one of them to end.
pub const CALLS_MAX: usize = 1024;

/// What a handle asks for.
#[derive(Debug)]
pub(crate) enum Command {
    Stat { name: Name, reply: Reply<Discovered> },
    List { name: Name, wanted: Wanted, reply: Reply<Listing> },
    Download { name: Name, target: PathBuf, options: DownloadOptions, reply: Reply<FileReport> },
    Open { name: Name, reply: Reply<Opened> },
    Read { file: FileId, request: ReadRequest, reply: Reply<ReadDone> },
    Close { file: FileId },
}

#[derive(Debug, Default)]
struct Queue {
    commands: VecDeque<Command>,
    under_way: usize,
    waiting: Vec<task::Waker>,
    /// Counts calls whose callers went away.
    cancelled_count: u64,
    /// No handle is left.
    is_abandoned: bool,
    /// No engine is left.
    is_over: bool,
}

/// Shared by the handles and the engine.
#[derive(Debug)]
pub(crate) struct Port {
    queue: Mutex<Queue>,
    has_room: Condvar,
    waker: byname_io::Waker,
    endpoint: String,
    stop: Stop,
}

impl Port {
    pub(crate) fn new(waker: byname_io::Waker, endpoint: String, stop: Stop) -> Self {
        let (queue, has_room) = (Mutex::default(), Condvar::new());
        Port { queue, has_room, waker, endpoint, stop }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a command that is made with a place for its answer, once there is room.
    pub(crate) fn send<T>(
        self: &Arc<Self>,
        slot: Arc<Slot<T>>,
        make: impl FnOnce(Reply<T>) -> Command,
    ) -> Result<(), ClientError> {
        let mut queue = self.lock();
        while queue.under_way >= CALLS_MAX && !queue.is_over {
            queue = self.has_room.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        self.push(queue, slot, make)
    }

    /// The same without blocking. `None` if there is no room: the task is woken when there is.
    pub(crate) fn poll_send<T, F: FnOnce(Reply<T>) -> Command>(
        self: &Arc<Self>,
        context: &task::Context<'_>,
        slot: Arc<Slot<T>>,
        make: &mut Option<F>,
    ) -> Option<Result<(), ClientError>> {
        let mut queue = self.lock();
        if queue.under_way >= CALLS_MAX && !queue.is_over {
            if !queue.waiting.iter().any(|waker| waker.will_wake(context.waker())) {
                queue.waiting.push(context.waker().clone());
            }
            return None;
        }
        let make = make.take()?;
        Some(self.push(queue, slot, make))
    }

    fn push<T>(
        self: &Arc<Self>,
        mut queue: MutexGuard<'_, Queue>,
        slot: Arc<Slot<T>>,
        make: impl FnOnce(Reply<T>) -> Command,
    ) -> Result<(), ClientError> {
        if queue.is_over {
            drop(queue);
            return Err(self.lost());
        }
        queue.under_way += 1;
        let reply = Reply::new(slot, Arc::clone(self));
        queue.commands.push_back(make(reply));
        drop(queue);
        self.waker.wake();
        Ok(())
    }

    /// A file needs no place: there are no more closes than opens.
    pub(crate) fn close(&self, file: FileId) {
        let mut queue = self.lock();
        if !queue.is_over {
            queue.commands.push_back(Command::Close { file });
        }
        drop(queue);
        self.waker.wake();
    }

    /// A caller went away before its answer came.
    pub(crate) fn note_cancelled(&self) {
        self.lock().cancelled_count += 1;
        self.waker.wake();
    }

    /// No handle is left.
    pub(crate) fn abandon(&self) {
        self.lock().is_abandoned = true;
        self.waker.wake();
    }

    /// A call has ended; its place is free.
    pub(super) fn release(&self) {
        let mut queue = self.lock();
        queue.under_way = queue.under_way.saturating_sub(1);
        let waiting = std::mem::take(&mut queue.waiting);
        drop(queue);
        self.has_room.notify_one();
        waiting.into_iter().for_each(task::Waker::wake);
    }

    /// Commands to work on, oldest first, and the count of cancelled calls.
    pub(super) fn take(&self, into: &mut VecDeque<Command>) -> u64 {
        let mut queue = self.lock();
        into.append(&mut queue.commands);
        queue.cancelled_count
    }

    /// Whether nobody will send anything any more.
    pub(super) fn is_abandoned(&self) -> bool {
        let queue = self.lock();
        queue.is_abandoned && queue.commands.is_empty()
    }

    pub(super) fn has_commands(&self) -> bool {
        !self.lock().commands.is_empty()
    }

    /// The engine has ended: whoever waits is told.
    pub(super) fn end(&self) {
        let mut queue = self.lock();
        queue.is_over = true;
        let commands = std::mem::take(&mut queue.commands);
        let waiting = std::mem::take(&mut queue.waiting);
        drop(queue);
        // Dropping them answers them, which takes the lock.
        drop(commands);
        self.has_room.notify_all();
        waiting.into_iter().for_each(task::Waker::wake);
    }

    /// The error of a call that got no answer.
    pub(crate) fn lost(&self) -> ClientError {
        if self.stop.is_requested() {
            return ClientError::Interrupted;
        }
        ClientError::Disconnected { endpoint: self.endpoint.clone(), source: None }
    }
}
