//! Moving an entry, in POSIX's meaning and in Linux's order of checks.

use crate::attached::DEPTH_MAX;
use crate::command::{Answer, Rename};
use crate::engine::Table;
use crate::execution::{EntryPlace, Execution};
use crate::id::InodeId;
use crate::name::Place;
use crate::quota::{Account, settle};
use crate::record::{Dentry, Detail, Inode, Usage};
use crate::refusal::{Failure, Refusal};
use crate::rights::{SEARCH, WRITE};

use super::namespace::{LINKS_MAX, ONE_INODE};

impl Execution<'_> {
    pub(super) fn rename(&mut self, rename: &Rename) -> Result<Answer, Failure> {
        let from = self.directory_of(&rename.from)?;
        let to = self.directory_of(&rename.to)?;
        let source = self.dentry(from.id, &from.name)?.ok_or(Refusal::NotFound)?;
        let target = self.dentry(to.id, &to.name)?;
        if rename.no_replace && target.is_some() {
            return Err(Refusal::Exists.into());
        }
        if from.id != to.id {
            if self.is_within(to.id, source.inode)? {
                return Err(Refusal::IntoItself.into());
            }
            if let Some(target) = target
                && self.is_within(from.id, target.inode)?
            {
                return Err(Refusal::NotEmpty.into());
            }
        }
        if target.is_some_and(|target| target.inode == source.inode) {
            return Ok(Answer::Done);
        }
        let inode = self.inode(source.inode)?;
        let replaced = target.map(|target| Ok::<_, Failure>((target, self.inode(target.inode)?)));
        let replaced = replaced.transpose()?;
        self.check_move(&from, &to, &inode, replaced.as_ref())?;
        let to = match replaced {
            Some((entry, target)) => self.replace(&rename.to, to, (entry.inode, target))?,
            None => to,
        };
        self.move_entry(from, to, (source, inode))?;
        Ok(Answer::Done)
    }

    /// Removes what another entry takes the name of.
    fn replace(
        &mut self,
        place: &Place,
        mut to: EntryPlace,
        (id, target): (InodeId, Inode),
    ) -> Result<EntryPlace, Failure> {
        if target.is_directory() {
            to.inode.link_count -= 1;
            self.drop_directory(id, &target)?;
        } else {
            self.remove_link((place, to.id), (id, target))?;
        }
        Ok(to)
    }

    fn check_move(
        &self,
        from: &EntryPlace,
        to: &EntryPlace,
        inode: &Inode,
        replaced: Option<&(Dentry, Inode)>,
    ) -> Result<(), Failure> {
        self.caller.check_removal(&from.inode, inode)?;
        match replaced {
            None => self.caller.check(&to.inode, WRITE | SEARCH)?,
            Some((_, target)) => {
                self.caller.check_removal(&to.inode, target)?;
                match (inode.is_directory(), target.is_directory()) {
                    (true, false) => return Err(Refusal::NotDirectory.into()),
                    (false, true) => return Err(Refusal::IsDirectory.into()),
                    _ => {}
                }
            }
        }
        if inode.is_directory() && from.id != to.id {
            // Its entry for the directory above changes.
            self.caller.check(inode, WRITE)?;
        }
        // A file's other names stay where they are, and so would what it counts for.
        let is_bound = inode.is_directory() || inode.link_count > 1;
        if is_bound && self.tree_in(inode, &to.inode)? != inode.tree {
            return Err(Refusal::OtherTree.into());
        }
        if inode.is_directory() && from.id != to.id && to.inode.link_count >= LINKS_MAX {
            return Err(Refusal::TooManyLinks.into());
        }
        if let Some((entry, target)) = replaced
            && target.is_directory()
        {
            self.check_empty_directory(entry.inode, target)?;
        }
        Ok(())
    }

    /// The tree that an inode counts for once it is in a directory. The top of a tree stays one.
    fn tree_in(&self, inode: &Inode, directory: &Inode) -> Result<InodeId, Failure> {
        let is_top = match inode.detail {
            Detail::Directory { parent } => self.inode(parent)?.tree != inode.tree,
            _ => false,
        };
        Ok(if is_top { inode.tree } else { directory.tree })
    }

    fn move_entry(
        &mut self,
        mut from: EntryPlace,
        mut to: EntryPlace,
        (source, mut inode): (Dentry, Inode),
    ) -> Result<(), Failure> {
        self.view.delete(Table::Dentry, from.key());
        self.view.set(to.key(), &Dentry { placed: self.number, ..source });
        let tree = self.tree_in(&inode, &to.inode)?;
        if tree != inode.tree {
            let old = Account::of(&inode);
            inode.tree = tree;
            let moved = Usage { bytes: inode.charged_bytes(), ..ONE_INODE };
            let new = Account::of(&inode);
            settle(&mut self.view, &[(&old, moved)], &[(&new, moved)])?;
        }
        if from.id != to.id {
            if inode.is_directory() {
                from.inode.link_count -= 1;
                to.inode.link_count += 1;
                inode.detail = Detail::Directory { parent: to.id };
            }
            self.touch_entries(&mut from.inode);
            self.set_inode(from.id, &from.inode);
        }
        self.touch(&mut inode);
        self.set_inode(source.inode, &inode);
        self.touch_entries(&mut to.inode);
        self.set_inode(to.id, &to.inode);
        Ok(())
    }

    /// True if a directory is another one or lies in it.
    fn is_within(&self, directory: InodeId, above: InodeId) -> Result<bool, Failure> {
        let mut id = directory;
        for _ in 0..DEPTH_MAX {
            if id == above {
                return Ok(true);
            }
            match self.inode(id)?.detail {
                Detail::Directory { parent } if parent != id => id = parent,
                _ => return Ok(false),
            }
        }
        Err(Refusal::TooDeep.into())
    }
}
