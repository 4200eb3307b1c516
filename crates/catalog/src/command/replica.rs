//! What disks say of content, and replicas that move.

use crate::id::{ContentId, DiskId};
use crate::record::Checksums;

/// A disk's word that it has content, all of it synced. Whoever carries it has verified that the
/// disk signed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// Name of the site.
    pub site: Vec<u8>,
    /// The disk.
    pub disk: DiskId,
    /// Its generation.
    pub generation: u64,
    /// The content.
    pub content: ContentId,
    /// Octets.
    pub size: u64,
    /// Root of the hash tree.
    pub root: [u8; 32],
    /// Checksums of the whole.
    pub checksums: Checksums,
}

/// A replica in place of another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MoveReplica {
    /// The word of the disk that has it now.
    pub receipt: Receipt,
    /// The disk that it leaves.
    pub from: Option<DiskId>,
}
