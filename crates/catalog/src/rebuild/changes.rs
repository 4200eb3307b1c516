//! Rows on their way into a copy and out of it: changes, one behind the other.
//!
//! ```text
//! change = length:4 table:1 is-put:1 key value      (key and value behind their lengths)
//! ```
//! Applied in their order they give the rows. A copy begins with all rows, read while others
//! change them; the changes of all transactions since then follow, and make good what was read too
//! early. Changes that were applied already do no harm.

use std::collections::BTreeMap;

use super::{BaseRow, TABLES};
use crate::codec::{Decoder, Encoder, Malformed};
use crate::engine::{Engine, EngineError, Table, Writes};
use crate::log::LogRecord;

/// Octets before a change.
const LENGTH_BYTES: usize = 4;
/// No change is longer: rows have 4 KiB, keys come in one packet.
const CHANGE_BYTES_MAX: usize = 64 << 10;
/// Changes of one transaction, at most.
const BATCH_CHANGES: usize = 4096;

/// The row of a table that has this key has this value from now on, or is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowChange {
    /// The table.
    pub table: Table,
    /// The key.
    pub key: Vec<u8>,
    /// The value, unless the row is gone.
    pub value: Option<Vec<u8>>,
}

/// Octets that are no changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a change of a row is malformed")]
pub struct MalformedChange;

impl From<BaseRow> for RowChange {
    fn from(BaseRow { table, key, value }: BaseRow) -> Self {
        Self { table, key, value: Some(value) }
    }
}

impl RowChange {
    /// Appends the change.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut encoder = Encoder::default();
        encoder.octet(self.table as u8);
        encoder.octet(self.value.is_some().into());
        encoder.octets(&self.key);
        encoder.octets(self.value.as_deref().unwrap_or_default());
        out.extend((encoder.0.len() as u32).to_be_bytes());
        out.extend(encoder.0);
    }

    /// The first change and what is behind it; `None` if it is not all there.
    ///
    /// # Errors
    /// [`MalformedChange`], also for tables from whose rows others follow not.
    pub fn first(octets: &[u8]) -> Result<Option<(Self, &[u8])>, MalformedChange> {
        let Some((length, rest)) = octets.split_first_chunk::<LENGTH_BYTES>() else {
            return Ok(None);
        };
        let length = u32::from_be_bytes(*length) as usize;
        if length > CHANGE_BYTES_MAX {
            return Err(MalformedChange);
        }
        let Some((body, rest)) = rest.split_at_checked(length) else { return Ok(None) };
        let change = decode(body).map_err(|Malformed| MalformedChange)?;
        Ok(Some((change, rest)))
    }

    /// Changes of several transactions, the last of each row, as far as others follow from them.
    pub fn of(records: &[LogRecord]) -> Vec<Self> {
        let mut latest = BTreeMap::new();
        for record in records {
            let changes = record.writes.iter().filter(|(table, _, _)| TABLES.contains(table));
            latest.extend(changes.map(|(table, key, value)| ((table, key), value)));
        }
        let change = |((table, key), value): ((Table, &[u8]), Option<&[u8]>)| Self {
            table,
            key: key.to_vec(),
            value: value.map(<[u8]>::to_vec),
        };
        latest.into_iter().map(change).collect()
    }
}

fn decode(body: &[u8]) -> Result<RowChange, Malformed> {
    let mut decoder = Decoder(body);
    let table = Table::from_number(decoder.octet()?).filter(|table| TABLES.contains(table));
    let is_put = decoder.flag()?;
    let key = decoder.octets()?.to_vec();
    let value = decoder.octets()?.to_vec();
    if !decoder.0.is_empty() || !is_put && !value.is_empty() {
        return Err(Malformed);
    }
    Ok(RowChange { table: table.ok_or(Malformed)?, key, value: is_put.then_some(value) })
}

/// Rows being put together from changes, in an engine that has nothing else.
pub struct Staging<'a> {
    engine: &'a dyn Engine,
    writes: Writes,
}

impl<'a> Staging<'a> {
    /// Begins with the rows that are there.
    pub fn new(engine: &'a dyn Engine) -> Self {
        Self { engine, writes: Writes::default() }
    }

    /// Applies a change.
    ///
    /// # Errors
    /// [`EngineError`].
    pub fn apply(&mut self, change: RowChange) -> Result<(), EngineError> {
        let RowChange { table, key, value } = change;
        match value {
            Some(value) => self.writes.put(table, key, value),
            None => self.writes.delete(table, key),
        }
        if self.writes.len() >= BATCH_CHANGES { self.flush() } else { Ok(()) }
    }

    /// Writes what is not written yet.
    ///
    /// # Errors
    /// [`EngineError`].
    pub fn flush(&mut self) -> Result<(), EngineError> {
        let writes = std::mem::take(&mut self.writes);
        self.engine.begin()?.commit(&writes)
    }
}
