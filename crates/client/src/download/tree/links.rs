//! Symbolic links of a tree: made as links, or replaced by what they lead to.
//!
//! A link is made if its target cannot lead out of the directory that was asked for, whoever
//! signed it ([`is_confined_link`]). Another one is replaced by what its publisher answers under
//! the link's own name, so nothing of the target is ever resolved here. That may be a directory,
//! which shows only when it is asked for; directories behind too many links in a row are refused,
//! because links can close a circle.
//!
//! [`is_confined_link`]: byname_transfer::naming::is_confined_link

use std::ffi::OsString;
use std::path::PathBuf;
use std::rc::Rc;

use byname_packet::Name;
use byname_transfer::error::{ProtocolProblem, ReadError};

use super::pruned::PrunedDir;
use crate::download::context::DownloadOptions;
use crate::download::disk_queue::{DiskQueue, DiskTask};
use crate::download::local_dir::LocalDir;
use crate::download::progress::{FileOutcome, FileReport};
use crate::error::ClientError;

/// Links to directories that are followed on the way to an entry.
pub(super) const LINKS_MAX: u8 = 8;

/// Place of a directory in the tree that is fetched.
#[derive(Clone)]
pub(crate) struct Branch {
    /// Relative to the directory asked for.
    pub(super) relative: PathBuf,
    pub(super) pruned: Option<Rc<PrunedDir>>,
    /// Links that were followed on the way to it.
    pub(super) links: u8,
}

impl Branch {
    pub(super) fn root() -> Self {
        Branch { relative: PathBuf::new(), pruned: None, links: 0 }
    }

    /// Something goes into it.
    pub(super) fn set_needed(&self) {
        self.pruned.iter().for_each(|directory| directory.set_needed());
    }

    /// A directory in this one.
    pub(super) fn below(&self, relative: PathBuf) -> Self {
        Branch { relative, ..self.clone() }
    }
}

/// A link that is replaced by what it leads to.
pub(crate) struct FollowedLink {
    pub(super) name: Name,
    pub(super) parent: LocalDir,
    pub(super) entry: OsString,
    /// Of the directory that it may lead to.
    pub(super) branch: Branch,
}

/// True if what was taken for a file is a directory.
pub(super) fn is_a_directory(error: &ClientError) -> bool {
    let ClientError::Read(ReadError::Protocol { problem, .. }) = error else { return false };
    *problem == ProtocolProblem::Kind { is_directory: true }
}

/// The job that makes a link; done when it is there.
pub(crate) struct LinkJob {
    pub(super) shown: PathBuf,
    pub(crate) task: DiskTask<FileReport>,
}

impl LinkJob {
    pub(super) fn begin(
        (parent, entry): (LocalDir, OsString),
        target: &[u8],
        options: DownloadOptions,
        disk: &DiskQueue,
    ) -> Self {
        let (shown, target) = (parent.shown.join(&entry), target.to_vec());
        let make = move || parent.symlink(&entry, &target, options).map(report);
        LinkJob { shown, task: disk.submit(make) }
    }
}

/// A link has neither version nor bytes of its own.
fn report(outcome: FileOutcome) -> FileReport {
    let (version, size, fetched_bytes, reused_bytes) = (0, 0, 0, 0);
    FileReport { outcome, version, size, fetched_bytes, reused_bytes, sources: Vec::new() }
}
