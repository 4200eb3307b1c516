//! Places for pulls: whose turn it is, and when a pull has had its time.
//!
//! A writer who is alone has all places. Those who wait are taken by writer, whoever has the fewest
//! places first. If somebody without a place has waited for a while, whoever has the most gives the
//! slowest of his pulls back, and asks for it again; so as many writers as there are places cannot
//! keep each other out. A pull that brings too little for too long has failed, also if nobody
//! waits. One that does not end although it depends on this disk alone shows that the file system
//! hangs: until it has ended the disk says that it fails, and takes nothing.

use std::collections::BTreeMap;

use byname_catalog::id::{ContentId, Version};
use byname_security::key::KeyId;
use byname_transfer::verify::WHOLE_BYTES_MAX;

use super::{Action, Claimed, Limits, Machine, Progress, Refusal, State};
use crate::error::StoreFailure;
use crate::pull::{Kept, Pull};

/// A content that waits for a place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting {
    pub(super) content: ContentId,
    writer: KeyId,
    since_ns: u64,
}

/// A pull that has a place.
#[derive(Debug)]
pub(super) struct Pulling {
    pub(super) claim: Claimed,
    pub(super) received_bytes: u64,
    /// It was dropped meanwhile.
    pub(super) is_unwanted: bool,
    writer: KeyId,
    begun_ns: u64,
    /// When it had last brought enough, and how much it had then.
    mark: (u64, u64),
    ending: Option<Ending>,
    /// When it has to have ended, once that is up to this disk alone.
    own_until_ns: Option<u64>,
    pub(super) is_stuck: bool,
}

/// Reason for which a pull that is still wanted was told to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    TooSlow,
    GivesWay,
}

impl Pulling {
    fn of(pull: &Pull, now_ns: u64) -> Self {
        Self {
            claim: Claimed::of(pull),
            received_bytes: 0,
            is_unwanted: false,
            writer: pull.writer,
            begun_ns: now_ns,
            mark: (now_ns, 0),
            ending: None,
            own_until_ns: None,
            is_stuck: false,
        }
    }

    /// True while it is up to the writer how long it takes.
    fn is_awaited(&self) -> bool {
        let is_ending = self.is_unwanted || self.ending.is_some();
        !is_ending && self.received_bytes < self.claim.size
    }

    /// When it has failed unless it brings enough before. What is small shows only at its end that
    /// it has come, since it is verified as a whole.
    fn late_ns(&self, limits: &Limits) -> u64 {
        let floors = match self.claim.size {
            0..=WHOLE_BYTES_MAX => self.claim.size.div_ceil(limits.floor_bytes.max(1)).max(1),
            _ => 1,
        };
        self.mark.0.saturating_add(limits.floor_ns.saturating_mul(floors))
    }

    /// True while only a sync is left to do.
    fn is_syncing(&self) -> bool {
        let is_ending = self.is_unwanted || self.ending.is_some();
        !is_ending && self.received_bytes >= self.claim.size
    }

    /// When it has to have ended, if that is up to this disk alone.
    fn deadline_ns(&self, limits: &Limits, now_ns: u64) -> Option<u64> {
        let time_ns = match (self.is_awaited(), self.is_syncing()) {
            (true, _) => return None,
            (false, true) => limits.sync_ns,
            (false, false) => limits.ending_ns,
        };
        Some(self.own_until_ns.unwrap_or(now_ns.saturating_add(time_ns)))
    }

    /// Octets a second since it began.
    fn rate(&self, now_ns: u64) -> u64 {
        let ms = now_ns.saturating_sub(self.begun_ns) / super::MS;
        self.received_bytes.saturating_mul(1000) / ms.max(1)
    }
}

impl Machine {
    /// A content that is new here: it waits for a place.
    pub(super) fn queue_pull(&mut self, pull: Pull, now_ns: u64) -> Progress {
        let (content, writer) = (pull.content, pull.writer);
        if self.is_stuck() {
            return Progress::Refused(Refusal::Store(StoreFailure::Failing));
        }
        let free = self.limits.waiting_max.saturating_sub(self.waiting.len());
        let own = self.waiting.iter().filter(|waiting| waiting.writer == writer).count();
        // Nobody has more of the queue than is left for others.
        if own >= free {
            return Progress::Refused(Refusal::Busy);
        }
        self.refused.retain(|refused| *refused != content);
        self.waiting.push_back(Waiting { content, writer, since_ns: now_ns });
        self.contents.insert(content, State::Waiting(Box::new(pull)));
        self.begin_pulls(now_ns);
        Progress::Pulling { received_bytes: 0, again_ms: self.limits.again_ms }
    }

