//! Counters of an open file.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes read from a file, and what they took. Only ever grows.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) asked_bytes: AtomicU64,
    pub(crate) received_bytes: AtomicU64,
    pub(crate) requests: AtomicU64,
    pub(crate) cached_bytes: AtomicU64,
    pub(crate) site_cache_bytes: AtomicU64,
    pub(crate) prefetched_bytes: AtomicU64,
    pub(crate) prefetch_useful_bytes: AtomicU64,
    pub(crate) prefetch_wasted_bytes: AtomicU64,
}

pub(crate) fn add(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Ordering::Relaxed);
}
