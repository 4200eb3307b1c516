//! Usage, booked with each change, and the limits that growth may not pass.

use crate::engine::{EngineError, Table};
use crate::id::InodeId;
use crate::record::{Attempt, Inode, Limits, Subject, Usage};
use crate::refusal::{Failure, Refusal};
use crate::view::View;

/// The three subjects that something counts for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    owner: String,
    group: String,
    tree: InodeId,
}

impl Account {
    pub(crate) fn of(inode: &Inode) -> Self {
        let (owner, group) = (inode.owner.clone(), inode.group.clone());
        Self { owner, group, tree: inode.tree }
    }

    pub(crate) fn of_attempt(attempt: &Attempt) -> Self {
        let (owner, group) = (attempt.owner.clone(), attempt.group.clone());
        Self { owner, group, tree: attempt.tree }
    }

    /// The subjects, each with the refusal for its limit.
    fn subjects(&self) -> [(Subject, Refusal); 3] {
        [
            (Subject::User(self.owner.clone()), Refusal::UserQuota),
            (Subject::Group(self.group.clone()), Refusal::GroupQuota),
            (Subject::Tree(self.tree), Refusal::TreeQuota),
        ]
    }
}

/// Books what an account gets.
pub(crate) fn charge(view: &mut View<'_>, account: &Account, add: Usage) -> Result<(), Failure> {
    settle(view, (account, Usage::default()), (account, add))
}

/// Takes back what was booked.
pub(crate) fn credit(view: &mut View<'_>, account: &Account, less: Usage) -> Result<(), Failure> {
    settle(view, (account, less), (account, Usage::default()))
}

/// Takes from one account and adds to another, or the same. Refuses only what makes a subject's
/// total grow beyond its limit.
pub(crate) fn settle(
    view: &mut View<'_>,
    from: (&Account, Usage),
    to: (&Account, Usage),
) -> Result<(), Failure> {
    let pairs = from.0.subjects().into_iter().zip(to.0.subjects());
    for ((old, _), (new, refusal)) in pairs {
        if old == new {
            book(view, &new, (from.1, to.1), refusal)?;
        } else {
            book(view, &old, (from.1, Usage::default()), refusal)?;
            book(view, &new, (Usage::default(), to.1), refusal)?;
        }
    }
    Ok(())
}

fn book(
    view: &mut View<'_>,
    subject: &Subject,
    (less, add): (Usage, Usage),
    refusal: Refusal,
) -> Result<(), Failure> {
    if less == add {
        return Ok(());
    }
    let key = subject.key();
    let old: Usage = view.record(&key)?.unwrap_or_default();
    let new = sum(sum(old, add, u64::checked_add).ok_or(refusal)?, less, u64::checked_sub)
        .ok_or(EngineError::Corrupt { table: Table::Usage, what: "usage would be below zero" })?;
    let (before, after) = (totals(&old), totals(&new));
    if after.0 > before.0 || after.1 > before.1 {
        let limits: Limits = view.record(&key)?.unwrap_or(Limits::NONE);
        let is_over = |before: u128, after: u128, limit: u64| after > before.max(limit.into());
        if is_over(before.0, after.0, limits.inodes) || is_over(before.1, after.1, limits.bytes) {
            return Err(refusal.into());
        }
    }
    if new == Usage::default() {
        view.delete(Table::Usage, key);
    } else {
        view.set(key, &new);
    }
    Ok(())
}

fn sum(one: Usage, other: Usage, each: fn(u64, u64) -> Option<u64>) -> Option<Usage> {
    Some(Usage {
        inodes: each(one.inodes, other.inodes)?,
        bytes: each(one.bytes, other.bytes)?,
        reserved_inodes: each(one.reserved_inodes, other.reserved_inodes)?,
        reserved_bytes: each(one.reserved_bytes, other.reserved_bytes)?,
    })
}

fn totals(usage: &Usage) -> (u128, u128) {
    let sum = |used: u64, reserved: u64| u128::from(used) + u128::from(reserved);
    (sum(usage.inodes, usage.reserved_inodes), sum(usage.bytes, usage.reserved_bytes))
}
