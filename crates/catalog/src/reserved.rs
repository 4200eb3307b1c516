//! Room that a user's open attempts reserve on the disks of a space, and how much that may be.
//!
//! What is reserved is nobody else's, whether or not it is written. So what one user reserves is at
//! most a share of what the others have left of the space's room: with a half the second user has
//! half of the rest, and so on. Whoever has a quota reserves as much as that is: somebody has
//! decided so. Operators decide for themselves.
//!
//! Sums are only wanted where room is scarce. They are made of the rows of attempts at the first
//! need in a term and follow what the term commits: while it lasts nobody else commits attempts.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::check::each;
use crate::engine::{EngineError, Table};
use crate::placement::Candidate;
use crate::record::Attempt;
use crate::view::View;

/// Share of a space's room, in percent, that one user may reserve unless it is told.
pub const RESERVED_PERCENT: u8 = 50;
/// Octets that whoever has room for them may reserve, for each replica: so little keeps others from
/// nothing that they would have for long.
const ALWAYS_BYTES: u64 = 1 << 30;
const ALL_PERCENT: u8 = 100;

/// User and space.
type Whose = (String, String);

/// Octets that open attempts reserve, with all replicas, once somebody has asked.
#[derive(Debug, Default)]
pub(crate) struct Ledger(Mutex<Option<BTreeMap<Whose, u128>>>);

/// What a batch does to them.
pub(crate) type Changes = BTreeMap<Whose, Change>;

/// Octets that are reserved, and those that are not any more.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Change {
    more: u128,
    less: u128,
}

impl Change {
    fn of(self, before: u128) -> u128 {
        (before + self.more).saturating_sub(self.less)
    }
}

impl Ledger {
    /// Octets that a user has reserved in a space, by what is committed and what a batch has done.
    pub(crate) fn reserved_by(
        &self,
        batch: &View<'_>,
        user: &str,
        space: &str,
    ) -> Result<u128, EngineError> {
        let whose = (user.to_owned(), space.to_owned());
        let mut sums = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let sums = match &mut *sums {
            Some(sums) => sums,
            none => none.insert(counted(batch)?),
        };
        let change = changes(batch)?.get(&whose).copied().unwrap_or_default();
        Ok(change.of(sums.get(&whose).copied().unwrap_or_default()))
    }

    /// What a batch changes, if sums are kept.
    pub(crate) fn changes(&self, batch: &View<'_>) -> Result<Changes, EngineError> {
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(_) => changes(batch),
            None => Ok(Changes::new()),
        }
    }

    /// Notes that a batch was committed which changes this.
    pub(crate) fn commit(&self, changes: Changes) {
        let mut sums = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(sums) = &mut *sums else { return };
        for (whose, change) in changes {
            let before = sums.remove(&whose).unwrap_or_default();
            match change.of(before) {
                0 => {}
                after => {
                    sums.insert(whose, after);
                }
            }
        }
    }

    /// Forgets the sums: what has become of a batch is not known.
    pub(crate) fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

fn whose(attempt: &Attempt) -> (Whose, u128) {
    let octets = u128::from(attempt.size_max) * attempt.disks.len() as u128;
    ((attempt.user.clone(), attempt.policy.space.clone()), octets)
}

/// The sums without a batch.
fn counted(batch: &View<'_>) -> Result<BTreeMap<Whose, u128>, EngineError> {
    let mut sums = BTreeMap::new();
    each(batch.base(), |_, attempt: Attempt| {
        let (whose, octets) = whose(&attempt);
        if octets > 0 {
            *sums.entry(whose).or_default() += octets;
        }
    })?;
    Ok(sums)
}

fn changes(batch: &View<'_>) -> Result<Changes, EngineError> {
    let mut changes = Changes::new();
    for key in batch.changed(Table::Attempt) {
        if let Some(before) = batch.before::<Attempt>(&key)? {
            let (whose, octets) = whose(&before);
            changes.entry(whose).or_default().less += octets;
        }
        if let Some(after) = batch.record::<Attempt>(&key)? {
            let (whose, octets) = whose(&after);
            changes.entry(whose).or_default().more += octets;
        }
    }
    Ok(changes)
}

/// Room of the disks that take content of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    free: u128,
    reserved: u128,
}

