//! Numbers of changes of directories, as the watching thread and whoever asks share them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::directories::DirectoryKey;
use super::kernel::Inotify;

/// State shared by the watching thread and whoever asks.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) inotify: Inotify,
    changes: Mutex<HashMap<DirectoryKey, u64>>,
    /// The greatest number given so far.
    given: AtomicU64,
    /// Events have been taken from the kernel that do not count yet.
    pub(super) is_behind: AtomicBool,
    /// Somebody asked about a directory that has no number.
    pub(super) was_missed: AtomicBool,
    pub(super) is_over: AtomicBool,
}

impl Shared {
    pub(super) fn new(inotify: Inotify) -> Self {
        Self {
            inotify,
            changes: Mutex::default(),
            given: AtomicU64::new(0),
            is_behind: AtomicBool::new(false),
            was_missed: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
        }
    }

    pub(super) fn numbers(&self) -> MutexGuard<'_, HashMap<DirectoryKey, u64>> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number that nobody has.
    pub(super) fn next(&self) -> u64 {
        self.given.fetch_add(1, Ordering::Relaxed) + 1
    }
}
