//! The newest version seen of each name, so that nobody can silently serve an older one.
//!
//! Where a site binds paths to contents ([`Announced::binding`]), a path may lead to another
//! content, with lower version numbers, and still be newer. So two things are remembered: versions
//! by the name of the content, and bindings by path, as the "version" of `<path>/32=binding`.
//!
//! There is one rule for every way in which a version is learned: [`VersionMemory::admit`] judges
//! an announcement and remembers it, [`VersionMemory::admit_entry`] a manifest's entry.
//!
//! The memory is bounded: what was used longest ago is forgotten first. What manifests announce is
//! kept apart from names that were asked for singly, so that a large tree does not drive those out.
//! The owner may keep it across runs with [`VersionMemory::iter`] and [`VersionMemory::restore`].

use std::collections::HashMap;

use byname_packet::{Component, Name, NameRef};

use crate::freshness::Unreachable;
use crate::manifest::Entry;

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

impl Announced<'_> {
    /// The name under which the binding of the path is remembered.
    fn binding_name(&self) -> Name {
        self.path.with(Component::keyword(BINDING_KEYWORD))
    }
}

/// True if it is the name of a path's binding.
fn is_binding(name: &Name) -> bool {
    name.view().last() == Some(Component::keyword(BINDING_KEYWORD))
}

/// Part of an admitted announcement that the memory keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lesson {
    /// Nothing: nobody vouches for it, or not whoever decides about these versions.
    Nothing,
    /// Its numbers, as of a name that was asked for singly.
    Single,
    /// Its numbers, as of one name among many in a manifest.
    Listed,
}

/// What is remembered of a name.
#[derive(Clone, Copy, Debug)]
struct Seen {
    version: u64,
    /// Only a manifest announced it.
    is_listed: bool,
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
    /// Only a manifest announced it.
    pub is_listed: bool,
    /// It changed since a [`VersionMemory::tick`] if this is greater.
    pub learned: u64,
}

