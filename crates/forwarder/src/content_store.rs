//! The content store: Data packets kept in case somebody else asks.
//!
//! Exact names are found by hash; names for CanBePrefix through an ordered index, whose byte order
//! is NDN's canonical order, so that all names below a prefix stand together. Of several matches
//! the exact name wins, then the last in canonical order: that is the newest version, where a
//! search from the front would dig through every outdated one. A search looks at
//! [`PREFIX_SCAN_MAX`] packets at most; a miss is always a legal answer.
//!
//! One packet per name: a later packet of the same name replaces the earlier one. Bounded by count
//! and by octets; the least recently used packet goes first.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use byname_packet::{Data, Interest, NameRef, sha256, tlv, types};
use hashbrown::HashTable;

use crate::hash::Prefixes;

/// Packets looked at for one CanBePrefix Interest.
const PREFIX_SCAN_MAX: usize = 64;

/// Estimated octets of tables around one packet.
const OVERHEAD_BYTES: usize = 256;

const NONE: u32 = u32::MAX;

/// A name inside a packet, ordered by its octets.
#[derive(Debug, Clone)]
struct NameKey {
    wire: Arc<[u8]>,
    start: u32,
    end: u32,
}

impl Borrow<[u8]> for NameKey {
    fn borrow(&self) -> &[u8] {
        &self.wire[self.start as usize..self.end as usize]
    }
}

impl PartialEq for NameKey {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for NameKey {}

impl PartialOrd for NameKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for NameKey {
    fn cmp(&self, other: &Self) -> Ordering {
        let (a, b): (&[u8], &[u8]) = (self.borrow(), other.borrow());
        a.cmp(b)
    }
}

#[derive(Debug)]
struct Entry {
    hash: u64,
    name: NameKey,
    fresh_until_ns: u64,
    older: u32,
    newer: u32,
}

impl Entry {
    fn name_value(&self) -> &[u8] {
        self.name.borrow()
    }

    fn cost_bytes(&self) -> usize {
        self.name.wire.len() + OVERHEAD_BYTES
    }
}

/// The store.
#[derive(Debug)]
pub(crate) struct ContentStore {
    slab: Vec<Option<Entry>>,
    free: Vec<u32>,
    by_hash: HashTable<(u64, u32)>,
    by_name: BTreeMap<NameKey, u32>,
    oldest: u32,
    newest: u32,
    bytes: usize,
    entries_max: usize,
    bytes_max: usize,
}

impl ContentStore {
    /// A store of at most that many packets and octets (tables included). Zero of either stores
    /// nothing.
    pub(crate) fn new(entries_max: usize, bytes_max: usize) -> Self {
        Self {
            slab: Vec::new(),
            free: Vec::new(),
            by_hash: HashTable::new(),
            by_name: BTreeMap::new(),
            oldest: NONE,
            newest: NONE,
            bytes: 0,
            entries_max: entries_max.min(NONE as usize - 1),
            bytes_max,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.by_hash.len()
    }

    pub(crate) fn entries_max(&self) -> usize {
        self.entries_max
    }

    /// Keeps `data`, whose name hashes to `hash`. False when it does not fit at all.
    pub(crate) fn insert(&mut self, hash: u64, data: &Data<'_>, now_ns: u64) -> bool {
        let cost = data.wire().len() + OVERHEAD_BYTES;
        if self.entries_max == 0 || cost > self.bytes_max {
            return false;
        }
        if let Some(index) = self.find(hash, data.name.value()) {
            self.remove(index);
        }
        while self.len() >= self.entries_max || self.bytes + cost > self.bytes_max {
            self.remove(self.oldest);
        }
        let Some(name) = name_key(data.wire()) else { return false };
        let fresh_ns = data.meta.freshness_ms.saturating_mul(1_000_000);
        let fresh_until_ns = now_ns.saturating_add(fresh_ns);
        let entry = Entry { hash, name, fresh_until_ns, older: NONE, newer: NONE };
        self.add(entry);
        true
    }

    fn add(&mut self, entry: Entry) {
        self.bytes += entry.cost_bytes();
        let (hash, name) = (entry.hash, entry.name.clone());
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                self.slab.push(None);
                self.slab.len() as u32 - 1
            }
        };
        self.slab[index as usize] = Some(entry);
        self.by_hash.insert_unique(hash, (hash, index), |(hash, _)| *hash);
        self.by_name.insert(name, index);
        self.link_newest(index);
    }

