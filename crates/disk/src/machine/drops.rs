//! Orders to drop: the epoch is durable before anything is removed, and all is removed before the
//! order is answered.

use std::collections::BTreeSet;

use byname_catalog::id::{ContentId, LeaseEpoch};

use super::{Action, Machine, Refusal, State};
use crate::error::StoreFailure;

/// An order to drop that is being carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DropId(u64);

/// Outcome of an order to drop: the epoch that is obeyed from now on, or why not all is gone.
pub type DropOutcome = Result<LeaseEpoch, StoreFailure>;

/// What an order still waits for.
#[derive(Debug)]
pub(super) struct PendingDrop {
    epoch: LeaseEpoch,
    awaits_epoch: bool,
    /// It names nothing, so it asks whether the disk is well.
    is_question: bool,
    left: BTreeSet<ContentId>,
}

impl Machine {
    /// An order of a head to drop contents, verified. Its outcome comes by
    /// [`Machine::poll_drop`]; that of an order which names nothing is how the disk is.
    ///
    /// # Errors
    /// [`Refusal`] `OldEpoch` or `Busy`.
    pub fn handle_drop(
        &mut self,
        epoch: LeaseEpoch,
        contents: &[ContentId],
    ) -> Result<DropId, Refusal> {
        if epoch < self.epoch {
            return Err(Refusal::OldEpoch);
        }
        if self.drops.len() >= self.limits.drops_max {
            return Err(Refusal::Busy);
        }
        let id = DropId(self.next_drop);
        self.next_drop += 1;
        let awaits_epoch = epoch > self.kept_epoch;
        if awaits_epoch {
            self.epoch = epoch;
            self.actions.push_back(Action::KeepEpoch(epoch));
        }
        let left = contents.iter().filter(|content| !self.dropped.contains(content)).copied();
        let left: BTreeSet<ContentId> = left.collect();
        let is_question = contents.is_empty();
        self.drops.insert(id, PendingDrop { epoch, awaits_epoch, is_question, left });
        if !awaits_epoch {
            self.begin_drop(id);
        }
        Ok(id)
    }

    /// An order whose outcome is known.
    pub fn poll_drop(&mut self) -> Option<(DropId, DropOutcome)> {
        self.drops_done.pop_front()
    }

    /// The epoch is on stable storage, or cannot be.
    pub fn handle_epoch_kept(&mut self, epoch: LeaseEpoch, outcome: Result<(), StoreFailure>) {
        if outcome.is_ok() {
            self.kept_epoch = self.kept_epoch.max(epoch);
        }
        let waiting = self.drops.iter().filter(|(_, drop)| drop.awaits_epoch);
        let waiting: Vec<DropId> =
            waiting.filter(|(_, drop)| drop.epoch <= epoch).map(|(id, _)| *id).collect();
        for id in waiting {
            match outcome {
                Ok(()) => {
                    if let Some(drop) = self.drops.get_mut(&id) {
                        drop.awaits_epoch = false;
                    }
                    self.begin_drop(id);
                }
                Err(why) => {
                    self.health = Some(why);
                    self.drops.remove(&id);
                    self.drops_done.push_back((id, Err(why)));
                }
            }
        }
    }

    fn begin_drop(&mut self, id: DropId) {
        let Some(drop) = self.drops.get(&id) else { return };
        for content in drop.left.clone() {
            self.begin_removal(content);
        }
        self.end_drops();
    }

    fn begin_removal(&mut self, content: ContentId) {
        match self.contents.get(&content) {
            Some(State::Removing) => {}
            Some(State::Pulling) => {
                let pulling = self.pulling.get_mut(&content);
                if pulling.is_some_and(|it| !std::mem::replace(&mut it.is_unwanted, true)) {
                    self.actions.push_back(Action::Stop(content));
                }
            }
            Some(State::Waiting(_)) => {
                self.waiting.retain(|waiting| waiting.content != content);
                self.remove(content);
            }
            // What is not here must not come any more.
            Some(State::Stored { .. } | State::Refused { .. } | State::Unremoved) | None => {
                self.remove(content)
            }
        }
    }

    /// A content is gone for good, or could not be removed.
    pub fn handle_removed(
        &mut self,
        content: ContentId,
        outcome: Result<(), StoreFailure>,
        now_ns: u64,
    ) {
        match outcome {
            Ok(()) => self.note_removed(content),
            Err(why) => {
                // It is not served as stored, and not said to be gone.
                self.contents.insert(content, State::Unremoved);
                self.ask_at(content, now_ns.saturating_add(self.limits.ask_again_ns));
                self.health = Some(why);
                let hit = self.drops.iter().filter(|(_, drop)| drop.left.contains(&content));
                let failed: Vec<DropId> = hit.map(|(id, _)| *id).collect();
                for id in failed {
                    self.drops.remove(&id);
                    self.drops_done.push_back((id, Err(why)));
                }
            }
        }
        self.end_drops();
    }

    fn note_removed(&mut self, content: ContentId) {
        self.contents.remove(&content);
        self.dropped.insert(content);
        if self.dropped.len() > self.limits.dropped_max {
            self.dropped.pop_first();
        }
        for drop in self.drops.values_mut() {
            drop.left.remove(&content);
        }
    }

    fn end_drops(&mut self) {
        let is_done = |drop: &PendingDrop| !drop.awaits_epoch && drop.left.is_empty();
        let done = self.drops.iter().filter(|(_, drop)| is_done(drop));
        let done: Vec<(DropId, bool)> = done.map(|(id, drop)| (*id, drop.is_question)).collect();
        for (id, is_question) in done {
            self.drops.remove(&id);
            let failure = self.health().filter(|_| is_question);
            self.drops_done.push_back((id, failure.map_or(Ok(self.epoch), Err)));
        }
    }
}
