//! Entries: making and removing directories, links and names.

use crate::command::{Answer, Entry};
use crate::engine::Table;
use crate::execution::{EntryPlace, Execution};
use crate::id::InodeId;
use crate::name::Place;
use crate::quota::{Account, charge, credit};
use crate::record::{
    Acls, Dentry, Detail, Expiry, Inode, Kind, Subject, Times, TrashPolicy, Usage, inode_key,
    xattr_key,
};
use crate::refusal::{Failure, Refusal};
use crate::rights::{GROUP_EXECUTE, MODE_BITS, SEARCH, SET_GROUP, STICKY, WRITE};

/// Most names of one file, and most directories in one.
pub(super) const LINKS_MAX: u32 = 65_000;
/// Longest target of a symbolic link, in octets.
const TARGET_BYTES_MAX: usize = 1024;

/// What an inode counts for quota: nothing without a name.
pub(super) fn charged(inode: &Inode) -> Usage {
    match inode.link_count {
        0 => Usage::default(),
        _ => Usage { bytes: inode.charged_bytes(), ..ONE_INODE },
    }
}

/// One inode, as it counts for quota.
pub(super) const ONE_INODE: Usage =
    Usage { inodes: 1, bytes: 0, reserved_inodes: 0, reserved_bytes: 0 };

