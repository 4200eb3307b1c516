//! Where a replica goes that has to leave its disk.

use super::Reader;
use crate::engine::Table;
use crate::id::{ContentId, DiskId};
use crate::placement::{Candidate, choose};
use crate::record::{Content, Disk, DiskState, Inode, KeptVersion, Policy, inode_key};
use crate::refusal::Failure;
use crate::view::read;

impl Reader<'_> {
    /// The content of a file with its policy, if it is the file's current one, or an old one that
    /// is kept by policy.
    pub fn current(&self, of: ContentId) -> Result<Option<(Content, Policy)>, Failure> {
        let inode: Option<Inode> = read(&*self.rows, &inode_key(of.inode))?;
        let Some(inode) = inode else { return Ok(None) };
        let current = inode.content().filter(|content| content.version == of.version);
        let content = match current {
            Some(current) => Some(current.clone()),
            None if self.rows.get(Table::OldVersion, &of.key())?.is_some() => {
                read::<KeptVersion>(&*self.rows, &of.key())?.map(|kept| kept.content)
            }
            None => None,
        };
        Ok(content.map(|content| (content, inode.policy)))
    }

    /// A disk as far as it may take one more replica of a content: it takes new content, has room,
    /// and neither has this one nor is about to drop it.
    pub fn takes(
        &self,
        of: ContentId,
        content: &Content,
        id: DiskId,
    ) -> Result<Option<Disk>, Failure> {
        let (disk, usage) = (self.disk(id)?, self.disk_usage(id)?);
        let taken = usage.used_bytes.saturating_add(usage.reserved_bytes);
        let has_room = disk.capacity_bytes.saturating_sub(taken) >= content.size;
        let takes = disk.is_up && disk.state == DiskState::ReadWrite && has_room;
        let is_new = !content.replicas.contains(&id) && !self.is_leaving(id, of)?;
        Ok(Some(disk).filter(|_| takes && is_new))
    }

    /// A disk for one more replica of a content, chosen beside those that stay as for new content;
    /// none of `without`, which are those that it leaves and those that do not take it.
    pub fn home_for(
        &self,
        of: ContentId,
        (content, policy): (&Content, &Policy),
        without: &[DiskId],
    ) -> Result<Option<(DiskId, Disk)>, Failure> {
        let (mut stay, mut candidates) = (Vec::new(), Vec::new());
        for (id, disk) in self.disks()? {
            let usage = self.disk_usage(id)?;
            let taken = usage.used_bytes.saturating_add(usage.reserved_bytes);
            let free_bytes = disk.capacity_bytes.saturating_sub(taken);
            let takes = disk.is_up && disk.state == DiskState::ReadWrite;
            let is_fit = takes && disk.space == policy.space && free_bytes >= content.size;
            let reserved_bytes = usage.reserved_bytes;
            let candidate = Candidate { id, disk, free_bytes, reserved_bytes };
            match (content.replicas.contains(&id), without.contains(&id)) {
                (true, false) => stay.push(candidate),
                (false, false) if is_fit && !self.is_leaving(id, of)? => candidates.push(candidate),
                _ => {}
            }
        }
        let count = stay.len() + 1;
        let chosen = choose(candidates, stay, count, of.version.0 ^ of.inode.0);
        Ok(chosen.into_iter().nth(count - 1).map(|home| (home.id, home.disk)))
    }
}
