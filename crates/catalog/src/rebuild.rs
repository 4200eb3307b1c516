//! A catalog made again, from those of its rows from which all others follow.
//!
//! [`export`] gives out these rows of one committed state, page by page; [`rebuild`] makes a
//! catalog of them in an empty engine. What can be counted is counted anew: usage, replicas, room
//! on disks, and what is due. Sessions, open attempts, kept answers and the log are not among them:
//! users open new sessions, and what was being written is written again.
//!
//! The rows may be older than what the disks have seen. So the epoch of all numbers is raised above
//! what was seen, and nothing of former epochs counts as given out: a disk that asks about content
//! which these rows do not have is told that it is unknown, and keeps it.

mod adopt;
mod changes;
mod known;

pub(crate) use adopt::{LOST_AND_FOUND, lost_and_found};

pub use adopt::{Adoption, FoundContent, FoundFile, adopt};
pub use changes::{MalformedChange, RowChange, Staging};
pub use known::KnownRow;

use crate::catalog::{CatalogError, raise_bindings};
use crate::check::derive;
use crate::engine::{Engine, EngineError, Rows, Span, Table, Writes};
use crate::id::{LeaseEpoch, TransactionNumber, epoch_of, epoch_start};
use crate::ops::KEPT_NS;
use crate::record::{COUNTERS_KEY, Counters, Expiry, LEASE_KEY, Lease, SITE_KEY, Site, User};
use crate::refusal::Refusal;
use crate::view::{View, decoded, read};

/// Tables whose rows are given out.
const TABLES: [Table; 16] = [
    Table::Meta,
    Table::Inode,
    Table::Dentry,
    Table::Xattr,
    Table::Kept,
    Table::Limit,
    Table::User,
    Table::Disk,
    Table::Key,
    Table::Drop,
    Table::Pattern,
    Table::Detached,
    Table::Trash,
    Table::TrashPolicy,
    Table::OldVersion,
    Table::Door,
];
/// Rows of one transaction, at most.
const BATCH_ROWS: usize = 4096;
/// The head that has the lease of a new catalog; the lease is over.
const NOBODY: &str = "rebuild";

/// A row from which others follow.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BaseRow {
    /// Its table.
    pub table: Table,
    /// Its key.
    pub key: Vec<u8>,
    /// Its value.
    pub value: Vec<u8>,
}

/// The highest numbers that any disk has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Seen {
    /// Of inodes and versions.
    pub number: u64,
    /// Of terms of heads.
    pub epoch: LeaseEpoch,
}

/// Epochs that the latest rows may be behind what a disk has seen. A catalog that is made again
/// takes one, and there are 65 536 in all: whoever is believed more could use them up.
const EPOCHS_AHEAD_MAX: u16 = 256;

/// True if a disk can have seen this number, of which the rows know that one.
pub fn can_be_seen(number: u64, known: u64) -> bool {
    epoch_of(number) <= epoch_of(known).saturating_add(EPOCHS_AHEAD_MAX)
}

/// Rows behind one of them, by table and key, `limit` at most. A shorter page is the last.
///
/// # Errors
/// [`EngineError`].
pub fn export(
    rows: &dyn Rows,
    after: Option<(Table, &[u8])>,
    limit: usize,
) -> Result<Vec<BaseRow>, EngineError> {
    let mut page = Vec::new();
    for table in TABLES {
        let from = match after {
            Some((last, _)) if table < last => continue,
            Some((last, key)) if table == last => [key, &[0]].concat(),
            _ => Vec::new(),
        };
        let span = Span { from: &from, until: None };
        let found = rows.range(table, span, limit - page.len())?;
        page.extend(found.into_iter().map(|(key, value)| BaseRow { table, key, value }));
        if page.len() >= limit {
            break;
        }
    }
    Ok(page)
}

