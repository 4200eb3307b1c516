//! Counters of a cache, in this process.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts since the cache was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Bytes read from the disk for readers.
    pub read_bytes: u64,
    /// Bytes written to the disk.
    pub written_bytes: u64,
    /// Bytes that were not cached because the queue, the disk or the entry's share was full, or
    /// the disk was passed by.
    pub refused_bytes: u64,
    /// Units that were not what their root says, and were fetched anew.
    pub rotten_units: u64,
    /// Reads that the disk did not answer in time or answered with an error.
    pub failed_reads: u64,
    /// Writes that failed.
    pub failed_writes: u64,
    /// Entries removed to make room.
    pub evicted_entries: u64,
    /// Times that the disk was passed by from then on.
    pub bypasses: u64,
}

impl Counters {
    /// Those of two caches together.
    #[must_use]
    pub fn plus(self, other: Counters) -> Counters {
        Counters {
            read_bytes: self.read_bytes + other.read_bytes,
            written_bytes: self.written_bytes + other.written_bytes,
            refused_bytes: self.refused_bytes + other.refused_bytes,
            rotten_units: self.rotten_units + other.rotten_units,
            failed_reads: self.failed_reads + other.failed_reads,
            failed_writes: self.failed_writes + other.failed_writes,
            evicted_entries: self.evicted_entries + other.evicted_entries,
            bypasses: self.bypasses + other.bypasses,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) read_bytes: AtomicU64,
    pub(crate) written_bytes: AtomicU64,
    pub(crate) refused_bytes: AtomicU64,
    pub(crate) rotten_units: AtomicU64,
    pub(crate) failed_reads: AtomicU64,
    pub(crate) failed_writes: AtomicU64,
    pub(crate) evicted_entries: AtomicU64,
    pub(crate) bypasses: AtomicU64,
}

impl Counts {
    pub(crate) fn snapshot(&self) -> Counters {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counters {
            read_bytes: get(&self.read_bytes),
            written_bytes: get(&self.written_bytes),
            refused_bytes: get(&self.refused_bytes),
            rotten_units: get(&self.rotten_units),
            failed_reads: get(&self.failed_reads),
            failed_writes: get(&self.failed_writes),
            evicted_entries: get(&self.evicted_entries),
            bypasses: get(&self.bypasses),
        }
    }
}

pub(crate) fn add(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Ordering::Relaxed);
}
