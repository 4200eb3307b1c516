//! A table keyed by name prefixes with longest-prefix match.
//!
//! One hash table for all lengths, searched in two stages. A look-up starts with the prefix of
//! [`START_DEPTH`] components. A second, small table tells for each of those under which there are
//! longer entries, how many there are of each length: then these lengths are tried, the longest
//! first; and without such a note no longer entry can match, so that only the shorter lengths are
//! left. Lengths that no entry has are not tried. So neither long names nor deep entries elsewhere
//! in the table make a look-up longer: it takes as many probes as there are lengths below *this*
//! start, and up to seven above. A false note (two starts of one hash) costs a probe in vain.
//!
//! Entries are in a slab, with prefixes of common length in place: nothing is allocated for an
//! entry, and growing moves eight octets of it.

use byname_packet::NameRef;
use hashbrown::HashTable;
use smallvec::SmallVec;

use crate::hash::{NameHasher, Prefixes};
use crate::slab::Slab;

/// Components of the prefix a look-up starts with. Names of applications begin with a site and a
/// service; most routes are shorter than this, so that the notes are few.
const START_DEPTH: usize = 6;

/// Prefixes of up to this many octets are kept in place.
const PREFIX_INLINE_BYTES: usize = 36;

#[derive(Debug)]
struct Entry<T> {
    hash: u64,
    prefix: SmallVec<[u8; PREFIX_INLINE_BYTES]>,
    /// `None` in an unused place.
    value: Option<T>,
}

impl<T> Default for Entry<T> {
    fn default() -> Self {
        Self { hash: 0, prefix: SmallVec::new(), value: None }
    }
}

/// Number of entries of each length below one start: index 0 is one component more.
#[derive(Debug)]
struct Note {
    hash: u64,
    counts: Vec<u32>,
}

/// Values by prefix.
#[derive(Debug)]
pub(crate) struct PrefixTable<T> {
    /// The empty prefix, which every look-up ends with, is no entry of its own.
    root: Option<T>,
    entries: Slab<Entry<T>>,
    /// Some bits of the hash, and the entry.
    by_hash: HashTable<(u32, u32)>,
    notes: HashTable<Note>,
    /// Number of entries that have n components, up to the start.
    counts: [u32; START_DEPTH + 1],
}

/// The bits of a hash that the table itself uses least.
fn tag(hash: u64) -> u32 {
    (hash >> 24) as u32
}

impl<T> Default for PrefixTable<T> {
    fn default() -> Self {
        Self {
            root: None,
            entries: Slab::default(),
            by_hash: HashTable::new(),
            notes: HashTable::new(),
            counts: [0; START_DEPTH + 1],
        }
    }
}

impl<T> PrefixTable<T> {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn len(&self) -> usize {
        self.by_hash.len() + usize::from(self.root.is_some())
    }

    /// Sets the value of `prefix`.
    pub(crate) fn insert(&mut self, hasher: &NameHasher, prefix: NameRef<'_>, value: T) {
        if prefix.is_empty() {
            self.root = Some(value);
            return;
        }
        let hash = hasher.hash(prefix.value());
        if let Some(index) = self.find(hash, prefix.value()) {
            if let Some(entry) = self.entries.get_mut(index) {
                entry.value = Some(value);
            }
            return;
        }
        let index = self.entries.take();
        let Some(entry) = self.entries.get_mut(index) else { return };
        let prefix_octets = SmallVec::from_slice(prefix.value());
        *entry = Entry { hash, prefix: prefix_octets, value: Some(value) };
        let entries = &self.entries;
        self.by_hash.insert_unique(hash, (tag(hash), index), |(_, index)| {
            entries.get(*index).map_or(0, |entry| entry.hash)
        });
        self.count(hasher, prefix, true);
    }

