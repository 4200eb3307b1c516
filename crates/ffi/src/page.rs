//! Pages of entries, filled in memory that the caller gives.

use crate::abi;
use crate::fault::Fault;
use crate::memory::{Place, TextRoom};

/// A page that is being filled.
pub(crate) struct PageRoom {
    page: abi::Page,
    room: TextRoom,
}

impl PageRoom {
    /// The page at a place, empty.
    pub(crate) fn new(place: &Place<abi::Page>) -> Result<Self, Fault> {
        let mut page = place.read();
        page.count = 0;
        if (page.entry_size as usize) < size_of::<abi::Entry>() {
            let (given, least) = (page.entry_size, size_of::<abi::Entry>());
            return Err(Fault::StructSize { argument: "page.entries", given, least });
        }
        if page.entries.is_null() && page.entries_max > 0 {
            return Err(Fault::Null { argument: "page.entries" });
        }
        // SAFETY: byname.h demands that `text` has `text_size` octets and is left alone.
        let room = unsafe { TextRoom::new(page.text, page.text_size) };
        Ok(Self { page, room })
    }

    /// Where the page begins, as the caller or the page before says.
    pub(crate) fn next(&self) -> u64 {
        self.page.next
    }

    /// True if it has as many entries as it may.
    pub(crate) fn is_full(&self) -> bool {
        self.page.count >= self.page.entries_max
    }

    /// Adds an entry; false if there is no room for its texts behind others.
    pub(crate) fn push(
        &mut self,
        entry: impl FnOnce(&mut TextRoom) -> abi::Entry,
    ) -> Result<bool, Fault> {
        let used = self.room.used();
        let entry = entry(&mut self.room);
        if self.room.used() < self.room.needed() {
            if self.page.count == 0 {
                let (given, needed) = (self.page.text_size, self.room.needed());
                return Err(Fault::TextRoom { given, needed });
            }
            self.room.rewind(used);
            return Ok(false);
        }
        // SAFETY: byname.h demands that `entries` has room for `entries_max` entries of
        // `entry_size` octets each, and callers look whether it is full.
        unsafe {
            let offset = self.page.entry_size as usize * self.page.count as usize;
            self.page.entries.byte_add(offset).write_unaligned(entry);
        }
        self.page.count += 1;
        Ok(true)
    }

    /// Gives the page to the caller; the next one begins behind its entries.
    pub(crate) fn finish(mut self, first: u64, place: &Place<abi::Page>) {
        self.page.next = first + self.page.count;
        place.write(self.page);
    }
}
