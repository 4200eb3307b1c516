//! The tasks: one per path that is being looked at, and their timers.

use std::collections::{BTreeSet, HashMap};

use byname_packet::Name;

use super::interest::Place;
use super::mirror::Claim;
use super::ops::{FileStat, Handle, Identity, Listing, Op, Recalled};
use super::{Now, Owner, Server, Waiter};
use crate::numbers::MANIFEST_KEYWORD;

/// One path being looked at.
pub(super) struct Task {
    pub(super) id: u64,
    /// The published name, or that of a directory's manifest.
    pub(super) path: Name,
    pub(super) place: Place,
    pub(super) waiters: Vec<Waiter>,
    pub(super) step: Step,
    /// Since when the file is known to be in this state.
    pub(super) seen: Option<(Identity, u64)>,
    /// Whether a record could not be kept once already.
    pub(super) was_refused: bool,
    timer: Option<u64>,
}

/// What a task waits for.
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
    /// What was kept with a copy.
    ReadingKept(FoundFile),
    /// What was kept with the directory that a copy lies in.
    ReadingParent { found: FoundFile, own: Option<Box<Claim>>, asked: Now },
    /// What was kept with a directory.
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

    fn set_timer(&mut self, id: u64, at_ns: Option<u64>) {
        let Some(task) = self.by_id.get_mut(&id) else { return };
        if let Some(old_ns) = task.timer {
            self.timers.remove(&(old_ns, id));
        }
        task.timer = at_ns;
        if let Some(at_ns) = at_ns {
            self.timers.insert((at_ns, id));
        }
    }

    fn pop_due(&mut self, now_ns: u64) -> Option<u64> {
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
    /// Whether the task is about a directory's manifest rather than what the path leads to.
    pub(super) fn is_manifest(&self) -> bool {
        self.path.view().last().is_some_and(|last| last.is_keyword(MANIFEST_KEYWORD))
    }

    /// Whether the task waits for the root of a file in this state.
    pub(super) fn awaits_root_of(&self, identity: &Identity) -> bool {
        matches!(&self.step, Step::Root { stat, .. } if stat.identity == *identity)
    }

    /// When something is due although nothing happens.
    fn due_ns(&self, config: &super::ServerConfig) -> Option<u64> {
        let waiters = self.waiters.iter();
        match self.step {
            Step::Quiet { until_ns } => waiters
                .map(|waiter| waiter.hold_until(config.hold_quiet_ns))
                .chain([until_ns])
                .min(),
            Step::Root { .. } => waiters.map(|waiter| waiter.hold_until(config.hold_root_ns)).min(),
            _ => waiters.map(Waiter::expires_ns).min(),
        }
    }
}

impl Server {
    /// Starts a task's work from the beginning.
    pub(super) fn locate(&mut self, id: u64) {
        let Some(task) = self.tasks.get(id) else { return };
        task.step = Step::Locating;
        let (mount, path) = (task.place.mount, task.place.relative.clone());
        self.issue(Op::Locate { mount, path }, Owner::Task(id));
        self.set_timer(id);
    }

    pub(super) fn set_timer(&mut self, id: u64) {
        let due_ns = self.tasks.get(id).and_then(|task| task.due_ns(&self.config));
        self.tasks.set_timer(id, due_ns);
    }

    /// Does what the time demands.
    pub fn handle_timeout(&mut self, now: Now) {
        self.now_ns = now.now_ns;
        while let Some(id) = self.tasks.pop_due(now.now_ns) {
            let Some(task) = self.tasks.get(id) else { continue };
            match task.step {
                Step::Quiet { until_ns } if until_ns <= now.now_ns => self.locate(id),
                Step::Quiet { until_ns } => self.give_up_quiet(id, until_ns, now),
                Step::Root { .. } => self.give_up_root(id, now),
                _ => self.expire(id, now),
            }
        }
    }

    /// Drops waiters whose Interest is over; the task goes on, so that its result is not lost.
    fn expire(&mut self, id: u64, now: Now) {
        let Some(task) = self.tasks.get(id) else { return };
        let before = task.waiters.len();
        task.waiters.retain(|waiter| waiter.expires_ns() > now.now_ns);
        let expired = before - task.waiters.len();
        self.waiting -= expired;
        self.counters.expired += expired as u64;
        self.set_timer(id);
    }

    /// Takes the waiters of a task for whom `is_due`.
    pub(super) fn take_waiters(
        &mut self,
        id: u64,
        is_due: impl Fn(&Waiter) -> bool,
    ) -> Vec<Waiter> {
        let Some(task) = self.tasks.get(id) else { return Vec::new() };
        let waiters = std::mem::take(&mut task.waiters);
        let (due, rest): (Vec<_>, Vec<_>) = waiters.into_iter().partition(is_due);
        task.waiters = rest;
        self.waiting -= due.len();
        due
    }

    /// Ends a task and returns those it leaves unanswered.
    pub(super) fn end_task(&mut self, id: u64) -> Vec<Waiter> {
        let Some(task) = self.tasks.remove(id) else { return Vec::new() };
        self.waiting -= task.waiters.len();
        task.waiters
    }

    /// Ends a task nobody waits for.
    pub(super) fn end_if_alone(&mut self, id: u64) -> bool {
        let is_alone = self.tasks.get(id).is_some_and(|task| task.waiters.is_empty());
        if is_alone {
            self.tasks.remove(id);
        }
        is_alone
    }
}
