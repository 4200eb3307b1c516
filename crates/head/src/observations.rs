//! What disks said last, told by who asks them to who is asked about them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use byname_catalog::id::DiskId;
use byname_site::{DiskRefusal, ScrubState};

use crate::audit::AuditFiles;
use crate::commands::{CommandCounters, CommandLevels};
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

/// What a disk did not do since the head leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DiskErrors {
    /// Orders that it did not answer.
    pub unanswered: u64,
    /// Orders that it has refused.
    pub refused: u64,
    /// Replicas that it was told to take from another disk and did not, or not in time.
    pub failed_pulls: u64,
    /// Times that a writer has had another disk in its place.
    pub replaced: u64,
}

/// What the head itself counts of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct DiskTally {
    pub(crate) errors: DiskErrors,
    /// Contents that it was to drop when it was told last, [`byname_site::CONTENTS_MAX`] at most.
    pub(crate) to_drop: usize,
}

/// What the head has ended because it was due, since it leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DutyReport {
    /// Attempts, sessions, holds and versions whose time was over.
    pub expired: u64,
    /// What was in the trash for too long, or was too much.
    pub purged: u64,
    /// Entries of directories that were removed as a whole.
    pub collected: u64,
    /// True if the last look has left something that is due.
    pub is_behind: bool,
}

/// The queue of commands as the serving thread saw it last. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct QueueReport(Arc<Mutex<(CommandCounters, CommandLevels)>>);

impl QueueReport {
    pub(crate) fn get(&self) -> (CommandCounters, CommandLevels) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, counters: CommandCounters, levels: CommandLevels) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = (counters, levels);
    }
}

/// The latest observations, for those who ask.
#[derive(Debug, Clone, Default)]
pub(crate) struct Observations {
    latest: Arc<Mutex<BTreeMap<DiskId, Observation>>>,
    copies: Arc<Mutex<BTreeMap<DiskId, CopyReport>>>,
    scrubs: Arc<Mutex<BTreeMap<DiskId, ScrubState>>>,
    /// Of all disks of the catalog.
    tallies: Arc<Mutex<BTreeMap<DiskId, DiskTally>>>,
    duties: Arc<Mutex<DutyReport>>,
    /// The queue of commands.
    pub(crate) queue: QueueReport,
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

    /// All disks that were looked after.
    pub(crate) fn disks(&self) -> Vec<DiskId> {
        self.tallies.lock().unwrap_or_else(PoisonError::into_inner).keys().copied().collect()
    }

    /// What was counted of a disk.
    pub(crate) fn tally(&self, disk: DiskId) -> DiskTally {
        let tallies = self.tallies.lock().unwrap_or_else(PoisonError::into_inner);
        let mut tally = tallies.get(&disk).copied().unwrap_or_default();
        tally.errors.failed_pulls = self.repairs.failed_pulls(disk);
        tally
    }

    /// Counts something of a disk, if the catalog has it.
    pub(crate) fn count(&self, disk: DiskId, change: impl FnOnce(&mut DiskTally)) {
        let mut tallies = self.tallies.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tally) = tallies.get_mut(&disk) {
            change(tally);
        }
    }

    /// The catalog has these disks, and each has so much to drop; others are forgotten.
    pub(crate) fn set_disks(&self, to_drop: &BTreeMap<DiskId, usize>) {
        let mut tallies = self.tallies.lock().unwrap_or_else(PoisonError::into_inner);
        tallies.retain(|disk, _| to_drop.contains_key(disk));
        for (disk, count) in to_drop {
            tallies.entry(*disk).or_default().to_drop = *count;
        }
    }

    /// What was ended because it was due.
    pub(crate) fn duties(&self) -> DutyReport {
        *self.duties.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes it.
    pub(crate) fn count_duties(&self, change: impl FnOnce(&mut DutyReport)) {
        change(&mut self.duties.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
