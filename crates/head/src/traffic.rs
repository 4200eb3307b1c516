//! What is asked of a head, by operation and by who asks, and how much of it a user may.
//!
//! Commands and questions of a user count as they are taken, whatever comes of them. A user who has
//! sent as many as he may in a second is told that the head is busy, which his programs take for
//! "later": so a client in a loop slows itself down, however many connections it has, and nobody
//! else. What a door sends for a user counts for both, if the door may speak for him, and for the
//! door alone otherwise: a door that lies uses up nobody's share. Disks are not bounded.
//!
//! Bounded: [`USERS_MAX`] users are remembered, those who asked last.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use byname_catalog::id::DiskId;

const SECOND_NS: u64 = 1_000_000_000;
/// Users that are remembered.
const USERS_MAX: usize = 4096;
/// Operations that are told apart; the rest is one.
const OPERATIONS_MAX: usize = 128;
/// Operations of one batch, and some room.
const BATCH_MAX: usize = 1024;
/// What is left of a second's share gathers for so many seconds.
const BURST_S: u64 = 2;

/// Commands and questions that may be sent in a second; none is no bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rates {
    /// By one user, and by doors for him.
    pub user: Option<u64>,
    /// By one door, for all its users.
    pub door: Option<u64>,
}

/// Who asks, as it is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asker<'a> {
    User(&'a str),
    Disk(DiskId),
    /// A door, and the user for whom it may speak.
    Door(&'a str, Option<&'a str>),
}

/// Name of whoever asks, and of the door through which it is asked.
type Who = (String, Option<String>);

/// Counts of one user or disk, since the head leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct UserTraffic {
    pub(crate) commands: u64,
    pub(crate) questions: u64,
    /// Of both, those that came too fast.
    pub(crate) held_back: u64,
    /// What he may still ask for now, in billionths, and when that was counted.
    tokens: Option<(u64, u64)>,
    /// When he asked last.
    seen_ns: u64,
}

/// Counts of one operation, since the head leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct OperationTraffic {
    pub(crate) count: u64,
    /// Of them, those that changed or answered nothing.
    pub(crate) failed: u64,
    /// Nanoseconds from when they were taken to when they were answered, in all and at most.
    pub(crate) took_ns: u64,
    pub(crate) longest_ns: u64,
}

#[derive(Debug, Default)]
struct Shared {
    users: BTreeMap<Who, UserTraffic>,
    operations: BTreeMap<String, OperationTraffic>,
    /// Operations of the batch that is being executed: name, and whether it failed.
    batch: Vec<(String, bool)>,
}

/// See the module. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Traffic(Arc<Mutex<Shared>>);

impl Traffic {
    fn with<T>(&self, work: impl FnOnce(&mut Shared) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Counts a command or a question; false if who asks has to wait.
    pub(crate) fn admit(
        &self,
        asker: Asker<'_>,
        (is_question, rates): (bool, Rates),
        now_ns: u64,
    ) -> bool {
        let plain = |name: String| (name, None);
        let door = |name: &str| plain(format!("door {name}"));
        self.with(|shared| match asker {
            Asker::User(user) => {
                let who = plain(user.to_owned());
                shared.count(&who, is_question, now_ns);
                shared.take(&who, rates.user, now_ns)
            }
            Asker::Disk(disk) => {
                shared.count(&plain(format!("disk {}", disk.0)), is_question, now_ns);
                true
            }
            Asker::Door(name, None) => {
                shared.count(&door(name), is_question, now_ns);
                shared.take(&door(name), rates.door, now_ns)
            }
            Asker::Door(name, Some(user)) => {
                shared.count(&door(name), is_question, now_ns);
                shared.count(&(user.to_owned(), Some(name.to_owned())), is_question, now_ns);
                shared.take(&door(name), rates.door, now_ns)
                    && shared.take(&plain(user.to_owned()), rates.user, now_ns)
            }
        })
    }

    /// Notes an operation of the batch that is being executed.
    pub(crate) fn note(&self, operation: &str, has_failed: bool) {
        self.with(|shared| {
            // Where nobody ends batches nothing is counted.
            if shared.batch.len() < BATCH_MAX {
                shared.batch.push((operation.to_owned(), has_failed));
            }
        });
    }

    /// Counts the operations that were noted since the last time: they took so long.
    pub(crate) fn end_batch(&self, took_ns: u64) {
        self.with(|shared| {
            for (operation, has_failed) in std::mem::take(&mut shared.batch) {
                let is_known = shared.operations.contains_key(&operation);
                let is_room = is_known || shared.operations.len() < OPERATIONS_MAX;
                let name = if is_room { operation } else { "others".to_owned() };
                let of = shared.operations.entry(name).or_default();
                of.count += 1;
                of.failed += u64::from(has_failed);
                of.took_ns = of.took_ns.saturating_add(took_ns);
                of.longest_ns = of.longest_ns.max(took_ns);
            }
        });
    }

    /// Counts by operation.
    pub(crate) fn operations(&self) -> Vec<(String, OperationTraffic)> {
        self.with(|shared| shared.operations.iter().map(|(it, of)| (it.clone(), *of)).collect())
    }

    /// Counts by who asks, those first who asked for most.
    pub(crate) fn users(&self) -> Vec<(Who, UserTraffic)> {
        let mut users: Vec<(Who, UserTraffic)> =
            self.with(|shared| shared.users.iter().map(|(it, of)| (it.clone(), *of)).collect());
        // Of a user who came through doors alone only his share is kept.
        users.retain(|(_, of)| of.commands + of.questions + of.held_back > 0);
        users.sort_by_key(|(name, of)| {
            (std::cmp::Reverse(of.commands.saturating_add(of.questions)), name.clone())
        });
        users
    }
}

impl Shared {
    fn count(&mut self, who: &Who, is_question: bool, now_ns: u64) {
        let user = self.user(who, now_ns);
        *(if is_question { &mut user.questions } else { &mut user.commands }) += 1;
        user.seen_ns = now_ns;
    }

