//! What administrators do to the store: bound it, open and close it, remove packets.

use byname_packet::NameRef;

use super::{ContentStore, Entry, NONE};
use crate::hash::NameHasher;

impl ContentStore {
    /// Whether packets are kept.
    pub(crate) fn admits(&self) -> bool {
        self.admits
    }

    /// Whether packets kept are found.
    pub(crate) fn serves(&self) -> bool {
        self.serves
    }

    pub(crate) fn set_admits(&mut self, admits: bool) {
        self.admits = admits;
    }

    pub(crate) fn set_serves(&mut self, serves: bool) {
        self.serves = serves;
    }

    /// Bounds the number of packets; what is over goes at once.
    pub(crate) fn set_entries_max(&mut self, max: usize) {
        self.entries_max = max.min(NONE as usize - 1);
        while self.len() > self.entries_max {
            self.remove(self.oldest);
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

    /// Whether a packet at or below `prefix` is kept.
    pub(crate) fn has_below(&self, prefix: NameRef<'_>, hasher: &NameHasher) -> bool {
        self.any_below(prefix, hasher).is_some()
    }

    fn any_below(&self, prefix: NameRef<'_>, hasher: &NameHasher) -> Option<u32> {
        let name_of = |index| self.entry(index).map_or(&[][..], Entry::name_value);
        let below = self.order.last_below(prefix, name_of, |_| true);
        below.or_else(|| self.find(hasher.hash(prefix.value()), prefix.value()))
    }
}
