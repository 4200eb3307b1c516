//! What is asked of a head, by operation and by who asks, and how much of it a user may.
//!
//! Commands and questions of a user count as they are taken, whatever comes of them. A user who has
//! sent as many as he may in a second is told that the head is busy, which his programs take for
//! "later": so a client in a loop slows itself down, however many connections it has, and nobody
//! else. What a door sends for a user counts for both, if the door may speak for him, and for the
//! door alone otherwise: a door that lies uses up nobody's share. Disks are not bounded.
//!
//! What was executed or answered has a time as well, which is that of its batch, by operation and
//! for whoever is counted already: no name gets a row by what it is told alone.
//!
//! Bounded: [`USERS_MAX`] users are remembered, those who asked last.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use byname_catalog::Caller;
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
    /// Times of those that were executed or answered.
    pub(crate) times: Times,
    /// What he may still ask for now, in billionths, and when that was counted.
    tokens: Option<(u64, u64)>,
    /// When he asked last.
    seen_ns: u64,
}

/// Times from when commands and questions were taken to when they were answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Times {
    /// How many.
    pub count: u64,
    /// Nanoseconds in all.
    pub took_ns: u64,
    /// The longest.
    pub longest_ns: u64,
}

/// Counts of one operation, since the head leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct OperationTraffic {
    pub(crate) times: Times,
    /// Of them, those that changed or answered nothing.
    pub(crate) failed: u64,
}

/// An operation of the batch that is being executed.
#[derive(Debug)]
struct Noted {
    operation: String,
    has_failed: bool,
    /// Who asked, and the door on its own if there is one.
    by: [Option<Who>; 2],
}

