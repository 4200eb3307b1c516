//! One version of a directory's content, as it was listed.
//!
//! Entries are in the order of their names and have a place in it, so a position in a directory
//! (`telldir`) means the same as long as the directory is open, whatever its publisher does.

use std::sync::Arc;

use byname_client::{ListedEntry, Listing, ResolvedEntry};
use byname_packet::Name;
use byname_transfer::naming::{is_safe_entry, manifest_name};

use crate::attributes::{Attributes, Kind, Publisher, publisher_of};

/// One version of a directory's content.
#[derive(Debug)]
pub(crate) struct Snapshot {
    listing: Listing,
    /// Where the entries that can be files begin in the payload, by name.
    places: Vec<u32>,
    publisher: Arc<Publisher>,
}

/// One entry of a directory.
#[derive(Debug)]
pub(crate) struct SnapshotEntry<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) kind: Kind,
    /// `None` if the directory does not say enough of it.
    pub(crate) attributes: Option<Attributes>,
}

impl Snapshot {
    pub(crate) fn new(listing: Listing) -> Self {
        let mut places = Vec::with_capacity(listing.entry_count());
        let mut at = listing.start();
        while let Some((listed, next)) = listing.entry_at(at) {
            if is_safe_entry(listed.entry.name) {
                places.push(u32::try_from(at).expect("listings are limited to 64 MiB"));
            }
            at = next;
        }
        let publisher = publisher_of(&listing);
        let mut snapshot = Snapshot { listing, places: Vec::new(), publisher };
        if !places.is_sorted_by_key(|place| snapshot.name_at(*place)) {
            places.sort_by_key(|place| snapshot.name_at(*place));
        }
        snapshot.places = places;
        snapshot
    }

    fn listed(&self, place: u32) -> Option<ListedEntry<'_>> {
        self.listing.entry_at(place as usize).map(|(listed, _)| listed)
    }

    fn name_at(&self, place: u32) -> &[u8] {
        self.listed(place).map_or(&[], |listed| listed.entry.name)
    }

    /// Octets that it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.listing.payload().len() + size_of_val(self.places.as_slice()) + size_of::<Self>()
    }

    /// Its version; two snapshots of one directory with equal versions are equal.
    pub(crate) fn version(&self) -> u64 {
        self.listing.discovered.version
    }

    /// The name whose description says which version is current.
    pub(crate) fn described_by(&self) -> Name {
        match self.listing.is_manifest() {
            true => manifest_name(self.listing.name.view()),
            false => self.listing.name.clone(),
        }
    }

    /// Entries that can be files.
    pub(crate) fn count(&self) -> usize {
        self.places.len()
    }

    /// The entry at a position from 0.
    pub(crate) fn entry(&self, index: usize) -> Option<SnapshotEntry<'_>> {
        let listed = self.listed(*self.places.get(index)?)?;
        Some(self.described(&listed))
    }

    /// The entry of a name.
    pub(crate) fn find(&self, name: &[u8]) -> Option<SnapshotEntry<'_>> {
        self.listed(self.place(name)?).map(|listed| self.described(&listed))
    }

    /// The version that an entry has, ready to be opened without asking.
    pub(crate) fn resolve(&self, name: &[u8]) -> Option<ResolvedEntry> {
        self.listing.resolve(&self.listed(self.place(name)?)?)
    }

    fn place(&self, name: &[u8]) -> Option<u32> {
        let found = self.places.binary_search_by(|place| self.name_at(*place).cmp(name));
        found.ok().map(|index| self.places[index])
    }

    fn described<'a>(&self, listed: &ListedEntry<'a>) -> SnapshotEntry<'a> {
        let attributes = Attributes::of_entry(listed, &self.publisher);
        let kind = match (&attributes, listed.entry.is_directory) {
            (Some(attributes), _) => attributes.kind,
            (None, true) => Kind::Directory,
            (None, false) => Kind::File,
        };
        SnapshotEntry { name: listed.entry.name, kind, attributes }
    }
}
