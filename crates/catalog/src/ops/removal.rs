//! Removal of whole trees: out of sight in one transaction, collected in many.
//!
//! A directory that is removed with all that is in it is *detached*: its entry goes, it is its own
//! parent, and a row says that it is to be collected. Nothing leads there any more, and the
//! directories below it lead nowhere: no command that begins at one of them finds it. The head
//! takes its entries away later, so many at a time, each as if it had been removed by itself;
//! directories among them become detached in turn. A step is one transaction, so a head that dies
//! between two leaves a smaller tree. Until then everything in it counts for quota as before.

use crate::codec::{Malformed, key_parts};
use crate::command::Answer;
use crate::engine::{EngineError, Rows, Span, Table};
use crate::execution::Execution;
use crate::id::InodeId;
use crate::name::Place;
use crate::record::{Dentry, Detail, Inode, Kind, inode_key};
use crate::refusal::{Failure, Refusal};
use crate::rights::{READ, SEARCH, STICKY, WRITE};
use crate::view::{after_prefix, decoded};

/// Most entries that are read to find out whether somebody may remove a tree.
const LOOKED_MAX: usize = 4096;
/// Entries that are read at a time.
const PAGE_ROWS: usize = 1024;
/// Most entries that one command collects.
const COLLECT_MAX: usize = 256;
const BAD_KEY: EngineError =
    EngineError::Corrupt { table: Table::Detached, what: "a malformed key" };

impl Execution<'_> {
    /// Removes whatever is at a place, a directory with all that is in it.
    pub(super) fn remove_all(&mut self, place: &Place) -> Result<Answer, Failure> {
        let mut at = self.directory_of(place)?;
        let entry = self.dentry(at.id, &at.name)?.ok_or(Refusal::NotFound)?;
        let inode = self.inode(entry.inode)?;
        if !inode.is_directory() {
            return self.unlink(place);
        }
        self.caller.check_removal(&at.inode, &inode)?;
        self.check_removal_below(entry.inode, &inode)?;
        self.view.delete(Table::Dentry, at.key());
        at.inode.link_count -= 1;
        self.touch_entries(&mut at.inode);
        self.set_inode(at.id, &at.inode);
        let is_empty = !self.view.has_any(Table::Dentry, &inode_key(entry.inode))?;
        if is_empty || !self.put_in_trash((place, at.id), (entry.inode, &inode))? {
            self.check_no_trash(entry.inode, &inode)?;
            self.end_tree(entry.inode, inode)?;
        }
        Ok(Answer::Done)
    }

    /// Ends a directory that has no name any more, at once if nothing is in it.
    pub(super) fn end_tree(&mut self, id: InodeId, inode: Inode) -> Result<(), Failure> {
        if !self.view.has_any(Table::Dentry, &inode_key(id))? {
            return self.drop_directory(id, &inode);
        }
        self.detach(id, inode);
        Ok(())
    }

    /// Checks that the caller may take everything out of a directory and those below it, as
    /// somebody has to who lists and removes one after the other. No mode binds operators.
    fn check_removal_below(&self, top: InodeId, inode: &Inode) -> Result<(), Failure> {
        if self.caller.is_operator {
            return Ok(());
        }
        let mut looked = 0;
        let mut directories = vec![(top, inode.clone())];
        while let Some((id, inode)) = directories.pop() {
            // An empty one is removed without being looked into.
            if !self.view.has_any(Table::Dentry, &inode_key(id))? {
                continue;
            }
            self.caller.check(&inode, READ | WRITE | SEARCH)?;
            self.check_entries((id, &inode), &mut looked, &mut directories)?;
        }
        Ok(())
    }

    /// Finds the directories in one, and in a sticky one looks whose everything is.
    fn check_entries(
        &self,
        (id, inode): (InodeId, &Inode),
        looked: &mut usize,
        directories: &mut Vec<(InodeId, Inode)>,
    ) -> Result<(), Failure> {
        let keeps_foreign = inode.mode & STICKY != 0 && !self.caller.owns(inode);
        // Links of a directory say how many there are in it: where all are known, or there are
        // none, its files need not be read, which may be many.
        let mut unknown = inode.link_count.saturating_sub(2);
        let (mut from, until) = (inode_key(id), after_prefix(&inode_key(id)));
        while keeps_foreign || unknown > 0 {
            let span = Span { from: &from, until: until.as_deref() };
            let page = self.view.range(Table::Dentry, span, PAGE_ROWS)?;
            *looked += page.len();
            if *looked > LOOKED_MAX {
                return Err(Refusal::TreeTooLarge.into());
            }
            for (_, value) in &page {
                let entry: Dentry = decoded(value)?;
                let is_directory = entry.kind == Kind::Directory;
                if !is_directory && !keeps_foreign {
                    continue;
                }
                let below = self.inode(entry.inode)?;
                if keeps_foreign && !self.caller.owns(&below) {
                    return Err(Refusal::AccessDenied.into());
                }
                if is_directory {
                    unknown = unknown.saturating_sub(1);
                    directories.push((entry.inode, below));
                }
            }
            match page.last() {
                Some((key, _)) if page.len() == PAGE_ROWS => from = [key.as_slice(), &[0]].concat(),
                _ => break,
            }
        }
        Ok(())
    }

    /// Leaves a directory that has no name any more to be collected.
    fn detach(&mut self, id: InodeId, mut inode: Inode) {
        inode.detail = Detail::Directory { parent: id };
        self.touch(&mut inode);
        self.set_inode(id, &inode);
        self.view.mark(Table::Detached, inode_key(id));
    }

    /// Takes away what is in detached directories; the answer says how much was looked at.
    pub(super) fn collect(&mut self, limit: usize) -> Result<Answer, Failure> {
        let limit = limit.min(COLLECT_MAX);
        let mut count = 0;
        while count < limit {
            let detached = self.view.range(Table::Detached, Span::ALL, limit - count)?;
            if detached.is_empty() {
                break;
            }
            for (row, _) in detached {
                let [id] = key_parts(&row).map_err(|Malformed| BAD_KEY)?;
                count += self.collect_from(InodeId(id), limit - count)?;
                if count >= limit {
                    break;
                }
            }
        }
        Ok(Answer::Count(count))
    }

    /// The same of one directory, which goes itself when it has nothing any more.
    fn collect_from(&mut self, id: InodeId, limit: usize) -> Result<usize, Failure> {
        let key = inode_key(id);
        let mut directory: Inode = self.inode(id)?;
        let entries = self.view.prefixed(Table::Dentry, &key, limit)?;
        for (row, value) in &entries {
            let entry: Dentry = decoded(value)?;
            self.view.delete(Table::Dentry, row.clone());
            let inode = self.inode(entry.inode)?;
            if inode.is_directory() {
                directory.link_count -= 1;
                self.detach(entry.inode, inode);
            } else {
                self.drop_link(entry.inode, inode)?;
            }
        }
        if entries.len() < limit {
            self.drop_directory(id, &directory)?;
            self.view.delete(Table::Detached, key);
            return Ok(entries.len() + 1);
        }
        self.set_inode(id, &directory);
        Ok(entries.len())
    }
}
