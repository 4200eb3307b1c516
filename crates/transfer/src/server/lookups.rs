//! Lookups that wait for their turn: who asks shares the disk and the signatures with all others.
//!
//! Each lookup costs operations of the executor and, if a description or an absence is asked for, a
//! signature. Both are bounded ([`ServerConfig::lookups_max`], [`ServerConfig::signatures_per_s`]).
//! What is beyond that waits in a short queue of its asker, and askers take turns; who has more
//! waiting than can be signed in its share of half a second gets a congestion Nack before any
//! work is done. So a flood of names costs its sender, and a single question one turn.
//!
//! A signature is paid for when the lookup begins and given back if none was needed.
//!
//! [`ServerConfig::lookups_max`]: super::ServerConfig::lookups_max
//! [`ServerConfig::signatures_per_s`]: super::ServerConfig::signatures_per_s

use std::collections::HashMap;

use byname_packet::Name;

use super::Server;
use super::arrival::{Asker, Now};
use super::tasks::Place;
use super::turns::Turns;
use super::waiters::{Waiter, Wants};

/// An asker may have so many lookups waiting, however many askers there are.
const QUEUE_MIN: usize = 16;
/// Queues hold what can be signed in one of so many parts of a second.
const QUEUE_PART: u64 = 2;

/// A lookup that has not begun.
pub(super) struct QueuedLookup {
    pub(super) object: Name,
    pub(super) place: Place,
    pub(super) waiter: Waiter,
}

/// Lookups that have not begun, and who has how many Interests waiting with any lookup.
#[derive(Default)]
pub(super) struct Lookups {
    /// Those that may need a signature.
    signed: Turns<QueuedLookup>,
    /// Those for segments of versions that are not open.
    unsigned: Turns<QueuedLookup>,
    /// Interests that wait, begun or not.
    held: HashMap<Asker, usize>,
    /// Operations of lookups that the executor has not completed.
    pub(super) ops_in_flight: usize,
    /// The kinds take turns, too.
    was_signed: bool,
}

impl Lookups {
    pub(super) fn is_held_up(&self) -> bool {
        !self.signed.is_empty()
    }

    /// Interests of `asker` that wait.
    pub(super) fn held_by(&self, asker: Asker) -> usize {
        self.held.get(&asker).copied().unwrap_or(0)
    }

    pub(super) fn note_waiting(&mut self, asker: Asker) {
        *self.held.entry(asker).or_default() += 1;
    }

    pub(super) fn note_left(&mut self, asker: Asker) {
        if let Some(held) = self.held.get_mut(&asker) {
            *held -= 1;
            if *held == 0 {
                self.held.remove(&asker);
            }
        }
    }
}

impl Server {
    /// Lets a lookup wait for its turn; false if its asker has too many waiting.
    pub(super) fn queue_lookup(&mut self, queued: QueuedLookup) -> bool {
        let asker = queued.waiter.echo.asker();
        let turns = match queued.waiter.wants {
            Wants::Metadata { .. } => &mut self.lookups.signed,
            Wants::Segment { .. } => &mut self.lookups.unsigned,
        };
        let in_time = (self.config.signatures_per_s / QUEUE_PART) as usize;
        if turns.len_of(asker) >= (in_time / turns.askers_with(asker)).max(QUEUE_MIN) {
            return false;
        }
        turns.push(asker, queued);
        true
    }

    /// Begins lookups as far as operations and signatures allow, in turn.
    pub(super) fn begin_lookups(&mut self, now: Now) {
        while self.lookups.ops_in_flight < self.config.lookups_max {
            let Some(QueuedLookup { object, place, waiter }) = self.pop_lookup(now) else { return };
            if waiter.expires_ns() <= now.now_ns {
                self.counters.expired += 1;
                self.give_back(&waiter);
                self.note_left(&waiter);
                continue;
            }
            match self.tasks.by_path(object.view().value()) {
                Some(task) => {
                    task.waiters.push(waiter);
                    let id = task.id;
                    self.set_timer(id);
                }
                None => {
                    let id = self.tasks.start(object, place, waiter);
                    self.locate(id);
                }
            }
        }
    }

    fn pop_lookup(&mut self, now: Now) -> Option<QueuedLookup> {
        let first = if self.lookups.was_signed { None } else { self.pop_signed(now) };
        self.lookups.was_signed = first.is_some();
        first.or_else(|| self.lookups.unsigned.pop(|_| true)).or_else(|| self.pop_signed(now))
    }

    /// The next lookup that needs no signature, or whose signature can be paid for.
    fn pop_signed(&mut self, now: Now) -> Option<QueuedLookup> {
        let can_pay = self.answers.can_sign(now.now_ns);
        let (answers, mirrors) = (&self.answers, &self.mirrors);
        let costs = |queued: &QueuedLookup| {
            let is_mirror = mirrors.options.contains_key(&queued.place.mount);
            !is_mirror && !answers.is_at_hand(&queued.waiter.wire, now.now_ns)
        };
        let mut next = self.lookups.signed.pop(|queued| can_pay || !costs(queued))?;
        if costs(&next) {
            self.answers.pay();
            next.waiter.has_paid = true;
        }
        Some(next)
    }

    /// Gives back what a waiter has paid and did not need.
    pub(super) fn give_back(&mut self, waiter: &Waiter) {
        if waiter.has_paid {
            self.answers.give_back();
        }
    }

    /// A waiter waits no longer.
    pub(super) fn note_left(&mut self, waiter: &Waiter) {
        self.waiting -= 1;
        self.lookups.note_left(waiter.echo.asker());
    }

    /// When lookups that wait for signatures can begin.
    pub(super) fn lookups_due_ns(&self) -> Option<u64> {
        let has_room = self.lookups.ops_in_flight < self.config.lookups_max;
        (has_room && self.lookups.is_held_up()).then(|| self.answers.next_signature_ns())
    }
}
