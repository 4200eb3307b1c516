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
pub(crate) enum Snapshot {
    /// As it was published.
    Listed { sorted: Box<SortedListing>, publisher: Arc<Publisher> },
    /// The top of a mount of several trees: their names, in order.
    Top(Vec<Box<[u8]>>),
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
        Self::Listed { sorted: Box::new(SortedListing::new(listing)), publisher }
    }

    /// A directory of directories, that nobody publishes.
    pub(crate) fn of_directories(names: &[String]) -> Self {
        let mut names: Vec<Box<[u8]>> = names.iter().map(|name| name.as_bytes().into()).collect();
        names.sort_unstable();
        Self::Top(names)
    }

    /// Octets that it takes.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>()
            + match self {
                Self::Listed { sorted, .. } => sorted.bytes() + size_of::<SortedListing>(),
                Self::Top(names) => names.iter().map(|name| name.len()).sum(),
            }
    }

    /// What was listed; `None` of the top of several trees.
    fn listing(&self) -> Option<&Listing> {
        match self {
            Self::Listed { sorted, .. } => Some(sorted.listing()),
            Self::Top(_) => None,
        }
    }

    /// Its version; two snapshots of one directory with equal versions are equal.
    pub(crate) fn version(&self) -> Option<u64> {
        Some(self.listing()?.discovered.version)
    }

    /// The name whose description says which version is current.
    pub(crate) fn described_by(&self) -> Option<Name> {
        let listing = self.listing()?;
        Some(match listing.is_manifest() {
            true => manifest_name(listing.name.view()),
            false => listing.name.clone(),
        })
    }

    /// Entries that can be files.
    pub(crate) fn count(&self) -> usize {
        match self {
            Self::Listed { sorted, .. } => sorted.count(),
            Self::Top(names) => names.len(),
        }
    }

    /// The entry at a position from 0.
    pub(crate) fn entry(&self, index: usize) -> Option<SnapshotEntry<'_>> {
        match self {
            Self::Listed { sorted, publisher } => Some(described(&sorted.entry(index)?, publisher)),
            Self::Top(names) => Some(directory(names.get(index)?)),
        }
    }

    /// The entry of a name.
    pub(crate) fn find(&self, name: &[u8]) -> Option<SnapshotEntry<'_>> {
        match self {
            Self::Listed { sorted, publisher } => Some(described(&sorted.find(name)?, publisher)),
            Self::Top(names) => names.iter().find(|it| ***it == *name).map(|name| directory(name)),
        }
    }

    /// The version that an entry has, ready to be opened without asking.
    pub(crate) fn resolve(&self, name: &[u8]) -> Option<ResolvedEntry> {
        match self {
            Self::Listed { sorted, .. } => sorted.listing().resolve(&sorted.find(name)?),
            Self::Top(_) => None,
        }
    }
}

fn directory(name: &[u8]) -> SnapshotEntry<'_> {
    SnapshotEntry { name, kind: Kind::Directory, attributes: None }
}

fn described<'a>(listed: &ListedEntry<'a>, publisher: &Arc<Publisher>) -> SnapshotEntry<'a> {
    let attributes = Attributes::of_entry(listed, publisher);
    let kind = match (&attributes, listed.entry.is_directory) {
        (Some(attributes), _) => attributes.kind,
        (None, true) => Kind::Directory,
        (None, false) => Kind::File,
    };
    SnapshotEntry { name: listed.entry.name, kind, attributes }
}
