//! The engine in one file (redb): one writer at a time, readers on snapshots.
//!
//! A row's key in the file is the table's number and the key, all in one table of redb, so that a
//! transaction opens one tree. A transaction holds redb's writer from its begin, and reads the
//! last committed state, which nobody else can change meanwhile.
//!
//! Which pages are free is in memory, and in the file only after [`Engine::rest`]: else the next
//! who opens it reads all of it. To write that with each commit would take a second sync.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redb::{
    Builder, Database, DatabaseError, ReadOnlyTable, ReadableDatabase, StorageBackend,
    TableDefinition, WriteTransaction,
};

use super::{Engine, EngineError, Row, Rows, Span, Table, Transaction, Writes};

const ROWS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("catalog-1");

/// Octets redb may keep in memory.
const CACHE_BYTES: usize = 256 << 20;

/// Rows in one file.
#[derive(Debug)]
pub struct EmbeddedEngine {
    database: Database,
    was_at_rest: bool,
    /// Nothing was committed since [`Engine::rest`].
    is_at_rest: AtomicBool,
}

impl EmbeddedEngine {
    /// Opens the file, which is made if it is missing. Nobody else may have it open.
    pub fn open(path: &Path) -> Result<Self, EngineError> {
        Self::prepared(|builder| builder.create(path))
    }

    /// Opens rows on other storage than a file.
    pub fn on(storage: impl StorageBackend) -> Result<Self, EngineError> {
        Self::prepared(|builder| builder.create_with_backend(storage))
    }

    /// False if all of the file was read to open it, because it was not left at rest.
    pub fn was_at_rest(&self) -> bool {
        self.was_at_rest
    }

    /// The table is there before anybody reads.
    fn prepared(
        open: impl FnOnce(&Builder) -> Result<Database, DatabaseError>,
    ) -> Result<Self, EngineError> {
        let is_read = Arc::new(AtomicBool::new(false));
        let note = is_read.clone();
        let mut builder = Database::builder();
        builder.set_cache_size(CACHE_BYTES);
        builder.set_repair_callback(move |_| note.store(true, Ordering::Relaxed));
        let database = open(&builder).map_err(failed)?;
        let write = database.begin_write().map_err(failed)?;
        write.open_table(ROWS).map_err(failed)?;
        write.commit().map_err(failed)?;
        let was_at_rest = !is_read.load(Ordering::Relaxed);
        Ok(Self { database, was_at_rest, is_at_rest: AtomicBool::new(false) })
    }

    fn rows(&self) -> Result<EmbeddedRows, EngineError> {
        let read = self.database.begin_read().map_err(failed)?;
        Ok(EmbeddedRows(read.open_table(ROWS).map_err(failed)?))
    }
}

impl Engine for EmbeddedEngine {
    fn snapshot(&self) -> Result<Box<dyn Rows + '_>, EngineError> {
        Ok(Box::new(self.rows()?))
    }

    fn begin(&self) -> Result<Box<dyn Transaction + '_>, EngineError> {
        let write = self.database.begin_write().map_err(failed)?;
        Ok(Box::new(EmbeddedTransaction {
            rows: self.rows()?,
            write,
            is_at_rest: &self.is_at_rest,
        }))
    }

    fn rest(&self) -> Result<(), EngineError> {
        if self.is_at_rest.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let write = |mut write: WriteTransaction| {
            write.set_quick_repair(true);
            write.commit().map_err(failed)
        };
        let rested = self.database.begin_write().map_err(failed).and_then(write);
        if rested.is_err() {
            self.is_at_rest.store(false, Ordering::Relaxed);
        }
        rested
    }
}

struct EmbeddedRows(ReadOnlyTable<&'static [u8], &'static [u8]>);

impl Rows for EmbeddedRows {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, EngineError> {
        let value = self.0.get(key_of(table, key).as_slice()).map_err(failed)?;
        Ok(value.map(|value| value.value().to_vec()))
    }

    fn range(&self, table: Table, span: Span<'_>, limit: usize) -> Result<Vec<Row>, EngineError> {
        let from = key_of(table, span.from);
        let until = span.until.map_or_else(|| vec![table as u8 + 1], |key| key_of(table, key));
        if from >= until {
            return Ok(Vec::new());
        }
        let rows = self.0.range(from.as_slice()..until.as_slice()).map_err(failed)?;
        let row = |row: Result<(redb::AccessGuard<'_, _>, redb::AccessGuard<'_, _>), _>| {
            let (key, value): (redb::AccessGuard<'_, &[u8]>, redb::AccessGuard<'_, &[u8]>) = row?;
            Ok((key.value()[1..].to_vec(), value.value().to_vec()))
        };
        rows.take(limit).map(row).collect::<Result<_, redb::StorageError>>().map_err(failed)
    }
}

struct EmbeddedTransaction<'a> {
    rows: EmbeddedRows,
    write: WriteTransaction,
    is_at_rest: &'a AtomicBool,
}

impl Rows for EmbeddedTransaction<'_> {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, EngineError> {
        self.rows.get(table, key)
    }

    fn range(&self, table: Table, span: Span<'_>, limit: usize) -> Result<Vec<Row>, EngineError> {
        self.rows.range(table, span, limit)
    }
}

impl Transaction for EmbeddedTransaction<'_> {
    fn commit(self: Box<Self>, writes: &Writes) -> Result<(), EngineError> {
        // While this holds the writer, so that a rest comes before or after both.
        self.is_at_rest.store(false, Ordering::Relaxed);
        let mut rows = self.write.open_table(ROWS).map_err(failed)?;
        for (table, key, value) in writes.iter() {
            let key = key_of(table, key);
            match value {
                Some(value) => rows.insert(key.as_slice(), value).map(drop),
                None => rows.remove(key.as_slice()).map(drop),
            }
            .map_err(failed)?;
        }
        drop(rows);
        self.write.commit().map_err(failed)
    }
}

fn key_of(table: Table, key: &[u8]) -> Vec<u8> {
    let mut whole = Vec::with_capacity(1 + key.len());
    whole.push(table as u8);
    whole.extend_from_slice(key);
    whole
}

fn failed(error: impl Into<redb::Error>) -> EngineError {
    EngineError::Failed(Box::new(error.into()))
}
