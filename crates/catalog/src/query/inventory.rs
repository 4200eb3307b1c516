//! What disks should have, and which file that is: for whoever compares it with what they have.

use super::Reader;
use crate::codec::{Malformed, key_parts};
use crate::command::Resolution;
use crate::engine::{EngineError, Row, Span, Table};
use crate::execution::MISSING_COUNTERS;
use crate::id::{ContentId, DiskId, InodeId, Version};
use crate::name::EntryName;
use crate::record::{
    Attempt, COUNTERS_KEY, Counters, Dentry, Inode, Kind, Replica, disk_key, inode_key,
};
use crate::refusal::Failure;
use crate::view::{after_prefix, decoded, read};

use super::PAGE_ROWS_MAX;

/// An entry of any directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedEntry {
    /// The directory.
    pub directory: InodeId,
    /// The name in it.
    pub name: EntryName,
    /// What it leads to.
    pub id: InodeId,
    /// True for a directory.
    pub is_directory: bool,
}

impl Reader<'_> {
    /// True for who runs the site, and the head.
    pub fn is_operator(&self) -> bool {
        self.caller.is_operator
    }

    /// Contents that a disk has replicas of, in order, after one of them. A page that is shorter
    /// than `limit` and [`PAGE_ROWS_MAX`] is the last.
    pub fn replicas(
        &self,
        disk: DiskId,
        after: Option<ContentId>,
        limit: usize,
    ) -> Result<Vec<ContentId>, Failure> {
        let start = disk_key(disk);
        let from = match after {
            Some(content) => [Replica::key(disk, content).as_slice(), &[0]].concat(),
            None => start.clone(),
        };
        let until = after_prefix(&start);
        let span = Span { from: &from, until: until.as_deref() };
        let rows = self.rows.range(Table::Replica, span, limit.min(PAGE_ROWS_MAX))?;
        rows.into_iter().map(|row| replica(&row)).collect()
    }

    /// What a disk that has this content and asked about it would be told. The row of an attempt
    /// that is over counts as open until somebody ends it.
    pub fn resolution(&self, disk: DiskId, content: ContentId) -> Result<Resolution, Failure> {
        if self.rows.get(Table::Replica, &Replica::key(disk, content))?.is_some() {
            return Ok(Resolution::Keep);
        }
        let attempt: Option<Attempt> = read(&*self.rows, &content.key())?;
        let counters: Option<Counters> = read(&*self.rows, COUNTERS_KEY)?;
        let is_known = counters.ok_or(MISSING_COUNTERS)?.has_issued(content.version.0);
        Ok(match attempt {
            Some(attempt) if attempt.disks.contains(&disk) => Resolution::Wait,
            Some(_) => Resolution::Drop,
            None if is_known => Resolution::Drop,
            None => Resolution::Unknown,
        })
    }

    /// True if the disk is being told to drop the content.
    pub fn is_leaving(&self, disk: DiskId, content: ContentId) -> Result<bool, Failure> {
        // Both tables have the same keys.
        Ok(self.rows.get(Table::Drop, &Replica::key(disk, content))?.is_some())
    }

    /// Inodes after one of them, in the order of their numbers. A page that is shorter than `limit`
    /// and [`PAGE_ROWS_MAX`] is the last.
    pub fn inodes(
        &self,
        after: Option<InodeId>,
        limit: usize,
    ) -> Result<Vec<(InodeId, Inode)>, Failure> {
        let from = after.map_or_else(Vec::new, |id| [inode_key(id).as_slice(), &[0]].concat());
        let span = Span { from: &from, until: None };
        let rows = self.rows.range(Table::Inode, span, limit.min(PAGE_ROWS_MAX))?;
        let malformed = EngineError::Corrupt { table: Table::Inode, what: "a malformed key" };
        let mut inodes = Vec::with_capacity(rows.len());
        for (key, value) in rows {
            let Ok([id]) = key_parts(&key) else { return Err(malformed.into()) };
            inodes.push((InodeId(id), decoded(&value)?));
        }
        Ok(inodes)
    }

    /// Whose an inode is, if there is one.
    pub fn owner(&self, id: InodeId) -> Result<Option<String>, Failure> {
        let inode: Option<Inode> = read(&*self.rows, &inode_key(id))?;
        Ok(inode.map(|inode| inode.owner))
    }

    /// Entries of all directories after one of them, by directory and name. A page that is shorter
    /// than `limit` and [`PAGE_ROWS_MAX`] is the last.
    pub fn entries(
        &self,
        after: Option<&NamedEntry>,
        limit: usize,
    ) -> Result<Vec<NamedEntry>, Failure> {
        let from = after.map_or_else(Vec::new, |last| {
            [inode_key(last.directory).as_slice(), last.name.as_bytes(), &[0]].concat()
        });
        let span = Span { from: &from, until: None };
        let rows = self.rows.range(Table::Dentry, span, limit.min(PAGE_ROWS_MAX))?;
        rows.into_iter().map(|row| named(&row)).collect()
    }
}

fn replica((key, _): &Row) -> Result<ContentId, Failure> {
    let malformed =
        |Malformed| EngineError::Corrupt { table: Table::Replica, what: "a malformed key" };
    let [_, inode, version] = key_parts(key).map_err(malformed)?;
    Ok(ContentId { inode: InodeId(inode), version: Version(version) })
}

fn named((key, value): &Row) -> Result<NamedEntry, Failure> {
    let malformed = || EngineError::Corrupt { table: Table::Dentry, what: "a malformed key" };
    let (directory, name) = key.split_first_chunk().ok_or_else(malformed)?;
    let name = EntryName::new(name).map_err(|_| malformed())?;
    let Dentry { inode, kind, .. } = decoded(value)?;
    let directory = InodeId(u64::from_be_bytes(*directory));
    Ok(NamedEntry { directory, name, id: inode, is_directory: kind == Kind::Directory })
}