    /// Removes `prefix`; its value, if it was there.
    pub(crate) fn remove(&mut self, hasher: &NameHasher, prefix: NameRef<'_>) -> Option<T> {
        if prefix.is_empty() {
            return self.root.take();
        }
        let hash = hasher.hash(prefix.value());
        let index = self.find(hash, prefix.value())?;
        self.by_hash.find_entry(hash, |(_, found)| *found == index).ok()?.remove();
        let entry = self.entries.get_mut(index)?;
        entry.prefix = SmallVec::new();
        let value = entry.value.take();
        self.entries.give_back(index);
        self.count(hasher, prefix, false);
        value
    }

    /// Notes that there is one entry of this length more, or less.
    fn count(&mut self, hasher: &NameHasher, prefix: NameRef<'_>, more: bool) {
        let change = |count: &mut u32| if more { *count += 1 } else { *count -= 1 };
        let length = prefix.count();
        if length <= START_DEPTH {
            change(&mut self.counts[length]);
            return;
        }
        let hash = hasher.hash(prefix.prefix(START_DEPTH).value());
        let note = self.notes.entry(hash, |note| note.hash == hash, |note| note.hash);
        let mut note = note.or_insert_with(|| Note { hash, counts: Vec::new() });
        let counts = &mut note.get_mut().counts;
        let below = length - START_DEPTH - 1;
        if counts.len() <= below {
            counts.resize(below + 1, 0);
        }
        change(&mut counts[below]);
        while counts.last() == Some(&0) {
            counts.pop();
        }
        if counts.is_empty() {
            note.remove();
        }
    }

    /// The value of exactly `prefix`.
    pub(crate) fn get(&self, hasher: &NameHasher, prefix: NameRef<'_>) -> Option<&T> {
        if prefix.is_empty() {
            return self.root.as_ref();
        }
        let index = self.find(hasher.hash(prefix.value()), prefix.value())?;
        self.entries.get(index)?.value.as_ref()
    }

    /// The value of the longest prefix of `name`, whose hashes are `prefixes`.
    pub(crate) fn longest_match(&self, name: NameRef<'_>, prefixes: &Prefixes) -> Option<&T> {
        self.longest_match_at(name, prefixes).map(|(value, _)| value)
    }

    /// The same, and the hash of the prefix.
    pub(crate) fn longest_match_at(
        &self,
        name: NameRef<'_>,
        prefixes: &Prefixes,
    ) -> Option<(&T, u64)> {
        let whole = prefixes.component_count();
        let lookup = |length: usize| {
            let prefix = prefixes.get(length)?;
            let index = self.find(prefix.hash, &name.value()[..prefix.end])?;
            Some((self.entries.get(index)?.value.as_ref()?, prefix.hash))
        };
        if !self.notes.is_empty()
            && whole > START_DEPTH
            && let Some(start) = prefixes.get(START_DEPTH)
            && let Some(note) = self.notes.find(start.hash, |note| note.hash == start.hash)
        {
            for length in (START_DEPTH + 1..=whole.min(START_DEPTH + note.counts.len())).rev() {
                if note.counts[length - START_DEPTH - 1] > 0
                    && let Some(found) = lookup(length)
                {
                    return Some(found);
                }
            }
        }
        for length in (1..=whole.min(START_DEPTH)).rev() {
            if self.counts[length] > 0
                && let Some(found) = lookup(length)
            {
                return Some(found);
            }
        }
        Some((self.root.as_ref()?, prefixes.get(0)?.hash))
    }

    fn find(&self, hash: u64, prefix: &[u8]) -> Option<u32> {
        let found = self.by_hash.find(hash, |(found, index)| {
            *found == tag(hash)
                && self.entries.get(*index).is_some_and(|entry| *entry.prefix == *prefix)
        });
        found.map(|(_, index)| *index)
    }

    /// All entries, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (NameRef<'_>, &T)> {
        let root = self.root.iter().map(|value| (NameRef::default(), value));
        root.chain(self.by_hash.iter().filter_map(|(_, index)| {
            let entry = self.entries.get(*index)?;
            Some((NameRef::from_value(&entry.prefix).ok()?, entry.value.as_ref()?))
        }))
    }
}

#[cfg(test)]
mod tests;
