//! The catalog's own consistency: what can be counted anew is, and compared with what is booked.
//!
//! Everything is read once, from one committed state, and what is derived is kept in memory: a few
//! dozen octets an inode. Nothing is mended.

mod spaces;
mod tally;

use std::collections::{BTreeMap, BTreeSet};

use crate::codec::key_parts;
use crate::engine::{EngineError, Rows, Span, Table};
use crate::id::{ContentId, InodeId, Version};
use crate::record::{
    Attempt, COUNTERS_KEY, Counters, Dentry, DiskUsage, Expiry, Inode, KeptVersion, OldVersion,
    Replica, Session, TrashItem, TrashUsage, Usage, User, WriteLease, session_key,
};
use crate::view::{Record, decoded, read};

use tally::Tally;

pub(crate) use spaces::count_spaces;

/// Rows read at a time.
const PAGE_ROWS: usize = 1024;

/// Two things in the catalog that contradict each other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Inconsistency {
    /// The table that is wrong, as far as one can tell.
    pub table: Table,
    /// Its key.
    pub key: Vec<u8>,
    /// The contradiction.
    pub what: &'static str,
}

/// Compares everything with everything.
pub fn check(rows: &dyn Rows) -> Result<Vec<Inconsistency>, EngineError> {
    let mut tally = derive(rows)?;
    tally.as_counted(rows)?;
    tally.finish_names();
    let mut found = std::mem::take(&mut tally.found);
    // An attempt may reserve nothing, of somebody who has nothing: there is no row for that.
    tally.usage.retain(|_, usage| *usage != Usage::default());
    compare(rows, tally.usage, &mut found, |_: &Usage| true)?;
    compare(rows, tally.disks, &mut found, |usage: &DiskUsage| *usage != DiskUsage::default())?;
    compare(rows, tally.replicas, &mut found, |_: &Replica| true)?;
    each(rows, |key, user: User| {
        let sessions = tally.sessions.get(key).copied().unwrap_or_default();
        let attempts = tally.attempts.get(key).copied().unwrap_or_default();
        if (user.session_count, user.attempt_count) != (sessions, attempts) {
            report(&mut found, Table::User, key, "sessions or attempts are miscounted");
        }
    })?;
    each_row(rows, Table::Drop, |key, _| {
        if rows.get(Table::Replica, key)?.is_some() {
            report(&mut found, Table::Drop, key, "is a replica, and is to be dropped");
        }
        Ok(())
    })?;
    compare(rows, tally.trash, &mut found, |_: &TrashUsage| true)?;
    compare_marks(rows, (Table::UserSession, tally.user_sessions), &mut found)?;
    compare_marks(rows, (Table::TrashOrder, tally.trash_order), &mut found)?;
    check_leases(rows, &mut found)?;
    check_due(rows, tally.due, &mut found)?;
    check_counters(rows, tally.highest, &mut found)?;
    found.sort();
    Ok(found)
}

/// Everything that follows from other rows.
pub(crate) fn derive(rows: &dyn Rows) -> Result<Tally, EngineError> {
    let mut tally = Tally::default();
    each(rows, |key, inode: Inode| tally.inode(key, inode))?;
    each(rows, |key, dentry: Dentry| tally.dentry(key, dentry))?;
    each_row(rows, Table::Detached, |key, _| {
        tally.detached(key);
        Ok(())
    })?;
    each(rows, |key, item: TrashItem| tally.trash_item(key, &item))?;
    each(rows, |key, attempt: Attempt| tally.attempt(key, &attempt))?;
    each(rows, |key, _: OldVersion| tally.old_version(key))?;
    each(rows, |key, kept: KeptVersion| tally.kept(key, &kept))?;
    tally.finish_versions();
    each(rows, |key, session: Session| tally.session(key, &session))?;
    Ok(tally)
}

pub(crate) fn report(found: &mut Vec<Inconsistency>, table: Table, key: &[u8], what: &'static str) {
    found.push(Inconsistency { table, key: key.to_vec(), what });
}

/// Every row of a table, in pages.
pub(crate) fn each_row(
    rows: &dyn Rows,
    table: Table,
    mut visit: impl FnMut(&[u8], &[u8]) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    let mut from = Vec::new();
    loop {
        let page = rows.range(table, Span { from: &from, until: None }, PAGE_ROWS)?;
        for (key, value) in &page {
            visit(key, value)?;
        }
        match page.last() {
            Some((key, _)) if page.len() == PAGE_ROWS => from = [key.as_slice(), &[0]].concat(),
            _ => return Ok(()),
        }
    }
}

