//! Entries that lead somewhere, and inodes that something leads to.

use std::collections::{BTreeMap, BTreeSet};

use super::Mending;
use crate::catalog::CatalogError;
use crate::check::{each, each_row};
use crate::codec::key_parts;
use crate::engine::Table;
use crate::id::InodeId;
use crate::name::EntryName;
use crate::rebuild::lost_and_found;
use crate::record::{Dentry, Detail, Inode, Kind, TrashItem, dentry_key, inode_key};

/// An inode, as far as names are concerned.
#[derive(Debug, Clone, Copy)]
struct Known {
    kind: Kind,
    parent: Option<InodeId>,
    link_count: u32,
}

/// All of them, and what leads to them.
#[derive(Debug, Default)]
struct Names {
    inodes: BTreeMap<InodeId, Known>,
    /// Keys of the entries that lead to an inode.
    entries: BTreeMap<InodeId, Vec<Vec<u8>>>,
    detached: BTreeSet<InodeId>,
    trash: BTreeSet<InodeId>,
}

impl Mending<'_> {
    pub(super) fn mend_names(&mut self) -> Result<(), CatalogError> {
        let mut names = Names::default();
        each(&self.view, |key, inode: Inode| {
            if let Ok([id]) = key_parts(key) {
                let parent = match inode.detail {
                    Detail::Directory { parent } => Some(parent),
                    _ => None,
                };
                let known = Known { kind: inode.kind(), parent, link_count: inode.link_count };
                names.inodes.insert(InodeId(id), known);
            }
        })?;
        self.mend_entries(&mut names)?;
        self.mend_detached(&mut names)?;
        self.mend_trash(&mut names)?;
        self.name_directories_once(&mut names)?;
        self.find_places(&mut names)?;
        self.count_links(&names)
    }

    /// Takes away entries that lead nowhere, or are nowhere.
    fn mend_entries(&mut self, names: &mut Names) -> Result<(), CatalogError> {
        let mut entries = Vec::new();
        each(&self.view, |key, entry: Dentry| entries.push((key.to_vec(), entry)))?;
        for (key, entry) in entries {
            let directory = directory_of(&key).and_then(|id| names.inodes.get(&id));
            if directory.is_none_or(|known| known.kind != Kind::Directory) {
                self.delete(Table::Dentry, &key, "is in no directory: the entry goes");
                continue;
            }
            match names.inodes.get(&entry.inode).map(|known| known.kind) {
                None => {
                    self.delete(Table::Dentry, &key, "leads to nothing: the entry goes");
                    continue;
                }
                Some(kind) if kind != entry.kind => {
                    self.set(key.clone(), &Dentry { kind, ..entry }, "gets the type of its inode");
                }
                Some(_) => {}
            }
            names.entries.entry(entry.inode).or_default().push(key);
        }
        Ok(())
    }

    /// What is to be collected is a directory without a name.
    fn mend_detached(&mut self, names: &mut Names) -> Result<(), CatalogError> {
        let mut rows = Vec::new();
        each_row(&self.view, Table::Detached, |key, _| {
            rows.push(key.to_vec());
            Ok(())
        })?;
        for key in rows {
            let id = key_parts(&key).ok().map(|[id]| InodeId(id));
            let known = id.and_then(|id| names.inodes.get(&id).map(|known| (id, *known)));
            match known {
                Some((id, known))
                    if known.kind == Kind::Directory && !names.entries.contains_key(&id) =>
                {
                    names.detached.insert(id);
                    if known.parent != Some(id) {
                        self.set_parent(names, id, id)?;
                    }
                }
                _ => self.delete(Table::Detached, &key, "is not to be collected"),
            }
        }
        Ok(())
    }

    /// What is in the trash has no name but this row.
    fn mend_trash(&mut self, names: &mut Names) -> Result<(), CatalogError> {
        let mut rows = Vec::new();
        each(&self.view, |key, item: TrashItem| rows.push((key.to_vec(), item.kind)))?;
        for (key, kind) in rows {
            let id = key_parts(&key).ok().map(|[id]| InodeId(id));
            let known = id.and_then(|id| names.inodes.get(&id).map(|known| (id, *known)));
            match known {
                Some((id, known))
                    if known.kind == kind
                        && !names.entries.contains_key(&id)
                        && !names.detached.contains(&id) =>
                {
                    names.trash.insert(id);
                    if kind == Kind::Directory && known.parent != Some(id) {
                        self.set_parent(names, id, id)?;
                    }
                }
                _ => self.delete(Table::Trash, &key, "is not in the trash"),
            }
        }
        Ok(())
    }

    /// A directory has one name, and knows in which it is.
    fn name_directories_once(&mut self, names: &mut Names) -> Result<(), CatalogError> {
        let directories: Vec<(InodeId, Known)> = names
            .inodes
            .iter()
            .filter(|(_, known)| known.kind == Kind::Directory)
            .map(|(id, known)| (*id, *known))
            .collect();
        for (id, known) in directories {
            let Some(keys) = names.entries.get(&id).cloned() else { continue };
            let is_known = |key: &&Vec<u8>| directory_of(key) == known.parent;
            let Some(kept) = keys.iter().find(is_known).or(keys.first()).cloned() else { continue };
            for key in keys.iter().filter(|key| **key != kept) {
                self.delete(Table::Dentry, key, "is another name of a directory: the entry goes");
            }
            if let Some(above) = directory_of(&kept).filter(|above| Some(*above) != known.parent) {
                self.set_parent(names, id, above)?;
            }
            names.entries.insert(id, vec![kept]);
        }
        Ok(())
    }

    /// Gives a name to what has none and should have one.
    fn find_places(&mut self, names: &mut Names) -> Result<(), CatalogError> {
        let nameless: Vec<(InodeId, Known)> = names
            .inodes
            .iter()
            .filter(|(id, known)| {
                let has_name = names.entries.contains_key(id) || **id == InodeId::ROOT;
                let is_removed = names.detached.contains(id) || names.trash.contains(id);
                !has_name && !is_removed && known.link_count > 0
            })
            .map(|(id, known)| (*id, *known))
            .collect();
        for (id, known) in nameless {
            if known.parent == Some(id) {
                // Somebody has removed it with all that is in it.
                names.detached.insert(id);
                self.mark(Table::Detached, inode_key(id), "is collected: it was removed");
                continue;
            }
            let used: BTreeSet<InodeId> = names.inodes.keys().copied().collect();
            let fresh = self.fresh(&used)?;
            let Some((place, above)) = lost_and_found(&mut self.view, self.now_ns, fresh)? else {
                self.note(Table::Inode, &inode_key(id), "has no name, and lost+found is no place");
                continue;
            };
            if place == fresh {
                self.note(Table::Inode, &inode_key(place), "is lost+found, made for what follows");
                let (kind, parent) = (Kind::Directory, Some(InodeId::ROOT));
                let link_count = above.link_count;
                names.inodes.insert(place, Known { kind, parent, link_count });
                let lost_key = self.lost_and_found_key()?;
                names.entries.insert(place, vec![lost_key]);
            }
            self.place(names, (id, known), place)?;
        }
        Ok(())
    }

    fn lost_and_found_key(&self) -> Result<Vec<u8>, CatalogError> {
        let name = EntryName::new(crate::rebuild::LOST_AND_FOUND)?;
        Ok(dentry_key(InodeId::ROOT, &name))
    }

    fn place(
        &mut self,
        names: &mut Names,
        (id, known): (InodeId, Known),
        directory: InodeId,
    ) -> Result<(), CatalogError> {
        let name = EntryName::new(format!("inode-{:x}", id.0).into_bytes())?;
        let key = dentry_key(directory, &name);
        let entry = Dentry { inode: id, kind: known.kind, placed: self.number };
        self.set(key.clone(), &entry, "leads to what had no name, from lost+found");
        names.entries.insert(id, vec![key]);
        if known.kind == Kind::Directory {
            self.set_parent(names, id, directory)?;
        }
        Ok(())
    }

    fn set_parent(
        &mut self,
        names: &mut Names,
        id: InodeId,
        parent: InodeId,
    ) -> Result<(), CatalogError> {
        let key = inode_key(id);
        if let Some(mut inode) = self.view.record::<Inode>(&key)? {
            inode.detail = Detail::Directory { parent };
            inode.binding = self.number;
            self.set(key, &inode, "learns in which directory it is");
        }
        if let Some(known) = names.inodes.get_mut(&id) {
            known.parent = Some(parent);
        }
        Ok(())
    }

    fn count_links(&mut self, names: &Names) -> Result<(), CatalogError> {
        let mut below: BTreeMap<InodeId, u32> = BTreeMap::new();
        for (id, keys) in &names.entries {
            if names.inodes.get(id).is_some_and(|known| known.kind == Kind::Directory) {
                for directory in keys.iter().filter_map(|key| directory_of(key)) {
                    *below.entry(directory).or_default() += 1;
                }
            }
        }
        for (id, known) in &names.inodes {
            let count = match known.kind {
                Kind::Directory => 2 + below.get(id).copied().unwrap_or_default(),
                _ => {
                    let entries = names.entries.get(id).map_or(0, |keys| keys.len() as u32);
                    entries + u32::from(names.trash.contains(id))
                }
            };
            let key = inode_key(*id);
            if let Some(mut inode) = self.view.record::<Inode>(&key)?
                && inode.link_count != count
            {
                inode.link_count = count;
                inode.binding = self.number;
                self.set(key, &inode, "its links are counted anew");
            }
        }
        Ok(())
    }
}

fn directory_of(key: &[u8]) -> Option<InodeId> {
    key.first_chunk().map(|id| InodeId(u64::from_be_bytes(*id)))
}
