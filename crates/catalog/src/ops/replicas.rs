//! Replicas that change their disk while their file stays what it is: one transaction that counts
//! the new one and lets the old one go, so a file never has fewer than it had.

use crate::command::{Answer, MoveReplica, Receipt};
use crate::engine::Table;
use crate::execution::Execution;
use crate::id::{ContentId, DiskId};
use crate::record::{
    Content, Detail, DiskState, Inode, KeptVersion, Replica, SITE_KEY, Site, inode_key,
};
use crate::refusal::{Failure, Refusal};

use super::content::DiskBooking;

impl Execution<'_> {
    /// Counts a replica that a disk has confirmed, and takes another one away. What was replaced
    /// meanwhile is not moved any more: the disk that has it asks, and lets it go.
    pub(super) fn move_replica(&mut self, moved: &MoveReplica) -> Result<Answer, Failure> {
        let MoveReplica { receipt, from } = moved;
        let site: Option<Site> = self.view.record(SITE_KEY)?;
        if site.is_none_or(|site| site.name != receipt.site) {
            return Err(Refusal::ForeignReceipt.into());
        }
        if self.disk(receipt.disk)?.generation != receipt.generation {
            return Err(Refusal::UnknownDisk.into());
        }
        let of = receipt.content;
        let inode: Option<Inode> = self.view.record(&inode_key(of.inode))?;
        let mut inode = inode.ok_or(Refusal::NoContent)?;
        let Detail::File(content) = &mut inode.detail else {
            return Err(Refusal::NoContent.into());
        };
        if content.version != of.version {
            // What is kept by policy is moved as well.
            if !self.view.has(Table::OldVersion, &of.key())? {
                return Err(Refusal::NoContent.into());
            }
            let kept: Option<KeptVersion> = self.view.record(&of.key())?;
            let mut kept = kept.ok_or(Refusal::NoContent)?;
            self.count_moved(&mut kept.content, (receipt, *from))?;
            self.view.set(of.key(), &kept);
            return Ok(Answer::Done);
        }
        self.count_moved(content, (receipt, *from))?;
        // Not the times: nothing of the file is another one.
        inode.binding = self.number;
        self.set_inode(of.inode, &inode);
        Ok(Answer::Done)
    }

    fn count_moved(
        &mut self,
        content: &mut Content,
        (receipt, from): (&Receipt, Option<DiskId>),
    ) -> Result<(), Failure> {
        let of = receipt.content;
        let says = (receipt.size, receipt.root, receipt.checksums);
        if says != (content.size, content.root, content.checksums) {
            return Err(Refusal::ForeignReceipt.into());
        }
        if !content.replicas.contains(&receipt.disk) {
            // What a disk is being told to drop is no replica.
            if self.view.has(Table::Drop, &Replica::key(receipt.disk, of))? {
                return Err(Refusal::UnknownDisk.into());
            }
            content.replicas.push(receipt.disk);
            let added = Content { replicas: vec![receipt.disk], ..content.clone() };
            self.add_replicas(of.inode, &added)?;
        }
        if let Some(from) = from.filter(|from| *from != receipt.disk) {
            self.take_replica(of, content, from)?;
        }
        Ok(())
    }

    /// Lets a replica go while another one can be read.
    pub(super) fn drop_replica(&mut self, of: ContentId, from: DiskId) -> Result<Answer, Failure> {
        let inode: Option<Inode> = self.view.record(&inode_key(of.inode))?;
        if let Some(mut inode) = inode
            && let Detail::File(content) = &mut inode.detail
            && content.version == of.version
        {
            self.let_go(of, content, from)?;
            inode.binding = self.number;
            self.set_inode(of.inode, &inode);
            return Ok(Answer::Done);
        }
        let kept: Option<KeptVersion> = self.view.record(&of.key())?;
        let mut kept = kept.ok_or(Refusal::NoContent)?;
        self.let_go(of, &mut kept.content, from)?;
        self.view.set(of.key(), &kept);
        Ok(Answer::Done)
    }

    fn let_go(
        &mut self,
        of: ContentId,
        content: &mut Content,
        from: DiskId,
    ) -> Result<(), Failure> {
        if !content.replicas.contains(&from) {
            return Err(Refusal::NoContent.into());
        }
        let mut is_elsewhere = false;
        for disk in content.replicas.iter().filter(|disk| **disk != from) {
            let disk = self.disk(*disk)?;
            is_elsewhere |= disk.is_up && disk.state != DiskState::Off;
        }
        if !is_elsewhere {
            return Err(Refusal::LastReplica.into());
        }
        self.take_replica(of, content, from)
    }

    /// Has a disk drop what nothing leads to; the answer says how much that is. What the catalog
    /// has never given out stays: an older catalog may have been put back.
    pub(super) fn discard(
        &mut self,
        disk: DiskId,
        contents: &[ContentId],
    ) -> Result<Answer, Failure> {
        self.disk(disk)?;
        let mut count = 0;
        for content in contents {
            let key = Replica::key(disk, *content);
            let is_wanted = self.view.has(Table::Replica, &key)?
                || self.view.has(Table::Attempt, &content.key())?;
            if !is_wanted && self.counters.has_issued(content.version.0) {
                self.view.mark(Table::Drop, key);
                count += 1;
            }
        }
        Ok(Answer::Count(count))
    }

    fn take_replica(
        &mut self,
        of: ContentId,
        content: &mut Content,
        from: DiskId,
    ) -> Result<(), Failure> {
        let Some(at) = content.replicas.iter().position(|disk| *disk == from) else {
            return Ok(());
        };
        content.replicas.remove(at);
        self.view.delete(Table::Replica, Replica::key(from, of));
        self.view.mark(Table::Drop, Replica::key(from, of));
        let change = DiskBooking { less_used: content.size, ..DiskBooking::default() };
        self.book_disk(from, change)
    }
}
