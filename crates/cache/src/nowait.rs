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
use crate::pieces::ComingUnits;
use crate::reader;
use crate::reads::{PieceWork, ReadWork};
use crate::streams::{Noted, READ_UNITS_MIN};

impl Content {
    /// Fills `buffer` with the bytes of `units`, one behind the other, if all of them are there and
    /// in the kernel's memory. Nothing about them is verified. False if not; what is in the buffer
    /// then is undefined.
    pub fn read_nowait(&self, units: Range<u64>, buffer: &mut [u8]) -> bool {
        if !self.has_known(&units) {
            return false;
        }
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

    /// Units that are read ahead for whoever reads them one after the other, if these are. To be
    /// asked before [`read_nowait`](Content::read_nowait), whose misses begin it.
    pub fn read_ahead(&self, units: Range<u64>) -> Option<ComingUnits> {
        if !self.shared.health.is_usable(Direction::Read, &self.shared.counts) {
            return None;
        }
        let noted = lock(&self.state.streams).note(&units, |unit| self.end_of_run(unit));
        self.coming(noted, true)
    }

    /// Has units that are there, but not in the kernel's memory, read from the disk.
    pub fn read_soon(&self, units: Range<u64>) -> Option<ComingUnits> {
        if !self.has_known(&units) {
            return None;
        }
        let is_long = units.end - units.start >= READ_UNITS_MIN;
        let noted = lock(&self.state.streams).begin(&units, |unit| self.end_of_run(unit));
        self.coming(noted, is_long)
    }

    /// Has the threads of the cache read pieces; what has them of a read.
    fn coming(&self, noted: Noted, is_direct: bool) -> Option<ComingUnits> {
        let Noted { parts, fresh } = noted;
        for piece in fresh {
            let length = self.state.bytes_of(&piece.units);
            let buffer = self.shared.buffers.take(length, &piece);
            let content = Arc::clone(&self.state);
            // Without memory nothing comes of the piece.
            let work = PieceWork { content, piece, buffer, is_direct };
            reader::push(&self.shared, ReadWork::Piece(work));
        }
        parts.map(|parts| ComingUnits { parts, unit_bytes: UNIT_BYTES })
    }

    /// Where the units end that are there from one on.
    fn end_of_run(&self, unit: u64) -> u64 {
        let (known, unit_count) = (lock(&self.state.units), self.state.shape.unit_count());
        let mut missing = known.present.missing(unit..unit_count);
        missing.next().map_or(unit_count, |gap| gap.start)
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
