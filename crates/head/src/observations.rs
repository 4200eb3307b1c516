//! What disks said last, told by who asks them to who is asked about them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use byname_catalog::id::DiskId;
use byname_site::{DiskRefusal, ScrubState};

use crate::audit::AuditFiles;
use crate::copies::CopyReport;
use crate::fsck::FsckReports;
use crate::proving::ProofReports;
use crate::repair::RepairDesk;
use crate::traffic::Traffic;

/// What a disk said last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Observation {
    /// It does what it is told.
    Well {
        /// Threads of it that wait for its file system at a time, on average, in hundredths.
        load: u64,
    },
    /// It answers, and does not.
    Refuses(DiskRefusal),
    /// It does not answer, or what answers is not the disk.
    Silent,
}

/// The latest observations, for those who ask.
#[derive(Debug, Clone, Default)]
pub(crate) struct Observations {
    latest: Arc<Mutex<BTreeMap<DiskId, Observation>>>,
    copies: Arc<Mutex<BTreeMap<DiskId, CopyReport>>>,
    scrubs: Arc<Mutex<BTreeMap<DiskId, ScrubState>>>,
    /// Where it is written who asked for what, if it is.
    pub(crate) audit: Option<Arc<AuditFiles>>,
    /// What the latest comparison has found.
    pub(crate) fsck: FsckReports,
    /// What disks were asked to prove last.
    pub(crate) proofs: ProofReports,
    /// What operators want of replicas, and what was moved.
    pub(crate) repairs: RepairDesk,
    /// What the head is asked for, and by whom.
    pub(crate) traffic: Traffic,
}

impl Observations {
    /// What a disk said last, since the head runs.
    pub(crate) fn get(&self, disk: DiskId) -> Option<Observation> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner).get(&disk).copied()
    }

    /// What is known of a disk's copy of the catalog, since the head runs.
    pub(crate) fn copy(&self, disk: DiskId) -> Option<CopyReport> {
        self.copies.lock().unwrap_or_else(PoisonError::into_inner).get(&disk).cloned()
    }

    /// How far a disk is in reading what it has, by its last word since the head runs.
    pub(crate) fn scrub(&self, disk: DiskId) -> Option<ScrubState> {
        self.scrubs.lock().unwrap_or_else(PoisonError::into_inner).get(&disk).cloned()
    }

    /// Notes it.
    pub(crate) fn set_scrub(&self, disk: DiskId, state: ScrubState) {
        self.scrubs.lock().unwrap_or_else(PoisonError::into_inner).insert(disk, state);
    }

    /// Notes what is known of all copies.
    pub(crate) fn set_copies(&self, copies: BTreeMap<DiskId, CopyReport>) {
        *self.copies.lock().unwrap_or_else(PoisonError::into_inner) = copies;
    }

    /// Notes it.
    pub(crate) fn set(&self, disk: DiskId, observation: Observation) {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner).insert(disk, observation);
    }
}
