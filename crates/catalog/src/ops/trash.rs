//! The trash: what is removed from a tree whose policy says so stays for a time, and counts for
//! quota as before.
//!
//! A row of the trash takes the place of the entry: it is the only name of its inode, and a
//! directory there is its own parent, so nothing leads to it or below it, as to a tree that is
//! being collected. To bring it back is to give it an entry again, whatever is in it. What is
//! purged goes as if it were removed where there is no trash: files stay a while for their readers,
//! directories are collected.
//!
//! Only the last name of a file goes to the trash; one of several is just a name less.

use crate::codec::{Malformed, key_parts};
use crate::command::{Answer, Entry, MeasuredTrash, RestoreTrash};
use crate::engine::{EngineError, Rows, Span, Table};
use crate::execution::Execution;
use crate::id::InodeId;
use crate::name::Place;
use crate::quota::{Account, settle};
use crate::record::{Detail, Inode, TrashItem, TrashPolicy, TrashUsage, Usage, inode_key};
use crate::refusal::{Failure, Refusal};

use super::namespace::{LINKS_MAX, ONE_INODE};

/// Most things that one command ends.
const EXPIRE_MAX: usize = 256;
/// Trees that are looked at together.
const PAGE_TREES: usize = 256;
/// Longest path that is kept, in octets; of a longer one the directory's number and the name.
const PATH_BYTES_MAX: usize = 1024;
const BAD_KEY: EngineError =
    EngineError::Corrupt { table: Table::TrashOrder, what: "a malformed key" };
const BAD_USAGE: EngineError =
    EngineError::Corrupt { table: Table::TrashUsage, what: "usage would be below zero" };

