//! Access control lists: setting them, and what is made below a directory that has a default one.

use crate::command::{Answer, Entry, SetAcl};
use crate::execution::Execution;
use crate::record::{Inode, Kind};
use crate::refusal::{Failure, Refusal};
use crate::rights::SET_GROUP;

impl Execution<'_> {
    pub(super) fn set_acl(&mut self, set: &SetAcl) -> Result<Answer, Failure> {
        let (id, mut inode) = self.object(&set.place)?;
        if inode.kind() == Kind::Symlink {
            return Err(Refusal::AclOfLink.into());
        }
        let mut acl = set.acl.clone();
        acl.as_mut().map_or(Ok(()), |acl| acl.check())?;
        if !self.caller.owns(&inode) {
            return Err(Refusal::NotOwner.into());
        }
        match (set.is_default, acl) {
            (true, Some(_)) if !inode.is_directory() => return Err(Refusal::DefaultOfFile.into()),
            (true, acl) => inode.acls.default = acl.map(Box::new),
            // The mask stays as what the group may do, as it is when a list is taken off a file.
            (false, None) => inode.acls.access = None,
            (false, Some(acl)) => {
                inode.mode = inode.mode & !0o777 | acl.permission_bits();
                inode.acls.access = acl.beyond_mode();
                if !self.caller.is_operator && !self.caller.is_in(&inode.group) {
                    inode.mode &= !SET_GROUP;
                }
            }
        }
        self.touch(&mut inode);
        self.set_inode(id, &inode);
        Ok(Answer::Entry(Entry { id, inode }))
    }
}

impl Inode {
    /// Something new with the lists that its directory gives it, and what they leave of its mode.
    pub(crate) fn inheriting(mut self, directory: &Self) -> Self {
        let Some(default) = &directory.acls.default else { return self };
        if self.kind() == Kind::Symlink {
            return self;
        }
        (self.mode, self.acls.access) = default.inherited(self.mode);
        if self.is_directory() {
            self.acls.default = Some(default.clone());
        }
        self
    }
}
