//! Whoever asks a question that others wait for, and what becomes of them if it is interrupted.

use std::sync::{Arc, Mutex, PoisonError};

use crate::flight::Flight;
use crate::snapshots::Snapshots;

/// The one who asks. Should nobody have landed the flight when it is dropped, those who wait have
/// to ask themselves.
pub(crate) struct Landing<'a> {
    snapshots: &'a Mutex<Snapshots>,
    directory: u64,
    flight: Arc<Flight>,
}

impl<'a> Landing<'a> {
    pub(crate) fn new(
        snapshots: &'a Mutex<Snapshots>,
        directory: u64,
        flight: Arc<Flight>,
    ) -> Self {
        Landing { snapshots, directory, flight }
    }

    pub(crate) fn flight(&self) -> &Arc<Flight> {
        &self.flight
    }
}

impl Drop for Landing<'_> {
    fn drop(&mut self) {
        let mut snapshots = self.snapshots.lock().unwrap_or_else(PoisonError::into_inner);
        // Without an answer it only takes the flight out of the table.
        snapshots.settle(self.directory, &self.flight, None, 0);
        drop(snapshots);
        self.flight.land(None);
    }
}
