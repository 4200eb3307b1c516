//! The newest version seen of each name, so that nobody can silently serve an older one.
//!
//! Where a site binds paths to contents ([`Announced::binding`]), a path may lead to another
//! content, with lower version numbers, and still be newer. So two things are remembered: versions
//! by the name of the content, and bindings by path, as the "version" of `<path>/32=binding`.
//!
//! The memory is bounded: what was used longest ago is forgotten first. The owner may keep it
//! across runs with [`VersionMemory::iter`] and [`VersionMemory::insert`].

use std::collections::HashMap;

use byname_packet::{Component, Name, NameRef};

use crate::freshness::Unreachable;

/// Keyword after a path whose binding is remembered.
const BINDING_KEYWORD: &[u8] = b"binding";

/// Names remembered.
pub const NAMES_MAX: usize = 65_536;

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

#[derive(Clone, Copy, Debug)]
struct Seen {
    version: u64,
    used: u64,
}

/// Bounded memory of the newest version of each name.
#[derive(Debug, Default)]
pub struct VersionMemory {
    names: HashMap<Name, Seen>,
    tick: u64,
    /// Publishers that did not answer lately. Not kept across runs.
    pub(crate) unreachable: Unreachable,
    /// Age of the oldest description that was taken although it is not fresh.
    age_ns: Option<u64>,
}

impl VersionMemory {
    /// Judges an announcement: its version must not be older than one seen of the object, nor its
    /// binding than one seen of the path. A path that was bound once is not taken without binding.
    ///
    /// # Errors
    /// [`Older`] with the number it is judged by; 0 stands for an absent binding.
    pub fn check_announced(&self, announced: &Announced<'_>) -> Result<(), Older> {
        self.check(announced.object, announced.version)?;
        let binding = announced.binding.unwrap_or(0);
        self.check(announced.binding_name().view(), binding)
    }

    /// Remembers an announcement that was verified.
    pub fn insert_announced(&mut self, announced: &Announced<'_>) {
        self.insert(announced.object.to_name(), announced.version);
        if let Some(binding) = announced.binding {
            self.insert(announced.binding_name(), binding);
        }
    }

    /// True if `version` of `name` (without version component) may be accepted.
    ///
    /// # Errors
    /// [`Older`] if a newer one was seen.
    pub fn check(&self, name: NameRef<'_>, version: u64) -> Result<(), Older> {
        match self.names.get(&name.to_name()) {
            Some(seen) if seen.version > version => Err(Older { seen: seen.version, got: version }),
            _ => Ok(()),
        }
    }

    /// Remembers that `version` of `name` was seen and is verified.
    pub fn insert(&mut self, name: Name, version: u64) {
        self.tick += 1;
        let used = self.tick;
        let seen = self.names.entry(name).or_insert(Seen { version, used });
        seen.version = seen.version.max(version);
        seen.used = used;
        if self.names.len() > NAMES_MAX {
            self.forget_oldest();
        }
    }

    /// Forgets a name, so that any version of it is accepted again. True if it was known.
    pub fn reset(&mut self, name: &Name) -> bool {
        let binding = name.with_keyword(BINDING_KEYWORD);
        let was_bound = self.names.remove(&binding).is_some();
        self.names.remove(name).is_some() || was_bound
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

    /// All names with their newest versions, the longest unused first.
    pub fn iter(&self) -> impl Iterator<Item = (&Name, u64)> {
        let mut all: Vec<_> = self.names.iter().collect();
        all.sort_by_key(|(_, seen)| seen.used);
        all.into_iter().map(|(name, seen)| (name, seen.version))
    }

    /// Forgets the older half, so that the cost is spread over as many insertions.
    fn forget_oldest(&mut self) {
        let mut ages: Vec<u64> = self.names.values().map(|seen| seen.used).collect();
        let middle = ages.len() / 2;
        let (_, limit, _) = ages.select_nth_unstable(middle);
        let limit = *limit;
        self.names.retain(|_, seen| seen.used >= limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        memory.check_announced(&announced)?;
        memory.insert_announced(&announced);
        Ok(())
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
        memory.iter().for_each(|(name, version)| next.insert(name.clone(), version));
        assert_eq!(judge(&mut next, (11, 1), Some(4)), Err(Older { seen: 5, got: 4 }));
    }

    #[test]
    fn the_memory_is_bounded_and_keeps_what_was_used_last() {
        let mut memory = VersionMemory::default();
        let count = NAMES_MAX as u64 + 10;
        (0..count).for_each(|number| memory.insert(name(number), 1));
        assert!(memory.names.len() <= NAMES_MAX);
        assert_eq!(memory.check(name(count - 1).view(), 0), Err(Older { seen: 1, got: 0 }));
        assert_eq!(memory.check(name(0).view(), 0), Ok(()));
    }
}
