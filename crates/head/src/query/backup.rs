//! Rows and changes for a backup, for operators alone.
//!
//! ```text
//! backup-rows [PLACE]          {"transaction":N,"at_ns":T,"rows":BASE64,"row":HASH,"next":PLACE}
//! backup-seal SUM              {"sealed":SUM,"sealed_at_ns":T}, signed by the site's key
//! backup-log NUMBER[:OFFSET]   {"last":N}, then transactions behind that number, each with
//!                              "changes":BASE64 from "offset" on, of "length" octets
//! ```
//! Rows are changes as copies of the catalog have them. Each answer is of another state: who asks
//! applies the log from before the first answer up to `transaction` of the last one. A row or a
//! transaction that is too long for an answer comes in pieces; `row` tells whether a row is still
//! the one that the first piece was of.

use byname_catalog::engine::{Engine, Table};
use byname_catalog::id::TransactionNumber;
use byname_catalog::{BaseRow, Caller, Failure, LogRecord, Reader, Refusal, RowChange, export};
use byname_security::base64;
use serde_json::{Value, json};

use super::lines::{Lines, number};

/// Octets of rows in an answer, before they are written as text.
const PIECE_BYTES: usize = 3840;
/// Rows, or transactions, that are read for an answer.
const PAGE: usize = 64;

/// A place among the rows: so many octets behind a row.
#[derive(Debug, PartialEq, Eq)]
struct RowPlace {
    row: Option<(Table, Vec<u8>)>,
    offset: usize,
}

impl RowPlace {
    fn read(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self { row: None, offset: 0 });
        }
        let mut parts = text.split(':');
        let (table, key, offset) = (parts.next()?, parts.next()?, parts.next()?);
        let row = match table {
            "" => None,
            table => {
                Some((Table::from_number(table.parse().ok()?)?, base64::decode_url(key).ok()?))
            }
        };
        Some(Self { row, offset: offset.parse().ok()? })
    }

    fn text(&self) -> String {
        let row = self.row.as_ref().map_or_else(
            || ":".to_owned(),
            |(table, key)| format!("{}:{}", *table as u8, base64::encode_url(key)),
        );
        format!("{row}:{}", self.offset)
    }
}

/// Vouches for a file with this sum, of which nobody knows here what is in it: an operator does.
pub(super) fn seal(reader: &Reader<'_>, sum: &str, unix_ns: u64) -> Result<Vec<u8>, Failure> {
    if !reader.is_operator() {
        return Err(Refusal::NotOperator.into());
    }
    let is_digit = |octet: u8| matches!(octet, b'0'..=b'9' | b'a'..=b'f');
    if sum.len() != 64 || !sum.bytes().all(is_digit) {
        return Err(Refusal::BadName.into());
    }
    Ok(json!({ "sealed": sum, "sealed_at_ns": unix_ns }).to_string().into_bytes())
}

/// Rows of an answer.
struct Piece {
    octets: Vec<u8>,
    /// Digest of the row, if this is a piece of one.
    row: Option<String>,
    next: Option<RowPlace>,
}

/// Rows behind a place.
pub(super) fn rows(
    reader: &Reader<'_>,
    engine: &dyn Engine,
    after: &str,
) -> Result<Vec<u8>, Failure> {
    if !reader.is_operator() {
        return Err(Refusal::NotOperator.into());
    }
    let place = RowPlace::read(after).ok_or(Refusal::BadName)?;
    let row = place.row.as_ref().map(|(table, key)| (*table, key.as_slice()));
    let page = export(&*engine.snapshot()?, row, PAGE)?;
    let piece = piece(page, place);
    // Of a state that is not before any of these rows.
    let now = Reader::new(engine, &Caller::Head)?;
    let last = now.last_transaction()?;
    let record = now.log_after(TransactionNumber(last.0.saturating_sub(1)), 1)?;
    let mut lines = Lines::default();
    lines.push(&json!({
        "transaction": last.0,
        "at_ns": record.first().map_or(0, |record| record.at_ns),
        "rows": base64::encode_url(&piece.octets),
        "row": piece.row,
        "next": piece.next.map(|next| next.text()),
    }));
    Ok(lines.0)
}

