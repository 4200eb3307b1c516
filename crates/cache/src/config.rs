//! Configuration of a cache.

use std::path::PathBuf;
use std::time::Duration;

use crate::disk::Disk;
use crate::scan::Usage;

/// Bytes of a cache unless configured otherwise.
const BYTES_DEFAULT: u64 = 20 << 30;
/// Entries of a cache unless configured otherwise.
const FILES_DEFAULT: u64 = 1_000_000;

/// Place and bounds of a cache.
#[derive(Clone, Debug)]
pub struct CacheConfig {
    /// The directory; made when something is written.
    pub directory: PathBuf,
    /// Place for packets that the file system does not keep with a file.
    pub copies: PathBuf,
    /// Most bytes on the disk. Above nine tenths of it something is removed, down to eight tenths.
    pub bytes_max: u64,
    /// Most entries, with the same marks.
    pub files_max: u64,
    /// Room that stays free on the file system, whatever the other bounds say.
    pub free_bytes_min: u64,
    /// Bytes that may wait to be written; more is not cached.
    pub queue_bytes_max: usize,
    /// Time after which a call to the disk counts as hanging, and the disk is passed by.
    pub patience: Duration,
    /// Socket of the machine's service to use in place of the directory.
    pub service: Option<PathBuf>,
    /// Set by a service: the most that each of its users may have brought, in bytes. Files are lent
    /// to others then, so they are emptied when they are removed.
    pub user_bytes_max: Option<u64>,
    /// The disk, and what may get between in tests.
    pub disk: Disk,
}

impl CacheConfig {
    /// A cache in `directory` with the usual bounds.
    pub fn new(directory: PathBuf) -> Self {
        CacheConfig {
            copies: directory.join("copies"),
            directory,
            bytes_max: BYTES_DEFAULT,
            files_max: FILES_DEFAULT,
            free_bytes_min: 1 << 30,
            queue_bytes_max: 32 << 20,
            patience: Duration::from_secs(2),
            service: None,
            user_bytes_max: None,
            disk: Disk::default(),
        }
    }

    /// The most that one user of a service may have: bytes, and the same part of the entries.
    pub(crate) fn user_share(&self) -> Option<Usage> {
        let bytes = self.user_bytes_max?;
        let part =
            u128::from(self.files_max) * u128::from(bytes) / u128::from(self.bytes_max.max(1));
        let entries = u64::try_from(part).unwrap_or(u64::MAX).clamp(1, self.files_max.max(1));
        Some(Usage { bytes, entries })
    }
}
