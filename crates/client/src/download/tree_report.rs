//! Report of a tree that was downloaded.

use std::path::PathBuf;

use crate::download::progress::{FileOutcome, FileReport};
use crate::error::ClientError;

/// Failures that are kept with their reasons; more are only counted.
pub const FAILURES_MAX: usize = 1000;

/// Outcome of a directory with everything below it, in numbers.
#[derive(Debug, Default)]
pub struct TreeReport {
    /// Files fetched.
    pub fetched_count: u64,
    /// Files that were there with the same bytes.
    pub identical_count: u64,
    /// Files that were there and not to be replaced.
    pub kept_count: u64,
    /// Directories listed.
    pub directory_count: u64,
    /// Entries that make no safe path.
    pub skipped_count: u64,
    /// Files and directories that failed.
    pub failed_count: u64,
    /// Bytes of all files in place, fetched or not.
    pub bytes: u64,
    /// Bytes that came over the network and were verified.
    pub fetched_bytes: u64,
    /// The first [`FAILURES_MAX`] failures.
    pub failures: Vec<(PathBuf, ClientError)>,
}

impl TreeReport {
    pub(crate) fn count(&mut self, report: &FileReport) {
        self.bytes += report.size;
        self.fetched_bytes += report.fetched_bytes;
        *match report.outcome {
            FileOutcome::Fetched => &mut self.fetched_count,
            FileOutcome::Identical => &mut self.identical_count,
            FileOutcome::Kept => &mut self.kept_count,
        } += 1;
    }

    /// True if every entry is in place.
    pub fn is_complete(&self) -> bool {
        self.failed_count == 0 && self.skipped_count == 0
    }
}
