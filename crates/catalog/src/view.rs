//! Rows as they are with changes that are not committed yet: what a command reads while it runs.
//!
//! Views lie on each other: the changes of a batch over the engine's state, and the changes of one
//! command over those, so that a refused command takes its own back and no others.

use std::collections::BTreeMap;

use crate::codec::{Decoder, Encoder, Malformed};
use crate::engine::{EngineError, Row, Rows, Span, Table, Writes};

/// First octet of every value: the format of what follows.
const FORMAT: u8 = 1;

/// Something that is kept in a table.
pub(crate) trait Record: Sized {
    /// The table.
    const TABLE: Table;

    fn encode(&self, encoder: &mut Encoder);

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed>;
}

/// Decodes a value of a table.
pub(crate) fn decoded<R: Record>(value: &[u8]) -> Result<R, EngineError> {
    let corrupt = |what| EngineError::Corrupt { table: R::TABLE, what };
    let Some((&FORMAT, body)) = value.split_first() else {
        return Err(corrupt("an unknown format"));
    };
    let mut decoder = Decoder(body);
    let record = R::decode(&mut decoder).map_err(|Malformed| corrupt("a malformed value"))?;
    if decoder.0.is_empty() { Ok(record) } else { Err(corrupt("octets after the value")) }
}

/// Reads a record.
pub(crate) fn read<R: Record>(rows: &dyn Rows, key: &[u8]) -> Result<Option<R>, EngineError> {
    rows.get(R::TABLE, key)?.map(|value| decoded(&value)).transpose()
}

/// Rows under changes.
pub(crate) struct View<'a> {
    base: &'a dyn Rows,
    writes: Writes,
}

impl<'a> View<'a> {
    pub(crate) fn new(base: &'a dyn Rows) -> Self {
        Self { base, writes: Writes::default() }
    }

    /// Rows without the changes.
    pub(crate) fn base(&self) -> &dyn Rows {
        self.base
    }

    pub(crate) fn writes(&self) -> &Writes {
        &self.writes
    }

    pub(crate) fn into_writes(self) -> Writes {
        self.writes
    }

    pub(crate) fn absorb(&mut self, later: Writes) {
        self.writes.extend(later);
    }

    pub(crate) fn record<R: Record>(&self, key: &[u8]) -> Result<Option<R>, EngineError> {
        read(self, key)
    }

    /// A record without the changes.
    pub(crate) fn before<R: Record>(&self, key: &[u8]) -> Result<Option<R>, EngineError> {
        read(self.base, key)
    }

    /// Keys of a table that are changed.
    pub(crate) fn changed(&self, table: Table) -> Vec<Vec<u8>> {
        self.writes.span(table, Span::ALL).map(|(key, _)| key.to_vec()).collect()
    }

    pub(crate) fn set<R: Record>(&mut self, key: Vec<u8>, record: &R) {
        let mut encoder = Encoder(vec![FORMAT]);
        record.encode(&mut encoder);
        self.writes.put(R::TABLE, key, encoder.0);
    }

    /// Sets a row that says all in its key.
    pub(crate) fn mark(&mut self, table: Table, key: Vec<u8>) {
        self.writes.put(table, key, vec![FORMAT]);
    }

    /// Sets a value that has no format of ours.
    pub(crate) fn put_octets(&mut self, table: Table, key: Vec<u8>, value: &[u8]) {
        self.writes.put(table, key, value.to_vec());
    }

    pub(crate) fn delete(&mut self, table: Table, key: Vec<u8>) {
        self.writes.delete(table, key);
    }

    /// True if there is this key.
    pub(crate) fn has(&self, table: Table, key: &[u8]) -> Result<bool, EngineError> {
        Ok(self.get(table, key)?.is_some())
    }

    /// True if there is a key that begins so.
    pub(crate) fn has_any(&self, table: Table, prefix: &[u8]) -> Result<bool, EngineError> {
        Ok(!self.prefixed(table, prefix, 1)?.is_empty())
    }

    /// Rows whose keys begin so, `limit` at most.
    pub(crate) fn prefixed(
        &self,
        table: Table,
        prefix: &[u8],
        limit: usize,
    ) -> Result<Vec<Row>, EngineError> {
        prefixed(self, table, prefix, limit)
    }
}

/// Rows whose keys begin so, `limit` at most.
pub(crate) fn prefixed(
    rows: &dyn Rows,
    table: Table,
    prefix: &[u8],
    limit: usize,
) -> Result<Vec<Row>, EngineError> {
    let until = after_prefix(prefix);
    rows.range(table, Span { from: prefix, until: until.as_deref() }, limit)
}

/// The first key after all that begin so.
pub(crate) fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|octet| *octet != u8::MAX)?;
    let mut after = prefix[..=last].to_vec();
    after[last] += 1;
    Some(after)
}

impl Rows for View<'_> {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, EngineError> {
        match self.writes.get(table, key) {
            Some(changed) => Ok(changed.map(<[u8]>::to_vec)),
            None => self.base.get(table, key),
        }
    }

    fn range(&self, table: Table, span: Span<'_>, limit: usize) -> Result<Vec<Row>, EngineError> {
        let mut rows = Vec::new();
        let mut from = span.from.to_vec();
        while rows.len() < limit {
            let page = self.base.range(table, Span { from: &from, until: span.until }, limit)?;
            // What lies behind the page's last key comes with the next page.
            let next = (page.len() == limit).then(|| {
                let mut next = page.last().map_or_else(Vec::new, |(key, _)| key.clone());
                next.push(0);
                next
            });
            let until = next.as_deref().or(span.until);
            let mut merged: BTreeMap<Vec<u8>, Vec<u8>> = page.into_iter().collect();
            for (key, value) in self.writes.span(table, Span { from: &from, until }) {
                match value {
                    Some(value) => merged.insert(key.to_vec(), value.to_vec()),
                    None => merged.remove(key),
                };
            }
            rows.extend(merged);
            match next {
                Some(next) => from = next,
                None => break,
            }
        }
        rows.truncate(limit);
        Ok(rows)
    }
}