    /// A packet that answers `interest`; it becomes the most recently used one.
    pub(crate) fn find_match(
        &mut self,
        interest: &Interest<'_>,
        prefixes: &Prefixes,
        now_ns: u64,
    ) -> Option<Arc<[u8]>> {
        let usable = |entry: &Entry| !interest.must_be_fresh || now_ns < entry.fresh_until_ns;
        let mut found = self
            .find(prefixes.whole(), interest.name.value())
            .filter(|index| self.entry(*index).is_some_and(usable));
        if found.is_none() {
            found = self
                .find_digest(interest.name, prefixes)
                .filter(|i| self.entry(*i).is_some_and(usable));
        }
        if found.is_none() && interest.can_be_prefix {
            found = self.scan(interest.name, usable);
        }
        let index = found?;
        self.unlink(index);
        self.link_newest(index);
        self.entry(index).map(|entry| entry.name.wire.clone())
    }

    /// The packet whose name and digest `name` spells out.
    fn find_digest(&self, name: NameRef<'_>, prefixes: &Prefixes) -> Option<u32> {
        let last = name.last().filter(|last| last.typ == types::IMPLICIT_SHA256_DIGEST)?;
        let prefix = prefixes.get(prefixes.component_count().checked_sub(1)?)?;
        let index = self.find(prefix.hash, &name.value()[..prefix.end])?;
        let entry = self.entry(index)?;
        (sha256(&[&entry.name.wire]) == last.value).then_some(index)
    }

    fn scan(&self, prefix: NameRef<'_>, usable: impl Fn(&Entry) -> bool) -> Option<u32> {
        let first = prefix.value();
        let after = end_of_subtree(first);
        let end = after.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        self.by_name
            .range::<[u8], _>((Bound::Excluded(first), end))
            .rev()
            .take(PREFIX_SCAN_MAX)
            .map(|(_, index)| *index)
            .find(|index| self.entry(*index).is_some_and(&usable))
    }

    fn find(&self, hash: u64, name: &[u8]) -> Option<u32> {
        let is_it = |(found, index): &(u64, u32)| {
            *found == hash && self.entry(*index).is_some_and(|e| e.name_value() == name)
        };
        self.by_hash.find(hash, is_it).map(|(_, index)| *index)
    }

    fn entry(&self, index: u32) -> Option<&Entry> {
        self.slab.get(index as usize)?.as_ref()
    }

    fn entry_mut(&mut self, index: u32) -> Option<&mut Entry> {
        self.slab.get_mut(index as usize)?.as_mut()
    }

    fn remove(&mut self, index: u32) {
        self.unlink(index);
        let Some(entry) = self.slab.get_mut(index as usize).and_then(Option::take) else { return };
        if let Ok(found) = self.by_hash.find_entry(entry.hash, |(_, i)| *i == index) {
            found.remove();
        }
        self.by_name.remove(entry.name_value());
        self.bytes -= entry.cost_bytes();
        self.free.push(index);
    }

    fn link_newest(&mut self, index: u32) {
        let newest = self.newest;
        if let Some(entry) = self.entry_mut(index) {
            entry.older = newest;
            entry.newer = NONE;
        }
        match self.entry_mut(newest) {
            Some(entry) => entry.newer = index,
            None => self.oldest = index,
        }
        self.newest = index;
    }

    fn unlink(&mut self, index: u32) {
        let Some((older, newer)) = self.entry(index).map(|entry| (entry.older, entry.newer)) else {
            return;
        };
        match self.entry_mut(older) {
            Some(entry) => entry.newer = newer,
            None => self.oldest = newer,
        }
        match self.entry_mut(newer) {
            Some(entry) => entry.older = older,
            None => self.newest = older,
        }
    }
}

/// A copy of the packet and where its name stands in it.
fn name_key(wire: &[u8]) -> Option<NameKey> {
    let value = tlv::Reader::new(wire).read().ok()??.value;
    let name = tlv::Reader::new(value).read().ok()??;
    let end = wire.len() - value.len() + name.wire.len();
    let start = (end - name.value.len()) as u32;
    Some(NameKey { wire: wire.into(), start, end: end as u32 })
}

/// The least octet string greater than every string that starts with `prefix`.
fn end_of_subtree(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|octet| *octet != 0xFF)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

#[cfg(test)]
mod tests;
