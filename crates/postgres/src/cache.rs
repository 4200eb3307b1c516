//! Rows that are known at a stand, and what they were at stands a little before.
//!
//! Known are single rows, and whole spans between two keys, in which what has no row is known to
//! be absent. Changes bring all of it to a later stand. For those who still read at an earlier one
//! the rows that changed since are kept as they were; where that was not known, or is too long
//! ago, the reader is told that the state has moved on.
//!
//! No I/O. Bounded: when there are too many octets all is forgotten and read again.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

use byname_catalog::engine::Row;

use crate::changes::Change;

/// Earlier stands that can still be read at.
const UNDOS_MAX: usize = 256;
/// Octets of what rows were at those.
const UNDO_BYTES_MAX: usize = 32 << 20;
/// Octets that a row takes beside its key and its value.
const ROW_BYTES: usize = 96;

/// A state of the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stand {
    /// Transactions since the database was made.
    pub(crate) generation: i64,
    /// What the last of them made up.
    pub(crate) id: [u8; 16],
}

/// A state to read at: a generation of one history. A database that was put back begins another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct At {
    history: u64,
    generation: i64,
}

/// What is known of something that was asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Known<T> {
    /// This.
    Is(T),
    /// Nothing: the database has to be asked.
    Unknown,
    /// It has changed since that stand, and what it was is not known.
    Moved,
}

/// A value that a key has, or none.
type Value = Option<Vec<u8>>;

/// Rows that changed with a transaction, as they were before it; `None` is not known.
struct Undo {
    generation: i64,
    rows: BTreeMap<Vec<u8>, Option<Value>>,
    bytes: usize,
}

/// What is known.
pub(crate) struct Cache {
    stand: Stand,
    history: u64,
    bytes_max: usize,
    bytes: usize,
    rows: BTreeMap<Vec<u8>, Value>,
    /// Spans that are known whole: first key, and the key after the last. None touch.
    spans: BTreeMap<Vec<u8>, Vec<u8>>,
    undos: VecDeque<Undo>,
    undo_bytes: usize,
}

impl Cache {
    /// Nothing is known but the stand.
    pub(crate) fn new(stand: Stand, bytes_max: usize) -> Self {
        let (rows, spans, undos) = Default::default();
        Self { stand, history: 0, bytes_max, bytes: 0, rows, spans, undos, undo_bytes: 0 }
    }

    /// The stand that the rows are at.
    pub(crate) fn stand(&self) -> Stand {
        self.stand
    }

    /// Forgets everything: the state is another one.
    pub(crate) fn reset(&mut self, stand: Stand) {
        let history = self.history + 1;
        *self = Self { history, ..Self::new(stand, self.bytes_max) };
    }

    /// The present stand, to read at.
    pub(crate) fn now(&self) -> At {
        At { history: self.history, generation: self.stand.generation }
    }

    /// The value of a key at a generation.
    pub(crate) fn point(&self, key: &[u8], at: At) -> Known<Value> {
        if !self.reaches(at) {
            return Known::Moved;
        }
        let changed = self.since(at).find_map(|undo| undo.rows.get(key));
        match (changed, self.rows.get(key)) {
            (Some(Some(value)), _) => Known::Is(value.clone()),
            (Some(None), _) => Known::Moved,
            (None, Some(value)) => Known::Is(value.clone()),
            (None, None) if self.span_end(key).is_some() => Known::Is(None),
            (None, None) => Known::Unknown,
        }
    }

    /// The first rows of a span at a generation.
    pub(crate) fn range(
        &self,
        (from, until): (&[u8], &[u8]),
        limit: usize,
        at: At,
    ) -> Known<Vec<Row>> {
        if from >= until || limit == 0 {
            return Known::Is(Vec::new());
        }
        if !self.reaches(at) {
            return Known::Moved;
        }
        let Some(before) = self.before((from, until), at) else { return Known::Moved };
        let Some(end) = self.span_end(from) else { return Known::Unknown };
        let end = end.min(until);
        let wanted = limit.saturating_add(before.len());
        let mut rows: BTreeMap<&[u8], &[u8]> =
            present(&self.rows, (from, end)).take(wanted).collect();
        // What lies behind the last row that was taken is not part of this.
        let after_last = match rows.last_key_value() {
            Some((last, _)) if rows.len() == wanted => Some(after(last)),
            _ => None,
        };
        let end = after_last.as_deref().unwrap_or(end);
        for (key, value) in before.into_iter().filter(|(key, _)| *key < end) {
            match value {
                Some(value) => rows.insert(key, value),
                None => rows.remove(key),
            };
        }
        if rows.len() < limit && end < until {
            return Known::Unknown;
        }
        let row = |(key, value): (&[u8], &[u8])| (key.to_vec(), value.to_vec());
        Known::Is(rows.into_iter().take(limit).map(row).collect())
    }

