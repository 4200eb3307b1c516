//! The disk that a content is pulled from.

use std::collections::BTreeMap;

use byname_catalog::id::{ContentId, DiskId};
use byname_catalog::{Content, Disk, DiskState};
use byname_site::DiskName;

/// A disk to pull a content from; another one after one that it could not be had from, and never
/// one that has something else.
pub(super) fn source_of(
    content: ContentId,
    found: &Content,
    disks: &BTreeMap<DiskId, Disk>,
    (attempts, rotten): (usize, Option<DiskId>),
) -> Option<DiskName> {
    let serving = |id: &DiskId| {
        let disk = disks.get(id).filter(|disk| disk.is_up && disk.state != DiskState::Off)?;
        Some(DiskName { place: disk.label.clone(), id: *id })
    };
    let sources: Vec<DiskName> =
        found.replicas.iter().filter(|id| rotten != Some(**id)).filter_map(serving).collect();
    let start = usize::try_from(content.inode.0 % 16).unwrap_or(0);
    (!sources.is_empty()).then(|| sources[(start + attempts) % sources.len()].clone())
}