/// Bounded memory of the newest version of each name.
#[derive(Debug, Default)]
pub struct VersionMemory {
    names: HashMap<Name, Seen>,
    /// Names that only manifests announced; at most [`KIND_MAX`], as are the others.
    listed_count: usize,
    /// A binding was remembered, so paths are looked up among them.
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
        self.check(announced.object, announced.version)?;
        // Most names are never bound.
        let is_bound = announced.binding.is_some() || self.has_bindings;
        let binding_name = is_bound.then(|| announced.binding_name());
        if let Some(name) = &binding_name {
            self.check(name.view(), announced.binding.unwrap_or(0))?;
        }
        // Who may speak of contents elsewhere is decided by their own descriptions.
        if lesson != Lesson::Listed || announced.object == announced.path {
            self.learn(announced.object, announced.version, lesson);
        }
        if let Some((name, binding)) = binding_name.zip(announced.binding) {
            self.learn(name.view(), binding, lesson);
        }
        Ok(())
    }

    /// Admits what the manifest of `directory` announces of an entry. An entry without version
    /// announces nothing.
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

    /// True if `version` of `name` (without version component) may still be used.
    ///
    /// # Errors
    /// [`Older`] if a newer one was seen.
    pub fn check(&self, name: NameRef<'_>, version: u64) -> Result<(), Older> {
        match self.names.get(name.value()) {
            Some(seen) if seen.version > version => Err(Older { seen: seen.version, got: version }),
            _ => Ok(()),
        }
    }

    fn learn(&mut self, name: NameRef<'_>, version: u64, lesson: Lesson) {
        let is_listed = match lesson {
            Lesson::Nothing => return,
            Lesson::Single => false,
            Lesson::Listed => true,
        };
        if !self.renew(name, version, is_listed) {
            self.add(name.to_name(), version, is_listed);
        }
    }

    /// Remembers that `version` of `name` was seen and is verified.
    pub fn insert(&mut self, name: Name, version: u64) {
        if !self.renew(name.view(), version, false) {
            self.add(name, version, false);
        }
    }

    /// Remembers that `version` of `name` was seen in a verified manifest.
    pub fn insert_listed(&mut self, name: Name, version: u64) {
        if !self.renew(name.view(), version, true) {
            self.add(name, version, true);
        }
    }

    /// Remembers what the owner has kept of an earlier run: to the owner that is nothing new.
    pub fn restore(&mut self, name: Name, version: u64, is_listed: bool) {
        if let Some(seen) = self.names.get_mut(&name) {
            seen.version = seen.version.max(version);
            return;
        }
        self.tick += 1;
        self.put(name, Seen { version, is_listed, used: self.tick, learned: 0 });
    }

    /// A name that is known was seen again. False if it is not known.
    fn renew(&mut self, name: NameRef<'_>, version: u64, is_listed: bool) -> bool {
        let Some(seen) = self.names.get_mut(name.value()) else { return false };
        self.tick += 1;
        seen.used = self.tick;
        let becomes_single = seen.is_listed && !is_listed;
        if becomes_single || seen.version < version {
            seen.version = seen.version.max(version);
            seen.is_listed &= is_listed;
            (seen.learned, self.learned) = (self.tick, self.tick);
        }
        if becomes_single {
            self.listed_count -= 1;
            self.bound(false);
        }
        true
    }
    /// A name that was not known.
    fn add(&mut self, name: Name, version: u64, is_listed: bool) {
        self.tick += 1;
        self.learned = self.tick;
        self.put(name, Seen { version, is_listed, used: self.tick, learned: self.tick });
    }

    fn put(&mut self, name: Name, seen: Seen) {
        self.has_bindings |= is_binding(&name);
        self.listed_count += usize::from(seen.is_listed);
        self.names.insert(name, seen);
        self.bound(seen.is_listed);
    }

    /// Forgets the older half of a kind that has grown too large, so that the cost is spread over
    /// as many insertions.
    fn bound(&mut self, is_listed: bool) {
        let single_count = self.names.len() - self.listed_count;
        if (if is_listed { self.listed_count } else { single_count }) <= KIND_MAX {
            return;
        }
        let kind = self.names.values().filter(|seen| seen.is_listed == is_listed);
        let mut ages: Vec<u64> = kind.map(|seen| seen.used).collect();
        let middle = ages.len() / 2;
        let (_, limit, _) = ages.select_nth_unstable(middle);
        let limit = *limit;
        self.names.retain(|_, seen| seen.is_listed != is_listed || seen.used >= limit);
        self.listed_count =
            self.names.len() - self.names.values().filter(|it| !it.is_listed).count();
    }

    /// Forgets a name, so that any version of it is accepted again. True if it was known.
    pub fn reset(&mut self, name: &Name) -> bool {
        let binding = name.with_keyword(BINDING_KEYWORD);
        let was_bound = self.remove(&binding);
        self.remove(name) || was_bound
    }

    fn remove(&mut self, name: &Name) -> bool {
        let seen = self.names.remove(name);
        self.listed_count -= usize::from(seen.is_some_and(|seen| seen.is_listed));
        seen.is_some()
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
        self.names.len()
    }

    /// Number that grows with each use.
    pub fn tick(&self) -> u64 {
        self.tick
    }

    /// True if anything was learned after a [`tick`](Self::tick).
    pub fn has_learned_since(&self, tick: u64) -> bool {
        self.learned > tick
    }

    /// All names: those that only manifests announced first, of each kind the longest unused first.
    pub fn iter(&self) -> impl Iterator<Item = Remembered<'_>> {
        let mut all: Vec<_> = self.names.iter().collect();
        all.sort_unstable_by_key(|(_, seen)| (!seen.is_listed, seen.used));
        all.into_iter().map(|(name, seen)| {
            let Seen { version, is_listed, learned, .. } = *seen;
            Remembered { name, version, is_listed, learned }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attributes::Attributes;
    use crate::manifest::Version;

    fn name(number: u64) -> Name {
        Name::new().with_generic(&number.to_be_bytes())
    }

    #[test]
    fn an_older_version_is_refused_until_the_name_is_reset() {
        let mut memory = VersionMemory::default();
        memory.insert(name(1), 7);
        memory.insert(name(1), 5);
        assert_eq!(memory.check(name(1).view(), 6), Err(Older { seen: 7, got: 6 }));
        assert_eq!(memory.check(name(1).view(), 7), Ok(()));
        assert_eq!(memory.check(name(2).view(), 1), Ok(()));
        assert!(memory.reset(&name(1)));
        assert_eq!(memory.check(name(1).view(), 1), Ok(()));
    }

    fn judge(
        memory: &mut VersionMemory,
        (object, version): (u64, u64),
        binding: Option<u64>,
    ) -> Result<(), Older> {
        let (path, object) = (name(1), name(object));
        let (path, object) = (path.view(), object.view());
        let announced = Announced { path, object, version, binding };
        memory.admit(&announced, Lesson::Single)
    }

    #[test]
    fn a_path_may_lead_to_another_content_but_not_back() {
        let mut memory = VersionMemory::default();
        // Content 10 in version 7, then another one that is younger and has a lower version.
        assert_eq!(judge(&mut memory, (10, 7), Some(100)), Ok(()));
        assert_eq!(judge(&mut memory, (11, 2), Some(101)), Ok(()));
        let back = Older { seen: 101, got: 100 };
        assert_eq!(judge(&mut memory, (10, 7), Some(100)), Err(back), "by the binding");
        let old = Older { seen: 2, got: 1 };
        assert_eq!(judge(&mut memory, (11, 1), Some(102)), Err(old), "by the version");
        assert_eq!(judge(&mut memory, (10, 8), Some(103)), Ok(()), "moved back later");
    }

    #[test]
    fn a_bound_path_is_not_taken_without_its_binding_until_it_is_reset() {
        let mut memory = VersionMemory::default();
        assert_eq!(judge(&mut memory, (1, 1 << 60), None), Ok(()), "before the site");
        assert_eq!(judge(&mut memory, (10, 1), Some(5)), Ok(()));
        let bare = judge(&mut memory, (1, 1 << 61), None);
        assert_eq!(bare, Err(Older { seen: 5, got: 0 }));
        assert!(memory.reset(&name(1)));
        assert_eq!(judge(&mut memory, (1, 1 << 61), None), Ok(()));
    }

    #[test]
    fn bindings_are_kept_across_runs_with_the_versions() {
        let mut memory = VersionMemory::default();
        assert_eq!(judge(&mut memory, (10, 1), Some(5)), Ok(()));
        let mut next = VersionMemory::default();
        memory.iter().for_each(|it| next.restore(it.name.clone(), it.version, it.is_listed));
        assert!(!next.has_learned_since(0));
        assert_eq!(judge(&mut next, (11, 1), Some(4)), Err(Older { seen: 5, got: 4 }));
    }

    #[test]
    fn the_memory_is_bounded_and_keeps_what_was_used_last() {
        let mut memory = VersionMemory::default();
        let count = KIND_MAX as u64 + 10;
        (0..count).for_each(|number| memory.insert(name(number), 1));
        assert!(memory.name_count() <= KIND_MAX);
        assert_eq!(memory.check(name(count - 1).view(), 0), Err(Older { seen: 1, got: 0 }));
        assert_eq!(memory.check(name(0).view(), 0), Ok(()));
    }

    fn entry(name: &[u8], number: u64) -> Entry<'_> {
        let version = Version { number, segment_bytes: 8192, root: None };
        Entry { version: Some(version), ..Entry::new(name, 0o100_644) }
    }

    #[test]
    fn what_a_manifest_announced_counts_for_single_files_and_the_other_way_round() {
        let mut memory = VersionMemory::default();
        let (directory, path) = (name(1), name(1).with_generic(b"f"));
        let (path, object) = (path.view(), path.view());
        let of = |version| Announced { path, object, version, binding: None };
        let listed = |memory: &mut VersionMemory, number| {
            memory.admit_entry(directory.view(), &entry(b"f", number), Lesson::Listed)
        };
        assert_eq!(listed(&mut memory, 2), Ok(()));
        let old = Err(Older { seen: 2, got: 1 });
        assert_eq!(memory.admit(&of(1), Lesson::Single), old, "a replayed description");
        assert_eq!(memory.admit(&of(3), Lesson::Single), Ok(()));
        let old = Err(Older { seen: 3, got: 2 });
        assert_eq!(listed(&mut memory, 2), old, "a replayed manifest");
        assert_eq!(memory.name_count(), 1);
        assert_eq!(memory.admit(&of(9), Lesson::Nothing), Ok(()), "nobody vouches for it");
        assert_eq!(listed(&mut memory, 3), Ok(()));
        assert!(memory.reset(&path.to_name()));
        assert_eq!(listed(&mut memory, 1), Ok(()));
    }

    #[test]
    fn entries_count_by_their_bindings_too() {
        let (mut memory, directory) = (VersionMemory::default(), name(1));
        let with = |binding| {
            let plain = entry(b"f", 7);
            Entry { attributes: Attributes { binding, ..Attributes::default() }, ..plain }
        };
        let mut judge = |entry| memory.admit_entry(directory.view(), &entry, Lesson::Listed);
        assert_eq!(judge(with(Some(5))), Ok(()));
        assert_eq!(judge(with(Some(4))), Err(Older { seen: 5, got: 4 }));
        assert_eq!(judge(with(None)), Err(Older { seen: 5, got: 0 }));
        assert_eq!(judge(Entry::new(b"f", 0o100_644)), Ok(()), "it announces no version");
    }

    #[test]
    fn a_large_tree_drives_out_no_name_that_was_asked_for_singly() {
        let mut memory = VersionMemory::default();
        memory.insert(name(0), 5);
        let directory = Name::new();
        for number in 1..=NAMES_MAX as u64 {
            let octets = number.to_be_bytes();
            let admitted = memory.admit_entry(directory.view(), &entry(&octets, 5), Lesson::Listed);
            assert_eq!(admitted, Ok(()));
        }
        assert!(memory.name_count() <= NAMES_MAX);
        assert_eq!(memory.check(name(0).view(), 4), Err(Older { seen: 5, got: 4 }));
        let last = name(NAMES_MAX as u64);
        assert_eq!(memory.check(last.view(), 4), Err(Older { seen: 5, got: 4 }));
    }
}