    /// Rows to ask for, so that a range at a generation can be answered.
    pub(crate) fn rows_wanted(&self, span: (&[u8], &[u8]), limit: usize, at: At) -> usize {
        limit.saturating_add(self.before(span, at).map_or(0, |before| before.len()))
    }

    /// Notes what a key has, at the present stand.
    pub(crate) fn learn_point(&mut self, key: Vec<u8>, value: Value) {
        self.make_room();
        self.set(key, value);
    }

    /// Notes all rows of a span, at the present stand.
    pub(crate) fn learn_span(&mut self, from: &[u8], until: &[u8], rows: Vec<Row>) {
        if from >= until {
            return;
        }
        self.make_room();
        for (key, value) in rows {
            self.set(key, Some(value));
        }
        let (mut from, mut until) = (from.to_vec(), until.to_vec());
        let before = self.spans.range(..=from.clone()).next_back();
        if let Some((start, end)) = before.filter(|(_, end)| **end >= from) {
            from.clone_from(start);
            until = until.max(end.clone());
        }
        let inside = self.spans.range(from.clone()..=until.clone());
        let swallowed: Vec<Vec<u8>> = inside.map(|(start, _)| start.clone()).collect();
        for start in swallowed {
            if let Some(end) = self.spans.remove(&start) {
                until = until.max(end);
            }
        }
        self.spans.insert(from, until);
    }

    /// Goes on to the stand after a transaction.
    pub(crate) fn apply(&mut self, stand: Stand, changes: Vec<Change>) {
        let mut undo = Undo { generation: stand.generation, rows: BTreeMap::new(), bytes: 0 };
        for (key, value) in changes {
            let was = match self.point(&key, self.now()) {
                Known::Is(value) => Some(value),
                Known::Unknown | Known::Moved => None,
            };
            undo.bytes += key.len() + was.iter().flatten().map(Vec::len).sum::<usize>() + ROW_BYTES;
            undo.rows.insert(key.clone(), was);
            self.set(key, value);
        }
        self.undo_bytes += undo.bytes;
        self.undos.push_back(undo);
        self.stand = stand;
        while self.undos.len() > UNDOS_MAX || self.undo_bytes > UNDO_BYTES_MAX {
            let Some(undo) = self.undos.pop_front() else { break };
            self.undo_bytes -= undo.bytes;
        }
        self.make_room();
    }

    /// True if all changes since a generation are known.
    fn reaches(&self, at: At) -> bool {
        let oldest = self.undos.front().map_or(self.stand.generation, |it| it.generation - 1);
        at.history == self.history && (oldest..=self.stand.generation).contains(&at.generation)
    }

    /// Transactions after a generation, in their order.
    fn since(&self, at: At) -> impl Iterator<Item = &Undo> {
        let count = self.undos.len();
        let skipped = self.undos.partition_point(|undo| undo.generation <= at.generation);
        self.undos.range(skipped.min(count)..)
    }

    /// Rows of a span that have changed since a generation, as they were then; none if that is not
    /// known of one.
    fn before<'a>(
        &'a self,
        (from, until): (&[u8], &[u8]),
        at: At,
    ) -> Option<BTreeMap<&'a [u8], Option<&'a [u8]>>> {
        let mut before = BTreeMap::new();
        for undo in self.since(at) {
            let inside = (Bound::Included(from), Bound::Excluded(until));
            for (key, value) in undo.rows.range::<[u8], _>(inside) {
                // The first change since then knows what was there then.
                before.entry(key.as_slice()).or_insert(value.as_ref());
            }
        }
        before.into_iter().map(|(key, value)| Some((key, value?.as_deref()))).collect()
    }

    /// The end of the span that a key is in.
    fn span_end(&self, key: &[u8]) -> Option<&[u8]> {
        let upto = (Bound::Unbounded, Bound::Included(key));
        let (_, end) = self.spans.range::<[u8], _>(upto).next_back()?;
        (end.as_slice() > key).then_some(end.as_slice())
    }

    fn set(&mut self, key: Vec<u8>, value: Value) {
        let octets = |value: &Value| value.as_ref().map_or(0, Vec::len);
        self.bytes += octets(&value);
        let key_bytes = key.len() + ROW_BYTES;
        match self.rows.insert(key, value) {
            Some(old) => self.bytes -= octets(&old),
            None => self.bytes += key_bytes,
        }
    }

    fn make_room(&mut self) {
        if self.bytes > self.bytes_max {
            (self.rows, self.spans) = Default::default();
            self.bytes = 0;
        }
    }
}

/// Rows of a span that are there.
fn present<'a>(
    rows: &'a BTreeMap<Vec<u8>, Value>,
    (from, until): (&[u8], &[u8]),
) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
    let inside = (Bound::Included(from), Bound::Excluded(until));
    let rows = rows.range::<[u8], _>(inside);
    rows.filter_map(|(key, value)| Some((key.as_slice(), value.as_deref()?)))
}

/// The key that follows another.
pub(crate) fn after(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

#[cfg(test)]
mod tests;