impl Execution<'_> {
    pub(super) fn make_directory(&mut self, place: &Place, mode: u16) -> Result<Answer, Failure> {
        check_mode(mode)?;
        let mut at = self.free_entry(place)?;
        if at.inode.link_count >= LINKS_MAX {
            return Err(Refusal::TooManyLinks.into());
        }
        let mode = mode & (0o777 | STICKY) | at.inode.mode & SET_GROUP;
        let mut inode = self.new_inode(&at.inode, mode, Detail::Directory { parent: at.id });
        inode.link_count = 2;
        at.inode.link_count += 1;
        self.enter_new(at, inode)
    }

    pub(super) fn make_symlink(&mut self, place: &Place, target: &[u8]) -> Result<Answer, Failure> {
        if target.is_empty() {
            return Err(Refusal::NotFound.into());
        }
        if target.len() > TARGET_BYTES_MAX {
            return Err(Refusal::TargetTooLong.into());
        }
        let at = self.free_entry(place)?;
        let detail = Detail::Symlink { target: target.to_vec() };
        let inode = self.new_inode(&at.inode, 0o777, detail);
        self.enter_new(at, inode)
    }

    pub(super) fn link(&mut self, existing: &Place, place: &Place) -> Result<Answer, Failure> {
        let (id, mut inode) = self.object(existing)?;
        let mut at = self.free_entry(place)?;
        if inode.is_directory() {
            return Err(Refusal::LinkToDirectory.into());
        }
        self.caller.check_link(&inode)?;
        if inode.link_count == 0 || self.view.has(Table::Trash, &inode_key(id))? {
            return Err(Refusal::NotFound.into());
        }
        if inode.link_count >= LINKS_MAX {
            return Err(Refusal::TooManyLinks.into());
        }
        if inode.tree != at.inode.tree {
            return Err(Refusal::OtherTree.into());
        }
        inode.link_count += 1;
        self.touch(&mut inode);
        self.set_inode(id, &inode);
        self.view.set(at.key(), &self.dentry_of(id, &inode));
        self.touch_entries(&mut at.inode);
        self.set_inode(at.id, &at.inode);
        Ok(Answer::Entry(Entry { id, inode }))
    }

    pub(super) fn unlink(&mut self, place: &Place) -> Result<Answer, Failure> {
        let mut at = self.directory_of(place)?;
        let entry = self.dentry(at.id, &at.name)?.ok_or(Refusal::NotFound)?;
        let inode = self.inode(entry.inode)?;
        self.caller.check_removal(&at.inode, &inode)?;
        if inode.is_directory() {
            return Err(Refusal::IsDirectory.into());
        }
        self.view.delete(Table::Dentry, at.key());
        self.touch_entries(&mut at.inode);
        self.set_inode(at.id, &at.inode);
        self.remove_link((place, at.id), (entry.inode, inode))?;
        Ok(Answer::Done)
    }

    pub(super) fn remove_directory(&mut self, place: &Place) -> Result<Answer, Failure> {
        let mut at = self.directory_of(place)?;
        let entry = self.dentry(at.id, &at.name)?.ok_or(Refusal::NotFound)?;
        let inode = self.inode(entry.inode)?;
        self.caller.check_removal(&at.inode, &inode)?;
        self.check_empty_directory(entry.inode, &inode)?;
        self.view.delete(Table::Dentry, at.key());
        at.inode.link_count -= 1;
        self.touch_entries(&mut at.inode);
        self.set_inode(at.id, &at.inode);
        self.drop_directory(entry.inode, &inode)?;
        Ok(Answer::Done)
    }

    /// The place of an entry that is not there yet and that the caller may make.
    pub(super) fn free_entry(&self, place: &Place) -> Result<EntryPlace, Failure> {
        let at = self.directory_of(place)?;
        if self.dentry(at.id, &at.name)?.is_some() {
            return Err(Refusal::Exists.into());
        }
        self.caller.check(&at.inode, WRITE | SEARCH)?;
        Ok(at)
    }

    /// An inode that a caller makes in a directory, with one link.
    pub(super) fn new_inode(&self, directory: &Inode, mode: u16, detail: Detail) -> Inode {
        let takes_group = directory.mode & SET_GROUP != 0;
        let own_group = self.caller.groups.first().cloned().unwrap_or_default();
        let group = if takes_group { directory.group.clone() } else { own_group };
        let is_file = matches!(detail, Detail::File(_));
        let is_foreign = !self.caller.is_operator && !self.caller.is_in(&group);
        let drops_group = is_file && is_foreign && mode & GROUP_EXECUTE != 0;
        Inode {
            mode: if drops_group { mode & !SET_GROUP } else { mode },
            owner: self.caller.user.clone(),
            group,
            link_count: 1,
            times: Times {
                created_ns: self.now_ns,
                modified_ns: self.now_ns,
                changed_ns: self.now_ns,
            },
            binding: self.number,
            tree: directory.tree,
            policy: directory.policy.clone(),
            detail,
            acls: Acls::default(),
            versions: directory.versions.inherited(),
        }
        .inheriting(directory)
    }

    /// Gives a new inode its number and name, and books it.
    fn enter_new(&mut self, at: EntryPlace, inode: Inode) -> Result<Answer, Failure> {
        let id = InodeId(self.issue()?);
        charge(&mut self.view, &Account::of(&inode), ONE_INODE)?;
        self.enter(at, id, &inode);
        Ok(Answer::Entry(Entry { id, inode }))
    }

    /// An entry that leads to an inode from now on.
    fn dentry_of(&self, id: InodeId, inode: &Inode) -> Dentry {
        Dentry { inode: id, kind: inode.kind(), placed: self.number }
    }

    /// Gives an inode a name.
    pub(super) fn enter(&mut self, mut at: EntryPlace, id: InodeId, inode: &Inode) {
        self.view.set(at.key(), &self.dentry_of(id, inode));
        self.set_inode(id, inode);
        self.touch_entries(&mut at.inode);
        self.set_inode(at.id, &at.inode);
    }

    pub(super) fn check_empty_directory(&self, id: InodeId, inode: &Inode) -> Result<(), Failure> {
        if !inode.is_directory() {
            return Err(Refusal::NotDirectory.into());
        }
        if self.view.has_any(Table::Dentry, &inode_key(id))? {
            return Err(Refusal::NotEmpty.into());
        }
        self.check_no_trash(id, inode)
    }

    /// Takes the name at a place from a file or symbolic link: into the trash, or for good.
    pub(super) fn remove_link(
        &mut self,
        at: (&Place, InodeId),
        (id, inode): (InodeId, Inode),
    ) -> Result<(), Failure> {
        if self.put_in_trash(at, (id, &inode))? { Ok(()) } else { self.drop_link(id, inode) }
    }

    /// Takes a name from a file or symbolic link. A file without names stays for its readers and
    /// writers, and counts for nobody.
    pub(super) fn drop_link(&mut self, id: InodeId, mut inode: Inode) -> Result<(), Failure> {
        let charged = Usage { bytes: inode.charged_bytes(), ..ONE_INODE };
        inode.link_count -= 1;
        self.touch(&mut inode);
        if inode.link_count == 0 {
            credit(&mut self.view, &Account::of(&inode), charged)?;
            if inode.kind() == Kind::Symlink {
                self.view.delete(Table::Inode, inode_key(id));
                return Ok(());
            }
            let due_ns = self.now_ns.saturating_add(self.terms.kept_ns);
            self.view.mark(Table::Expiry, Expiry::Nameless(id).key(due_ns));
        }
        self.set_inode(id, &inode);
        Ok(())
    }

    /// Forgets a directory that has no entries and no name any more.
    pub(super) fn drop_directory(&mut self, id: InodeId, inode: &Inode) -> Result<(), Failure> {
        credit(&mut self.view, &Account::of(inode), ONE_INODE)?;
        if inode.tree == id {
            self.view.delete(Table::Limit, Subject::Tree(id).key());
            self.view.delete(Table::TrashPolicy, TrashPolicy::key(id));
        }
        self.forget_inode(id)
    }

    /// Removes an inode and its extended attributes, which are few.
    pub(super) fn forget_inode(&mut self, id: InodeId) -> Result<(), Failure> {
        for (key, _) in self.view.prefixed(Table::Xattr, &xattr_key(id, b""), usize::MAX)? {
            self.view.delete(Table::Xattr, key);
        }
        self.view.delete(Table::Inode, inode_key(id));
        Ok(())
    }
}

pub(super) fn check_mode(mode: u16) -> Result<(), Refusal> {
    if mode & !MODE_BITS == 0 { Ok(()) } else { Err(Refusal::BadMode) }
}