impl Room {
    pub(crate) fn of(takers: &[Candidate]) -> Self {
        let sum = |of: fn(&Candidate) -> u64| takers.iter().map(|one| u128::from(of(one))).sum();
        Self { free: sum(|one| one.free_bytes), reserved: sum(|one| one.reserved_bytes) }
    }

    /// True if somebody may reserve so much more who has reserved this, given a share.
    fn has(self, reserved: u128, more: u128, percent: u8) -> bool {
        let left = self.free + reserved;
        (reserved + more) * u128::from(ALL_PERCENT) <= left * u128::from(percent)
    }
}

/// Somebody who wants room for content.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wish {
    /// Octets of the content.
    pub(crate) size: u64,
    /// Replicas.
    pub(crate) count: usize,
    /// Octets of his quota, if he has one.
    pub(crate) quota: Option<u64>,
}

impl Wish {
    fn with_replicas(self, octets: u64) -> u128 {
        u128::from(octets) * self.count as u128
    }

    /// True if it is granted, whatever of the space's room is his already.
    pub(crate) fn is_modest(self, room: Room, percent: u8) -> bool {
        let wanted = self.with_replicas(self.size);
        percent >= ALL_PERCENT
            || room.reserved + wanted <= self.with_replicas(ALWAYS_BYTES)
            || room.has(room.reserved, wanted, percent)
    }

    /// True if it is granted to whoever has reserved so much of the room.
    pub(crate) fn is_granted(self, room: Room, reserved: u128, percent: u8) -> bool {
        let wanted = self.with_replicas(self.size);
        let always = ALWAYS_BYTES.max(self.quota.unwrap_or_default());
        reserved + wanted <= self.with_replicas(always) || room.has(reserved, wanted, percent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TB: u64 = 1 << 40;

    fn wish(size: u64) -> Wish {
        Wish { size, count: 2, quota: None }
    }

    #[test]
    fn each_has_a_share_of_what_the_others_have_left() {
        let mut room = Room { free: u128::from(64 * TB), reserved: 0 };
        let mut left = 32;
        while left > 1 {
            // Two replicas of so much are half of the room that is free.
            let most = wish(left / 2 * TB);
            assert!(most.is_granted(room, 0, 50), "{left}");
            assert!(!Wish { size: most.size + 1, ..most }.is_granted(room, 0, 50), "{left}");
            // He has what he may have, and the next one has as much of the rest.
            let taken = u128::from(left * TB);
            room = Room { free: room.free - taken, reserved: room.reserved + taken };
            assert!(!wish(1).is_granted(room, taken, 50), "{left}");
            left /= 2;
        }
    }

    #[test]
    fn whoever_wants_little_or_has_a_quota_has_it() {
        let room = Room { free: u128::from(TB), reserved: u128::from(TB) };
        let gib = 1 << 30;
        let full = Room { free: 2 * u128::from(gib), reserved: u128::from(TB) };
        assert!(wish(gib).is_granted(full, 0, 50));
        assert!(!wish(1).is_granted(full, 2 * u128::from(gib), 50), "he has that much already");
        assert!(!wish(TB / 2).is_granted(room, 0, 50));
        let quota = Wish { quota: Some(TB / 2), ..wish(TB / 2) };
        assert!(quota.is_granted(room, 0, 50));
        assert!(!quota.is_granted(room, 1, 50), "more than his quota is, with what he has");
        assert!(wish(TB / 2).is_granted(room, 0, 100));
    }

    #[test]
    fn what_is_modest_is_granted_to_anybody() {
        for free in [0, 1, 1 << 30, 1 << 33, 1 << 40] {
            for reserved in [0, 1, 1 << 30, 1 << 33, 1 << 40] {
                for size in [1, 1 << 29, 1 << 30, 1 << 32, 1 << 39] {
                    for percent in [0, 1, 50, 99, 100] {
                        let (room, wish) = (Room { free, reserved }, wish(size));
                        let fits = u128::from(size) * 2 <= free;
                        if fits && wish.is_modest(room, percent) {
                            for own in [0, reserved / 2, reserved] {
                                assert!(wish.is_granted(room, own, percent), "{room:?} {wish:?}");
                            }
                        }
                    }
                }
            }
        }
    }
}
