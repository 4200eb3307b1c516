//! Versions that manifests announced: one record for each directory.
//!
//! A tree has many files, and each of them a name, a place in a table and a history of use would
//! cost more than the rest of what a small file takes. A record has the names of the entries one
//! after the other, in the order of a manifest, so that a manifest is judged by going through both
//! side by side, and a single file is found by bisection.

use std::cmp::Ordering;

/// What is remembered of an entry. No number is below 0, which stands for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntryVersions {
    /// The newest version seen.
    pub version: u64,
    /// The newest binding seen.
    pub binding: u64,
    /// It changed since a [`tick`](super::VersionMemory::tick) if this is greater.
    pub learned: u64,
}

impl EntryVersions {
    /// True if one of its numbers is higher.
    pub(super) fn is_above(&self, other: &EntryVersions) -> bool {
        self.version > other.version || self.binding > other.binding
    }

    /// Takes numbers that are higher.
    fn raise(&mut self, other: EntryVersions) {
        if other.is_above(self) {
            self.version = self.version.max(other.version);
            self.binding = self.binding.max(other.binding);
            self.learned = other.learned;
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    /// Where the name ends; it begins where the one before ends.
    name_end: u32,
    versions: EntryVersions,
}

/// The entries of one directory, ascending by name.
#[derive(Clone, Debug, Default)]
pub struct DirectoryVersions {
    names: Vec<u8>,
    slots: Vec<Slot>,
}

impl DirectoryVersions {
    /// Number of entries.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// True if nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// All entries with their names.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], EntryVersions)> {
        (0..self.len()).map(|index| (self.name(index), self.slots[index].versions))
    }

    /// What is remembered of an entry.
    pub fn get(&self, name: &[u8]) -> Option<EntryVersions> {
        self.find(name).ok().map(|index| self.slots[index].versions)
    }

    /// What is remembered of an entry, looked for from the position of the one that was looked for
    /// before: cheap if all are, in their order.
    pub(super) fn seek(&self, at: &mut usize, name: &[u8]) -> Option<EntryVersions> {
        if *at > 0 && self.name(*at - 1) >= name {
            return self.get(name);
        }
        while *at < self.len() && self.name(*at) < name {
            *at += 1;
        }
        let found = *at < self.len() && self.name(*at) == name;
        found.then(|| self.slots[*at].versions)
    }

    /// Adds an entry, or what is higher of one that is there; cheap behind all others.
    pub(super) fn insert(&mut self, name: &[u8], versions: EntryVersions) {
        match self.is_behind(name) {
            true => self.push(name, versions),
            false => self.merge(std::iter::once((name, versions)).collect()),
        }
    }

    /// Forgets an entry. True if it was known.
    pub fn remove(&mut self, name: &[u8]) -> bool {
        let Ok(removed) = self.find(name) else { return false };
        self.keep(|index| index != removed);
        true
    }

    /// Forgets the first entries until so many are left.
    pub(super) fn cut_to(&mut self, count: usize) {
        let excess = self.len().saturating_sub(count);
        if excess > 0 {
            self.keep(|index| index >= excess);
        }
    }

    /// Adds the entries of another record.
    pub(super) fn merge(&mut self, mut other: DirectoryVersions) {
        if self.is_empty() {
            other.names.shrink_to_fit();
            other.slots.shrink_to_fit();
            return *self = other;
        }
        let mut merged = DirectoryVersions {
            names: Vec::with_capacity(self.names.len() + other.names.len()),
            slots: Vec::with_capacity(self.len() + other.len()),
        };
        let (mut left, mut right) = (0, 0);
        while left < self.len() || right < other.len() {
            let order = match (left < self.len(), right < other.len()) {
                (true, true) => self.name(left).cmp(other.name(right)),
                (true, false) => Ordering::Less,
                (false, _) => Ordering::Greater,
            };
            let (from, index) = if order.is_le() { (&*self, left) } else { (&other, right) };
            let mut versions = from.slots[index].versions;
            if order.is_eq() {
                versions.raise(other.slots[right].versions);
            }
            merged.push(from.name(index), versions);
            left += usize::from(order.is_le());
            right += usize::from(order.is_ge());
        }
        *self = merged;
    }

    /// Adds an entry behind all others.
    fn push(&mut self, name: &[u8], versions: EntryVersions) {
        debug_assert!(self.is_behind(name));
        self.names.extend_from_slice(name);
        let name_end = u32::try_from(self.names.len()).expect("65 536 names, and a manifest's");
        self.slots.push(Slot { name_end, versions });
    }

    fn raise_last(&mut self, versions: EntryVersions) {
        if let Some(last) = self.slots.last_mut() {
            last.versions.raise(versions);
        }
    }

    fn keep(&mut self, is_kept: impl Fn(usize) -> bool) {
        let mut kept = DirectoryVersions::default();
        (0..self.len())
            .filter(|index| is_kept(*index))
            .for_each(|index| kept.push(self.name(index), self.slots[index].versions));
        *self = kept;
    }

    /// True if an entry of this name would be the last.
    fn is_behind(&self, name: &[u8]) -> bool {
        self.is_empty() || self.name(self.len() - 1) < name
    }

    fn name(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.slots[before].name_end);
        &self.names[start as usize..self.slots[index].name_end as usize]
    }

    /// Position of an entry, or the one that it would have.
    fn find(&self, name: &[u8]) -> Result<usize, usize> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.name(middle).cmp(name) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Ok(middle),
                Ordering::Greater => high = middle,
            }
        }
        Err(low)
    }
}

/// Of entries in any order; in that of their names it costs least.
impl<N: AsRef<[u8]>> FromIterator<(N, EntryVersions)> for DirectoryVersions {
    fn from_iter<I: IntoIterator<Item = (N, EntryVersions)>>(entries: I) -> Self {
        let (mut record, mut others) = (Self::default(), Vec::new());
        for (name, versions) in entries {
            match record.is_behind(name.as_ref()) {
                true => record.push(name.as_ref(), versions),
                false => others.push((name, versions)),
            }
        }
        if !others.is_empty() {
            others.sort_by(|(one, _), (other, _)| one.as_ref().cmp(other.as_ref()));
            let mut rest = Self::default();
            for (name, versions) in &others {
                match rest.is_behind(name.as_ref()) {
                    true => rest.push(name.as_ref(), *versions),
                    false => rest.raise_last(*versions),
                }
            }
            record.merge(rest);
        }
        record
    }
}
