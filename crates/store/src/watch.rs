//! Watching a published directory: changes are noticed without being asked for.
//!
//! One thread for each published directory places a watch of the kernel (inotify) on every
//! directory below it and hears what happens there. That serves two ends.
//!
//! *Truth without reading.* Each watched directory has a number ([`Watch::changes`]) that is
//! replaced by a greater one whenever something in it changes. A snapshot that was made under the
//! number that is still there need not be made again. The numbers belong to inodes, not to paths,
//! so no rename can mix them up. While events wait that nobody has looked at, everybody gets a
//! number of their own: nothing is taken for unchanged then.
//!
//! *Work ahead.* What is copied, moved or written in the tree is handed to [`NewFiles`], whose
//! thread hashes it before anybody asks ([`ahead`]).
//!
//! The tree is walked once, when the server starts, and after events were lost (the kernel keeps
//! 16 384 of them by default). A change reads nothing but new directories. What cannot be watched
//! (no watches left, a file system that other machines write to) has no number, and is looked at as
//! by a server that watches nothing.
//!
//! Invariants: a directory gets its number after its watch is in place and before it is read; a
//! number is never given twice; memory is bounded by the number of watches.

pub(crate) mod ahead;
pub(crate) mod counters;
mod directories;
mod kernel;
mod numbers;
mod walk;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{Builder, JoinHandle};

use byname_io::{Poller, Waker, poller};

use crate::backend::posix::Root;
use crate::error::StoreError;
use ahead::NewFiles;
use directories::DirectoryKey;
use kernel::Inotify;
use numbers::Shared;
use walk::{INOTIFY, Watcher};

const WAKE: byname_io::Token = byname_io::Token(0);

/// The watch of one published directory. Dropping ends it.
#[derive(Debug)]
pub(crate) struct Watch {
    shared: Arc<Shared>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Begins to watch. `mount` is handed on to `new_files`.
    pub(crate) fn start(
        root: Arc<Root>,
        mount: usize,
        new_files: Arc<NewFiles>,
    ) -> Result<Self, StoreError> {
        let inotify = Inotify::new().map_err(StoreError::Watch)?;
        let shared = Arc::new(Shared::new(inotify));
        let mut poller = Poller::new()?;
        let waker = poller.waker(WAKE)?;
        poller.add(&shared.inotify, INOTIFY, poller::Interest::READ)?;
        let mut watcher = Watcher::new(shared.clone(), root, (mount, new_files));
        let thread = Builder::new().name("byname-watch".to_owned());
        let thread = thread.spawn(move || watcher.run(&mut poller));
        Ok(Self { shared, waker, thread: Some(thread.map_err(StoreError::Thread)?) })
    }

    /// The number of a directory: unequal to an earlier one if anything in it may have changed
    /// since. `None` if it is not watched.
    pub(crate) fn changes(&self, directory: &DirectoryKey) -> Option<u64> {
        let number = self.shared.numbers().get(directory).copied();
        if number.is_none() && !self.shared.was_missed.swap(true, Ordering::Relaxed) {
            self.waker.wake();
        }
        // In this order: what is taken from the kernel in between is marked before it is taken.
        let waits = self.shared.inotify.has_events();
        let is_behind = waits || self.shared.is_behind.load(Ordering::SeqCst);
        let number = number?;
        // Once more: it may have been replaced before the marks were looked at.
        let is_same = self.shared.numbers().get(directory) == Some(&number);
        Some(if is_behind || !is_same { self.shared.next() } else { number })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        self.waker.wake();
        if let Some(thread) = self.thread.take() {
            // One that panicked has said so.
            let _ = thread.join();
        }
    }
}