    /// Takes one of what somebody may ask for, if there is any left.
    fn take(&mut self, who: &Who, per_s: Option<u64>, now_ns: u64) -> bool {
        let Some(per_s) = per_s else { return true };
        let user = self.user(who, now_ns);
        let is_taken = user.take(per_s, now_ns);
        user.held_back += u64::from(!is_taken);
        is_taken
    }

    /// Counts of somebody. Forgets who asked the longest ago, if it is somebody new and there are
    /// enough.
    fn user(&mut self, who: &Who, now_ns: u64) -> &mut UserTraffic {
        if self.users.len() >= USERS_MAX && !self.users.contains_key(who) {
            let oldest = self.users.iter().min_by_key(|(_, user)| user.seen_ns);
            if let Some(oldest) = oldest.map(|(who, _)| who.clone()) {
                self.users.remove(&oldest);
            }
        }
        let new = || UserTraffic { seen_ns: now_ns, ..UserTraffic::default() };
        self.users.entry(who.clone()).or_insert_with(new)
    }
}

impl UserTraffic {
    fn take(&mut self, per_s: u64, now_ns: u64) -> bool {
        let most = per_s.saturating_mul(BURST_S * SECOND_NS);
        let (had, at_ns) = self.tokens.unwrap_or((most, now_ns));
        // A clock that was set back gives nothing, and takes nothing.
        let passed_ns = now_ns.saturating_sub(at_ns);
        let has = had.saturating_add(passed_ns.saturating_mul(per_s)).min(most);
        let left = has.checked_sub(SECOND_NS);
        self.tokens = Some((left.unwrap_or(has), now_ns));
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATES: Rates = Rates { user: Some(100), door: Some(300) };

    fn plain(name: &str) -> Who {
        (name.to_owned(), None)
    }

    #[test]
    fn who_asks_too_fast_waits_and_nobody_else_does() {
        let traffic = Traffic::default();
        let mut taken = 0;
        // A thousand a millisecond for ten seconds, by one; one in a while by another.
        for step in 0..10_000_u64 {
            let now_ns = SECOND_NS * 1_000_000 + step * 1_000_000;
            for _ in 0..10 {
                taken += u64::from(traffic.admit(Asker::User("loop"), (false, RATES), now_ns));
            }
            if step % 20 == 0 {
                assert!(traffic.admit(Asker::User("anna"), (true, RATES), now_ns), "{step}");
            }
            assert!(
                traffic.admit(Asker::Disk(DiskId(7)), (false, RATES), now_ns),
                "disks are not bounded"
            );
        }
        assert!((1000..=1210).contains(&taken), "{taken} in ten seconds at 100 a second");
        let users = traffic.users();
        assert_eq!((&users[0].0, users[0].1.commands), (&plain("loop"), 100_000));
        assert_eq!(users[0].1.held_back, 100_000 - taken);
        assert!(users.iter().any(|(who, of)| *who == plain("anna") && of.held_back == 0));
    }

    #[test]
    fn what_a_door_sends_counts_for_the_door_and_for_whom_it_may_speak() {
        let traffic = Traffic::default();
        let now_ns = SECOND_NS * 1_000_000;
        let admit = |asker| traffic.admit(asker, (false, RATES), now_ns);
        let through = |user| Asker::Door("xrd", Some(user));
        // Two seconds' share of anna, whichever way she comes.
        assert_eq!((0..300).filter(|_| admit(through("anna"))).count(), 200);
        assert!(!admit(Asker::User("anna")) && admit(Asker::User("bert")));
        // Of the door, six hundred in all; a lie is the door's alone.
        assert_eq!((0..500).filter(|_| admit(Asker::Door("xrd", None))).count(), 300);
        assert!(!admit(through("carl")) && admit(Asker::User("carl")));
        let users = traffic.users();
        let of = |who: Who| users.iter().find(|(it, _)| *it == who).map(|(_, of)| of.commands);
        assert_eq!(of(("anna".into(), Some("xrd".into()))), Some(300));
        assert_eq!((of(plain("anna")), of(plain("door xrd"))), (Some(1), Some(801)));
    }

    #[test]
    fn users_and_operations_that_are_remembered_are_bounded() {
        let traffic = Traffic::default();
        for number in 0..2 * USERS_MAX as u64 {
            assert!(traffic.admit(Asker::User(&format!("u{number}")), (false, RATES), number));
            traffic.note(&format!("operation {number}"), false);
            traffic.end_batch(5);
        }
        assert_eq!(traffic.users().len(), USERS_MAX);
        assert_eq!(traffic.operations().len(), OPERATIONS_MAX + 1);
        let count: u64 = traffic.operations().iter().map(|(_, of)| of.count).sum();
        assert_eq!(count, 2 * USERS_MAX as u64);
    }
}
