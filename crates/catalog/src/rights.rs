//! Rights by names: POSIX modes for the user and groups that a command comes from.

use crate::record::{Inode, Kind, TrashItem};
use crate::refusal::Refusal;

/// Permission to read.
pub(crate) const READ: u16 = 0o4;
/// Permission to write.
pub(crate) const WRITE: u16 = 0o2;
/// Permission to execute, or to search a directory.
pub(crate) const SEARCH: u16 = 0o1;

pub(crate) const SET_USER: u16 = 0o4000;
pub(crate) const SET_GROUP: u16 = 0o2000;
pub(crate) const STICKY: u16 = 0o1000;
pub(crate) const GROUP_EXECUTE: u16 = 0o010;
/// All bits a mode may have.
pub(crate) const MODE_BITS: u16 = 0o7777;

/// Names that a command acts under.
#[derive(Debug, Clone, Default)]
pub(crate) struct Credentials {
    pub(crate) user: String,
    /// The door that speaks for the user, if one does.
    pub(crate) door: Option<String>,
    pub(crate) groups: Vec<String>,
    pub(crate) is_operator: bool,
}

impl Credentials {
    /// True if something in the trash is theirs to see and to bring back.
    pub(crate) fn has_removed(&self, item: &TrashItem) -> bool {
        self.is_operator || item.removed_by == self.user || item.owner == self.user
    }

    pub(crate) fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|own| own == group)
    }

    /// True for the owner, and for operators.
    pub(crate) fn owns(&self, inode: &Inode) -> bool {
        self.is_operator || self.user == inode.owner
    }

    /// Checks permission bits by the first class that fits: owner, named users, groups, others.
    pub(crate) fn check(&self, inode: &Inode, wanted: u16) -> Result<(), Refusal> {
        let is_granted =
            self.is_operator || self.classes(inode).any(|granted| granted & wanted == wanted);
        if is_granted { Ok(()) } else { Err(Refusal::AccessDenied) }
    }

    /// Rights of the first class that fits. Only that of groups has several, of which each that
    /// fits counts by itself: one has to grant all that is wanted.
    fn classes(&self, inode: &Inode) -> impl Iterator<Item = u16> {
        let (owner, mask, other) = (inode.mode >> 6, inode.mode >> 3, inode.mode);
        let mut fits = Vec::new();
        if self.user == inode.owner {
            return vec![owner].into_iter();
        }
        let Some(named) = inode.acls.access.as_deref() else {
            fits.push(if self.is_in(&inode.group) { mask } else { other });
            return fits.into_iter();
        };
        if let Some((_, rights)) = named.users.iter().find(|(name, _)| *name == self.user) {
            return vec![u16::from(*rights) & mask].into_iter();
        }
        if self.is_in(&inode.group) {
            fits.push(u16::from(named.group) & mask);
        }
        let groups = named.groups.iter().filter(|(name, _)| self.is_in(name));
        fits.extend(groups.map(|(_, rights)| u16::from(*rights) & mask));
        if fits.is_empty() {
            fits.push(other);
        }
        fits.into_iter()
    }

    /// Checks that an entry may be taken out of a directory.
    pub(crate) fn check_removal(&self, directory: &Inode, victim: &Inode) -> Result<(), Refusal> {
        self.check(directory, WRITE | SEARCH)?;
        let is_sticky = directory.mode & STICKY != 0;
        if is_sticky && !self.owns(victim) && !self.owns(directory) {
            return Err(Refusal::NotOwner);
        }
        Ok(())
    }

    /// Checks that a file may be given another name. Its owner pays for it as long as it has any:
    /// so it takes what would do the same by a copy, as Linux has it (`fs.protected_hardlinks`).
    pub(crate) fn check_link(&self, inode: &Inode) -> Result<(), Refusal> {
        let is_plain = inode.kind() == Kind::File && inode.mode & (SET_USER | SET_GROUP) == 0;
        let may_copy = is_plain && self.check(inode, READ | WRITE).is_ok();
        if self.owns(inode) || may_copy { Ok(()) } else { Err(Refusal::NotOwner) }
    }
}
