//! Units that the owner has: left by an earlier run, or in an older version of the file.

use super::{Body, Reader};
use crate::verify::Output;

/// Segments to ask for because the owner's unit was not verified, above which no further unit is
/// looked at: a file that has nothing in common with its older version fills no memory.
const REPAIRS_MAX: usize = 4096;

impl Reader {
    /// True if [`poll_local`](Reader::poll_local) has something, without any packet coming.
    pub fn wants_local(&self) -> bool {
        !self.local.is_empty() && self.takes_local()
    }

    /// True if there is room for a unit that the owner has.
    pub fn takes_local(&self) -> bool {
        let has_room = matches!(&self.body, Body::Tree(verifier) if verifier.room() > 0);
        has_room && self.failure.is_none() && self.parts[0].fetch.waiting_count() < REPAIRS_MAX
    }

    /// A unit that the owner may have: read it and call [`handle_local`](Reader::handle_local) or
    /// [`handle_candidate`](Reader::handle_candidate). Until then
    /// [`is_finished`](Reader::is_finished) does not count it. An owner that polls several first
    /// gives them back while [`takes_local`](Reader::takes_local) says so.
    pub fn poll_local(&mut self) -> Option<u64> {
        if !self.wants_local() {
            return None;
        }
        let Body::Tree(verifier) = &mut self.body else { return None };
        let unit = self.local.pop_first()?;
        verifier.prepare_unit(unit);
        Some(unit)
    }

    /// The bytes the owner has of a unit; an empty slice if it has none after all. They count
    /// only if they are verified, and are not handed out again.
    pub fn handle_local(&mut self, unit: u64, bytes: &[u8], now_ns: u64) {
        let Body::Tree(verifier) = &mut self.body else { return };
        verifier.handle_local(unit, bytes);
        self.settle_faults(now_ns);
        self.settle_needs(now_ns);
    }

    /// Number of handed out bytes that came from [`handle_candidate`](Reader::handle_candidate).
    pub fn candidate_bytes(&self) -> u64 {
        match &self.body {
            Body::Tree(verifier) => verifier.candidate_bytes(),
            Body::Foreign(_) => 0,
        }
    }

    /// The bytes the owner has in the place of a unit, but somewhere else than it needs them: in
    /// an older version. They are handed out if they are verified, now or when their node comes.
    pub fn handle_candidate(&mut self, unit: u64, bytes: &[u8], now_ns: u64, out: &mut Output<'_>) {
        let Body::Tree(verifier) = &mut self.body else { return };
        verifier.handle_candidate(unit, bytes, out);
        self.settle_faults(now_ns);
        self.settle_needs(now_ns);
    }
}
