//! Snapshots of directories that may serve again, each with the time at which it was current.
//!
//! Bounded by octets: what was used longest ago goes. Open directories keep their snapshot on their
//! own.

use std::collections::HashMap;
use std::sync::Arc;

use crate::flight::Flight;
use crate::snapshot::Snapshot;

/// Octets of all snapshots kept for later.
pub(crate) const SNAPSHOT_BYTES_MAX: usize = 128 << 20;

/// Memory of one directory.
#[derive(Debug, Default)]
struct Directory {
    snapshot: Option<Arc<Snapshot>>,
    /// Time at which the snapshot was known to be current.
    seen_ns: u64,
    flight: Option<Arc<Flight>>,
    used: u64,
}

/// What to do with a question about a directory.
#[derive(Debug)]
pub(crate) enum Step {
    /// This is fresh; it was current at this time.
    Use(Arc<Snapshot>, u64),
    /// Somebody asks already.
    Join(Arc<Flight>),
    /// Ask, and say what came with [`Snapshots::settle`].
    Ask(Arc<Flight>, Option<Arc<Snapshot>>),
}

/// The snapshots by the inode of their directory.
#[derive(Debug)]
pub(crate) struct Snapshots {
    directories: HashMap<u64, Directory>,
    bytes: usize,
    bytes_max: usize,
    clock: u64,
}

impl Snapshots {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Snapshots { directories: HashMap::new(), bytes: 0, bytes_max, clock: 0 }
    }

    /// A snapshot that was current at `since_ns` or later, or how to get one.
    pub(crate) fn want(&mut self, directory: u64, since_ns: u64, now_ns: u64) -> Step {
        self.clock += 1;
        let entry = self.directories.entry(directory).or_default();
        entry.used = self.clock;
        if let Some(snapshot) = &entry.snapshot
            && entry.seen_ns >= since_ns
        {
            return Step::Use(Arc::clone(snapshot), entry.seen_ns);
        }
        if let Some(flight) = &entry.flight
            && flight.began_ns() >= since_ns
        {
            return Step::Join(Arc::clone(flight));
        }
        let flight = Arc::new(Flight::new(now_ns));
        entry.flight = Some(Arc::clone(&flight));
        Step::Ask(flight, entry.snapshot.clone())
    }

    /// A snapshot that was current at `since_ns` or later, if there is one.
    pub(crate) fn peek(&self, directory: u64, since_ns: u64) -> Option<(Arc<Snapshot>, u64)> {
        let entry = self.directories.get(&directory)?;
        let snapshot = entry.snapshot.as_ref().filter(|_| entry.seen_ns >= since_ns)?;
        Some((Arc::clone(snapshot), entry.seen_ns))
    }

    /// Something newer was seen than the snapshot of this directory has. It does not serve again,
    /// even if its publisher still calls it current: a manifest may be a second behind, and only
    /// one that is listed anew is judged by what was seen.
    pub(crate) fn expire(&mut self, directory: u64, now_ns: u64) {
        let Some(entry) = self.directories.get_mut(&directory) else { return };
        // What is in flight began before.
        entry.flight = None;
        entry.seen_ns = now_ns;
        if let Some(old) = entry.snapshot.take() {
            self.bytes -= old.bytes();
        }
    }

    /// The end of asking: the snapshot that is current, if there is one.
    pub(crate) fn settle(
        &mut self,
        directory: u64,
        flight: &Arc<Flight>,
        snapshot: Option<Arc<Snapshot>>,
        seen_ns: u64,
    ) {
        let Some(entry) = self.directories.get_mut(&directory) else { return };
        if entry.flight.as_ref().is_some_and(|own| Arc::ptr_eq(own, flight)) {
            entry.flight = None;
        }
        let Some(snapshot) = snapshot.filter(|_| entry.seen_ns <= seen_ns) else { return };
        self.bytes += snapshot.bytes();
        entry.seen_ns = seen_ns;
        if let Some(old) = entry.snapshot.replace(snapshot) {
            self.bytes -= old.bytes();
        }
        self.evict(directory);
    }

    /// Nothing of this directory is kept.
    pub(crate) fn forget(&mut self, directory: u64) {
        if self.directories.get(&directory).is_some_and(|entry| entry.flight.is_some()) {
            return;
        }
        if let Some(Directory { snapshot: Some(old), .. }) = self.directories.remove(&directory) {
            self.bytes -= old.bytes();
        }
    }

    fn evict(&mut self, newest: u64) {
        while self.bytes > self.bytes_max {
            let others = self
                .directories
                .iter()
                .filter(|(number, entry)| **number != newest && entry.snapshot.is_some());
            let Some((number, _)) = others.min_by_key(|(_, entry)| entry.used) else { return };
            let number = *number;
            if let Some(entry) = self.directories.get_mut(&number)
                && let Some(old) = entry.snapshot.take()
            {
                self.bytes -= old.bytes();
            }
        }
    }
}
