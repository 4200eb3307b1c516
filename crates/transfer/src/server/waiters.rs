//! Interests that wait, and which operation's completion belongs to whom.

use super::arrival::{Arrival, Now};
use super::reply::Echo;
use super::state::FileState;

/// Who waits for a completion.
pub(super) enum Owner {
    Task(u64),
    Hash(FileState),
    Tree { object: Vec<u8>, state: FileState },
    Signing { key: Vec<u8>, is_node: bool },
}

/// An Interest that could not be answered at once.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) wire: Vec<u8>,
    pub(super) echo: Echo,
    pub(super) wants: Wants,
    pub(super) arrived_ns: u64,
    pub(super) lifetime_ns: u64,
    /// A signature was taken from the budget for it.
    pub(super) has_paid: bool,
}

/// Object that a waiter waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wants {
    Metadata { listing: bool },
    Segment { listing: bool, version: u64 },
}

impl Waiter {
    /// When a waiter that may be held for `hold_ns` must be answered.
    pub(super) fn hold_until(&self, hold_ns: u64) -> u64 {
        self.arrived_ns.saturating_add(hold_ns.min(self.lifetime_ns / 2))
    }

    /// The same of one that wants a description; a segment can only be waited for.
    pub(super) fn answer_until(&self, hold_ns: u64) -> u64 {
        if self.wants_segment() { self.expires_ns() } else { self.hold_until(hold_ns) }
    }

    pub(super) fn expires_ns(&self) -> u64 {
        self.arrived_ns.saturating_add(self.lifetime_ns)
    }
}

impl Waiter {
    pub(super) fn wants_segment(&self) -> bool {
        matches!(self.wants, Wants::Segment { .. })
    }

    /// True if a segment is wanted that is none of a file's content in this version.
    pub(super) fn wants_segment_besides(&self, current: u64) -> bool {
        match self.wants {
            Wants::Segment { listing, version } => listing || version != current,
            Wants::Metadata { .. } => false,
        }
    }

    pub(super) fn new(arrival: &Arrival<'_>, wants: Wants, now: Now) -> Self {
        const MS: u64 = 1_000_000;
        Self {
            wire: arrival.interest.wire().to_vec(),
            echo: Echo::of(arrival),
            wants,
            arrived_ns: now.now_ns,
            lifetime_ns: arrival.interest.lifetime_ms_or_default().saturating_mul(MS),
            has_paid: false,
        }
    }
}
