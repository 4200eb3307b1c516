//! What was made again, and what could not be known.

use crate::backup::Staged;
use byname_catalog::can_be_seen;
use byname_catalog::id::{ContentId, DiskId, TransactionNumber};
use byname_site::{CopyState, DiskName};

/// What is to be said of a content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingKind {
    /// No replica of a file is left.
    Lost,
    /// Replicas of a file may be left on disks that were not read.
    OutOfReach,
    /// A disk has something else than the rows say.
    Different,
    /// A disk does not have a replica that it should have; others do.
    Missing,
    /// It is newer than the rows; its directory is not known, or the name taken: `lost+found`.
    Misplaced,
    /// It is newer than the rows, and now a file where its ticket says.
    Placed,
    /// It is newer than the rows, and now the newest version of its file.
    Rewritten,
    /// It is newer than the time that was asked for, and stays where it is.
    Later,
    /// It is newer than the rows, and it was not committed.
    NotCommitted,
    /// It is newer than the rows, and there is another one, or its file is gone.
    Superseded,
    /// The rows do not have it, and nothing proves what it is.
    Unproved,
}

impl FindingKind {
    /// Short name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::OutOfReach => "out-of-reach",
            Self::Different => "different",
            Self::Missing => "missing",
            Self::Misplaced => "lost+found",
            Self::Placed => "new-file",
            Self::Rewritten => "new-version",
            Self::Later => "later",
            Self::NotCommitted => "not-committed",
            Self::Superseded => "superseded",
            Self::Unproved => "unproved",
        }
    }

    /// True if people have to look at it: something is not there, or not as it was.
    pub fn is_loss(self) -> bool {
        !matches!(self, Self::Later | Self::NotCommitted | Self::Superseded)
    }
}

/// Something about a content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What.
    pub kind: FindingKind,
    /// The content.
    pub content: ContentId,
    /// Octets.
    pub size: u64,
    /// The disks that have it; of one that is missing, those that do not.
    pub disks: Vec<DiskId>,
    /// A disk says that the head confirmed it.
    pub is_confirmed: bool,
    /// Name of the file, if it has one.
    pub name: Option<String>,
}

impl Finding {
    pub(super) fn new(
        kind: FindingKind,
        content: ContentId,
        size: u64,
        disks: Vec<DiskId>,
    ) -> Self {
        Self { kind, content, size, disks, is_confirmed: false, name: None }
    }
}

/// A disk that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RebuiltDisk {
    /// Which.
    pub name: DiskName,
    /// The transaction up to which it says to have all rows.
    pub through: TransactionNumber,
    /// The same, as far as the site's signatures go; 0 if that was not looked at.
    pub verified: TransactionNumber,
    /// Contents.
    pub contents: u64,
    /// What is wrong with its copy.
    pub problem: Option<String>,
}

impl RebuiltDisk {
    pub(super) fn new(name: &DiskName, state: &CopyState) -> Self {
        Self {
            name: name.clone(),
            through: state.complete.unwrap_or_default().through,
            verified: TransactionNumber::default(),
            contents: 0,
            problem: state.complete.is_none().then(|| "it has no complete copy".to_owned()),
        }
    }

    /// Notes numbers that this disk cannot have seen, if one of the rows' latest is `known`.
    pub(super) fn look_at_numbers(&mut self, state: &CopyState, known: u64) {
        let is_honest = [state.highest, state.epoch.0].iter().all(|it| can_be_seen(*it, known));
        if !is_honest {
            let problem = "it says to have seen numbers that the site cannot have given: they are \
                           not believed";
            self.problem = Some(problem.to_owned());
        }
    }
}

/// See the module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RebuildReport {
    /// All disks that were read.
    pub disks: Vec<RebuiltDisk>,
    /// The disk whose rows were taken.
    pub source: Option<DiskId>,
    /// The last transaction that is known: what came after it is lost, but for contents.
    pub through: TransactionNumber,
    /// The rows of the backup that were taken.
    pub restored: Option<Staged>,
    /// Inodes of the catalog.
    pub inodes: u64,
    /// Those that are files.
    pub files: u64,
    /// What is to be said of contents.
    pub findings: Vec<Finding>,
}
