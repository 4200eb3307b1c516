//! What manifests have announced, by directory. Whole directories are forgotten, the one that was
//! unused longest first.

use std::collections::HashMap;
use std::sync::Arc;

use byname_packet::{Name, NameRef, types};

use super::KIND_MAX;
use super::directory::{DirectoryVersions, EntryVersions};

#[derive(Debug)]
struct Directory {
    /// Shared with copies that the owner makes to keep them.
    entries: Arc<DirectoryVersions>,
    /// Tick of the last use.
    used: u64,
}

/// Records of directories; at most [`KIND_MAX`] entries together, if none has more.
#[derive(Debug, Default)]
pub(super) struct ListedVersions {
    directories: HashMap<Name, Directory>,
    entry_count: usize,
}

impl ListedVersions {
    /// Entries of all directories.
    pub(super) fn entry_count(&self) -> usize {
        self.entry_count
    }

    /// What is remembered of a directory's entries.
    pub(super) fn directory(&self, name: NameRef<'_>) -> Arc<DirectoryVersions> {
        self.directories.get(name.value()).map(|it| it.entries.clone()).unwrap_or_default()
    }

    /// What is remembered of a path.
    pub(super) fn get(&self, path: NameRef<'_>) -> EntryVersions {
        let found = path.split_last().filter(|_| !self.directories.is_empty());
        let found = found
            .filter(|(_, last)| last.typ == types::GENERIC)
            .and_then(|(name, last)| self.directories.get(name.value())?.entries.get(last.value));
        found.unwrap_or_default()
    }

    /// Puts a directory's entries in place of those that are there.
    pub(super) fn put(&mut self, name: NameRef<'_>, entries: Arc<DirectoryVersions>, used: u64) {
        if entries.is_empty() {
            return;
        }
        let count = entries.len();
        self.entry_count += count;
        let before = match self.directories.get_mut(name.value()) {
            Some(known) => Some(std::mem::replace(known, Directory { entries, used })),
            None => self.directories.insert(name.to_name(), Directory { entries, used }),
        };
        self.entry_count -= before.map_or(0, |before| before.entries.len());
        if self.entry_count > KIND_MAX {
            self.bound(count);
        }
    }

    /// Forgets half, so that the cost is spread over as many entries, but not the directory that
    /// was used last, which has `newest` entries.
    fn bound(&mut self, newest: usize) {
        let directories = self.directories.values();
        let mut ages: Vec<_> = directories.map(|it| (it.used, it.entries.len())).collect();
        ages.sort_unstable();
        let mut limit = 0;
        for (used, count) in ages {
            if self.entry_count <= newest.max(KIND_MAX / 2) {
                break;
            }
            self.entry_count -= count;
            limit = used;
        }
        self.directories.retain(|_, directory| directory.used > limit);
    }

    /// Forgets what is remembered of a path. True if it was known.
    pub(super) fn remove(&mut self, path: NameRef<'_>) -> bool {
        let Some((name, last)) = path.split_last() else { return false };
        let Some(directory) = self.directories.get_mut(name.value()) else { return false };
        let was_known = last.typ == types::GENERIC
            && directory.entries.get(last.value).is_some()
            && Arc::make_mut(&mut directory.entries).remove(last.value);
        self.entry_count -= usize::from(was_known);
        was_known
    }

    /// All directories, the longest unused first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Name, &Arc<DirectoryVersions>)> {
        let mut all: Vec<_> = self.directories.iter().collect();
        all.sort_unstable_by_key(|(_, directory)| directory.used);
        all.into_iter().map(|(name, directory)| (name, &directory.entries))
    }
}
