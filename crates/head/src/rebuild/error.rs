//! Reasons for which no catalog is made.

use std::path::PathBuf;

use byname_catalog::engine::EngineError;
use byname_catalog::id::DiskId;
use byname_catalog::{CatalogError, Failure};

use crate::backup::BackupError;
use crate::engine::AddressError;
use crate::head::HeadError;

/// Reason for which a disk cannot be read.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct SourceError(pub Box<dyn std::error::Error + Send + Sync>);

/// Reason for which no catalog is made.
#[derive(Debug, thiserror::Error)]
pub enum RebuildError {
    /// The directory.
    #[error(transparent)]
    Head(#[from] HeadError),
    /// A disk.
    #[error("disk {} cannot be read: {source}", disk.0)]
    Source {
        /// Which.
        disk: DiskId,
        /// Why.
        source: SourceError,
    },
    /// No disk has all rows of any state.
    #[error("no disk has a complete copy of the catalog that the key of {site} has signed")]
    NoCopy {
        /// The site.
        site: String,
    },
    /// What a disk gave was something else the second time.
    #[error("disk {}: its copy of the catalog changed while it was read", disk.0)]
    Changed {
        /// Which.
        disk: DiskId,
    },
    /// A disk lists contents without end, or the rows are very old.
    #[error(
        "disk {} lists more than {max} contents that the rows do not have: leave it out, it lies",
        disk.0
    )]
    TooMany {
        /// Which.
        disk: DiskId,
        /// So many it may.
        max: usize,
    },
    /// The address of the engine.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// A backup.
    #[error(transparent)]
    Backup(#[from] BackupError),
    /// The rows are of another site.
    #[error("the rows are those of another site")]
    OtherSite,
    /// The rows contradict each other.
    #[error("the rows contradict each other in {count} places; the first: {first}")]
    Inconsistent {
        /// How often.
        count: usize,
        /// The first contradiction.
        first: &'static str,
    },
    /// Rows could not be written or read.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// A row could not be read.
    #[error(transparent)]
    Reading(#[from] Failure),
    /// The engine failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A file.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}