fn piece(page: Vec<BaseRow>, place: RowPlace) -> Piece {
    let is_last = page.len() < PAGE;
    let mut last = RowPlace { offset: 0, row: place.row };
    let mut octets = Vec::new();
    for (index, row) in page.into_iter().enumerate() {
        let here = Some((row.table, row.key.clone()));
        let mut change = Vec::new();
        RowChange::from(row).encode(&mut change);
        let start = if index == 0 { place.offset.min(change.len()) } else { 0 };
        if index == 0 && (start > 0 || change.len() > PIECE_BYTES) {
            let end = change.len().min(start + PIECE_BYTES);
            let next = match end < change.len() {
                true => RowPlace { offset: end, ..last },
                false => RowPlace { row: here, offset: 0 },
            };
            let row = Some(blake3::hash(&change).to_hex().to_string());
            return Piece { octets: change[start..end].to_vec(), row, next: Some(next) };
        }
        if octets.len() + change.len() > PIECE_BYTES {
            return Piece { octets, row: None, next: Some(last) };
        }
        octets.extend(change);
        last.row = here;
    }
    Piece { octets, row: None, next: (!is_last).then_some(last) }
}

/// Transactions behind a number.
pub(super) fn log(reader: &Reader<'_>, after: &str) -> Result<Vec<u8>, Failure> {
    if !reader.is_operator() {
        return Err(Refusal::NotOperator.into());
    }
    let (after, offset) = after.split_once(':').unwrap_or((after, "0"));
    let (after, mut offset) = (TransactionNumber(number(after)?), number(offset)?);
    let records = reader.log_after(after, PAGE)?;
    let mut lines = Lines::default();
    lines.push(&json!({ "last": reader.last_transaction()?.0 }));
    for record in &records {
        let (line, is_whole) = record_line(record, offset as usize);
        if !lines.push(&line) || !is_whole {
            break;
        }
        offset = 0;
    }
    Ok(lines.0)
}

/// A transaction with its changes from an octet on, as far as there is room.
fn record_line(record: &LogRecord, offset: usize) -> (Value, bool) {
    let mut changes = Vec::new();
    RowChange::of(std::slice::from_ref(record))
        .iter()
        .for_each(|change| change.encode(&mut changes));
    let start = offset.min(changes.len());
    let end = changes.len().min(start + PIECE_BYTES);
    let line = json!({
        "transaction": record.number.0,
        "epoch": record.epoch.0,
        "at_ns": record.at_ns,
        "user": record.user,
        "command": record.command,
        "changes": base64::encode_url(&changes[start..end]),
        "offset": start,
        "length": changes.len(),
    });
    (line, end == changes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_come_back_and_others_are_refused() {
        let long = RowPlace { row: Some((Table::Inode, vec![0, 255, 7])), offset: 9 };
        for place in [long, RowPlace { row: None, offset: 4096 }] {
            assert_eq!(RowPlace::read(&place.text()), Some(place));
        }
        for text in [":", "2:", "99::0", "2:!:0", "2:AA:x"] {
            assert_eq!(RowPlace::read(text), None, "{text}");
        }
    }

    #[test]
    fn a_row_longer_than_an_answer_comes_in_pieces() {
        let row = |key: u8, length| BaseRow {
            table: Table::User,
            key: vec![key],
            value: vec![key; length],
        };
        let all = [row(1, 10), row(2, 9000), row(3, 10)];
        let (mut place, mut octets, mut answers) = (RowPlace::read("").unwrap(), Vec::new(), 0);
        loop {
            let behind = |it: &&BaseRow| Some((it.table, it.key.clone())) > place.row;
            let page = all.iter().filter(behind).cloned().collect();
            let piece = piece(page, place);
            assert!(piece.octets.len() <= PIECE_BYTES);
            octets.extend(piece.octets);
            answers += 1;
            match piece.next {
                Some(next) => place = next,
                None => break,
            }
        }
        let mut wanted = Vec::new();
        all.into_iter().for_each(|row| RowChange::from(row).encode(&mut wanted));
        assert!(octets == wanted && answers == 5, "{answers}");
    }
}
