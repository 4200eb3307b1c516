//! The newest version seen of each name, so that nobody can silently serve an older one.
//!
//! Where a site binds paths to contents ([`Announced::binding`]), a path may lead to another
//! content, with lower version numbers, and still be newer. So two things are remembered: versions
//! by the name of the content, and bindings by path, as the "version" of `<path>/32=binding`.
//!
//! There is one rule for every way in which a version is learned: [`VersionMemory::admit`] judges
//! an announcement and remembers it, [`VersionMemory::admit_manifest`] those of a manifest.
//!
//! The memory is bounded: what was used longest ago is forgotten first. What manifests announce is
//! kept apart from names that were asked for singly, one record for a directory
//! ([`DirectoryVersions`]), so that a large tree neither drives those out nor costs as much as its
//! files. The owner may keep both across runs: [`VersionMemory::iter`] and
//! [`VersionMemory::directories`], [`VersionMemory::restore`] and
//! [`VersionMemory::restore_directory`].

mod directory;
mod listed;

pub use directory::{DirectoryVersions, EntryVersions};

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use byname_packet::{Component, Name, NameRef};

use crate::freshness::Unreachable;
use crate::manifest::Entry;
use listed::ListedVersions;

/// Keyword after a path whose binding is remembered.
const BINDING_KEYWORD: &[u8] = b"binding";

/// Names remembered: those that were asked for singly, and as many that manifests announced.
pub const NAMES_MAX: usize = 2 * KIND_MAX;
const KIND_MAX: usize = 65_536;

/// An older version than one seen before was announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Older {
    /// The newest version, or binding, seen.
    pub seen: u64,
    /// The one announced now.
    pub got: u64,
}

/// An announcement, as far as rollback is judged by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announced<'a> {
    /// The path that was asked for.
    pub path: NameRef<'a>,
    /// Name of the announced object, without version: of the path itself, or of a content.
    pub object: NameRef<'a>,
    /// Its version.
    pub version: u64,
    /// Number of the transaction that bound path and object, if there is one.
    pub binding: Option<u64>,
}

/// Part of an admitted announcement that the memory keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lesson {
    /// Nothing: nobody vouches for it, or not whoever decides about these versions.
    Nothing,
    /// Its numbers.
    Numbers,
}

/// What is remembered of a name that was asked for singly.
#[derive(Clone, Copy, Debug)]
struct Seen {
    version: u64,
    /// Tick of the last use.
    used: u64,
    /// Tick of the last change; 0 if nothing has changed since it was restored.
    learned: u64,
}

/// A name with what is remembered of it.
#[derive(Clone, Copy, Debug)]
pub struct Remembered<'a> {
    /// The name, without version.
    pub name: &'a Name,
    /// The newest version, or binding, seen.
    pub version: u64,
    /// It changed since a [`VersionMemory::tick`] if this is greater.
    pub learned: u64,
}

/// Bounded memory of the newest version of each name.
#[derive(Debug, Default)]
pub struct VersionMemory {
    names: HashMap<Name, Seen>,
    listed: ListedVersions,
    /// A binding was remembered among the names, so paths are looked up among them.
    has_bindings: bool,
    tick: u64,
    /// Tick of the last change of anything.
    learned: u64,
    /// Publishers that did not answer lately. Not kept across runs.
    pub(crate) unreachable: Unreachable,
    /// Age of the oldest description that was taken although it is not fresh.
    age_ns: Option<u64>,
}

impl VersionMemory {
    /// Judges an announcement: its version must not be older than one seen of the object, nor its
    /// binding than one seen of the path; a path that was bound once is not taken without binding.
    /// Remembers one that passes, as the lesson says.
    ///
    /// # Errors
    /// [`Older`] with the number it is judged by; 0 stands for an absent binding.
    pub fn admit(&mut self, announced: &Announced<'_>, lesson: Lesson) -> Result<(), Older> {
        let Announced { path, object, version, binding } = *announced;
        self.check(object, version)?;
        let binding_name = || path.with(Component::keyword(BINDING_KEYWORD));
        let listed = self.listed.get(path).binding;
        let single = if self.has_bindings { self.single(binding_name().view().value()) } else { 0 };
        not_older(single.max(listed), binding.unwrap_or(0))?;
        if lesson == Lesson::Numbers {
            self.learn(object, version);
            if let Some(binding) = binding {
                self.learn(binding_name().view(), binding);
            }
        }
        Ok(())
    }

