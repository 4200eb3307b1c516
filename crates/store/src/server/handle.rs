//! The handle of other threads: stop a server, look at its counters.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use byname_io::Waker;
use byname_transfer::server::Counters;

use crate::watch::counters::{WatchCounters, WatchLevels};

/// Stops a server and looks at it from other threads.
#[derive(Clone)]
pub struct ServerHandle {
    pub(super) is_over: Arc<AtomicBool>,
    pub(super) waker: Waker,
    pub(super) counters: Arc<Mutex<Counters>>,
    pub(super) marks: Arc<AtomicU64>,
    pub(super) faces: Arc<AtomicUsize>,
    pub(super) handed_over: Arc<AtomicU64>,
    pub(super) connection_bytes: Arc<AtomicUsize>,
    pub(super) stalled: Arc<AtomicU64>,
    pub(super) unvalidated: Arc<AtomicU64>,
    watched: Option<Arc<WatchCounters>>,
}

impl ServerHandle {
    pub(super) fn new(waker: Waker, watched: Option<Arc<WatchCounters>>) -> Self {
        Self {
            is_over: Arc::default(),
            waker,
            counters: Arc::default(),
            marks: Arc::default(),
            faces: Arc::default(),
            handed_over: Arc::default(),
            connection_bytes: Arc::default(),
            stalled: Arc::default(),
            unvalidated: Arc::default(),
            watched,
        }
    }

    /// Makes [`FileServer::run`] return.
    pub fn stop(&self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.waker.wake();
    }

    /// Has the serving thread look at what there is to do.
    pub fn wake(&self) {
        self.waker.wake();
    }

    /// Counters of the server, as of its last pause.
    pub fn counters(&self) -> Counters {
        *self.counters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is watched of the published directories; `None` if nothing is to be.
    pub fn watched(&self) -> Option<WatchLevels> {
        self.watched.as_ref().map(|counters| counters.levels())
    }

    /// Packets that carried a congestion mark.
    pub fn congestion_marks(&self) -> u64 {
        self.marks.load(Ordering::Relaxed)
    }

    /// Bursts of segments that were read by other threads than the serving one.
    pub fn bursts_handed_over(&self) -> u64 {
        self.handed_over.load(Ordering::Relaxed)
    }

    /// Octets that the buffers of connections take.
    pub fn connection_bytes(&self) -> usize {
        self.connection_bytes.load(Ordering::Relaxed)
    }

    /// Clients that were closed because they did not read while memory was short.
    pub fn stalled_clients(&self) -> u64 {
        self.stalled.load(Ordering::Relaxed)
    }

    /// Datagrams not sent because their peer had not shown that it receives.
    pub fn unvalidated_drops(&self) -> u64 {
        self.unvalidated.load(Ordering::Relaxed)
    }

    /// Peers that are connected.
    pub fn peers(&self) -> usize {
        self.faces.load(Ordering::Relaxed)
    }
}
