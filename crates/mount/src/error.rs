//! Errors of mounting and unmounting. Errors of single calls are errnos: the kernel takes no more.

use std::path::PathBuf;

use thiserror::Error;

/// Why a tree could not be mounted or unmounted.
#[derive(Debug, Error)]
pub enum MountError {
    /// The kernel has no FUSE, or this container does not show it.
    #[error("there is no /dev/fuse")]
    NoDevice,
    /// Only root mounts without it.
    #[error("fusermount3 is not installed, and only root can mount without it")]
    NoHelper,
    /// The mount point.
    #[error("{}: {source}", path.display())]
    MountPoint {
        /// The path given.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The mount point is no directory.
    #[error("{}: not a directory", path.display())]
    NotADirectory {
        /// The path given.
        path: PathBuf,
    },
    /// Something of byname is mounted there and answers.
    #[error("{}: something is mounted there already", path.display())]
    Mounted {
        /// The mount point.
        path: PathBuf,
    },
    /// Nothing of byname is mounted there.
    #[error("{}: no tree is mounted there", path.display())]
    NotMounted {
        /// The path given.
        path: PathBuf,
    },
    /// The system or fusermount3 refused.
    #[error("{}: cannot mount: {source}", path.display())]
    Refused {
        /// The mount point.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The system or fusermount3 refused.
    #[error("{}: cannot unmount: {source}", path.display())]
    Busy {
        /// The mount point.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// What is mounted is no directory.
    #[error("only directories can be mounted, and this name is none")]
    TreeIsNoDirectory,
    /// Too many trees for one mount, or none.
    #[error("{count} trees: a mount has 1 to {}", crate::TREES_MAX)]
    Count {
        /// How many were wanted.
        count: usize,
    },
    /// A tree cannot have this name in the mount.
    #[error("{place:?} is no name for a tree's directory, or two trees have it")]
    Place {
        /// The name.
        place: String,
    },
    /// One tree lies in the other.
    #[error("{one} and {other} lie in one another: mount the outer one alone")]
    Overlap {
        /// The name of one.
        one: String,
        /// The name of the other.
        other: String,
    },
    /// The root did not answer.
    #[error(transparent)]
    Client(#[from] byname_client::ClientError),
    /// The system gives no thread.
    #[error("no thread for the mount: {0}")]
    Thread(std::io::Error),
}
