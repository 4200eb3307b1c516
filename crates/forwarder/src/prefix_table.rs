//! A table keyed by name prefixes with longest-prefix match.
//!
//! One hash table for all lengths, and a count of entries per length, so that a look-up probes only
//! lengths that occur: a FIB of ten routes costs two or three probes however long the name is.

use byname_packet::{Name, NameRef};
use hashbrown::HashTable;

use crate::hash::{NameHasher, Prefixes};

#[derive(Debug)]
struct Entry<T> {
    hash: u64,
    prefix: Name,
    value: T,
}

/// Values by prefix.
#[derive(Debug)]
pub(crate) struct PrefixTable<T> {
    entries: HashTable<Entry<T>>,
    /// How many entries have n components.
    counts: Vec<usize>,
}

impl<T> PrefixTable<T> {
    pub(crate) fn new() -> Self {
        Self { entries: HashTable::new(), counts: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Sets the value of `prefix`.
    pub(crate) fn insert(&mut self, hasher: &NameHasher, prefix: NameRef<'_>, value: T) {
        let hash = hasher.hash(prefix.value());
        if let Some(entry) = self.entries.find_mut(hash, |e| e.prefix.view() == prefix) {
            entry.value = value;
            return;
        }
        let count = prefix.count();
        if self.counts.len() <= count {
            self.counts.resize(count + 1, 0);
        }
        self.counts[count] += 1;
        let entry = Entry { hash, prefix: prefix.to_name(), value };
        self.entries.insert_unique(hash, entry, |e| e.hash);
    }

    /// Removes `prefix`; its value, if it was there.
    pub(crate) fn remove(&mut self, hasher: &NameHasher, prefix: NameRef<'_>) -> Option<T> {
        let hash = hasher.hash(prefix.value());
        let found = self.entries.find_entry(hash, |e| e.prefix.view() == prefix).ok()?;
        let (entry, _) = found.remove();
        self.counts[prefix.count()] -= 1;
        Some(entry.value)
    }

    /// The value of exactly `prefix`.
    pub(crate) fn get(&self, hasher: &NameHasher, prefix: NameRef<'_>) -> Option<&T> {
        let hash = hasher.hash(prefix.value());
        self.entries.find(hash, |e| e.prefix.view() == prefix).map(|e| &e.value)
    }

    /// The value of the longest prefix of `name`, whose hashes are `prefixes`.
    pub(crate) fn longest_match(&self, name: NameRef<'_>, prefixes: &Prefixes) -> Option<&T> {
        let longest = prefixes.component_count().min(self.counts.len().checked_sub(1)?);
        for count in (0..=longest).rev() {
            if self.counts[count] == 0 {
                continue;
            }
            let prefix = prefixes.get(count)?;
            let octets = &name.value()[..prefix.end];
            let found = self.entries.find(prefix.hash, |e| e.prefix.view().value() == octets);
            if let Some(entry) = found {
                return Some(&entry.value);
            }
        }
        None
    }

    /// All entries, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (NameRef<'_>, &T)> {
        self.entries.iter().map(|entry| (entry.prefix.view(), &entry.value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn name() -> impl Strategy<Value = Name> {
        proptest::collection::vec(0u8..3, 0..5).prop_map(|components| {
            let mut name = Name::new();
            for component in components {
                name.push_generic(&vec![b'x'; usize::from(component)]);
            }
            name
        })
    }

    proptest! {
        #[test]
        fn agrees_with_a_plain_map(
            operations in proptest::collection::vec((any::<bool>(), name()), 1..60),
            lookups in proptest::collection::vec(name(), 1..30),
        ) {
            let hasher = NameHasher::new([3, 4]);
            let mut table = PrefixTable::new();
            let mut model = BTreeMap::new();
            for (index, (insert, name)) in operations.into_iter().enumerate() {
                if insert {
                    table.insert(&hasher, name.view(), index);
                    model.insert(name, index);
                } else {
                    prop_assert_eq!(table.remove(&hasher, name.view()), model.remove(&name));
                }
                prop_assert_eq!(table.len(), model.len());
            }
            let mut prefixes = Prefixes::default();
            for name in lookups {
                hasher.prefixes(name.view(), &mut prefixes);
                let expected = (0..=name.view().count())
                    .rev()
                    .find_map(|count| model.get(&name.view().prefix(count).to_name()));
                prop_assert_eq!(table.longest_match(name.view(), &prefixes), expected);
                prop_assert_eq!(table.get(&hasher, name.view()), model.get(&name));
            }
            prop_assert_eq!(table.iter().count(), model.len());
        }
    }
}