    fn begin_pulls(&mut self, now_ns: u64) {
        while !self.is_stuck()
            && self.pulling.len() < self.limits.pulls_max
            && let Some(index) = self.next_waiting()
            && let Some(Waiting { content, .. }) = self.waiting.remove(index)
        {
            let Some(state) = self.contents.get_mut(&content) else { continue };
            let State::Waiting(pull) = state else { continue };
            self.pulling.insert(content, Pulling::of(pull, now_ns));
            if let State::Waiting(mut pull) = std::mem::replace(state, State::Pulling) {
                pull.older = self.older_than(content, pull.root);
                self.actions.push_back(Action::Pull(pull));
            }
        }
    }

    /// The newest stored version of a file before this one, or one that has the same content: an
    /// old version becomes the current one again.
    fn older_than(&self, content: ContentId, root: [u8; 32]) -> Option<ContentId> {
        let first = ContentId { version: Version(0), ..content };
        let stored = |(older, state): (&ContentId, &State)| match state {
            State::Stored { kept, .. } => Some((*older, kept.root == root)),
            _ => None,
        };
        let mut older = self.contents.range(first..content).rev().filter_map(stored);
        let newest = older.next()?;
        let same = [newest].into_iter().chain(older).find(|(_, is_same)| *is_same);
        Some(same.unwrap_or(newest).0)
    }

    /// The first of whoever has the fewest places.
    fn next_waiting(&self) -> Option<usize> {
        let places = self.places();
        let has = |waiting: &Waiting| places.get(&waiting.writer).copied().unwrap_or(0);
        let order = self.waiting.iter().enumerate();
        order.min_by_key(|(index, waiting)| (has(waiting), *index)).map(|(index, _)| index)
    }

    /// Places by writer.
    fn places(&self) -> BTreeMap<KeyId, usize> {
        let mut places = BTreeMap::new();
        for pulling in self.pulling.values() {
            *places.entry(pulling.writer).or_default() += 1;
        }
        places
    }

    /// So many more octets of a content are there.
    pub fn handle_progress(&mut self, content: ContentId, bytes: u64, now_ns: u64) {
        if let Some(pulling) = self.pulling.get_mut(&content) {
            pulling.received_bytes = pulling.received_bytes.saturating_add(bytes);
            if pulling.received_bytes - pulling.mark.1 >= self.limits.floor_bytes {
                pulling.mark = (now_ns, pulling.received_bytes);
            }
        }
    }

    /// What has come of a content is of no use, and is brought anew. Until it is there its end is
    /// up to its writer again, who may have meant that.
    pub fn handle_again(&mut self, content: ContentId, now_ns: u64) {
        if let Some(pulling) = self.pulling.get_mut(&content)
            && pulling.ending.is_none()
            && !pulling.is_unwanted
        {
            pulling.received_bytes = 0;
            pulling.mark = (now_ns, 0);
            pulling.own_until_ns = None;
            pulling.is_stuck = false;
        }
        self.begin_pulls(now_ns);
    }

    /// A pull has ended. `Ok` says that all of it, the record and the directories are synced.
    pub fn handle_pulled(
        &mut self,
        content: ContentId,
        outcome: Result<Kept, StoreFailure>,
        now_ns: u64,
    ) {
        let Some(Pulling { is_unwanted, ending, .. }) = self.pulling.remove(&content) else {
            return;
        };
        match outcome {
            Ok(_) => self.health = None,
            Err(why) if why.is_of_the_disk() => self.health = Some(why),
            Err(_) => {}
        }
        match (outcome, ending) {
            _ if is_unwanted => self.remove(content),
            (Ok(kept), _) => {
                self.contents.insert(content, State::Stored { kept, is_settled: false });
                self.ask_at(content, now_ns.saturating_add(self.limits.ask_ns));
            }
            (Err(StoreFailure::Stopped), Some(Ending::TooSlow)) => {
                self.refuse(content, StoreFailure::Slow, now_ns);
            }
            // Its writer asks for it again, and waits as one who comes new.
            (Err(StoreFailure::Stopped), Some(Ending::GivesWay)) => {
                self.contents.remove(&content);
            }
            (Err(why), _) => self.refuse(content, why, now_ns),
        }
        self.begin_pulls(now_ns);
    }

