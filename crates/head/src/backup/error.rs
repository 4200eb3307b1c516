//! Reasons for which there is no backup, or none that counts.

use std::path::PathBuf;

use byname_catalog::Failure;
use byname_catalog::engine::EngineError;
use byname_catalog::id::TransactionNumber;

/// Reason for which there is no backup, or none that counts.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// A file.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is not what was written.
    #[error("{}: {what}", path.display())]
    Damaged {
        /// Which.
        path: PathBuf,
        /// The contradiction.
        what: &'static str,
    },
    /// Nobody vouches for a file.
    #[error("{}: it is not sealed by the head of its site", path.display())]
    Unsealed {
        /// Which.
        path: PathBuf,
    },
    /// Somebody else does than the site, or for something else.
    #[error("{}: its seal is not the site's, or not of this file", path.display())]
    Forged {
        /// Which.
        path: PathBuf,
    },
    /// Nothing is in a directory.
    #[error("{}: there is no backup in it", path.display())]
    Empty {
        /// Which.
        path: PathBuf,
    },
    /// It is another site's.
    #[error("it is a backup of {found}")]
    OtherSite {
        /// Whose.
        found: String,
    },
    /// It does not reach so far.
    #[error("it has {has}, and not what was asked for")]
    OutOfRange {
        /// From when until when.
        has: String,
    },
    /// The head's log does not go back so far.
    #[error("the head's change log does not have what came after change {}", after.0)]
    Gap {
        /// Which.
        after: TransactionNumber,
    },
    /// The head does not answer, or refuses.
    #[error(transparent)]
    Source(Box<dyn std::error::Error + Send + Sync>),
    /// The head's answer is none.
    #[error("the head answers something else than rows: is it of another version?")]
    OtherAnswer,
    /// The engine in which rows are put together.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A row could not be read.
    #[error(transparent)]
    Reading(#[from] Failure),
}
