//! Errors of a disk's directory, and reasons for which content was not stored.

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use thiserror::Error;

/// Reason for which a directory cannot be used.
#[derive(Debug, Error)]
pub enum DiskError {
    /// A file or directory of it cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// It is no disk of a site.
    #[error("{}: no disk of a site (it has no label)", path.display())]
    NoLabel {
        /// The directory.
        path: PathBuf,
    },
    /// Its label cannot be read.
    #[error("{}: the label is malformed: {what}", path.display())]
    BadLabel {
        /// The label.
        path: PathBuf,
        /// The fault.
        what: &'static str,
    },
    /// It is a copy of a disk.
    #[error(
        "{}: this is a copy of disk {disk}: its label was made for another directory; two disks \
         with one number would both be believed",
        path.display()
    )]
    Cloned {
        /// The directory.
        path: PathBuf,
        /// The number on the label.
        disk: u64,
    },
    /// A new disk would lie over something else.
    #[error("{}: not empty, so no new disk is made of it", path.display())]
    NotEmpty {
        /// The directory.
        path: PathBuf,
    },
    /// What is on it may not be durable.
    #[error(
        "{}: what is there cannot be made durable, so nothing of it is vouched for ({source}): \
         look at the device, and for its errors in the system's log",
        path.display()
    )]
    NotDurable {
        /// The directory.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// Another process serves it.
    #[error("{}: another process serves this disk", path.display())]
    Locked {
        /// The directory.
        path: PathBuf,
    },
    /// The highest epoch seen cannot be read.
    #[error("{}: the epoch is malformed", path.display())]
    BadEpoch {
        /// The file.
        path: PathBuf,
    },
}

impl DiskError {
    /// True if a file is where a directory should be.
    pub(crate) fn is_no_directory(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotADirectory)
    }

    /// For errors about `path`.
    pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { path: path.to_owned(), source }
    }
}

/// Reason for which content was not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
pub enum StoreFailure {
    /// No room is left (ENOSPC, EDQUOT).
    #[error("the disk is full")]
    Full,
    /// It may not be written to (EROFS, EACCES, EPERM).
    #[error("the disk cannot be written to")]
    ReadOnly,
    /// It fails (EIO and everything else).
    #[error("the disk fails")]
    Failing,
    /// The writer does not answer.
    #[error("the writer cannot be reached")]
    Unreachable,
    /// The writer sends next to nothing.
    #[error("the writer sends too slowly")]
    Slow,
    /// What came is not what the writer signed.
    #[error("the content is not what the writer signed")]
    Mismatch,
    /// It was dropped meanwhile.
    #[error("the content was dropped")]
    Stopped,
}

impl StoreFailure {
    /// The class of an error of the system.
    pub fn of(error: &io::Error) -> Self {
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::NOSPC | Errno::DQUOT | Errno::FBIG) => Self::Full,
            Some(Errno::ROFS | Errno::ACCESS | Errno::PERM) => Self::ReadOnly,
            _ => Self::Failing,
        }
    }

    /// True if the disk is to blame, and not the writer or the network.
    pub fn is_of_the_disk(self) -> bool {
        matches!(self, Self::Full | Self::ReadOnly | Self::Failing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_system_are_told_apart() {
        let of = |errno: Errno| StoreFailure::of(&io::Error::from(errno));
        assert_eq!(of(Errno::NOSPC), StoreFailure::Full);
        assert_eq!(of(Errno::DQUOT), StoreFailure::Full);
        assert_eq!(of(Errno::ROFS), StoreFailure::ReadOnly);
        assert_eq!(of(Errno::IO), StoreFailure::Failing);
        assert_eq!(StoreFailure::of(&io::Error::other("x")), StoreFailure::Failing);
    }
}
