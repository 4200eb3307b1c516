//! What a comparison finds, and what is wanted of it.

use byname_catalog::id::{ContentId, DiskId};
use byname_site::DiskRefusal;

/// What somebody wants of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// The disks read all octets anew.
    pub(crate) is_reread: bool,
    /// What is found is mended.
    pub(crate) is_repaired: bool,
}

/// Something that is not as it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Problem {
    /// No replica of a file is left.
    Lost,
    /// All replicas of a file that may be left are on disks that do not answer.
    OutOfReach,
    /// A disk has no replica that it should have.
    Missing,
    /// A replica has another size.
    Size,
    /// A replica has another content.
    Content,
    /// A file has fewer replicas than its policy wants.
    Under,
    /// A file has more.
    Over,
    /// A disk has content that nothing leads to.
    Orphaned,
    /// The same, but the catalog has not given it out, so it is kept.
    Unknown,
    /// The disk is told to drop it, so it goes by itself.
    Leaving,
}

/// Reason for which a disk has not listed all that it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unlisted {
    /// Nobody wants it to be asked.
    #[error("it is off")]
    Off,
    /// It does not answer, or what answers is not the disk.
    #[error("it does not answer")]
    Silent,
    /// It does not do it.
    #[error("{0}")]
    Refused(DiskRefusal),
    /// Its pages begin where others ended.
    #[error("it does not list on from where it was asked to")]
    Stuck,
    /// The head's key fails.
    #[error("its order cannot be signed")]
    Unsigned,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) problem: Problem,
    pub(crate) content: ContentId,
    pub(crate) disk: Option<DiskId>,
    pub(crate) size: u64,
    /// Replicas that are there, and that should be.
    pub(crate) replicas: Option<(u64, u64)>,
    /// The name of the file, if it has one.
    pub(crate) name: Option<String>,
    /// Whose it is.
    pub(crate) owner: Option<String>,
    /// What is done about it, if that is wanted.
    pub(crate) remedy: Remedy,
}

/// What is done about a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// The disk is told to drop what it has; the file gets another replica.
    Replace,
    /// The head makes a replica, from one of those that are there.
    Add,
    /// These disks are told to drop what is too much.
    Surplus(Vec<DiskId>),
    /// The disk is told to drop what nothing leads to.
    Discard,
    /// It is being done anyway.
    Waits,
    /// Nothing: it is for people.
    People,
}

impl Remedy {
    /// For people.
    pub(crate) fn text(&self) -> &'static str {
        match self {
            Self::Replace => "dropped there, and made again",
            Self::Add => "made again",
            Self::Surplus(_) => "what is too much is dropped",
            Self::Discard => "dropped there",
            Self::Waits => "goes by itself",
            Self::People => "nothing: for people",
        }
    }
}

impl Finding {
    pub(super) fn on_disk(
        problem: Problem,
        disk: DiskId,
        (content, size): (ContentId, u64),
    ) -> Self {
        let (replicas, name, owner, remedy) = (None, None, None, Remedy::People);
        Self { problem, content, disk: Some(disk), size, replicas, name, owner, remedy }
    }
}