pub(crate) fn each<R: Record>(
    rows: &dyn Rows,
    mut visit: impl FnMut(&[u8], R),
) -> Result<(), EngineError> {
    each_row(rows, R::TABLE, |key, value| {
        visit(key, decoded(value)?);
        Ok(())
    })
}

/// Compares a table with what it must have.
fn compare<R: Record + PartialEq>(
    rows: &dyn Rows,
    mut expected: BTreeMap<Vec<u8>, R>,
    found: &mut Vec<Inconsistency>,
    counts: impl Fn(&R) -> bool,
) -> Result<(), EngineError> {
    expected.retain(|_, record| counts(record));
    each_row(rows, R::TABLE, |key, value| {
        let wanted = expected.remove(key);
        let Ok(record) = decoded::<R>(value) else {
            report(found, R::TABLE, key, "malformed");
            return Ok(());
        };
        if counts(&record) && wanted.as_ref() != Some(&record) {
            report(found, R::TABLE, key, "is not what the inodes and attempts add up to");
        } else if !counts(&record) && wanted.is_some() {
            report(found, R::TABLE, key, "is empty");
        }
        Ok(())
    })?;
    for key in expected.keys() {
        report(found, R::TABLE, key, "is missing");
    }
    Ok(())
}

/// Compares a table of keys alone with what it must have.
fn compare_marks(
    rows: &dyn Rows,
    (table, mut expected): (Table, BTreeSet<Vec<u8>>),
    found: &mut Vec<Inconsistency>,
) -> Result<(), EngineError> {
    each_row(rows, table, |key, _| {
        if !expected.remove(key) {
            report(found, table, key, "is of nothing");
        }
        Ok(())
    })?;
    for key in &expected {
        report(found, table, key, "is missing");
    }
    Ok(())
}

/// Leases are of files, of open sessions, and counted there.
fn check_leases(rows: &dyn Rows, found: &mut Vec<Inconsistency>) -> Result<(), EngineError> {
    let mut counts: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
    each_row(rows, Table::SessionLease, |key, _| {
        let (session, file) = key.split_at(key.len().min(8));
        *counts.entry(session.to_vec()).or_default() += 1;
        let lease: Option<WriteLease> = read(rows, file)?;
        if lease.is_none_or(|lease| session_key(lease.session) != session) {
            report(found, Table::SessionLease, key, "is no lease of this session");
        }
        Ok(())
    })?;
    each_row(rows, Table::WriteLease, |key, value| {
        let lease: WriteLease = decoded(value)?;
        let of_session = [session_key(lease.session).as_slice(), key].concat();
        let file: Option<Inode> = read(rows, key)?;
        let is_file = file.is_some_and(|file| file.content().is_some());
        if !is_file || rows.get(Table::SessionLease, &of_session)?.is_none() {
            report(found, Table::WriteLease, key, "is of no file, or nobody's");
        }
        Ok(())
    })?;
    each(rows, |key, session: Session| {
        if counts.remove(key).unwrap_or_default() != session.lease_count {
            report(found, Table::Session, key, "leases are miscounted");
        }
    })?;
    counts.keys().for_each(|key| report(found, Table::SessionLease, key, "of no session"));
    Ok(())
}

/// Everything that ends by itself will be looked at.
fn check_due(
    rows: &dyn Rows,
    due: Vec<Expiry>,
    found: &mut Vec<Inconsistency>,
) -> Result<(), EngineError> {
    let mut planned = BTreeSet::new();
    each_row(rows, Table::Expiry, |key, _| {
        match key_parts(key).and_then(Expiry::from_parts) {
            Ok((_, what)) => {
                planned.insert(what);
            }
            Err(_) => report(found, Table::Expiry, key, "malformed"),
        }
        Ok(())
    })?;
    for what in due {
        if !planned.contains(&what) {
            report(found, Table::Expiry, &what.key(0), "nothing ends this");
        }
    }
    Ok(())
}

fn check_counters(
    rows: &dyn Rows,
    highest: u64,
    found: &mut Vec<Inconsistency>,
) -> Result<(), EngineError> {
    let counters: Option<Counters> = read(rows, COUNTERS_KEY)?;
    if counters.is_none_or(|counters| counters.issued < highest) {
        report(found, Table::Meta, COUNTERS_KEY, "a number is in use that was not given out");
    }
    Ok(())
}

fn content_of(key: &[u8]) -> Option<ContentId> {
    let [inode, version] = key_parts(key).ok()?;
    Some(ContentId { inode: InodeId(inode), version: Version(version) })
}
