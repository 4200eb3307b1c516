//! What is in the trash: listed for those whose it is, and measured for the head.

use super::{PAGE_ROWS_MAX, Reader};
use crate::codec::{Malformed, key, key_parts};
use crate::command::MeasuredTrash;
use crate::engine::{EngineError, Span, Table};
use crate::id::{InodeId, TransactionNumber};
use crate::record::{
    Dentry, Inode, Kind, TrashItem, TrashPolicy, TrashUsage, UNMEASURED, inode_key,
};
use crate::refusal::Failure;
use crate::view::{after_prefix, decoded, prefixed, read};

const BAD_KEY: EngineError = EngineError::Corrupt { table: Table::Trash, what: "a malformed key" };

/// A page of what is in the trash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrashPage {
    /// What concerns the reader.
    pub items: Vec<(InodeId, TrashItem)>,
    /// The last that was looked at, unless it was the last of all.
    pub more_after: Option<InodeId>,
}

impl Reader<'_> {
    /// Things in the trash after one of them, in the order of their numbers, as far as the reader
    /// has removed them or they were his; operators see all. Of the rows looked at, `limit` at
    /// most, any number may concern others.
    pub fn trash(&self, after: Option<InodeId>, limit: usize) -> Result<TrashPage, Failure> {
        let limit = limit.min(PAGE_ROWS_MAX);
        let from = after.map_or_else(Vec::new, |id| [inode_key(id).as_slice(), &[0]].concat());
        let rows = self.rows.range(Table::Trash, Span { from: &from, until: None }, limit)?;
        let (mut items, mut last) = (Vec::new(), None);
        for (row, value) in &rows {
            let [id] = key_parts(row).map_err(|Malformed| BAD_KEY)?;
            last = Some(InodeId(id));
            let item: TrashItem = decoded(value)?;
            if self.caller.has_removed(&item) {
                items.push((InodeId(id), item));
            }
        }
        Ok(TrashPage { items, more_after: last.filter(|_| rows.len() == limit) })
    }

    /// The policy that a tree has of its own, the one that holds for it, and what is in its trash.
    pub fn trash_of(
        &self,
        tree: InodeId,
    ) -> Result<(Option<TrashPolicy>, Option<TrashPolicy>, TrashUsage), Failure> {
        let policy = |tree| read::<TrashPolicy>(&*self.rows, &TrashPolicy::key(tree));
        let own = policy(tree)?;
        let holds = match own {
            Some(own) => Some(own),
            None => policy(InodeId::ROOT)?,
        };
        let usage: Option<TrashUsage> = read(&*self.rows, &inode_key(tree))?;
        Ok((own, holds, usage.unwrap_or_default()))
    }

    /// The directory in the trash that waits the longest to be measured.
    pub fn unmeasured(&self) -> Result<Option<TrashWalk>, Failure> {
        let rows = prefixed(&*self.rows, Table::TrashOrder, &key([UNMEASURED]), 1)?;
        let Some((row, _)) = rows.first() else { return Ok(None) };
        let [_, removed, id] = key_parts(row).map_err(|Malformed| BAD_KEY)?;
        let (item, removed) = (InodeId(id), TransactionNumber(removed));
        let way = vec![(item, Vec::new())];
        Ok(Some(TrashWalk { found: MeasuredTrash { item, removed, bytes: 0, inodes: 1 }, way }))
    }
}

/// A walk through a directory in the trash, in which nobody changes names any more.
#[derive(Debug)]
pub struct TrashWalk {
    found: MeasuredTrash,
    /// Directories from the top to where the walk is, each with the key of the last entry there.
    way: Vec<(InodeId, Vec<u8>)>,
}

impl TrashWalk {
    /// Looks at `limit` entries more; the measure when it has seen all. Files with several names
    /// count with each.
    ///
    /// # Errors
    /// [`Failure`]; the walk is of no use then.
    pub fn step(
        &mut self,
        reader: &Reader<'_>,
        limit: usize,
    ) -> Result<Option<MeasuredTrash>, Failure> {
        let mut left = limit;
        while let Some((directory, last)) = self.way.pop() {
            if left == 0 {
                self.way.push((directory, last));
                return Ok(None);
            }
            left -= self.step_in(reader, (directory, last), left)?;
        }
        Ok(Some(self.found))
    }

    /// Looks at entries of one directory, up to the next directory in it.
    fn step_in(
        &mut self,
        reader: &Reader<'_>,
        (directory, last): (InodeId, Vec<u8>),
        limit: usize,
    ) -> Result<usize, Failure> {
        let start = inode_key(directory);
        let from = if last.is_empty() { start.clone() } else { [last.as_slice(), &[0]].concat() };
        let until = after_prefix(&start);
        let span = Span { from: &from, until: until.as_deref() };
        let rows = reader.rows.range(Table::Dentry, span, limit.min(PAGE_ROWS_MAX))?;
        for (index, (row, value)) in rows.iter().enumerate() {
            let entry: Dentry = decoded(value)?;
            self.found.inodes += 1;
            if entry.kind == Kind::Directory {
                self.way.push((directory, row.clone()));
                self.way.push((entry.inode, Vec::new()));
                return Ok(index + 1);
            }
            let inode: Option<Inode> = read(&*reader.rows, &inode_key(entry.inode))?;
            let bytes = inode.map_or(0, |inode| inode.charged_bytes());
            self.found.bytes = self.found.bytes.saturating_add(bytes);
        }
        if let Some((row, _)) = rows.last()
            && rows.len() == limit.min(PAGE_ROWS_MAX)
        {
            self.way.push((directory, row.clone()));
        }
        Ok(rows.len().max(1))
    }
}
