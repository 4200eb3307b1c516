//! Extended attributes: of files and directories, in the `user` namespace, few and small.

use crate::command::{Answer, SetXattr};
use crate::engine::Table;
use crate::execution::Execution;
use crate::id::InodeId;
use crate::name::{NAME_BYTES_MAX, Place};
use crate::record::{Inode, Kind, xattr_key};
use crate::refusal::{Failure, Refusal};
use crate::rights::WRITE;

/// Most octets of all names and values of one inode.
const XATTR_BYTES_MAX: usize = 4096;
const PREFIX: &[u8] = b"user.";

impl Execution<'_> {
    pub(super) fn set_xattr(&mut self, set: &SetXattr) -> Result<Answer, Failure> {
        let (id, mut inode) = self.attributed(&set.place, &set.name)?;
        let key = xattr_key(id, &set.name);
        let rows = self.view.prefixed(Table::Xattr, &xattr_key(id, b""), usize::MAX)?;
        let is_there = rows.iter().any(|(row, _)| *row == key);
        match set.must_exist {
            Some(true) if !is_there => return Err(Refusal::NoAttribute.into()),
            Some(false) if is_there => return Err(Refusal::AttributeExists.into()),
            _ => {}
        }
        let others = rows.iter().filter(|(row, _)| *row != key);
        let key_start = xattr_key(id, b"").len();
        let taken: usize = others.map(|(row, value)| row.len() - key_start + value.len()).sum();
        if taken + set.name.len() + set.value.len() > XATTR_BYTES_MAX {
            return Err(Refusal::AttributesFull.into());
        }
        self.view.put_octets(Table::Xattr, key, &set.value);
        self.touch(&mut inode);
        self.set_inode(id, &inode);
        Ok(Answer::Done)
    }

    pub(super) fn remove_xattr(&mut self, place: &Place, name: &[u8]) -> Result<Answer, Failure> {
        let (id, mut inode) = self.attributed(place, name)?;
        let key = xattr_key(id, name);
        if !self.view.has(Table::Xattr, &key)? {
            return Err(Refusal::NoAttribute.into());
        }
        self.view.delete(Table::Xattr, key);
        self.touch(&mut inode);
        self.set_inode(id, &inode);
        Ok(Answer::Done)
    }

    /// An inode whose extended attributes the caller may change.
    fn attributed(&self, place: &Place, name: &[u8]) -> Result<(InodeId, Inode), Failure> {
        if name.len() > NAME_BYTES_MAX {
            return Err(Refusal::NameTooLong.into());
        }
        let (id, inode) = self.object(place)?;
        if name.len() <= PREFIX.len() || !name.starts_with(PREFIX) || name.contains(&0) {
            return Err(Refusal::BadAttribute.into());
        }
        if inode.kind() == Kind::Symlink {
            return Err(Refusal::AttributeOnLink.into());
        }
        self.caller.check(&inode, WRITE)?;
        Ok((id, inode))
    }
}
