//! Attributes: mode, owner, group, times, and the size as far as it needs no content.

use crate::command::{Answer, AttributeChanges, Entry, TimeChange};
use crate::execution::Execution;
use crate::id::{InodeId, SessionId, Version};
use crate::name::{Place, check_label};
use crate::quota::{Account, settle};
use crate::record::{Content, Detail, Inode, Kind, Usage};
use crate::refusal::{Failure, Refusal};
use crate::rights::{SET_GROUP, WRITE};

use super::commit::clear_set_ids;
use super::namespace::{ONE_INODE, check_mode};

impl Execution<'_> {
    pub(super) fn set_attributes(
        &mut self,
        session: SessionId,
        place: &Place,
        changes: &AttributeChanges,
    ) -> Result<Answer, Failure> {
        let (id, mut inode) = self.object(place)?;
        if let Some(size) = changes.size {
            self.set_size(session, (id, &mut inode), size)?;
        }
        if changes.owner.is_some() || changes.group.is_some() {
            self.set_owner(&mut inode, changes)?;
        }
        if let Some(mode) = changes.mode {
            self.set_mode(&mut inode, mode)?;
        }
        if let Some(time) = changes.modified {
            self.set_time(&mut inode, time)?;
        }
        self.touch(&mut inode);
        self.set_inode(id, &inode);
        Ok(Answer::Entry(Entry { id, inode }))
    }

    fn set_size(
        &mut self,
        session: SessionId,
        (id, inode): (InodeId, &mut Inode),
        size: u64,
    ) -> Result<(), Failure> {
        let current = match &inode.detail {
            Detail::File(content) => content.size,
            Detail::Directory { .. } => return Err(Refusal::IsDirectory.into()),
            Detail::Symlink { .. } => return Err(Refusal::NotFile.into()),
        };
        self.caller.check(inode, WRITE)?;
        self.check_lease(session, id)?;
        if size != current {
            if size != 0 {
                return Err(Refusal::SizeNeedsContent.into());
            }
            let charged =
                |inode: &Inode| Usage { bytes: inode.charged_bytes(), ..Usage::default() };
            let (account, before) = (Account::of(inode), charged(inode));
            let version = Version(self.issue()?);
            self.replace_content(id, inode, Content::empty(version))?;
            settle(&mut self.view, &[(&account, before)], &[(&account, charged(inode))])?;
        }
        if !self.caller.is_operator {
            clear_set_ids(inode);
        }
        inode.times.modified_ns = self.now_ns;
        Ok(())
    }

    fn set_owner(&mut self, inode: &mut Inode, changes: &AttributeChanges) -> Result<(), Failure> {
        let before = Account::of(inode);
        if let Some(owner) = &changes.owner {
            check_label(owner)?;
            if !self.caller.is_operator && *owner != inode.owner {
                return Err(Refusal::NotOperator.into());
            }
        }
        if !self.caller.owns(inode) {
            return Err(Refusal::NotOwner.into());
        }
        if let Some(group) = &changes.group {
            check_label(group)?;
            let is_own = self.caller.is_in(group) || *group == inode.group;
            if !self.caller.is_operator && !is_own {
                return Err(Refusal::NotOperator.into());
            }
            inode.group.clone_from(group);
        }
        if let Some(owner) = &changes.owner {
            inode.owner.clone_from(owner);
        }
        if inode.content().is_some() {
            clear_set_ids(inode);
        }
        let after = Account::of(inode);
        if inode.link_count > 0 && before != after {
            let moved = Usage { bytes: inode.charged_bytes(), ..ONE_INODE };
            settle(&mut self.view, &[(&before, moved)], &[(&after, moved)])?;
        }
        Ok(())
    }

    fn set_mode(&mut self, inode: &mut Inode, mode: u16) -> Result<(), Failure> {
        check_mode(mode)?;
        if inode.kind() == Kind::Symlink {
            return Err(Refusal::ModeOfLink.into());
        }
        if !self.caller.owns(inode) {
            return Err(Refusal::NotOwner.into());
        }
        let is_foreign = !self.caller.is_operator && !self.caller.is_in(&inode.group);
        inode.mode = if is_foreign { mode & !SET_GROUP } else { mode };
        Ok(())
    }

    fn set_time(&mut self, inode: &mut Inode, time: TimeChange) -> Result<(), Failure> {
        match time {
            TimeChange::Now if self.caller.owns(inode) => {}
            TimeChange::Now => self.caller.check(inode, WRITE)?,
            TimeChange::At(_) if self.caller.owns(inode) => {}
            TimeChange::At(_) => return Err(Refusal::NotOwner.into()),
        }
        inode.times.modified_ns = match time {
            TimeChange::Now => self.now_ns,
            TimeChange::At(modified_ns) => modified_ns,
        };
        Ok(())
    }
}
