//! Decisions of a disk, without I/O: orders and outcomes in, actions and answers out.
//!
//! * handle: [`Machine::handle_insert`], [`Machine::handle_drop`] for orders that were verified;
//!   [`Machine::handle_progress`], [`Machine::handle_pulled`], [`Machine::handle_epoch_kept`],
//!   [`Machine::handle_removed`], [`Machine::handle_resolved`] for what became of actions;
//!   [`Machine::handle_timeout`].
//! * poll: [`Machine::poll_action`] and [`Machine::poll_drop`] until nothing is left;
//!   [`Machine::poll_timeout`].
//!
//! A content is waiting, being pulled, stored, refused for a while, or being removed. Stored means
//! that a receipt may have been given: such content goes only by an order of a head whose term is
//! not over, or when the head says that its attempt was aborted; either is recorded first. What was
//! not stored leaves nothing.
//!
//! Bounded: pulls at once and waiting, drops, questions to the head, and what is remembered of
//! dropped and refused contents ([`Limits`]). Stored contents are as many as the disk holds.

mod drops;
mod pulls;
mod resolve;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;

use byname_catalog::id::{ContentId, LeaseEpoch};
use byname_site::{Claim, Listed};

use crate::error::StoreFailure;
use crate::pull::{Kept, Pull};
use crate::scan::Scan;

use drops::PendingDrop;
pub use drops::{DropId, DropOutcome};
use pulls::{Pulling, Waiting};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

/// Times and bounds.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Contents that are pulled at once.
    pub pulls_max: usize,
    /// Contents that wait for their turn.
    pub waiting_max: usize,
    /// Octets that a pull brings in [`floor_ns`](Self::floor_ns), or it has failed.
    pub floor_bytes: u64,
    /// See [`floor_bytes`](Self::floor_bytes).
    pub floor_ns: u64,
    /// Time after which a writer who has no place gets one of somebody who has several.
    pub turn_ns: u64,
    /// Time in which a pull ends that was told to.
    pub ending_ns: u64,
    /// Time in which a pull ends of which all has come: for one sync of the largest content on the
    /// slowest disk.
    pub sync_ns: u64,
    /// Orders to drop that are being carried out.
    pub drops_max: usize,
    /// Questions to the head at once.
    pub questions_max: usize,
    /// Dropped contents that are remembered.
    pub dropped_max: usize,
    /// Refused contents that are remembered.
    pub refused_max: usize,
    /// Time for which a content that could not be stored is refused.
    pub refusal_ns: u64,
    /// Pause after which a writer may ask again.
    pub again_ms: u64,
    /// Age at which the head is asked what became of a content.
    pub ask_ns: u64,
    /// Pause after an answer that settles nothing, or none.
    pub ask_again_ns: u64,
    /// The same for content that the head does not know.
    pub ask_unknown_ns: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            pulls_max: 8,
            waiting_max: 1024,
            floor_bytes: 64 << 10,
            floor_ns: 30 * SECOND,
            turn_ns: 5 * SECOND,
            ending_ns: 30 * SECOND,
            sync_ns: 300 * SECOND,
            drops_max: 64,
            questions_max: 16,
            dropped_max: 1 << 20,
            refused_max: 4096,
            refusal_ns: 2 * SECOND,
            again_ms: 200,
            ask_ns: 60 * SECOND,
            ask_again_ns: 60 * SECOND,
            ask_unknown_ns: 24 * 3600 * SECOND,
        }
    }
}

/// Something to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Pull this content and store it; ends with [`Machine::handle_pulled`].
    Pull(Box<Pull>),
    /// Nobody wants it any more; the pull ends soon.
    Stop(ContentId),
    /// Keep the epoch; ends with [`Machine::handle_epoch_kept`].
    KeepEpoch(LeaseEpoch),
    /// Record that the content is gone for good, then remove it; ends with
    /// [`Machine::handle_removed`].
    Remove(ContentId),
    /// Note that the head has said that the content is part of the site.
    Settle(ContentId),
    /// Ask the head what became of the content; ends with [`Machine::handle_resolved`].
    Resolve(ContentId),
}

/// State of an insert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// It is being done.
    Pulling {
        /// Octets that are verified and written.
        received_bytes: u64,
        /// Pause after which to ask again, in milliseconds.
        again_ms: u64,
    },
    /// It is stored: a receipt may be given.
    Stored(Kept),
    /// It is not done.
    Refused(Refusal),
}

/// Reason for which a verified order is not carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The content was claimed to be something else.
    OtherClaim,
    /// The content was dropped.
    Dropped,
    /// There is too much to do.
    Busy,
    /// The order is of a head whose term is over.
    OldEpoch,
    /// It could not be stored.
    Store(StoreFailure),
}

