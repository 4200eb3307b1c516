//! A catalog that contradicts itself, mended: what [`crate::check`] finds, for a head that does not
//! run.
//!
//! First names, so that every inode is where some entry leads, or in `lost+found`: nothing that has
//! content is given up. Then everything that follows from inodes, attempts, versions and sessions
//! is counted anew. All of it is one transaction with a record in the log, so that copies of the
//! rows on disks follow.
//!
//! What cannot be read stays as it is: who has lost rows that nothing follows from has
//! [`crate::rebuild`].

mod counts;
mod names;

use std::collections::BTreeSet;

use crate::catalog::CatalogError;
use crate::check::{Inconsistency, report};
use crate::codec::key_parts;
use crate::engine::{Engine, EngineError, Rows, Span, Table};
use crate::execution::MISSING_COUNTERS;
use crate::id::{InodeId, LeaseEpoch, TransactionNumber, following};
use crate::log::LogRecord;
use crate::record::{COUNTERS_KEY, Counters, LEASE_KEY, Lease};
use crate::refusal::Refusal;
use crate::view::{Record, View};

/// Name of it in the change log.
const COMMAND: &str = "fsck";
/// Rows of the log that are read at a time.
const LOG_ROWS: usize = 1024;

/// What is mended, and what it takes.
struct Mending<'a> {
    view: View<'a>,
    counters: Counters,
    number: TransactionNumber,
    now_ns: u64,
    done: Vec<Inconsistency>,
}

/// Mends a catalog that nobody serves; only says what it would do if `is_dry`. The answer is what
/// was done to which row.
///
/// # Errors
/// [`CatalogError`]: `Engine` if a row cannot be read from which others follow. Nothing was changed
/// then.
pub fn mend(
    engine: &dyn Engine,
    now_ns: u64,
    is_dry: bool,
) -> Result<Vec<Inconsistency>, CatalogError> {
    let transaction = engine.begin()?;
    let view = View::new(&*transaction);
    let counters: Counters = view.record(COUNTERS_KEY)?.ok_or(MISSING_COUNTERS)?;
    let last = last_logged(&view, counters.transaction)?;
    let number = following(last).ok_or(Refusal::CountersExhausted)?;
    let number = TransactionNumber(number);
    let mut mending = Mending { view, counters, number, now_ns, done: Vec::new() };
    mending.mend_names()?;
    mending.mend_counts()?;
    let (writes, mut done) = mending.finish()?;
    if !is_dry && !done.is_empty() {
        transaction.commit(&writes)?;
    }
    done.sort();
    Ok(done)
}

/// The last transaction that was logged, though the counters may know of fewer.
fn last_logged(rows: &dyn Rows, known: u64) -> Result<u64, EngineError> {
    let mut last = known;
    loop {
        let from = crate::codec::key([last.saturating_add(1)]);
        let page = rows.range(Table::Log, Span { from: &from, until: None }, LOG_ROWS)?;
        let Some((key, _)) = page.last() else { return Ok(last) };
        let malformed = EngineError::Corrupt { table: Table::Log, what: "a malformed key" };
        [last] = key_parts(key).map_err(|_| malformed)?;
    }
}

impl Mending<'_> {
    fn note(&mut self, table: Table, key: &[u8], what: &'static str) {
        report(&mut self.done, table, key, what);
    }

    fn set<R: Record>(&mut self, key: Vec<u8>, record: &R, what: &'static str) {
        self.note(R::TABLE, &key, what);
        self.view.set(key, record);
    }

    fn mark(&mut self, table: Table, key: Vec<u8>, what: &'static str) {
        self.note(table, &key, what);
        self.view.mark(table, key);
    }

    fn delete(&mut self, table: Table, key: &[u8], what: &'static str) {
        self.note(table, key, what);
        self.view.delete(table, key.to_vec());
    }

    /// A number that nothing has.
    fn fresh(&mut self, used: &BTreeSet<InodeId>) -> Result<InodeId, Refusal> {
        loop {
            let next = following(self.counters.issued).ok_or(Refusal::CountersExhausted)?;
            self.counters.issued = next;
            if !used.contains(&InodeId(next)) {
                return Ok(InodeId(next));
            }
        }
    }

    fn finish(mut self) -> Result<(crate::engine::Writes, Vec<Inconsistency>), CatalogError> {
        let counters = Counters { transaction: self.number.0, ..self.counters };
        self.view.set(COUNTERS_KEY.to_vec(), &counters);
        let lease: Option<Lease> = self.view.record(LEASE_KEY)?;
        let record = LogRecord {
            number: self.number,
            epoch: lease.map_or(LeaseEpoch(0), |lease| lease.epoch),
            at_ns: self.now_ns,
            user: String::new(),
            command: COMMAND.to_owned(),
            writes: self.view.writes().clone(),
        };
        self.view.set(crate::codec::key([self.number.0]), &record);
        Ok((self.view.into_writes(), self.done))
    }
}
