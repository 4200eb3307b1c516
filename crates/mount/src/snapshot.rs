//! One version of a directory's content, as it was listed.
//!
//! Entries are in the order of their names and have a place in it, so a position in a directory
//! (`telldir`) means the same as long as the directory is open, whatever its publisher does.

use std::sync::Arc;

use byname_client::{ListedEntry, Listing, ResolvedEntry, SortedListing};
use byname_packet::Name;
use byname_transfer::naming::manifest_name;

use crate::attributes::{Attributes, Kind, Publisher, publisher_of};

/// One version of a directory's content.
#[derive(Debug)]
pub(crate) struct Snapshot {
    sorted: SortedListing,
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
        let publisher = publisher_of(&listing);
        Snapshot { sorted: SortedListing::new(listing), publisher }
    }

    /// Octets that it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.sorted.bytes() + size_of::<Self>()
    }

    /// Its version; two snapshots of one directory with equal versions are equal.
    pub(crate) fn version(&self) -> u64 {
        self.sorted.listing().discovered.version
    }

    /// The name whose description says which version is current.
    pub(crate) fn described_by(&self) -> Name {
        let listing = self.sorted.listing();
        match listing.is_manifest() {
            true => manifest_name(listing.name.view()),
            false => listing.name.clone(),
        }
    }

    /// Entries that can be files.
    pub(crate) fn count(&self) -> usize {
        self.sorted.count()
    }

    /// The entry at a position from 0.
    pub(crate) fn entry(&self, index: usize) -> Option<SnapshotEntry<'_>> {
        self.sorted.entry(index).map(|listed| self.described(&listed))
    }

    /// The entry of a name.
    pub(crate) fn find(&self, name: &[u8]) -> Option<SnapshotEntry<'_>> {
        self.sorted.find(name).map(|listed| self.described(&listed))
    }

    /// The version that an entry has, ready to be opened without asking.
    pub(crate) fn resolve(&self, name: &[u8]) -> Option<ResolvedEntry> {
        self.sorted.listing().resolve(&self.sorted.find(name)?)
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
