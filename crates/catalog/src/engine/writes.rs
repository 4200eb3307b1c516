//! Changes that belong together: for each key a new value, or none.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::{Span, Table};

/// A set of changes, ordered by table and key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Writes {
    changes: BTreeMap<(Table, Vec<u8>), Option<Vec<u8>>>,
}

impl Writes {
    /// Sets a value.
    pub fn put(&mut self, table: Table, key: Vec<u8>, value: Vec<u8>) {
        self.changes.insert((table, key), Some(value));
    }

    /// Removes a row, if it is there.
    pub fn delete(&mut self, table: Table, key: Vec<u8>) {
        self.changes.insert((table, key), None);
    }

    /// The change of a key: `Some(None)` is a removal, `None` no change.
    pub fn get(&self, table: Table, key: &[u8]) -> Option<Option<&[u8]>> {
        self.changes.get(&(table, key.to_vec())).map(Option::as_deref)
    }

    /// The changes in a span of a table.
    pub(crate) fn span(
        &self,
        table: Table,
        span: Span<'_>,
    ) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        let from = (table, span.from.to_vec());
        let until = span.until.map(|key| key.to_vec());
        let is_empty = until.as_ref().is_some_and(|until| *until <= from.1);
        let changes = self.changes.range((Bound::Included(from), Bound::Unbounded));
        changes
            .take_while(move |((of, key), _)| {
                !is_empty && *of == table && until.as_ref().is_none_or(|until| key < until)
            })
            .map(|((_, key), value)| (key.as_slice(), value.as_deref()))
    }

    /// Adds later changes.
    pub fn extend(&mut self, later: Self) {
        self.changes.extend(later.changes);
    }

    /// All changes in order: table, key, new value or none.
    pub fn iter(&self) -> impl Iterator<Item = (Table, &[u8], Option<&[u8]>)> {
        self.changes.iter().map(|((table, key), value)| (*table, key.as_slice(), value.as_deref()))
    }

    /// Number of changes.
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// True if nothing changes.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }
}
