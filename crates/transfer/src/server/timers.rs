//! Tasks in time: what a task does first, who is answered when, and how it ends.

use super::Server;
use super::arrival::Now;
use super::ops::Op;
use super::tasks::Step;
use super::waiters::{Owner, Waiter};

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
        self.expire_tasks(now);
        self.begin_lookups(now);
    }

    fn expire_tasks(&mut self, now: Now) {
        while let Some(id) = self.tasks.pop_due(now.now_ns) {
            let Some(task) = self.tasks.get(id) else { continue };
            match task.step {
                Step::Quiet { until_ns } if until_ns <= now.now_ns => self.locate(id),
                Step::Quiet { until_ns } => self.give_up_quiet(id, until_ns, now),
                Step::Root { .. } => self.give_up_root(id, now),
                Step::Listing { .. } | Step::RecallingListing(_) | Step::AnnouncingListing(..) => {
                    self.give_up_listing(id, now)
                }
                _ => self.expire(id, now),
            }
        }
    }

    /// Drops waiters whose Interest is over; the task goes on, so that its result is not lost.
    pub(super) fn expire(&mut self, id: u64, now: Now) {
        let Some(task) = self.tasks.get(id) else { return };
        let waiters = std::mem::take(&mut task.waiters);
        let (expired, left): (Vec<_>, Vec<_>) =
            waiters.into_iter().partition(|waiter| waiter.expires_ns() <= now.now_ns);
        task.waiters = left;
        // The signature may still be made, for those who are left.
        expired.iter().for_each(|waiter| self.note_left(waiter));
        self.counters.expired += expired.len() as u64;
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
        due.iter().for_each(|waiter| self.note_left(waiter));
        due
    }

    /// Ends a task and returns those it leaves unanswered.
    pub(super) fn end_task(&mut self, id: u64) -> Vec<Waiter> {
        let Some(task) = self.tasks.remove(id) else { return Vec::new() };
        task.waiters.iter().for_each(|waiter| self.note_left(waiter));
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
