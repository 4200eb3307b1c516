//! Segments that wait for their next attempt, by segment and by the time from which it is allowed.
//!
//! Segments taken out by number stay in the order until their time, and are skipped there.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::table::{Attempt, SegmentMap};

#[derive(Debug, Default)]
pub(super) struct Retries {
    /// When each is due, and its attempts so far.
    segments: SegmentMap<(u64, Attempt)>,
    order: BinaryHeap<Reverse<(u64, u64)>>,
}

impl Retries {
    pub(super) fn len(&self) -> usize {
        self.segments.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    pub(super) fn contains(&self, segment: u64) -> bool {
        self.segments.contains_key(&segment)
    }

    pub(super) fn push(&mut self, segment: u64, attempt: Attempt, due_ns: u64) {
        self.segments.insert(segment, (due_ns, attempt));
        self.order.push(Reverse((due_ns, segment)));
    }

    pub(super) fn remove(&mut self, segment: u64) -> Option<Attempt> {
        self.segments.remove(&segment).map(|(_, attempt)| attempt)
    }

    /// Forgets segments beyond `last`.
    pub(super) fn cut_after(&mut self, last: u64) {
        self.segments.retain(|&segment, _| segment <= last);
    }

    /// The earliest time at which one may be due; early if that one was taken out.
    pub(super) fn next_due_ns(&self) -> Option<u64> {
        self.order.peek().map(|Reverse((due_ns, _))| *due_ns)
    }

    /// Takes out the segment that is due first, if its time has come.
    pub(super) fn pop_due(&mut self, now_ns: u64) -> Option<(u64, Attempt)> {
        while let Some(&Reverse((due_ns, segment))) = self.order.peek() {
            match self.segments.get(&segment) {
                Some((waits_until, _)) if *waits_until == due_ns => {
                    if due_ns > now_ns {
                        return None;
                    }
                    self.order.pop();
                    return self.remove(segment).map(|attempt| (segment, attempt));
                }
                _ => self.order.pop(),
            };
        }
        None
    }
}