    /// True while the file system does not answer.
    pub(super) fn is_stuck(&self) -> bool {
        self.pulling.values().any(|pulling| pulling.is_stuck)
    }

    /// When a pull has had its time, or somebody has waited for his.
    pub(super) fn pulls_timeout(&self) -> Option<u64> {
        let awaited = self.pulling.values().filter(|pulling| pulling.is_awaited());
        let floor = awaited.map(|it| it.late_ns(&self.limits)).min();
        let own = self.pulling.values().filter(|it| !it.is_awaited() && !it.is_stuck);
        // One without a time gets it at once.
        let stuck = own.map(|it| it.own_until_ns.map_or(0, |at_ns| self.stuck_at_ns(it, at_ns)));
        let turn = self.turn().map(|(at_ns, _)| at_ns);
        floor.into_iter().chain(stuck.min()).chain(turn).min()
    }

    /// When a pull that has to have ended by then shows that the file system hangs: a sync of
    /// another one may hold it up.
    fn stuck_at_ns(&self, pulling: &Pulling, until_ns: u64) -> u64 {
        let is_held_up = !pulling.is_syncing();
        let syncing = self.pulling.values().filter(|it| is_held_up && it.is_syncing());
        let others = syncing.filter(|it| !it.is_stuck).filter_map(|it| it.own_until_ns);
        others.fold(until_ns, u64::max)
    }

    fn find_stuck(&mut self, now_ns: u64) {
        for pulling in self.pulling.values_mut() {
            pulling.own_until_ns = pulling.deadline_ns(&self.limits, now_ns);
        }
        let is_over = |pulling: &Pulling| {
            pulling.own_until_ns.is_some_and(|at_ns| self.stuck_at_ns(pulling, at_ns) <= now_ns)
        };
        let over = self.pulling.iter().filter(|(_, pulling)| is_over(pulling));
        let over: Vec<ContentId> = over.map(|(content, _)| *content).collect();
        for content in over {
            if let Some(pulling) = self.pulling.get_mut(&content) {
                pulling.is_stuck = true;
            }
        }
    }

    pub(super) fn end_late_pulls(&mut self, now_ns: u64) {
        let is_late =
            |pulling: &Pulling| pulling.is_awaited() && pulling.late_ns(&self.limits) <= now_ns;
        let late = self.pulling.iter().filter(|(_, pulling)| is_late(pulling));
        let late: Vec<ContentId> = late.map(|(content, _)| *content).collect();
        for content in late {
            self.end_pull(content, Ending::TooSlow);
        }
        if let Some((at_ns, holder)) = self.turn()
            && at_ns <= now_ns
        {
            let of_holder = self.pulling.iter().filter(|(_, it)| it.writer == holder);
            let awaited = of_holder.filter(|(_, pulling)| pulling.is_awaited());
            let slowest = awaited.min_by_key(|(_, pulling)| pulling.rate(now_ns));
            if let Some(content) = slowest.map(|(content, _)| *content) {
                self.end_pull(content, Ending::GivesWay);
            }
        }
        self.find_stuck(now_ns);
    }

    /// When somebody who has no place gets one of this writer's, who has the most.
    fn turn(&self) -> Option<(u64, KeyId)> {
        if self.waiting.is_empty() || self.pulling.values().any(|it| it.ending.is_some()) {
            return None;
        }
        let places = self.places();
        let first = self.waiting.iter().find(|waiting| !places.contains_key(&waiting.writer))?;
        let is_awaited = |writer: &KeyId| {
            self.pulling.values().any(|it| it.writer == *writer && it.is_awaited())
        };
        let several = places.iter().filter(|(writer, count)| **count > 1 && is_awaited(writer));
        let (holder, _) = several.max_by_key(|(_, count)| **count)?;
        Some((first.since_ns.saturating_add(self.limits.turn_ns), *holder))
    }

    fn end_pull(&mut self, content: ContentId, ending: Ending) {
        if let Some(pulling) = self.pulling.get_mut(&content) {
            pulling.ending = Some(ending);
            self.actions.push_back(Action::Stop(content));
        }
    }
}
