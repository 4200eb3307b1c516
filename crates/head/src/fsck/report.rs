//! What a comparison has found, for those who ask.

use std::sync::{Arc, Mutex, PoisonError};

use byname_catalog::id::DiskId;

use super::finding::{Finding, Unlisted, Wanted};

/// A comparison, as far as it has come.
#[derive(Debug, Clone, Default)]
pub(crate) struct FsckReport {
    pub(crate) is_running: bool,
    /// Why it came to no end.
    pub(crate) failure: Option<String>,
    pub(crate) disks: Vec<ScannedDisk>,
    /// Files with content that were looked at.
    pub(crate) files: u64,
    /// All findings, once it has come to its end.
    pub(crate) findings: Vec<Finding>,
    /// Findings that are not among them, because there are too many.
    pub(crate) more_findings: u64,
}

/// A disk, as far as it has listed what it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScannedDisk {
    pub(crate) id: DiskId,
    pub(crate) listed: u64,
    pub(crate) listed_bytes: u64,
    /// It has listed all, or why not.
    pub(crate) end: Option<Result<(), Unlisted>>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Somebody wants one to begin.
    wanted: Option<Wanted>,
    report: FsckReport,
}

/// The latest report, told by who compares to who is asked.
#[derive(Debug, Clone, Default)]
pub(crate) struct FsckReports(Arc<Mutex<Shared>>);

impl FsckReports {
    fn with<T>(&self, work: impl FnOnce(&mut Shared) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Asks for a new one; false if one is running.
    pub(crate) fn begin(&self, wanted: Wanted) -> bool {
        self.with(|shared| {
            if shared.report.is_running {
                return false;
            }
            shared.wanted = Some(wanted);
            shared.report = FsckReport { is_running: true, ..FsckReport::default() };
            true
        })
    }

    /// What is asked for, once.
    pub(crate) fn take_wanted(&self) -> Option<Wanted> {
        self.with(|shared| shared.wanted.take())
    }

    pub(crate) fn set(&self, report: FsckReport) {
        self.with(|shared| shared.report = report);
    }

    /// It came to no end.
    pub(crate) fn fail(&self, failure: String) {
        let report = FsckReport { failure: Some(failure), ..FsckReport::default() };
        self.set(report);
    }

    /// Looks at the report.
    pub(crate) fn read<T>(&self, look: impl FnOnce(&FsckReport) -> T) -> T {
        self.with(|shared| look(&shared.report))
    }
}
