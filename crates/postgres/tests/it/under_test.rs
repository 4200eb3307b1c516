//! The engine on which the tests of `byname-catalog` run here: a database of its own each, on the
//! server of all tests.

use std::sync::{Arc, Mutex};

use byname_catalog::engine::{
    CommitFault, Engine, EngineError, Row, Rows, Span, Table, Transaction, Writes,
};
use byname_postgres::PostgresEngine;

use crate::cluster::Cluster;

/// Random cases of a test that each want a database of their own: the catalog's own tests play
/// more, and what commands mean does not depend on the engine.
pub(crate) const CASES_MAX: u32 = 6;

/// Rows in a database. Clones share it.
#[derive(Clone)]
pub(crate) struct TestEngine {
    engine: Arc<PostgresEngine>,
    fault: Arc<Mutex<Option<CommitFault>>>,
    /// It runs as long as somebody needs it.
    _cluster: Arc<Cluster>,
}

impl Default for TestEngine {
    fn default() -> Self {
        let cluster = Cluster::shared();
        let engine = Arc::new(PostgresEngine::open(&cluster.database()).unwrap());
        Self { engine, fault: Arc::default(), _cluster: cluster }
    }
}

impl TestEngine {
    /// Makes the next commit fail.
    pub(crate) fn fail_next_commit(&self, fault: CommitFault) {
        *self.fault.lock().unwrap() = Some(fault);
    }

    /// A database with the same rows that goes its own way: a backup.
    pub(crate) fn fork(&self) -> Self {
        let (fork, mut writes) = (Self::default(), Writes::default());
        let rows = self.snapshot().unwrap();
        for table in Table::ALL {
            for (key, value) in rows.range(table, Span::ALL, usize::MAX).unwrap() {
                writes.put(table, key, value);
            }
        }
        fork.begin().unwrap().commit(&writes).unwrap();
        fork
    }
}

impl Engine for TestEngine {
    fn snapshot(&self) -> Result<Box<dyn Rows + '_>, EngineError> {
        self.engine.snapshot()
    }

    fn begin(&self) -> Result<Box<dyn Transaction + '_>, EngineError> {
        Ok(Box::new(Failing { transaction: self.engine.begin()?, fault: &self.fault }))
    }

    fn setbacks(&self) -> u64 {
        self.engine.setbacks()
    }
}

struct Failing<'a> {
    transaction: Box<dyn Transaction + 'a>,
    fault: &'a Mutex<Option<CommitFault>>,
}

impl Rows for Failing<'_> {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, EngineError> {
        self.transaction.get(table, key)
    }

    fn range(&self, table: Table, span: Span<'_>, limit: usize) -> Result<Vec<Row>, EngineError> {
        self.transaction.range(table, span, limit)
    }
}

impl Transaction for Failing<'_> {
    fn commit(self: Box<Self>, writes: &Writes) -> Result<(), EngineError> {
        let fault = self.fault.lock().unwrap().take();
        match fault {
            Some(CommitFault::Conflict) => return Err(EngineError::Conflict),
            Some(CommitFault::Lost) => return Err(EngineError::Failed("lost".into())),
            _ => self.transaction.commit(writes)?,
        }
        fault.map_or(Ok(()), |_| Err(EngineError::Failed("done and unanswered".into())))
    }

    fn confirm(self: Box<Self>) -> Result<(), EngineError> {
        self.transaction.confirm()
    }
}