/// Makes a catalog in an empty engine. Rows of other tables than [`export`] gives out are refused.
/// One that is cut off on the way is no catalog: there is no site in it.
///
/// # Errors
/// [`CatalogError`]: `SiteExists`, `NoSite` if no row says which one it is, `Engine` if the rows
/// are damaged.
pub fn rebuild(
    engine: &dyn Engine,
    rows: &mut dyn Iterator<Item = BaseRow>,
    seen: Seen,
    now_ns: u64,
) -> Result<(), CatalogError> {
    if read::<Site>(&*engine.snapshot()?, SITE_KEY)?.is_some() {
        return Err(CatalogError::SiteExists);
    }
    let (mut site, mut counters, mut lease) = (None::<Site>, None::<Counters>, None::<Lease>);
    let mut batch = Batch { engine, writes: Writes::default() };
    for BaseRow { table, key, value } in rows {
        match (table, key.as_slice()) {
            (Table::Meta, SITE_KEY) => site = Some(decoded(&value)?),
            (Table::Meta, COUNTERS_KEY) => counters = Some(decoded(&value)?),
            (Table::Meta, LEASE_KEY) => lease = Some(decoded(&value)?),
            (Table::User, _) => {
                // Nobody has a session or an attempt.
                let user = User { session_count: 0, attempt_count: 0, ..decoded(&value)? };
                batch.record(|view| view.set(key, &user))?;
            }
            _ if table != Table::Meta && TABLES.contains(&table) => {
                batch.record(|view| view.put_octets(table, key, &value))?;
            }
            _ => return Err(EngineError::Corrupt { table, what: "is no row to begin from" }.into()),
        }
    }
    batch.commit()?;
    let (site, counters) =
        (site.ok_or(CatalogError::NoSite)?, counters.ok_or(CatalogError::NoSite)?);
    let highest = derive_rows(engine, now_ns)?;
    let old = lease.map_or(LeaseEpoch(0), |lease| lease.epoch);
    let numbers = [counters.transaction, counters.issued, highest, seen.number];
    let numbers = numbers.into_iter().chain([old.0, seen.epoch.0]);
    let epoch = numbers.map(epoch_of).max().and_then(|epoch| epoch.checked_add(1));
    let start = epoch_start(epoch.ok_or(Refusal::CountersExhausted)?);
    {
        let rows = engine.snapshot()?;
        let mut view = View::new(&*rows);
        raise_bindings(&*rows, &mut view, TransactionNumber(start))?;
        batch.writes.extend(view.into_writes());
    }
    batch.commit()?;
    batch.record(|view| {
        let counters = Counters { transaction: start, issued: start, former: Vec::new() };
        view.set(COUNTERS_KEY.to_vec(), &counters);
        let lease = Lease { epoch: LeaseEpoch(start), head: NOBODY.to_owned(), until_ns: 0 };
        view.set(LEASE_KEY.to_vec(), &lease);
        view.set(SITE_KEY.to_vec(), &site);
    })?;
    batch.commit()?;
    Ok(())
}

/// Rows that follow from those that are there; the highest number among them.
fn derive_rows(engine: &dyn Engine, now_ns: u64) -> Result<u64, CatalogError> {
    let derived = derive(&*engine.snapshot()?)?;
    let mut batch = Batch { engine, writes: Writes::default() };
    for (key, usage) in derived.usage {
        batch.record(|view| view.set(key, &usage))?;
    }
    for (key, usage) in derived.disks {
        batch.record(|view| view.set(key, &usage))?;
    }
    for (key, usage) in derived.trash {
        batch.record(|view| view.set(key, &usage))?;
    }
    for key in derived.trash_order {
        batch.record(|view| view.mark(Table::TrashOrder, key))?;
    }
    for (key, replica) in derived.replicas {
        batch.record(|view| view.set(key, &replica))?;
    }
    for what in derived.due {
        // What was replaced or removed stays for those who read it, as if that had been just now.
        let due_ns = match what {
            Expiry::Kept(_) | Expiry::Nameless(_) => now_ns.saturating_add(KEPT_NS),
            _ => now_ns,
        };
        batch.record(|view| view.mark(Table::Expiry, Expiry::key(what, due_ns)))?;
    }
    batch.commit()?;
    Ok(derived.highest)
}

/// Writes that are committed when there are many.
struct Batch<'a> {
    engine: &'a dyn Engine,
    writes: Writes,
}

impl Batch<'_> {
    fn record(&mut self, write: impl FnOnce(&mut View<'_>)) -> Result<(), EngineError> {
        let mut view = View::new(&NoRows);
        write(&mut view);
        self.writes.extend(view.into_writes());
        if self.writes.len() >= BATCH_ROWS { self.commit() } else { Ok(()) }
    }

    fn commit(&mut self) -> Result<(), EngineError> {
        let writes = std::mem::take(&mut self.writes);
        self.engine.begin()?.commit(&writes)
    }
}

/// Nothing to read: rows are written as they are.
struct NoRows;

impl Rows for NoRows {
    fn get(&self, _: Table, _: &[u8]) -> Result<Option<Vec<u8>>, EngineError> {
        Ok(None)
    }

    fn range(
        &self,
        _: Table,
        _: Span<'_>,
        _: usize,
    ) -> Result<Vec<crate::engine::Row>, EngineError> {
        Ok(Vec::new())
    }
}