#[derive(Debug, Default)]
struct Shared {
    users: BTreeMap<Who, UserTraffic>,
    operations: BTreeMap<String, OperationTraffic>,
    batch: Vec<Noted>,
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
        self.with(|shared| match asker {
            Asker::User(user) => {
                let who = plain(user.to_owned());
                shared.count(&who, is_question, now_ns);
                shared.take(&who, rates.user, now_ns)
            }
            Asker::Disk(disk) => {
                shared.count(&disk_itself(disk), is_question, now_ns);
                true
            }
            Asker::Door(name, None) => {
                shared.count(&door_alone(name), is_question, now_ns);
                shared.take(&door_alone(name), rates.door, now_ns)
            }
            Asker::Door(name, Some(user)) => {
                shared.count(&door_alone(name), is_question, now_ns);
                shared.count(&(user.to_owned(), Some(name.to_owned())), is_question, now_ns);
                shared.take(&door_alone(name), rates.door, now_ns)
                    && shared.take(&plain(user.to_owned()), rates.user, now_ns)
            }
        })
    }

    /// Notes an operation of the batch that is being executed, and who asked for it.
    pub(crate) fn note(&self, caller: &Caller, operation: &str, has_failed: bool) {
        let by = match caller {
            Caller::User(user) => [Some(plain(user.clone())), None],
            Caller::Door(spoken) => {
                let through = (spoken.user.clone(), Some(spoken.door.clone()));
                [Some(through), Some(door_alone(&spoken.door))]
            }
            Caller::Disk(disk) => [Some(disk_itself(*disk)), None],
            Caller::Head => [None, None],
        };
        self.with(|shared| {
            // Where nobody ends batches nothing is counted.
            if shared.batch.len() < BATCH_MAX {
                shared.batch.push(Noted { operation: operation.to_owned(), has_failed, by });
            }
        });
    }

    /// Counts the operations that were noted since the last time: they took so long.
    pub(crate) fn end_batch(&self, took_ns: u64) {
        self.with(|shared| {
            for Noted { operation, has_failed, by } in std::mem::take(&mut shared.batch) {
                let is_known = shared.operations.contains_key(&operation);
                let is_room = is_known || shared.operations.len() < OPERATIONS_MAX;
                let name = if is_room { operation } else { "others".to_owned() };
                let of = shared.operations.entry(name).or_default();
                of.failed += u64::from(has_failed);
                of.times.count(took_ns);
                for who in by.into_iter().flatten() {
                    if let Some(user) = shared.users.get_mut(&who) {
                        user.times.count(took_ns);
                    }
                }
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

/// Somebody who asks for himself.
fn plain(name: String) -> Who {
    (name, None)
}

/// A door, whomever it speaks for.
fn door_alone(name: &str) -> Who {
    plain(format!("door {name}"))
}

fn disk_itself(disk: DiskId) -> Who {
    plain(format!("disk {}", disk.0))
}

impl Times {
    fn count(&mut self, took_ns: u64) {
        self.count += 1;
        self.took_ns = self.took_ns.saturating_add(took_ns);
        self.longest_ns = self.longest_ns.max(took_ns);
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
    use byname_catalog::SpokenFor;

    const RATES: Rates = Rates { user: Some(100), door: Some(300) };

    fn named(name: &str) -> Who {
        plain(name.to_owned())
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
        assert_eq!((&users[0].0, users[0].1.commands), (&named("loop"), 100_000));
        assert_eq!(users[0].1.held_back, 100_000 - taken);
        assert!(users.iter().any(|(who, of)| *who == named("anna") && of.held_back == 0));
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
        assert_eq!((of(named("anna")), of(named("door xrd"))), (Some(1), Some(801)));
    }

    #[test]
    fn users_and_operations_that_are_remembered_are_bounded() {
        let traffic = Traffic::default();
        for number in 0..2 * USERS_MAX as u64 {
            assert!(traffic.admit(Asker::User(&format!("u{number}")), (false, RATES), number));
            let by = Caller::User(format!("u{number}"));
            traffic.note(&by, &format!("operation {number}"), false);
            traffic.end_batch(5);
        }
        assert_eq!(traffic.users().len(), USERS_MAX);
        assert_eq!(traffic.operations().len(), OPERATIONS_MAX + 1);
        let count: u64 = traffic.operations().iter().map(|(_, of)| of.times.count).sum();
        assert_eq!(count, 2 * USERS_MAX as u64);
    }

    #[test]
    fn times_are_of_who_asked_and_of_the_door_and_make_no_rows() {
        let traffic = Traffic::default();
        let spoken = |user: &str| {
            let (door, user) = ("xrd".to_owned(), user.to_owned());
            Caller::Door(SpokenFor { door, user, groups: Vec::new() })
        };
        for asker in [Asker::User("anna"), Asker::Door("xrd", Some("bert")), Asker::Disk(DiskId(7))]
        {
            assert!(traffic.admit(asker, (false, Rates::default()), 1));
        }
        assert!(traffic.admit(Asker::Door("xrd", None), (false, Rates::default()), 1));
        traffic.note(&Caller::User("anna".into()), "mkdir", false);
        traffic.note(&spoken("bert"), "mkdir", true);
        traffic.end_batch(40);
        traffic.note(&Caller::User("anna".into()), "query top", false);
        // The door may not speak for her: what it is told is no row of hers.
        traffic.note(&spoken("carla"), "mkdir", true);
        traffic.note(&Caller::Head, "mkdir", false);
        traffic.end_batch(10);
        let users = traffic.users();
        let of = |who: Who| {
            let found = users.iter().find(|(it, _)| *it == who);
            found.map(|(_, of)| (of.times.count, of.times.took_ns, of.times.longest_ns))
        };
        assert_eq!(of(named("anna")), Some((2, 50, 40)));
        assert_eq!(of(("bert".into(), Some("xrd".into()))), Some((1, 40, 40)));
        assert_eq!(of(named("door xrd")), Some((2, 50, 40)));
        assert_eq!((of(named("disk 7")), users.len()), (Some((0, 0, 0)), 4));
        let operations = traffic.operations();
        let mkdir = operations.iter().find(|(name, _)| name == "mkdir").unwrap().1;
        assert_eq!((mkdir.times.count, mkdir.times.took_ns, mkdir.failed), (4, 100, 2));
    }
}
