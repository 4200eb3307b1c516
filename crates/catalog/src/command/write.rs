//! Commands by which files are written.

use crate::command::Receipt;
use crate::id::ContentId;
use crate::name::Place;
use crate::record::{Checksums, PolicyChanges};

/// When a new file gets its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Publish {
    /// With its content.
    AtCommit,
    /// At once, empty.
    AtOnce,
    /// At once, and that is all of it: a file, or a version, without octets. There is no attempt,
    /// and the answer is an [`Answer::Entry`].
    Whole,
}

/// Opens an attempt to write a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Create {
    /// A file that is there or shall be.
    pub place: Place,
    /// Permission bits of a new file.
    pub mode: u16,
    /// Most octets the content will have. They are reserved.
    pub size_max: u64,
    /// When a new file gets its name.
    pub publish: Publish,
    /// Refuse if there is something.
    pub exclusive: bool,
    /// How its policy differs from the one it would have, or has.
    pub policy: PolicyChanges,
}

/// Makes an attempt the current version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// The attempt.
    pub content: ContentId,
    /// Octets.
    pub size: u64,
    /// Root of the hash tree, as the writer signed it.
    pub root: [u8; 32],
    /// Checksums of the whole.
    pub checksums: Checksums,
    /// Time of last modification; the head's if absent.
    pub modified_ns: Option<u64>,
    /// Receipts of disks.
    pub receipts: Vec<Receipt>,
}
