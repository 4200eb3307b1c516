//! What a head is asked for, by whom, how its disks are and what waits to be done: numbers since it
//! leads, for operators and for whoever collects metrics.
//!
//! Bounded: operations by the table of `traffic`, users by [`USERS_MAX`], those who asked for most,
//! and disks by [`DISKS_MAX`], those with the lowest numbers.

use byname_catalog::id::DiskId;

use crate::commands::{CommandCounters, CommandLevels};
use crate::observations::{DiskErrors, DutyReport, Observation, Observations};
use crate::repair::RepairReport;
use crate::traffic::Times;

/// Users that are told of, at most.
pub const USERS_MAX: usize = 32;
/// Disks that are told of, at most.
pub const DISKS_MAX: usize = 1024;

/// Numbers of one operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationActivity {
    /// Name of the command, or `query` and what was asked.
    pub name: String,
    /// How many were executed, and how long that took.
    pub times: Times,
    /// Of them, those that changed or answered nothing.
    pub failed: u64,
}

/// Numbers of one user, disk or door.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserActivity {
    /// The user, `disk 7` or `door xrd1`.
    pub name: String,
    /// The door through which the user asked.
    pub door: Option<String>,
    /// Commands sent.
    pub commands: u64,
    /// Questions sent.
    pub questions: u64,
    /// Of both, those that came too fast.
    pub held_back: u64,
    /// Those that were executed or answered, and how long that took.
    pub times: Times,
}

/// Numbers of one disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskActivity {
    /// The disk.
    pub disk: DiskId,
    /// True if its last answer was that all is well; none if it was not asked yet.
    pub is_well: Option<bool>,
    /// Threads of it that wait for its file system, in hundredths, by its last answer.
    pub load: Option<u64>,
    /// What it did not do.
    pub errors: DiskErrors,
    /// Contents that are not what their writers signed, by its last answer.
    pub rotten: Option<u64>,
    /// Contents that it has to drop, as far as one order names them.
    pub to_drop: usize,
}

/// Numbers of what waits, and of what was done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueActivity {
    /// The queue of commands.
    pub commands: CommandLevels,
    /// Counts of it.
    pub counters: CommandCounters,
    /// Replicas that are being made elsewhere.
    pub replicas_in_flight: usize,
    /// Replicas that somebody has asked for by name, rotten ones too, and that are not made yet.
    pub replicas_wished: usize,
    /// Replicas that were made elsewhere.
    pub replicas_moved: u64,
    /// Octets of them.
    pub replicas_moved_bytes: u64,
    /// Files that lack replicas, by the last look at all of them.
    pub files: Option<FilesActivity>,
    /// What has ended because it was due.
    pub duties: DutyReport,
}

/// Files that lack replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FilesActivity {
    /// They have fewer than their policy wants.
    pub short: u64,
    /// Fewer than it wants are on disks that answer.
    pub thin: u64,
    /// No disk that answers has them.
    pub out_of_reach: u64,
    /// No disk has them.
    pub lost: u64,
}

/// All of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activity {
    /// By operation, in the order of their names.
    pub operations: Vec<OperationActivity>,
    /// By who asks, those first who asked for most.
    pub users: Vec<UserActivity>,
    /// By disk.
    pub disks: Vec<DiskActivity>,
    /// What waits.
    pub queues: QueueActivity,
}

impl Activity {
    pub(crate) fn of(observations: &Observations) -> Self {
        let operations = observations.traffic.operations().into_iter();
        let users = observations.traffic.users().into_iter().take(USERS_MAX);
        Self {
            operations: operations
                .map(|(name, of)| OperationActivity { name, times: of.times, failed: of.failed })
                .collect(),
            users: users
                .map(|((name, door), of)| UserActivity {
                    name,
                    door,
                    commands: of.commands,
                    questions: of.questions,
                    held_back: of.held_back,
                    times: of.times,
                })
                .collect(),
            disks: observations
                .disks()
                .into_iter()
                .take(DISKS_MAX)
                .map(|disk| DiskActivity::of(observations, disk))
                .collect(),
            queues: QueueActivity::of(observations),
        }
    }
}

impl DiskActivity {
    pub(crate) fn of(observations: &Observations, disk: DiskId) -> Self {
        let observation = observations.get(disk);
        let tally = observations.tally(disk);
        Self {
            disk,
            is_well: observation.map(|it| matches!(it, Observation::Well { .. })),
            load: match observation {
                Some(Observation::Well { load }) => Some(load),
                _ => None,
            },
            errors: tally.errors,
            rotten: observations.scrub(disk).map(|scrub| scrub.rotten_count),
            to_drop: tally.to_drop,
        }
    }
}

impl QueueActivity {
    fn of(observations: &Observations) -> Self {
        let (counters, commands) = observations.queue.get();
        let RepairReport { in_flight, moved, moved_bytes, files, .. } =
            observations.repairs.report();
        Self {
            commands,
            counters,
            replicas_in_flight: in_flight,
            replicas_wished: observations.repairs.wish_count(),
            replicas_moved: moved,
            replicas_moved_bytes: moved_bytes,
            files: files.map(|files| FilesActivity {
                short: files.short,
                thin: files.thin,
                out_of_reach: files.out_of_reach,
                lost: files.lost,
            }),
            duties: observations.duties(),
        }
    }
}
