//! Commands about what was removed and is kept for a time.

use crate::id::{InodeId, TransactionNumber};
use crate::name::Place;

/// Brings something back from the trash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoreTrash {
    /// Number of its inode.
    pub item: InodeId,
    /// Where to; where it was, if absent. Nothing may be there.
    pub to: Option<Place>,
}

/// How much is in a directory in the trash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeasuredTrash {
    /// The directory.
    pub item: InodeId,
    /// Transaction that removed it: it may have been brought back since, and removed again.
    pub removed: TransactionNumber,
    /// Octets of files.
    pub bytes: u64,
    /// Inodes.
    pub inodes: u64,
}
