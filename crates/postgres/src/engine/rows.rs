//! Reading at a stand, and a transaction on one.

use byname_catalog::engine::{EngineError, Row, Rows, Span, Table, Transaction, Writes};
use tokio_postgres::{Client, Row as SqlRow};

use super::{Base, PostgresEngine, stand};
use crate::cache::{At, Known, Stand, after};
use crate::error::PostgresError;
use crate::sql::Statements;

/// Times that the server is asked while others commit.
const TRIES_MAX: u32 = 16;
/// Rows of one answer, at most.
const ROWS_MAX: usize = 4096;

/// The state at a stand.
pub(super) struct PostgresRows<'a> {
    pub(super) engine: &'a PostgresEngine,
    pub(super) at: At,
}

impl Rows for PostgresRows<'_> {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, EngineError> {
        let key = key_of(table, key);
        for _ in 0..TRIES_MAX {
            match self.engine.state().cache.point(&key, self.at) {
                Known::Is(value) => return Ok(value),
                Known::Moved => return Err(EngineError::Conflict),
                Known::Unknown => {}
            }
            let asked = self.engine.links.ask(async |client, sql| point(client, sql, &key).await);
            let (stand, value) = asked?;
            self.learn(stand, |cache| cache.learn_point(key.clone(), value))?;
        }
        Err(EngineError::Conflict)
    }

    fn range(&self, table: Table, span: Span<'_>, limit: usize) -> Result<Vec<Row>, EngineError> {
        let from = key_of(table, span.from);
        let until = span.until.map_or_else(|| vec![table as u8 + 1], |key| key_of(table, key));
        let mut rows = Vec::new();
        let mut from = from;
        // A part at a time, so that no answer is without bound.
        while rows.len() < limit {
            let wanted = (limit - rows.len()).min(ROWS_MAX);
            let part = self.part((&from, &until), wanted)?;
            let is_last = part.len() < wanted;
            if let Some((key, _)) = part.last() {
                from = after(key);
            }
            rows.extend(part.into_iter().map(|(key, value)| (key[1..].to_vec(), value)));
            if is_last {
                break;
            }
        }
        Ok(rows)
    }
}

impl PostgresRows<'_> {
    fn part(&self, span: (&[u8], &[u8]), limit: usize) -> Result<Vec<Row>, EngineError> {
        for _ in 0..TRIES_MAX {
            let wanted = {
                let cache = &self.engine.state().cache;
                match cache.range(span, limit, self.at) {
                    Known::Is(rows) => return Ok(rows),
                    Known::Moved => return Err(EngineError::Conflict),
                    Known::Unknown => cache.rows_wanted(span, limit, self.at),
                }
            };
            let asked =
                self.engine.links.ask(async |client, sql| range(client, sql, span, wanted).await);
            let (stand, rows) = asked?;
            let until = match rows.last() {
                Some((last, _)) if rows.len() == wanted => after(last),
                _ => span.1.to_vec(),
            };
            self.learn(stand, |cache| cache.learn_span(span.0, &until, rows))?;
        }
        Err(EngineError::Conflict)
    }

    /// Notes what the server said, if it said it of the stand that is known here; else catches up.
    fn learn(
        &self,
        of: Stand,
        note: impl FnOnce(&mut crate::cache::Cache),
    ) -> Result<(), PostgresError> {
        {
            let mut state = self.engine.state();
            if state.cache.stand() == of {
                note(&mut state.cache);
                return Ok(());
            }
        }
        self.engine.catch_up()
    }
}

async fn point(
    client: &Client,
    sql: &Statements,
    key: &[u8],
) -> Result<(Stand, Option<Vec<u8>>), tokio_postgres::Error> {
    let row = client.query_one(&sql.point, &[&key]).await?;
    Ok((stand(&row, 0)?, row.try_get(2)?))
}

async fn range(
    client: &Client,
    sql: &Statements,
    (from, until): (&[u8], &[u8]),
    limit: usize,
) -> Result<(Stand, Vec<Row>), tokio_postgres::Error> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let found = client.query(&sql.range, &[&from, &until, &limit]).await?;
    let mut of = Stand { generation: -1, id: [0; 16] };
    let mut rows = Vec::with_capacity(found.len());
    for row in &found {
        of = stand(row, 0)?;
        rows.extend(found_row(row)?);
    }
    Ok((of, rows))
}

fn found_row(row: &SqlRow) -> Result<Option<Row>, tokio_postgres::Error> {
    let Some(key) = row.try_get::<_, Option<Vec<u8>>>(2)? else { return Ok(None) };
    Ok(Some((key, row.try_get(3)?)))
}

/// A transaction on the state at a stand.
pub(super) struct PostgresTransaction<'a> {
    pub(super) rows: PostgresRows<'a>,
    pub(super) base: Base,
}

impl Rows for PostgresTransaction<'_> {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, EngineError> {
        self.rows.get(table, key)
    }

    fn range(&self, table: Table, span: Span<'_>, limit: usize) -> Result<Vec<Row>, EngineError> {
        self.rows.range(table, span, limit)
    }
}

impl Transaction for PostgresTransaction<'_> {
    fn commit(self: Box<Self>, writes: &Writes) -> Result<(), EngineError> {
        let change = |(table, key, value): (Table, &[u8], Option<&[u8]>)| {
            (key_of(table, key), value.map(<[u8]>::to_vec))
        };
        let changes = writes.iter().map(change).collect();
        if self.rows.engine.commit(self.base, changes)? {
            return Ok(());
        }
        self.rows.engine.catch_up()?;
        Err(EngineError::Conflict)
    }

    fn confirm(self: Box<Self>) -> Result<(), EngineError> {
        self.rows.engine.catch_up()?;
        let is_last = self.rows.engine.state().cache.stand() == self.base.stand;
        if is_last { Ok(()) } else { Err(EngineError::Conflict) }
    }
}

/// All tables are one, in the order of their numbers.
fn key_of(table: Table, key: &[u8]) -> Vec<u8> {
    [&[table as u8], key].concat()
}
