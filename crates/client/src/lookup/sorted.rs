//! Listing whose entries have positions: what doors hand out page by page, and look up by name.
//!
//! Only entries whose names can be names of files are there, ascending by name. A manifest is
//! sorted already; what an older publisher lists in another order is sorted here.

use byname_transfer::naming::is_safe_entry;

use crate::lookup::listing::{ListedEntry, Listing};

/// A listing with its safe entries in the order of their names.
#[derive(Debug)]
pub struct SortedListing {
    listing: Listing,
    /// Where each entry begins in the payload.
    places: Vec<u32>,
}

impl SortedListing {
    /// Drops entries whose names cannot be names of files.
    pub fn new(listing: Listing) -> Self {
        let mut places = Vec::with_capacity(listing.entry_count());
        let mut at = listing.start();
        while let Some((listed, next)) = listing.entry_at(at) {
            if is_safe_entry(listed.entry.name) {
                places.push(u32::try_from(at).expect("listings are limited to 64 MiB"));
            }
            at = next;
        }
        let mut sorted = SortedListing { listing, places: Vec::new() };
        if !places.is_sorted_by_key(|place| sorted.name_at(*place)) {
            places.sort_by_key(|place| sorted.name_at(*place));
        }
        sorted.places = places;
        sorted
    }

    /// The listing as it came.
    pub fn listing(&self) -> &Listing {
        &self.listing
    }

    /// Octets of its entries and their positions.
    pub fn bytes(&self) -> usize {
        self.listing.payload().len() + size_of_val(self.places.as_slice())
    }

    /// Number of entries.
    pub fn count(&self) -> usize {
        self.places.len()
    }

    /// The entry at a position from 0.
    pub fn entry(&self, index: usize) -> Option<ListedEntry<'_>> {
        self.at(*self.places.get(index)?)
    }

    /// The entry of a name.
    pub fn find(&self, name: &[u8]) -> Option<ListedEntry<'_>> {
        let found = self.places.binary_search_by(|place| self.name_at(*place).cmp(name));
        self.entry(found.ok()?)
    }

    fn at(&self, place: u32) -> Option<ListedEntry<'_>> {
        self.listing.entry_at(place as usize).map(|(listed, _)| listed)
    }

    fn name_at(&self, place: u32) -> &[u8] {
        self.at(place).map_or(&[], |listed| listed.entry.name)
    }
}
