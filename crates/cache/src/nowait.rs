//! Reads on the caller's thread of what the kernel has of an entry in memory.
//!
//! A read through the threads of the cache changes threads twice, which takes longer than hashing
//! what was read. The kernel answers at once what it has in memory (`RWF_NOWAIT`), and says so if
//! it has not, so a disk that hangs holds up nobody here either.

use std::fs::File;
use std::io::IoSliceMut;
use std::ops::Range;
use std::sync::Arc;

use byname_io::files;
use byname_security::tree::{NodeId, UNIT_BYTES};

use crate::content::Content;
use crate::counters::add;
use crate::entry::Entry;
use crate::health::Direction;
use crate::known::{MAP_AGE_MAX, lock};
use crate::reader;
use crate::reads::{AheadWork, ReadWork};

impl Content {
    /// Fills `buffer` with the bytes of `units`, one behind the other, if all of them are there and
    /// in the kernel's memory. Nothing about them is verified. False if not; what is in the buffer
    /// then is undefined.
    pub fn read_nowait(&self, units: Range<u64>, buffer: &mut [u8]) -> bool {
        if !self.has_known(&units) {
            return false;
        }
        self.look_ahead(&units);
        let Some(entry) = self.state.open_entry() else { return false };
        let is_read = entry.read_nowait(units.start * UNIT_BYTES as u64, buffer);
        if is_read {
            add(&self.shared.counts.read_bytes, buffer.len() as u64);
        }
        is_read
    }

    /// A node of the tree, if it is there and in the kernel's memory.
    pub fn read_node_nowait(&self, node: NodeId) -> Option<Vec<u8>> {
        self.state.open_entry()?.read_node_nowait(node)
    }

    /// Has the kernel bring into memory what comes next, if these units are read one after the
    /// other.
    fn look_ahead(&self, units: &Range<u64>) {
        let Some(next) = lock(&self.state.streams).note(units) else { return };
        let units = next.start..next.end.min(self.state.shape.unit_count());
        if !units.is_empty() {
            let content = Arc::clone(&self.state);
            reader::push(&self.shared, ReadWork::Ahead(AheadWork { content, units }));
        }
    }

    /// True if the map says that all of these units are there. One that is old is looked at again
    /// behind the reader's back, so that an entry that was removed is let go of.
    fn has_known(&self, units: &Range<u64>) -> bool {
        if !self.shared.health.is_usable(Direction::Read, &self.shared.counts) {
            return false;
        }
        let mut known = lock(&self.state.units);
        let Some(loaded) = known.loaded else { return false };
        let is_due = !known.is_refreshing && loaded.elapsed() >= MAP_AGE_MAX;
        known.is_refreshing |= is_due;
        let has_all = known.present.missing(units.clone()).next().is_none();
        drop(known);
        if is_due {
            self.refresh_later();
        }
        has_all
    }
}

impl Entry {
    fn read_nowait(&self, offset: u64, buffer: &mut [u8]) -> bool {
        self.is_read_nowait(&self.data, buffer, offset)
    }

    fn read_node_nowait(&self, node: NodeId) -> Option<Vec<u8>> {
        let (offset, length) = self.place(node)?;
        let mut bytes = vec![0; length];
        self.is_read_nowait(&self.tree, &mut bytes, offset).then_some(bytes)
    }

    /// Fills a buffer; false if something of it is not in memory, or not there.
    fn is_read_nowait(&self, file: &File, buffer: &mut [u8], offset: u64) -> bool {
        let length = buffer.len();
        let places = &mut [IoSliceMut::new(buffer)];
        let read = files::read_nowait(file, self.is_in_memory, places, offset);
        read.is_ok_and(|count| count == length)
    }
}
