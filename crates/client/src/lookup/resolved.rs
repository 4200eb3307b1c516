//! Resolved entries: what a manifest says of a file, used without asking the publisher again.

use byname_packet::Name;
use byname_transfer::discovery::Discovered;
use byname_transfer::metadata::{ContentRoot, Metadata};
use byname_transfer::naming::last_segment;
use byname_transfer::versions::VersionMemory;

use crate::lookup::listing::{ListedEntry, Listing};
use crate::lookup::stat::Stat;

/// One version of a file, as the manifest of its directory describes it: enough to open it.
///
/// There is no packet that says it of the file alone: the manifest's is what proves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedEntry {
    name: Name,
    discovered: Discovered,
    /// Nobody has said anything newer.
    is_current: bool,
}

impl ResolvedEntry {
    /// What the publisher has just said to the caller alone, who has verified it.
    pub fn stated(name: Name, discovered: Discovered) -> Self {
        ResolvedEntry { name, discovered, is_current: true }
    }

    /// The status that the manifest gives.
    pub fn stat(&self) -> Stat {
        Stat::new(self.name.clone(), &self.discovered)
    }

    /// True if something newer was seen since it was resolved.
    pub(crate) fn is_older(&self, versions: &VersionMemory) -> bool {
        let check = || versions.check(self.name.view(), self.discovered.version);
        !self.is_current && check().is_err()
    }

    /// The name without version, and what a lookup of it would have found.
    pub(crate) fn into_parts(self) -> (Name, Discovered) {
        (self.name, self.discovered)
    }
}

impl Listing {
    /// The version of a file that this manifest describes; `None` of a directory, in a plain
    /// listing, if the publisher does not know the root yet, or if a newer version was seen.
    pub fn resolve(&self, entry: &ListedEntry<'_>) -> Option<ResolvedEntry> {
        let details = entry.details?;
        let version = details.version?;
        let (root, size) = (version.root?, details.size?);
        let name = self.name.with_generic(details.name);
        let metadata = Metadata {
            last_segment: Some(last_segment(size, version.segment_bytes)),
            segment_size: Some(version.segment_bytes),
            size: Some(size),
            mode: Some(details.mode),
            mtime_ns: details.mtime_ns,
            root: ContentRoot::Known(root),
            ..Metadata::new(name.with_version(version.number))
        };
        let Discovered { trust, is_fresh, age_ns, .. } = &self.discovered;
        let discovered = Discovered {
            metadata,
            version: version.number,
            trust: trust.clone(),
            packet: Vec::new(),
            certificates: Vec::new(),
            is_fresh: *is_fresh,
            age_ns: *age_ns,
        };
        Some(ResolvedEntry { name, discovered, is_current: false })
    }
}
