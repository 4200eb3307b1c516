//! The newest version seen of each name, so that nobody can silently serve an older one.
//!
//! The memory is bounded: what was used longest ago is forgotten first. The owner may keep it
//! across runs with [`VersionMemory::iter`] and [`VersionMemory::insert`].

use std::collections::HashMap;

use byname_packet::{Name, NameRef};

use crate::freshness::Unreachable;

/// Names remembered.
pub const NAMES_MAX: usize = 65_536;

/// An older version than one seen before was announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Older {
    /// The newest version seen.
    pub seen: u64,
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
    /// True if `version` of `name` (without version component) may be accepted.
    ///
    /// # Errors
    /// [`Older`] if a newer one was seen.
    pub fn check(&mut self, name: NameRef<'_>, version: u64) -> Result<(), Older> {
        match self.names.get(&name.to_name()) {
            Some(seen) if seen.version > version => Err(Older { seen: seen.version }),
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
        self.names.remove(name).is_some()
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
        assert_eq!(memory.check(name(1).view(), 6), Err(Older { seen: 7 }));
        assert_eq!(memory.check(name(1).view(), 7), Ok(()));
        assert_eq!(memory.check(name(2).view(), 1), Ok(()));
        assert!(memory.reset(&name(1)));
        assert_eq!(memory.check(name(1).view(), 1), Ok(()));
    }

    #[test]
    fn the_memory_is_bounded_and_keeps_what_was_used_last() {
        let mut memory = VersionMemory::default();
        let count = NAMES_MAX as u64 + 10;
        (0..count).for_each(|number| memory.insert(name(number), 1));
        assert!(memory.names.len() <= NAMES_MAX);
        assert_eq!(memory.check(name(count - 1).view(), 0), Err(Older { seen: 1 }));
        assert_eq!(memory.check(name(0).view(), 0), Ok(()));
    }
}
