//! Readahead accounting of one file: units that were read ahead and that nobody has read yet.
//!
//! The units themselves are in a cache that other files share, and leave it without a word. They
//! leave in the order in which they came, so looking after the oldest is enough.

use std::collections::{BTreeMap, HashMap};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct UnreadUnits {
    /// Order of coming and bytes, by unit.
    units: HashMap<u64, (u64, usize)>,
    by_turn: BTreeMap<u64, u64>,
    bytes: usize,
    turn: u64,
}

impl UnreadUnits {
    /// A unit was read ahead.
    pub(crate) fn insert(&mut self, unit: u64, bytes: usize) {
        self.remove(unit);
        self.turn += 1;
        self.units.insert(unit, (self.turn, bytes));
        self.by_turn.insert(self.turn, unit);
        self.bytes += bytes;
    }

    /// Its bytes, if it was unread; it no longer is.
    pub(crate) fn remove(&mut self, unit: u64) -> Option<usize> {
        let (turn, bytes) = self.units.remove(&unit)?;
        self.by_turn.remove(&turn);
        self.bytes -= bytes;
        Some(bytes)
    }

    /// Forgets the oldest ones that are not kept any more; returns their bytes.
    pub(crate) fn remove_dropped(&mut self, is_kept: impl Fn(u64) -> bool) -> usize {
        let before = self.bytes;
        while let Some((_, &unit)) = self.by_turn.first_key_value()
            && !is_kept(unit)
        {
            self.remove(unit);
        }
        before - self.bytes
    }

    /// Bytes read ahead and not read yet.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_read_of_what_was_read_ahead_is_reported_once() {
        let mut unread = UnreadUnits::default();
        unread.insert(7, 5);
        unread.insert(7, 5);
        assert_eq!(unread.bytes(), 5);
        assert_eq!((unread.remove(7), unread.remove(7)), (Some(5), None));
        assert_eq!((unread.bytes(), unread.by_turn.len()), (0, 0));
    }

    #[test]
    fn what_was_dropped_unread_is_counted_once() {
        let mut unread = UnreadUnits::default();
        for unit in [9, 3, 5, 1] {
            unread.insert(unit, 100);
        }
        unread.remove(3);
        assert_eq!(unread.remove_dropped(|unit| unit == 1), 200);
        assert_eq!(unread.remove_dropped(|unit| unit == 1), 0);
        assert_eq!(unread.bytes(), 100);
    }
}
