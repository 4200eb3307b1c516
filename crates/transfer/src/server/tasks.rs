//! The tasks: one per path that is being looked at, and their timers.

use std::collections::{BTreeSet, HashMap};

use byname_packet::Name;

use super::arrival::Now;
use super::claims::Claim;
use super::config::ServerConfig;
use super::ops::{Handle, Listing};
use super::state::{FileStat, FileState, Recalled};
use super::waiters::Waiter;
use crate::numbers::MANIFEST_KEYWORD;

/// Where a path lies.
pub(super) struct Place {
    pub(super) mount: usize,
    pub(super) relative: Vec<u8>,
}

/// One path being looked at.
pub(super) struct Task {
    pub(super) id: u64,
    /// The published name, or that of a directory's manifest.
    pub(super) path: Name,
    pub(super) place: Place,
    pub(super) waiters: Vec<Waiter>,
    pub(super) step: Step,
    /// Since when the file is known to be in this state.
    pub(super) seen: Option<(FileState, u64)>,
    /// True if a record could not be kept once already.
    pub(super) was_refused: bool,
    timer: Option<u64>,
}

/// Step of a task: the event that it waits for.
#[derive(Debug)]
pub(super) enum Step {
    /// The path to be resolved.
    Locating,
    /// The records of a file.
    RecallingFile(FoundFile),
    /// The record of a new version of a file.
    AnnouncingFile(FoundFile, u64, Recalled),
    /// The file to be quiet, until this time.
    Quiet { until_ns: u64 },
    /// The root of a version.
    Root { stat: FileStat, version: u64 },
    /// A directory.
    Listing { asked: Now },
    /// The record of a listing.
    RecallingListing(Box<FoundListing>),
    /// The record of a new version of a listing.
    AnnouncingListing(Box<FoundListing>, u64),
    /// Packets kept with a copy.
    ReadingKept(FoundFile),
    /// Packets kept with the directory that a copy lies in.
    ReadingParent { found: FoundFile, own: Option<Box<Claim>>, asked: Now },
    /// Packets kept with a directory.
    ReadingDirectory { asked: Now },
    /// The root of a copy.
    RecallingMirrored(FoundFile, Box<Claim>),
}

/// A file that was opened.
#[derive(Debug, Clone, Copy)]
pub(super) struct FoundFile {
    pub(super) stat: FileStat,
    pub(super) handle: Handle,
}

/// A directory that was read.
#[derive(Debug)]
pub(super) struct FoundListing {
    pub(super) listing: Listing,
    pub(super) asked: Now,
    pub(super) took_ns: u64,
}

#[derive(Default)]
pub(super) struct Tasks {
    by_id: HashMap<u64, Task>,
    by_path: HashMap<Vec<u8>, u64>,
    timers: BTreeSet<(u64, u64)>,
    next_id: u64,
}

impl Tasks {
    pub(super) fn start(&mut self, path: Name, place: Place, waiter: Waiter) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.by_path.insert(path.view().value().to_vec(), id);
        let waiters = vec![waiter];
        let task = Task {
            id,
            path,
            place,
            waiters,
            step: Step::Locating,
            seen: None,
            was_refused: false,
            timer: None,
        };
        self.by_id.insert(id, task);
        id
    }

    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(super) fn get(&mut self, id: u64) -> Option<&mut Task> {
        self.by_id.get_mut(&id)
    }

    pub(super) fn by_path(&mut self, path: &[u8]) -> Option<&mut Task> {
        let id = self.by_path.get(path)?;
        self.by_id.get_mut(id)
    }

    pub(super) fn remove(&mut self, id: u64) -> Option<Task> {
        let task = self.by_id.remove(&id)?;
        self.by_path.remove(task.path.view().value());
        if let Some(at_ns) = task.timer {
            self.timers.remove(&(at_ns, id));
        }
        Some(task)
    }

    pub(super) fn next_timer(&self) -> Option<u64> {
        self.timers.first().map(|(at_ns, _)| *at_ns)
    }

    pub(super) fn set_timer(&mut self, id: u64, at_ns: Option<u64>) {
        let Some(task) = self.by_id.get_mut(&id) else { return };
        if let Some(old_ns) = task.timer {
            self.timers.remove(&(old_ns, id));
        }
        task.timer = at_ns;
        if let Some(at_ns) = at_ns {
            self.timers.insert((at_ns, id));
        }
    }

    pub(super) fn pop_due(&mut self, now_ns: u64) -> Option<u64> {
        let (at_ns, id) = *self.timers.first()?;
        if at_ns > now_ns {
            return None;
        }
        self.timers.remove(&(at_ns, id));
        if let Some(task) = self.by_id.get_mut(&id) {
            task.timer = None;
        }
        Some(id)
    }
}

impl Task {
    /// True if the task is about a directory's manifest rather than what the path leads to.
    pub(super) fn is_manifest(&self) -> bool {
        self.path.view().last().is_some_and(|last| last.is_keyword(MANIFEST_KEYWORD))
    }

    /// True if the task waits for the root of a file in this state.
    pub(super) fn awaits_root_of(&self, state: &FileState) -> bool {
        matches!(&self.step, Step::Root { stat, .. } if stat.state == *state)
    }

    /// When something is due although nothing happens.
    pub(super) fn due_ns(&self, config: &ServerConfig) -> Option<u64> {
        let waiters = self.waiters.iter();
        match self.step {
            Step::Quiet { until_ns } => waiters
                .map(|waiter| waiter.hold_until(config.hold_quiet_ns))
                .chain([until_ns])
                .min(),
            Step::Root { .. } => waiters.map(|waiter| waiter.hold_until(config.hold_root_ns)).min(),
            Step::Listing { .. } | Step::RecallingListing(_) | Step::AnnouncingListing(..) => {
                waiters.map(|waiter| waiter.answer_until(config.hold_listing_ns)).min()
            }
            _ => waiters.map(Waiter::expires_ns).min(),
        }
    }
}
