//! Counts of what is watched, for those who look at a server.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of what is watched.
#[derive(Debug, Default)]
pub(crate) struct WatchCounters {
    pub(crate) directories: AtomicU64,
    pub(crate) unwatched: AtomicU64,
    pub(crate) overflows: AtomicU64,
    pub(crate) walks: AtomicU64,
    pub(crate) hashed: AtomicU64,
    pub(crate) dropped: AtomicU64,
}

/// Values of [`WatchCounters`] at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WatchLevels {
    /// Directories that are watched.
    pub directories: u64,
    /// Directories that could not be watched, in the last walk and since.
    pub unwatched: u64,
    /// Times that events were lost.
    pub overflows: u64,
    /// Walks through a whole tree that were completed.
    pub walks: u64,
    /// Files hashed before anybody asked.
    pub hashed: u64,
    /// New files for which there was no room to wait; they are hashed when they are asked for.
    pub dropped: u64,
}

impl WatchCounters {
    /// Values of this moment.
    pub(crate) fn levels(&self) -> WatchLevels {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        WatchLevels {
            directories: read(&self.directories),
            unwatched: read(&self.unwatched),
            overflows: read(&self.overflows),
            walks: read(&self.walks),
            hashed: read(&self.hashed),
            dropped: read(&self.dropped),
        }
    }
}