/// State of a content.
#[derive(Debug)]
enum State {
    Waiting(Box<Pull>),
    /// `Machine::pulling` has it.
    Pulling,
    Stored {
        kept: Kept,
        is_settled: bool,
    },
    Refused {
        why: StoreFailure,
        until_ns: u64,
    },
    Removing,
    /// It was to be removed, and could not be: that is tried again.
    Unremoved,
}

/// Content as its writer claims it to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Claimed {
    size: u64,
    root: [u8; 32],
}

impl Claimed {
    fn of(pull: &Pull) -> Self {
        Self { size: pull.size, root: pull.root }
    }
}

/// See the module.
#[derive(Debug)]
pub struct Machine {
    limits: Limits,
    epoch: LeaseEpoch,
    /// The one that is on stable storage.
    kept_epoch: LeaseEpoch,
    contents: BTreeMap<ContentId, State>,
    dropped: BTreeSet<ContentId>,
    waiting: VecDeque<Waiting>,
    pulling: BTreeMap<ContentId, Pulling>,
    refused: VecDeque<ContentId>,
    drops: BTreeMap<DropId, PendingDrop>,
    next_drop: u64,
    drops_done: VecDeque<(DropId, DropOutcome)>,
    /// When to ask the head about which content, or to try again to remove it.
    questions: BTreeSet<(u64, ContentId)>,
    asked: BTreeSet<ContentId>,
    unknown: BTreeSet<ContentId>,
    health: Option<StoreFailure>,
    /// The highest number of a content that was there, or ordered.
    highest: u64,
    actions: VecDeque<Action>,
}

impl Machine {
    /// A disk on which this was found.
    pub fn new(limits: Limits, scan: &Scan, now_ns: u64) -> Self {
        let stored = scan.replicas.iter().map(|(content, record)| {
            let (size, root, checksums) = (record.size, record.root, record.checksums);
            let (kept, is_settled) = (Kept { size, root, checksums }, record.is_settled);
            (*content, State::Stored { kept, is_settled })
        });
        let unremoved = scan.unremoved.iter().map(|content| (*content, State::Unremoved));
        let seen = scan.replicas.keys().chain(&scan.dropped);
        let unsettled = scan.replicas.iter().filter(|(_, record)| !record.is_settled);
        let again_ns = now_ns.saturating_add(limits.ask_again_ns);
        let questions = unsettled.map(|(content, _)| (now_ns, *content));
        let questions = questions.chain(scan.unremoved.iter().map(|it| (again_ns, *it)));
        Self {
            limits,
            epoch: scan.epoch,
            kept_epoch: scan.epoch,
            contents: stored.chain(unremoved).collect(),
            dropped: scan.dropped.clone(),
            waiting: VecDeque::new(),
            pulling: BTreeMap::new(),
            refused: VecDeque::new(),
            drops: BTreeMap::new(),
            next_drop: 0,
            drops_done: VecDeque::new(),
            questions: questions.collect(),
            asked: BTreeSet::new(),
            unknown: BTreeSet::new(),
            health: None,
            highest: seen.map(number).max().unwrap_or_default(),
            actions: VecDeque::new(),
        }
    }

    /// The highest epoch seen.
    pub fn epoch(&self) -> LeaseEpoch {
        self.epoch
    }

    /// The highest number of a content that the disk has, had, or was told to take.
    pub fn highest(&self) -> u64 {
        self.highest
    }

    /// The last failure of the disk, until something could be written; that it fails while its file
    /// system hangs.
    pub fn health(&self) -> Option<StoreFailure> {
        if self.is_stuck() { Some(StoreFailure::Failing) } else { self.health }
    }

    /// It was tried whether the disk can be written to.
    pub fn handle_probed(&mut self, outcome: Result<(), StoreFailure>) {
        self.health = outcome.err();
    }

    /// Counts of contents.
    pub fn census(&self) -> Census {
        let stored = self.contents.values();
        Census {
            stored: stored.filter(|state| matches!(state, State::Stored { .. })).count(),
            waiting: self.waiting.len(),
            pulling: self.pulling.len(),
            unknown: self.unknown.len(),
        }
    }

    /// Octets of all that is stored.
    pub fn stored_bytes(&self) -> u64 {
        self.contents.iter().filter_map(listed).map(|it| it.size).sum()
    }

    /// True if the content is stored, and is not to be removed.
    pub fn has_stored(&self, content: ContentId) -> bool {
        matches!(self.contents.get(&content), Some(State::Stored { .. }))
    }

    /// Stored contents after one of them in ascending order, and whether these are all.
    pub fn list(&self, after: Option<ContentId>, limit: usize) -> (Vec<Listed>, bool) {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut stored = self.contents.range((from, Bound::Unbounded)).filter_map(listed);
        let page = stored.by_ref().take(limit).collect();
        (page, stored.next().is_none())
    }