impl Execution<'_> {
    pub(super) fn set_trash(
        &mut self,
        place: &Place,
        policy: TrashPolicy,
    ) -> Result<Answer, Failure> {
        policy.check()?;
        let (id, inode) = self.object(place)?;
        if inode.tree != id {
            return Err(Refusal::NotTree.into());
        }
        self.view.set(TrashPolicy::key(id), &policy);
        Ok(Answer::Done)
    }

    /// The policy of a tree: its own, or that of the top directory.
    fn trash_policy(&self, tree: InodeId) -> Result<Option<TrashPolicy>, Failure> {
        let own = self.view.record(&TrashPolicy::key(tree))?;
        Ok(match own {
            Some(own) => Some(own),
            None => self.view.record(&TrashPolicy::key(InodeId::ROOT))?,
        })
    }

    /// Puts what has lost its entry into the trash, if its tree has one and it fits there. If not,
    /// nothing was changed.
    pub(super) fn put_in_trash(
        &mut self,
        (place, directory): (&Place, InodeId),
        (id, inode): (InodeId, &Inode),
    ) -> Result<bool, Failure> {
        let Some(policy) = self.trash_policy(inode.tree)?.filter(|policy| policy.is_on) else {
            return Ok(false);
        };
        let is_directory = inode.is_directory();
        let bytes = inode.charged_bytes();
        if !is_directory && (inode.link_count > 1 || bytes > policy.bytes_max) {
            return Ok(false);
        }
        let mut inode = inode.clone();
        if is_directory {
            inode.detail = Detail::Directory { parent: id };
        }
        self.touch(&mut inode);
        self.set_inode(id, &inode);
        let item = TrashItem {
            kind: inode.kind(),
            tree: inode.tree,
            removed: self.number,
            removed_ns: self.now_ns,
            removed_by: self.caller.user.clone(),
            owner: inode.owner,
            place: kept_place(place, directory),
            measure: Some((bytes, 1)).filter(|_| !is_directory),
        };
        if is_directory {
            self.view.mark(Table::TrashOrder, item.unmeasured_key(id));
        }
        self.view.mark(Table::TrashOrder, item.order_key(id));
        self.view.set(inode_key(id), &item);
        self.book_trash(item.tree, (TrashUsage::default(), usage_of(&item)))?;
        Ok(true)
    }

    fn book_trash(
        &mut self,
        tree: InodeId,
        (less, add): (TrashUsage, TrashUsage),
    ) -> Result<(), Failure> {
        let key = inode_key(tree);
        let old: TrashUsage = self.view.record(&key)?.unwrap_or_default();
        let new = |old: u64, add: u64, less: u64| old.checked_add(add)?.checked_sub(less);
        let items = new(old.items, add.items, less.items).ok_or(BAD_USAGE)?;
        let bytes = new(old.bytes, add.bytes, less.bytes).ok_or(BAD_USAGE)?;
        match items {
            0 => self.view.delete(Table::TrashUsage, key),
            _ => self.view.set(key, &TrashUsage { items, bytes }),
        }
        Ok(())
    }

    fn take_from_trash(&mut self, id: InodeId, item: &TrashItem) -> Result<(), Failure> {
        self.view.delete(Table::Trash, inode_key(id));
        self.view.delete(Table::TrashOrder, item.order_key(id));
        if item.measure.is_none() {
            self.view.delete(Table::TrashOrder, item.unmeasured_key(id));
        }
        self.book_trash(item.tree, (usage_of(item), TrashUsage::default()))
    }

    /// Something in the trash that the caller removed, or that was his. Others are not told that
    /// there is anything.
    fn own_item(&self, id: InodeId) -> Result<TrashItem, Failure> {
        let item: TrashItem = self.view.record(&inode_key(id))?.ok_or(Refusal::NotInTrash)?;
        if self.caller.has_removed(&item) { Ok(item) } else { Err(Refusal::NotInTrash.into()) }
    }

    /// Gives what is in the trash an entry again, with all that is in it.
    pub(super) fn restore(&mut self, restore: &RestoreTrash) -> Result<Answer, Failure> {
        let id = restore.item;
        let item = self.own_item(id)?;
        let mut at = self.free_entry(restore.to.as_ref().unwrap_or(&item.place))?;
        let mut inode = self.inode(id)?;
        let is_directory = inode.is_directory();
        if is_directory && at.inode.link_count >= LINKS_MAX {
            return Err(Refusal::TooManyLinks.into());
        }
        // The top of a tree stays one.
        let tree = if inode.tree == id { id } else { at.inode.tree };
        if tree != inode.tree {
            if is_directory {
                return Err(Refusal::OtherTree.into());
            }
            let old = Account::of(&inode);
            inode.tree = tree;
            let moved = Usage { bytes: inode.charged_bytes(), ..ONE_INODE };
            settle(&mut self.view, &[(&old, moved)], &[(&Account::of(&inode), moved)])?;
        }
        if is_directory {
            inode.detail = Detail::Directory { parent: at.id };
            at.inode.link_count += 1;
        }
        self.take_from_trash(id, &item)?;
        self.touch(&mut inode);
        self.enter(at, id, &inode);
        Ok(Answer::Entry(Entry { id, inode }))
    }

    /// Ends what is in the trash, of the caller's.
    pub(super) fn purge(&mut self, id: InodeId) -> Result<Answer, Failure> {
        let item = self.own_item(id)?;
        self.end_item(id, &item)?;
        Ok(Answer::Done)
    }

    /// Ends what is in the trash for too long, or is too much, the oldest of each tree first.
    pub(super) fn expire_trash(&mut self, limit: usize) -> Result<Answer, Failure> {
        let limit = limit.min(EXPIRE_MAX);
        let (mut count, mut from) = (0, Vec::new());
        while count < limit {
            let span = Span { from: &from, until: None };
            let trees = self.view.range(Table::TrashUsage, span, PAGE_TREES)?;
            for (key, _) in &trees {
                let [tree] = key_parts(key).map_err(|Malformed| BAD_KEY)?;
                count += self.expire_tree(InodeId(tree), limit - count)?;
            }
            match trees.last() {
                Some((key, _)) if trees.len() == PAGE_TREES => {
                    from = [key.as_slice(), &[0]].concat();
                }
                _ => break,
            }
        }
        Ok(Answer::Count(count))
    }

    fn expire_tree(&mut self, tree: InodeId, limit: usize) -> Result<usize, Failure> {
        let policy = self.trash_policy(tree)?;
        let mut count = 0;
        for (row, _) in self.view.prefixed(Table::TrashOrder, &inode_key(tree), limit)? {
            let [_, _, id] = key_parts(&row).map_err(|Malformed| BAD_KEY)?;
            let item: TrashItem = self.view.record(&inode_key(InodeId(id)))?.ok_or(BAD_KEY)?;
            let usage: TrashUsage = self.view.record(&inode_key(tree))?.unwrap_or_default();
            // Where there is no policy, the tree itself is gone.
            let stays = policy.is_some_and(|policy| {
                let is_old = item.removed_ns.saturating_add(policy.keep_ns) <= self.now_ns;
                !(is_old || policy.is_on && usage.bytes > policy.bytes_max)
            });
            if stays {
                break;
            }
            self.end_item(InodeId(id), &item)?;
            count += 1;
        }
        Ok(count)
    }

    /// Notes how much is in a directory in the trash. One that is too much alone goes before all
    /// others do for it.
    pub(super) fn measured(&mut self, measured: &MeasuredTrash) -> Result<Answer, Failure> {
        let MeasuredTrash { item: id, removed, bytes, inodes } = *measured;
        let item: TrashItem = self.view.record(&inode_key(id))?.ok_or(Refusal::NotInTrash)?;
        if item.removed != removed || item.measure.is_some() {
            return Err(Refusal::NotInTrash.into());
        }
        let policy = self.trash_policy(item.tree)?;
        if policy.is_some_and(|policy| policy.is_on && bytes > policy.bytes_max) {
            self.end_item(id, &item)?;
            return Ok(Answer::Done);
        }
        self.view.delete(Table::TrashOrder, item.unmeasured_key(id));
        let less = usage_of(&item);
        let item = TrashItem { measure: Some((bytes, inodes)), ..item };
        self.book_trash(item.tree, (less, usage_of(&item)))?;
        self.view.set(inode_key(id), &item);
        Ok(Answer::Done)
    }

    /// Removes something from the trash for good.
    fn end_item(&mut self, id: InodeId, item: &TrashItem) -> Result<(), Failure> {
        self.take_from_trash(id, item)?;
        let inode = self.inode(id)?;
        if inode.is_directory() { self.end_tree(id, inode) } else { self.drop_link(id, inode) }
    }

    /// Refuses to end a tree with a quota of its own while there is something of it in the trash:
    /// it would have no place that it can be brought back to.
    pub(super) fn check_no_trash(&self, id: InodeId, inode: &Inode) -> Result<(), Failure> {
        if inode.tree == id && self.view.has(Table::TrashUsage, &inode_key(id))? {
            return Err(Refusal::TrashInUse.into());
        }
        Ok(())
    }
}

fn usage_of(item: &TrashItem) -> TrashUsage {
    TrashUsage { items: 1, bytes: item.bytes() }
}

/// The path of what is removed, if it was found by one that is not very long.
fn kept_place(place: &Place, directory: InodeId) -> Place {
    let bytes: usize = place.names.iter().map(|name| name.as_bytes().len() + 2).sum();
    match place.names.last() {
        Some(name) if place.base != InodeId::ROOT || bytes > PATH_BYTES_MAX => {
            Place::entry(directory, name.clone())
        }
        _ => place.clone(),
    }
}
