//! Resolved entries: what a manifest says of a file, used without asking the publisher again.

use byname_security::trust::Trusted;
use byname_transfer::discovery::Discovered;
use byname_transfer::metadata::{ContentRoot, Metadata};
use byname_transfer::naming::last_segment;

use crate::lookup::listing::{Described, Listing};

/// The version of a file that its directory's manifest describes; `None` if that does not suffice
/// to fetch it.
///
/// There is no packet that says it of the file alone: the manifest's is what proves it.
pub(crate) fn resolve(listing: &Listing, described: &Described<'_>) -> Option<Discovered> {
    let details = described.details?;
    let version = details.version?;
    let (root, size) = (version.root?, details.size?);
    let name = listing.name.with_generic(details.name).with_version(version.number);
    let metadata = Metadata {
        last_segment: Some(last_segment(size, version.segment_bytes)),
        segment_size: Some(version.segment_bytes),
        size: Some(size),
        mode: Some(details.mode),
        mtime_ns: details.mtime_ns,
        root: ContentRoot::Known(root),
        ..Metadata::new(name)
    };
    let Discovered { trust, is_fresh, age_ns, .. } = &listing.discovered;
    Some(Discovered {
        metadata,
        version: version.number,
        trust: trust.clone(),
        packet: Vec::new(),
        certificates: Vec::new(),
        is_fresh: *is_fresh,
        age_ns: *age_ns,
    })
    .filter(|known| known.trust != Trusted::Insecure || known.metadata.size.is_some())
}
