//! Usage, booked with each change, and the limits that growth may not pass.
//!
//! A soft limit may be passed for its grace time, which begins with the change that passes it and
//! ends with the change that comes back below. Both are judged by the head's clock as the
//! transaction has it, and kept beside the limit: who executes the next command does not matter.

use crate::engine::{EngineError, Rows, Table};
use crate::id::InodeId;
use crate::record::{Attempt, Inode, Limited, SPACES, Subject, Usage, totals};
use crate::refusal::{Failure, Refusal};
use crate::view::{View, prefixed};

/// The four subjects that something counts for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    owner: String,
    group: String,
    tree: InodeId,
    space: String,
}

/// What is said to who passes a limit.
#[derive(Debug, Clone, Copy)]
struct Refusals {
    hard: Refusal,
    soft: Refusal,
}

impl Account {
    pub(crate) fn of(inode: &Inode) -> Self {
        let (owner, group) = (inode.owner.clone(), inode.group.clone());
        Self { owner, group, tree: inode.tree, space: inode.policy.space.clone() }
    }

    pub(crate) fn of_attempt(attempt: &Attempt) -> Self {
        let (owner, group) = (attempt.owner.clone(), attempt.group.clone());
        Self { owner, group, tree: attempt.tree, space: attempt.policy.space.clone() }
    }

    pub(crate) fn subjects(&self) -> [Subject; 4] {
        [
            Subject::User(self.owner.clone()),
            Subject::Group(self.group.clone()),
            Subject::Tree(self.tree),
            Subject::Space(self.space.clone()),
        ]
    }
}

impl Refusals {
    fn of(subject: &Subject) -> Self {
        let (hard, soft) = match subject {
            Subject::User(_) => (Refusal::UserQuota, Refusal::UserGrace),
            Subject::Group(_) => (Refusal::GroupQuota, Refusal::GroupGrace),
            Subject::Tree(_) => (Refusal::TreeQuota, Refusal::TreeGrace),
            Subject::Space(_) => (Refusal::SpaceQuota, Refusal::SpaceGrace),
        };
        Self { hard, soft }
    }
}

/// Amounts of accounts.
pub(crate) type Amounts<'a> = &'a [(&'a Account, Usage)];

/// Books what an account gets.
pub(crate) fn charge(view: &mut View<'_>, account: &Account, add: Usage) -> Result<(), Failure> {
    settle(view, &[], &[(account, add)])
}

/// Takes back what was booked.
pub(crate) fn credit(view: &mut View<'_>, account: &Account, less: Usage) -> Result<(), Failure> {
    settle(view, &[(account, less)], &[])
}

/// Takes from accounts and adds to others, or the same, at once.
pub(crate) fn settle(
    view: &mut View<'_>,
    less: Amounts<'_>,
    add: Amounts<'_>,
) -> Result<(), Failure> {
    let mut changes: Vec<(Subject, Usage, Usage)> = Vec::with_capacity(8);
    let amounts = less.iter().map(|it| (it, true)).chain(add.iter().map(|it| (it, false)));
    for ((account, amount), is_less) in amounts {
        for subject in account.subjects() {
            let known = changes.iter().position(|(other, ..)| *other == subject);
            let at = known.unwrap_or(changes.len());
            if known.is_none() {
                changes.push((subject, Usage::default(), Usage::default()));
            }
            let (subject, less, add) = &mut changes[at];
            let sum = if is_less { less } else { add };
            let too_much = || Refusals::of(subject).hard;
            *sum = combined(*sum, *amount, u64::checked_add).ok_or_else(too_much)?;
        }
    }
    changes.iter().try_for_each(|(subject, less, add)| book(view, subject, (*less, *add)))
}

fn book(
    view: &mut View<'_>,
    subject: &Subject,
    (less, add): (Usage, Usage),
) -> Result<(), Failure> {
    if less == add {
        return Ok(());
    }
    let key = subject.key();
    let old: Usage = view.record(&key)?.unwrap_or_default();
    let sum = combined(old, add, u64::checked_add).ok_or(Refusals::of(subject).hard)?;
    let new = combined(sum, less, u64::checked_sub)
        .ok_or(EngineError::Corrupt { table: Table::Usage, what: "usage would be below zero" })?;
    if new == Usage::default() {
        view.delete(Table::Usage, key);
    } else {
        view.set(key, &new);
    }
    Ok(())
}

/// Judges what a command has booked, all of it together: refuses what makes a subject's total grow
/// beyond its limit, and notes who came above or below a soft one.
pub(crate) fn judge(view: &mut View<'_>, now_ns: u64) -> Result<(), Failure> {
    for key in view.changed(Table::Usage) {
        let Some(limited) = view.record::<Limited>(&key)? else { continue };
        let old: Usage = view.before(&key)?.unwrap_or_default();
        let new: Usage = view.record(&key)?.unwrap_or_default();
        let malformed = EngineError::Corrupt { table: Table::Usage, what: "a malformed key" };
        let subject = Subject::of_key(&key).ok_or(malformed)?;
        check(&limited, (&old, &new), now_ns, Refusals::of(&subject))?;
        let after = limited.at(&new, now_ns);
        if after != limited {
            view.set(key, &after);
        }
    }
    Ok(())
}

/// Refuses what grows beyond a hard limit, or beyond a soft one whose grace time is over.
fn check(
    limited: &Limited,
    (old, new): (&Usage, &Usage),
    now_ns: u64,
    refusals: Refusals,
) -> Result<(), Refusal> {
    let (before, after) = (totals(old), totals(new));
    let (limits, over) = (limited.limits, limited.over);
    let grows_over = |before: u128, after: u128, limit: u64| after > before.max(limit.into());
    if grows_over(before.0, after.0, limits.inodes) || grows_over(before.1, after.1, limits.bytes) {
        return Err(refusals.hard);
    }
    // Without grace a soft limit is a hard one.
    let is_over = |since_ns: Option<u64>| {
        now_ns.saturating_sub(since_ns.unwrap_or(now_ns)) >= limits.grace_ns
    };
    let inodes = grows_over(before.0, after.0, limits.soft_inodes) && is_over(over.inodes_ns);
    let bytes = grows_over(before.1, after.1, limits.soft_bytes) && is_over(over.bytes_ns);
    if inodes || bytes { Err(refusals.soft) } else { Ok(()) }
}

/// True if usage is counted by space: a catalog of before there were such quotas has no rows of
/// them, any other has the space of its top directory.
pub(crate) fn counts_spaces(rows: &dyn Rows) -> Result<bool, EngineError> {
    Ok(!prefixed(rows, Table::Usage, SPACES, 1)?.is_empty())
}

pub(crate) fn combined(
    one: Usage,
    other: Usage,
    each: fn(u64, u64) -> Option<u64>,
) -> Option<Usage> {
    Some(Usage {
        inodes: each(one.inodes, other.inodes)?,
        bytes: each(one.bytes, other.bytes)?,
        reserved_inodes: each(one.reserved_inodes, other.reserved_inodes)?,
        reserved_bytes: each(one.reserved_bytes, other.reserved_bytes)?,
    })
}
