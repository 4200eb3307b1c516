//! Administration of the store: bound it, open and close it, remove packets.

use byname_packet::NameRef;

use super::{ContentStore, ENTRIES_MAX, Entry};
use crate::hash::NameHasher;

impl ContentStore {
    /// Returns whether packets are kept.
    pub(crate) fn admits(&self) -> bool {
        self.admits
    }

    /// Returns whether packets kept are found.
    pub(crate) fn serves(&self) -> bool {
        self.serves
    }

    pub(crate) fn set_admits(&mut self, admits: bool) {
        self.admits = admits;
    }

    pub(crate) fn set_serves(&mut self, serves: bool) {
        self.serves = serves;
    }

    /// The number of packets that a store has room for when `max` are configured.
    pub(crate) fn bounded_entries(max: usize) -> usize {
        max.min(ENTRIES_MAX)
    }

    /// Bounds the number of packets; what is over goes at once.
    pub(crate) fn set_entries_max(&mut self, max: usize) {
        self.entries_max = Self::bounded_entries(max);
        while self.len() > self.entries_max
            && let Some(victim) = self.policy.victim()
        {
            self.remove(victim);
        }
    }

    /// Bounds the octets; what is over goes at once.
    pub(crate) fn set_bytes_max(&mut self, max: usize) {
        self.bytes_max = max;
        while self.bytes > self.bytes_max
            && let Some(victim) = self.policy.victim()
        {
            self.remove(victim);
        }
    }

    /// Removes up to `max` packets at and below `prefix`; how many.
    pub(crate) fn erase(&mut self, prefix: NameRef<'_>, hasher: &NameHasher, max: usize) -> usize {
        let mut erased = 0;
        while erased < max
            && let Some(index) = self.any_below(prefix, hasher)
        {
            self.remove(index);
            erased += 1;
        }
        erased
    }

    /// Returns whether a packet at or below `prefix` is kept.
    pub(crate) fn has_below(&mut self, prefix: NameRef<'_>, hasher: &NameHasher) -> bool {
        self.any_below(prefix, hasher).is_some()
    }

    fn any_below(&mut self, prefix: NameRef<'_>, hasher: &NameHasher) -> Option<u32> {
        let entries = &self.entries;
        let name_of = |index| entries.get(index).map_or((&[][..], 0), Entry::split_name);
        self.order.settle(usize::MAX, name_of);
        let below = self.order.last_below(prefix, name_of, |_| true);
        below.or_else(|| self.find(hasher.hash(prefix.value()), prefix.value()))
    }
}
