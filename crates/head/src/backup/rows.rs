//! Rows that were put together in an engine: all of them in order, and their digest.

use byname_catalog::engine::{Engine, EngineError};
use byname_catalog::id::TransactionNumber;
use byname_catalog::{RowChange, export};

/// Rows read at a time.
const PAGE_ROWS: usize = 1024;

/// Rows that were put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Staged {
    /// The last transaction in them.
    pub through: TransactionNumber,
    /// When it was, in nanoseconds since 1970.
    pub at_ns: u64,
    /// How many there are.
    pub rows: u64,
    /// BLAKE3 of all of them.
    pub digest: [u8; 32],
}

/// Digest and number of the rows from which others follow.
pub(super) fn digest(engine: &dyn Engine) -> Result<([u8; 32], u64), EngineError> {
    let (mut hasher, mut count) = (blake3::Hasher::new(), 0);
    each_row(engine, &mut |row| {
        let mut octets = Vec::new();
        row.encode(&mut octets);
        hasher.update(&octets);
        count += 1;
        Ok::<(), EngineError>(())
    })?;
    Ok((*hasher.finalize().as_bytes(), count))
}

/// Calls for the rows from which others follow, in their order.
pub(super) fn each_row<E: From<EngineError>>(
    engine: &dyn Engine,
    take: &mut dyn FnMut(RowChange) -> Result<(), E>,
) -> Result<(), E> {
    let rows = engine.snapshot()?;
    let mut last = None;
    loop {
        let after = last.as_ref().map(|(table, key): &(_, Vec<u8>)| (*table, key.as_slice()));
        let page = export(&*rows, after, PAGE_ROWS)?;
        let is_last = page.len() < PAGE_ROWS;
        last = page.last().map(|row| (row.table, row.key.clone()));
        for row in page {
            take(RowChange::from(row))?;
        }
        if is_last {
            return Ok(());
        }
    }
}

pub(super) fn hex(digest: &[u8; 32]) -> String {
    blake3::Hash::from(*digest).to_hex().to_string()
}
