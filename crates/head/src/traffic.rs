//! What is asked of a head, by operation and by who asks, and how much of it a user may.
//!
//! Commands and questions of a user count as they are taken, whatever comes of them. A user who has
//! sent as many as he may in a second is told that the head is busy, which his programs take for
//! "later": so a client in a loop slows itself down, however many connections it has, and nobody
//! else. Disks are not bounded.
//!
//! Bounded: [`USERS_MAX`] users are remembered, those who asked last.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use byname_catalog::Caller;

const SECOND_NS: u64 = 1_000_000_000;
/// Users that are remembered.
const USERS_MAX: usize = 4096;
/// Operations that are told apart; the rest is one.
const OPERATIONS_MAX: usize = 128;
/// Operations of one batch, and some room.
const BATCH_MAX: usize = 1024;
/// What is left of a second's share gathers for so many seconds.
const BURST_S: u64 = 2;

/// Counts of one user or disk, since the head leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct UserTraffic {
    pub(crate) commands: u64,
    pub(crate) questions: u64,
    /// Of both, those that came too fast.
    pub(crate) held_back: u64,
    /// What he may still ask for now, in billionths.
    tokens: u64,
    /// When that was counted.
    at_ns: u64,
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
    users: BTreeMap<String, UserTraffic>,
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

    /// Counts a command or a question; false if a user has to wait, who may send so many a second.
    pub(crate) fn admit(
        &self,
        caller: &Caller,
        (is_question, per_s): (bool, Option<u64>),
        now_ns: u64,
    ) -> bool {
        let name = match caller {
            Caller::User(user) => user.clone(),
            Caller::Disk(disk) => format!("disk {}", disk.0),
            Caller::Head => return true,
        };
        let per_s = per_s.filter(|_| matches!(caller, Caller::User(_)));
        self.with(|shared| {
            shared.make_room(&name);
            let user = shared.users.entry(name).or_insert_with(|| UserTraffic {
                tokens: per_s.unwrap_or_default().saturating_mul(BURST_S * SECOND_NS),
                ..UserTraffic::default()
            });
            *(if is_question { &mut user.questions } else { &mut user.commands }) += 1;
            let is_taken = per_s.is_none_or(|per_s| user.take(per_s, now_ns));
            user.at_ns = now_ns;
            user.held_back += u64::from(!is_taken);
            is_taken
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
    pub(crate) fn users(&self) -> Vec<(String, UserTraffic)> {
        let mut users: Vec<(String, UserTraffic)> =
            self.with(|shared| shared.users.iter().map(|(it, of)| (it.clone(), *of)).collect());
        users.sort_by_key(|(name, of)| {
            (std::cmp::Reverse(of.commands.saturating_add(of.questions)), name.clone())
        });
        users
    }
}

impl Shared {
    /// Forgets who asked the longest ago, if somebody new comes and there are enough.
    fn make_room(&mut self, name: &str) {
        if self.users.len() < USERS_MAX || self.users.contains_key(name) {
            return;
        }
        let oldest = self.users.iter().min_by_key(|(_, user)| user.at_ns);
        if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
            self.users.remove(&oldest);
        }
    }
}

impl UserTraffic {
    fn take(&mut self, per_s: u64, now_ns: u64) -> bool {
        // A clock that was set back gives nothing, and takes nothing.
        let passed_ns = now_ns.saturating_sub(self.at_ns);
        let most = per_s.saturating_mul(BURST_S * SECOND_NS);
        self.tokens = self.tokens.saturating_add(passed_ns.saturating_mul(per_s)).min(most);
        let left = self.tokens.checked_sub(SECOND_NS);
        self.tokens = left.unwrap_or(self.tokens);
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str) -> Caller {
        Caller::User(name.to_owned())
    }

    #[test]
    fn who_asks_too_fast_waits_and_nobody_else_does() {
        let traffic = Traffic::default();
        let mut taken = 0;
        // A thousand a millisecond for ten seconds, by one; one in a while by another.
        for step in 0..10_000_u64 {
            let now_ns = SECOND_NS * 1_000_000 + step * 1_000_000;
            for _ in 0..10 {
                taken += u64::from(traffic.admit(&user("loop"), (false, Some(100)), now_ns));
            }
            if step % 20 == 0 {
                assert!(traffic.admit(&user("anna"), (true, Some(100)), now_ns), "{step}");
            }
            assert!(
                traffic.admit(
                    &Caller::Disk(byname_catalog::id::DiskId(7)),
                    (false, Some(1)),
                    now_ns
                ),
                "disks are not bounded"
            );
        }
        assert!((1000..=1210).contains(&taken), "{taken} in ten seconds at 100 a second");
        let users = traffic.users();
        assert_eq!((users[0].0.as_str(), users[0].1.commands), ("loop", 100_000));
        assert_eq!(users[0].1.held_back, 100_000 - taken);
        assert!(users.iter().any(|(name, of)| name == "anna" && of.held_back == 0));
    }

    #[test]
    fn users_and_operations_that_are_remembered_are_bounded() {
        let traffic = Traffic::default();
        for number in 0..2 * USERS_MAX as u64 {
            assert!(traffic.admit(&user(&format!("u{number}")), (false, Some(1)), number));
            traffic.note(&format!("operation {number}"), false);
            traffic.end_batch(5);
        }
        assert_eq!(traffic.users().len(), USERS_MAX);
        assert_eq!(traffic.operations().len(), OPERATIONS_MAX + 1);
        let count: u64 = traffic.operations().iter().map(|(_, of)| of.count).sum();
        assert_eq!(count, 2 * USERS_MAX as u64);
    }
}