    /// Admits what a manifest of `directory` announces of an entry, as if it had been asked for
    /// singly. An entry without version announces nothing.
    ///
    /// # Errors
    /// As [`admit`](Self::admit).
    pub fn admit_entry(
        &mut self,
        directory: NameRef<'_>,
        entry: &Entry<'_>,
        lesson: Lesson,
    ) -> Result<(), Older> {
        let content = entry.content.map(|content| (content.name.to_name(), content.version));
        let path = directory.with(Component::generic(entry.name));
        let path = path.view();
        let (object, version) = match (entry.version, &content) {
            (Some(version), _) => (path, version.number),
            (None, Some((content, version))) => (content.view(), version.number),
            (None, None) => return Ok(()),
        };
        let binding = entry.attributes.binding;
        self.admit(&Announced { path, object, version, binding }, lesson)
    }

    /// Admits what a manifest of `directory` announces of its entries, which come in the order of
    /// their names. Returns those that are older than what was seen.
    pub fn admit_manifest<'e>(
        &mut self,
        directory: NameRef<'_>,
        entries: impl Iterator<Item = Entry<'e>>,
        lesson: Lesson,
    ) -> BTreeMap<Box<[u8]>, Older> {
        let known = self.listed.directory(directory);
        let (mut old, mut raised) = (BTreeMap::new(), DirectoryVersions::default());
        let (mut path, mut at) = (directory.value().to_vec(), 0);
        self.tick += 1;
        for entry in entries {
            let seen = known.seek(&mut at, entry.name);
            path.truncate(directory.value().len());
            match self.judge(&mut path, &entry, seen.unwrap_or_default()) {
                Ok(numbers) if numbers.is_above(&seen.unwrap_or_default()) => {
                    raised.insert(entry.name, numbers);
                }
                Ok(_) => {}
                Err(older) => {
                    old.insert(entry.name.into(), older);
                }
            }
        }
        if lesson == Lesson::Numbers {
            self.learn_entries(directory, known, raised);
        }
        old
    }

    /// Remembers numbers of a directory's entries that are higher than the known ones.
    fn learn_entries(
        &mut self,
        directory: NameRef<'_>,
        mut known: Arc<DirectoryVersions>,
        raised: DirectoryVersions,
    ) {
        if !raised.is_empty() {
            let entries = Arc::make_mut(&mut known);
            entries.merge(raised);
            entries.cut_to(KIND_MAX);
            // Of a directory that is larger than the memory, what is new may not be kept.
            if entries.iter().any(|(_, versions)| versions.learned == self.tick) {
                self.learned = self.tick;
            }
        }
        self.listed.put(directory, known, self.tick);
    }

    /// Numbers to remember of an entry of the directory that `path` begins with, if it passes.
    fn judge(
        &self,
        path: &mut Vec<u8>,
        entry: &Entry<'_>,
        listed: EntryVersions,
    ) -> Result<EntryVersions, Older> {
        let mut numbers = EntryVersions { learned: self.tick, ..EntryVersions::default() };
        Component::generic(entry.name).encode(path);
        match (entry.version, entry.content) {
            (Some(version), _) => {
                not_older(self.single(path).max(listed.version), version.number)?;
                numbers.version = version.number;
            }
            // Who may speak of contents elsewhere is decided by their own descriptions.
            (None, Some(content)) => {
                self.check(content.name.to_name().view(), content.version.number)?;
            }
            (None, None) => return Ok(numbers),
        }
        let mut seen = listed.binding;
        if self.has_bindings {
            Component::keyword(BINDING_KEYWORD).encode(path);
            seen = seen.max(self.single(path));
        }
        numbers.binding = entry.attributes.binding.unwrap_or(0);
        not_older(seen, numbers.binding)?;
        Ok(numbers)
    }

    /// True if `version` of `name` (without version component) may still be used.
    ///
    /// # Errors
    /// [`Older`] if a newer one was seen.
    pub fn check(&self, name: NameRef<'_>, version: u64) -> Result<(), Older> {
        not_older(self.single(name.value()).max(self.listed.get(name).version), version)
    }

    /// What was seen of a name that was asked for singly; 0 if nothing.
    fn single(&self, name: &[u8]) -> u64 {
        self.names.get(name).map_or(0, |seen| seen.version)
    }

    fn learn(&mut self, name: NameRef<'_>, version: u64) {
        self.tick += 1;
        let tick = self.tick;
        match self.names.get_mut(name.value()) {
            Some(seen) => {
                seen.used = tick;
                if seen.version < version {
                    (seen.version, seen.learned, self.learned) = (version, tick, tick);
                }
            }
            None => {
                self.learned = tick;
                self.put(name.to_name(), Seen { version, used: tick, learned: tick });
            }
        }
    }

    /// Remembers that `version` of `name` was seen and is verified.
    pub fn insert(&mut self, name: Name, version: u64) {
        self.learn(name.view(), version);
    }

    /// Remembers what manifests of a directory have announced to another memory, if that is higher.
    pub fn insert_directory(&mut self, directory: &Name, entries: DirectoryVersions) {
        self.tick += 1;
        let known = self.listed.directory(directory.view());
        let learned = self.tick;
        let entries = entries.iter().map(|(name, it)| (name, EntryVersions { learned, ..it }));
        self.learn_entries(directory.view(), known, entries.collect());
    }

    /// Remembers what the owner has kept of an earlier run: to the owner that is nothing new.
    pub fn restore(&mut self, name: Name, version: u64) {
        if let Some(seen) = self.names.get_mut(&name) {
            seen.version = seen.version.max(version);
            return;
        }
        self.tick += 1;
        self.put(name, Seen { version, used: self.tick, learned: 0 });
    }

    /// As [`restore`](Self::restore), of a directory's entries.
    pub fn restore_directory(&mut self, directory: &Name, entries: DirectoryVersions) {
        self.tick += 1;
        let mut known = self.listed.directory(directory.view());
        let restored = Arc::make_mut(&mut known);
        restored.merge(entries);
        restored.cut_to(KIND_MAX);
        self.listed.put(directory.view(), known, self.tick);
    }

    fn put(&mut self, name: Name, seen: Seen) {
        self.has_bindings |= name.view().last() == Some(Component::keyword(BINDING_KEYWORD));
        self.names.insert(name, seen);
        if self.names.len() > KIND_MAX {
            // Half of them, so that the cost is spread over as many insertions.
            let mut ages: Vec<u64> = self.names.values().map(|seen| seen.used).collect();
            let middle = ages.len() / 2;
            let (_, limit, _) = ages.select_nth_unstable(middle);
            let limit = *limit;
            self.names.retain(|_, seen| seen.used >= limit);
        }
    }

    /// Forgets a name, so that any version of it is accepted again. True if it was known.
    pub fn reset(&mut self, name: &Name) -> bool {
        let binding = name.with_keyword(BINDING_KEYWORD);
        let was_single = self.names.remove(name).is_some() | self.names.remove(&binding).is_some();
        self.listed.remove(name.view()) || was_single
    }

    /// A description was taken although it is not fresh.
    pub(crate) fn note_age(&mut self, age_ns: u64) {
        self.age_ns = self.age_ns.max(Some(age_ns));
    }

    /// Age of the oldest description that was taken since the last call although its publisher
    /// did not answer; nothing if all were fresh.
    pub fn take_age_ns(&mut self) -> Option<u64> {
        self.age_ns.take()
    }

    /// Number of names remembered; at most [`NAMES_MAX`].
    pub fn name_count(&self) -> usize {
        self.names.len() + self.listed.entry_count()
    }

    /// Number that grows with each use.
    pub fn tick(&self) -> u64 {
        self.tick
    }

    /// True if anything was learned after a [`tick`](Self::tick).
    pub fn has_learned_since(&self, tick: u64) -> bool {
        self.learned > tick
    }

    /// All names that were asked for singly, the longest unused first.
    pub fn iter(&self) -> impl Iterator<Item = Remembered<'_>> {
        let mut all: Vec<_> = self.names.iter().collect();
        all.sort_unstable_by_key(|(_, seen)| seen.used);
        all.into_iter().map(|(name, seen)| {
            let Seen { version, learned, .. } = *seen;
            Remembered { name, version, learned }
        })
    }

    /// What manifests have announced, by directory, the longest unused first.
    pub fn directories(&self) -> impl Iterator<Item = (&Name, &Arc<DirectoryVersions>)> {
        self.listed.iter()
    }
}

/// The rule: what is announced is not below what was seen.
fn not_older(seen: u64, got: u64) -> Result<(), Older> {
    if seen > got { Err(Older { seen, got }) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
