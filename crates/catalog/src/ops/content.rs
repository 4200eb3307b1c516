//! Versions of content and what they take on disks, shared by all that begins, replaces or ends
//! one.

use crate::command::Answer;
use crate::engine::{EngineError, Table};
use crate::execution::Execution;
use crate::id::{ContentId, DiskId, InodeId};
use crate::record::{
    Content, Detail, Disk, DiskUsage, Expiry, Inode, KeptVersion, Replica, disk_key,
};
use crate::refusal::{Failure, Refusal};

/// Nanoseconds that a replaced version stays for its readers, and a file without a name, unless the
/// head says otherwise.
pub const KEPT_NS: u64 = 600_000_000_000;

/// Change of the octets on a disk.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DiskBooking {
    pub(super) add_used: u64,
    pub(super) less_used: u64,
    pub(super) add_reserved: u64,
    pub(super) less_reserved: u64,
}

impl Execution<'_> {
    pub(super) fn disk(&self, id: DiskId) -> Result<Disk, Failure> {
        Ok(self.view.record(&disk_key(id))?.ok_or(Refusal::NoSuchDisk)?)
    }

    pub(super) fn book_disk(&mut self, id: DiskId, change: DiskBooking) -> Result<(), Failure> {
        let key = disk_key(id);
        let old: DiskUsage = self.view.record(&key)?.unwrap_or_default();
        let new = |old: u64, add: u64, less: u64| old.checked_add(add)?.checked_sub(less);
        let used_bytes = new(old.used_bytes, change.add_used, change.less_used);
        let reserved_bytes = new(old.reserved_bytes, change.add_reserved, change.less_reserved);
        let what = "usage would be below zero";
        let (Some(used_bytes), Some(reserved_bytes)) = (used_bytes, reserved_bytes) else {
            return Err(EngineError::Corrupt { table: Table::DiskUsage, what }.into());
        };
        self.view.set(key, &DiskUsage { used_bytes, reserved_bytes });
        Ok(())
    }

    /// Puts new content in place of a file's. The old stays for its readers.
    pub(super) fn replace_content(
        &mut self,
        id: InodeId,
        inode: &mut Inode,
        content: Content,
    ) -> Result<(), Failure> {
        let Detail::File(current) = &mut inode.detail else {
            return Err(Refusal::NotFile.into());
        };
        let old = std::mem::replace(current, content);
        if old.replicas.is_empty() {
            return Ok(());
        }
        let content = ContentId { inode: id, version: old.version };
        let size = old.size;
        self.view.set(content.key(), &KeptVersion { content: old });
        if self.keep_replaced(inode, (content, size))? {
            return Ok(());
        }
        let due_ns = self.now_ns.saturating_add(self.terms.kept_ns);
        self.view.mark(Table::Expiry, Expiry::Kept(content).key(due_ns));
        Ok(())
    }

    /// Counts content on the disks that have it.
    pub(super) fn add_replicas(&mut self, id: InodeId, content: &Content) -> Result<(), Failure> {
        let of = ContentId { inode: id, version: content.version };
        for disk in &content.replicas {
            self.view.set(Replica::key(*disk, of), &Replica { size: content.size });
            let change = DiskBooking { add_used: content.size, ..DiskBooking::default() };
            self.book_disk(*disk, change)?;
        }
        Ok(())
    }

    /// Has the disks drop content: it is no replica any more, and the head tells them so until
    /// each has said that it is gone.
    pub(super) fn drop_replicas(&mut self, id: InodeId, content: &Content) -> Result<(), Failure> {
        let of = ContentId { inode: id, version: content.version };
        for disk in &content.replicas {
            self.view.delete(Table::Replica, Replica::key(*disk, of));
            self.view.mark(Table::Drop, Replica::key(*disk, of));
            let change = DiskBooking { less_used: content.size, ..DiskBooking::default() };
            self.book_disk(*disk, change)?;
        }
        Ok(())
    }

    /// A disk has said that contents are gone for good.
    pub(super) fn dropped(&mut self, disk: DiskId, contents: &[ContentId]) -> Answer {
        for content in contents {
            self.view.delete(Table::Drop, Replica::key(disk, *content));
        }
        Answer::Count(contents.len())
    }
}
