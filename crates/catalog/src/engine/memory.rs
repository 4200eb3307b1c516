//! An engine in memory, for tests and the simulator. It loses nothing by itself; a test says which
//! commit fails, and whether before or after it took effect.
//!
//! States are shared until they change, so a snapshot costs nothing. Two transactions that
//! overlap conflict at the second commit, as they may in an engine with several writers.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Engine, EngineError, Row, Rows, Span, Table, Transaction, Writes};

type State = BTreeMap<(Table, Vec<u8>), Vec<u8>>;

/// A commit that fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitFault {
    /// Nothing is applied.
    Lost,
    /// All is applied, and nobody hears of it.
    Unanswered,
    /// Another transaction came between.
    Conflict,
}

#[derive(Debug, Default)]
struct Shared {
    state: Arc<State>,
    commit_count: u64,
    fault: Option<CommitFault>,
}

/// Rows in memory. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct MemoryEngine {
    shared: Arc<Mutex<Shared>>,
}

impl MemoryEngine {
    /// Makes the next commit fail.
    pub fn fail_next_commit(&self, fault: CommitFault) {
        self.lock().fault = Some(fault);
    }

    /// An engine with the same rows that goes its own way: a backup.
    pub fn fork(&self) -> Self {
        let state = Arc::clone(&self.lock().state);
        Self { shared: Arc::new(Mutex::new(Shared { state, ..Shared::default() })) }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine for MemoryEngine {
    fn snapshot(&self) -> Result<Box<dyn Rows + '_>, EngineError> {
        Ok(Box::new(MemoryRows(Arc::clone(&self.lock().state))))
    }

    fn begin(&self) -> Result<Box<dyn Transaction + '_>, EngineError> {
        let shared = self.lock();
        Ok(Box::new(MemoryTransaction {
            engine: self,
            rows: MemoryRows(Arc::clone(&shared.state)),
            commit_count: shared.commit_count,
        }))
    }
}

struct MemoryRows(Arc<State>);

impl Rows for MemoryRows {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, EngineError> {
        Ok(self.0.get(&(table, key.to_vec())).cloned())
    }

    fn range(&self, table: Table, span: Span<'_>, limit: usize) -> Result<Vec<Row>, EngineError> {
        let from = (table, span.from.to_vec());
        let rows = self.0.range((Bound::Included(from), Bound::Unbounded));
        let inside = rows.take_while(|((of, key), _)| {
            *of == table && span.until.is_none_or(|until| key.as_slice() < until)
        });
        Ok(inside.take(limit).map(|((_, key), value)| (key.clone(), value.clone())).collect())
    }
}

struct MemoryTransaction<'a> {
    engine: &'a MemoryEngine,
    rows: MemoryRows,
    commit_count: u64,
}

impl Rows for MemoryTransaction<'_> {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, EngineError> {
        self.rows.get(table, key)
    }

    fn range(&self, table: Table, span: Span<'_>, limit: usize) -> Result<Vec<Row>, EngineError> {
        self.rows.range(table, span, limit)
    }
}

impl Transaction for MemoryTransaction<'_> {
    fn commit(self: Box<Self>, writes: &Writes) -> Result<(), EngineError> {
        let Self { engine, rows, commit_count } = *self;
        drop(rows);
        let mut shared = engine.lock();
        let fault = shared.fault.take();
        if shared.commit_count != commit_count || fault == Some(CommitFault::Conflict) {
            return Err(EngineError::Conflict);
        }
        if fault == Some(CommitFault::Lost) {
            return Err(failed("the commit was lost"));
        }
        shared.commit_count += 1;
        let state = Arc::make_mut(&mut shared.state);
        for (table, key, value) in writes.iter() {
            let place = (table, key.to_vec());
            match value {
                Some(value) => state.insert(place, value.to_vec()),
                None => state.remove(&place),
            };
        }
        match fault {
            Some(_) => Err(failed("the commit took effect unanswered")),
            None => Ok(()),
        }
    }
}

fn failed(what: &'static str) -> EngineError {
    EngineError::Failed(what.into())
}
