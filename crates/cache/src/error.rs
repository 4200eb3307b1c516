//! Errors of the commands that look after a cache. Readers see none: to them a cache that fails is
//! one that has nothing.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// A command on the cache that failed.
#[derive(Debug, Error)]
pub enum CacheError {
    /// The disk refused.
    #[error("{}: {source}", path.display())]
    Disk {
        /// The file or directory.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The list of pins is not one.
    #[error("{}:{line}: not a name: {text:?}", path.display())]
    Pins {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What stands there.
        text: String,
    },
    /// The list of limits is not one.
    #[error("{}:{line}: not a limit: {text:?}", path.display())]
    Limits {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What stands there.
        text: String,
    },
    /// There are so many limits already.
    #[error("not more than {max} names may have a limit")]
    TooManyLimits {
        /// The most.
        max: usize,
    },
}

impl CacheError {
    /// The errno for programs that know only numbers.
    pub fn errno(&self) -> i32 {
        match self {
            CacheError::Disk { source, .. } => {
                source.raw_os_error().unwrap_or(rustix::io::Errno::IO.raw_os_error())
            }
            CacheError::Pins { .. } | CacheError::Limits { .. } => {
                rustix::io::Errno::UCLEAN.raw_os_error()
            }
            CacheError::TooManyLimits { .. } => rustix::io::Errno::DQUOT.raw_os_error(),
        }
    }
}

/// Names the path in a disk's error.
pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> CacheError + '_ {
    move |source| CacheError::Disk { path: path.to_owned(), source }
}
