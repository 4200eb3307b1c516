//! Old versions that are kept by policy.

use super::Reader;
use crate::codec::{Malformed, key_parts};
use crate::engine::{EngineError, Table};
use crate::id::InodeId;
use crate::record::{Content, KeptVersion, OldVersion, inode_key};
use crate::refusal::Failure;
use crate::view::{decoded, prefixed, read};

const BAD_ROW: EngineError =
    EngineError::Corrupt { table: Table::OldVersion, what: "a version without content" };

impl Reader<'_> {
    /// Old versions of a file that are kept by policy, the oldest first.
    pub fn versions(&self, id: InodeId) -> Result<Vec<(Content, OldVersion)>, Failure> {
        let most = usize::from(u8::MAX) + 1;
        let rows = prefixed(&*self.rows, Table::OldVersion, &inode_key(id), most)?;
        let version = |(row, value): (Vec<u8>, Vec<u8>)| {
            let [_, _] = key_parts(&row).map_err(|Malformed| BAD_ROW)?;
            let kept: KeptVersion = read(&*self.rows, &row)?.ok_or(BAD_ROW)?;
            Ok((kept.content, decoded(&value)?))
        };
        rows.into_iter().map(version).collect()
    }
}