    /// A content, if it is stored.
    pub fn stored(&self, content: ContentId) -> Option<Listed> {
        listed(self.contents.get_key_value(&content)?)
    }

    /// An order to pull a content, verified. The same order again tells how it goes.
    pub fn handle_insert(&mut self, pull: Pull, now_ns: u64) -> Progress {
        self.highest = self.highest.max(number(&pull.content));
        match self.known(pull.content, Claimed::of(&pull), now_ns) {
            Some(progress) => progress,
            None => self.queue_pull(pull, now_ns),
        }
    }

    /// How it goes with a content that was ordered. Whoever is told that it is being done asks
    /// again, and if it is not any more, orders it anew by that.
    pub fn progress_of(&self, claim: &Claim, now_ns: u64) -> Progress {
        let Claim { content, size, root } = *claim;
        let known = self.known(content, Claimed { size, root }, now_ns);
        known.unwrap_or(Progress::Pulling { received_bytes: 0, again_ms: self.limits.again_ms })
    }

    fn known(&self, content: ContentId, claimed: Claimed, now_ns: u64) -> Option<Progress> {
        if self.dropped.contains(&content) {
            return Some(Progress::Refused(Refusal::Dropped));
        }
        Some(match self.contents.get(&content)? {
            State::Stored { kept, .. } => {
                let has = Claimed { size: kept.size, root: kept.root };
                match has == claimed {
                    true => Progress::Stored(*kept),
                    false => Progress::Refused(Refusal::OtherClaim),
                }
            }
            State::Waiting(_) if self.is_stuck() => {
                Progress::Refused(Refusal::Store(StoreFailure::Failing))
            }
            State::Waiting(other) => self.progress(0, Claimed::of(other), claimed),
            State::Removing | State::Unremoved => Progress::Refused(Refusal::Dropped),
            State::Pulling => match self.pulling.get(&content) {
                Some(Pulling { is_unwanted: false, is_stuck: true, .. }) => {
                    Progress::Refused(Refusal::Store(StoreFailure::Failing))
                }
                Some(Pulling { is_unwanted: false, received_bytes, claim, .. }) => {
                    self.progress(*received_bytes, *claim, claimed)
                }
                _ => Progress::Refused(Refusal::Dropped),
            },
            State::Refused { why, until_ns } if now_ns < *until_ns => {
                Progress::Refused(Refusal::Store(*why))
            }
            State::Refused { .. } => return None,
        })
    }

    fn progress(&self, received_bytes: u64, claim: Claimed, claimed: Claimed) -> Progress {
        match claim == claimed {
            true => Progress::Pulling { received_bytes, again_ms: self.limits.again_ms },
            false => Progress::Refused(Refusal::OtherClaim),
        }
    }

    fn refuse(&mut self, content: ContentId, why: StoreFailure, now_ns: u64) {
        let until_ns = now_ns.saturating_add(self.limits.refusal_ns);
        self.contents.insert(content, State::Refused { why, until_ns });
        self.refused.push_back(content);
        if self.refused.len() > self.limits.refused_max
            && let Some(oldest) = self.refused.pop_front()
        {
            self.contents.remove(&oldest);
        }
    }

    fn remove(&mut self, content: ContentId) {
        self.contents.insert(content, State::Removing);
        self.questions.retain(|(_, asked)| *asked != content);
        self.unknown.remove(&content);
        self.actions.push_back(Action::Remove(content));
    }

    /// The next thing to do.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When [`Machine::handle_timeout`] has something to do.
    pub fn poll_timeout(&self) -> Option<u64> {
        let may_ask = self.asked.len() < self.limits.questions_max;
        let question = self.questions.first().filter(|_| may_ask).map(|(at_ns, _)| *at_ns);
        question.into_iter().chain(self.pulls_timeout()).min()
    }

    /// Does what the time demands.
    pub fn handle_timeout(&mut self, now_ns: u64) {
        self.end_late_pulls(now_ns);
        self.ask_due(now_ns);
    }
}

/// Inodes and versions are counted together.
fn number(content: &ContentId) -> u64 {
    content.inode.0.max(content.version.0)
}

fn listed((content, state): (&ContentId, &State)) -> Option<Listed> {
    match state {
        State::Stored { kept: Kept { size, root, .. }, .. } => {
            Some(Listed { content: *content, size: *size, root: *root })
        }
        _ => None,
    }
}

/// Counts of contents on a disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Census {
    /// Stored.
    pub stored: usize,
    /// Waiting to be pulled.
    pub waiting: usize,
    /// Being pulled.
    pub pulling: usize,
    /// Stored, and unknown to the head.
    pub unknown: usize,
}
