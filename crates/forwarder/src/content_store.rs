//! The content store: Data packets kept in case somebody else asks.
//!
//! Exact names are found by hash; names for CanBePrefix through `order`. Of several matches
//! the exact name wins, then the last in canonical order: that is the newest version, where a
//! search from the front would dig through every outdated one. A search looks at a bounded number
//! of packets; a miss is always a legal answer.
//!
//! One packet per name: a later packet of the same name replaces the earlier one. Bounded by count
//! and by octets; the least recently used packet goes first. Buffers come in few sizes and are
//! charged in full, and a packet takes over the buffer of one that it drives out when that has its
//! size: a full store that segments pass through allocates no buffers.

mod admin;
mod order;

use byname_packet::{Data, Interest, NameRef, sha256, tlv, types};
use hashbrown::HashTable;

use crate::hash::Prefixes;
use order::{Order, Place};

/// Estimated octets of tables around one packet, copies of its name not counted.
const OVERHEAD_BYTES: usize = 256;

/// Buffers of small packets are multiples of this; see [`buffer_bytes`].
const BUFFER_STEP_BYTES_MIN: usize = 64;

const NONE: u32 = u32::MAX;

#[derive(Debug)]
struct Entry {
    hash: u64,
    /// Its capacity is [`buffer_bytes`] of its length.
    wire: Vec<u8>,
    name_start: u32,
    last_start: u32,
    name_end: u32,
    place: Place,
    fresh_until_ns: u64,
    older: u32,
    newer: u32,
}

impl Entry {
    fn name_value(&self) -> &[u8] {
        &self.wire[self.name_start as usize..self.name_end as usize]
    }

    /// Where the last component begins in the name.
    fn last_offset(&self) -> usize {
        (self.last_start - self.name_start) as usize
    }

    fn cost_bytes(&self) -> usize {
        cost_bytes(self.wire.len(), self.name_value().len())
    }
}

/// Octets of the buffer for a packet: up to a sixteenth more, so that the segments of one object
/// can use each other's although their numbers differ in length.
fn buffer_bytes(wire_bytes: usize) -> usize {
    let step = wire_bytes.next_power_of_two() / 32;
    wire_bytes.next_multiple_of(step.max(BUFFER_STEP_BYTES_MIN))
}

/// What a packet is charged: `order` may keep a copy of its name.
fn cost_bytes(wire_bytes: usize, name_bytes: usize) -> usize {
    buffer_bytes(wire_bytes) + name_bytes + OVERHEAD_BYTES
}

/// The store.
#[derive(Debug)]
pub(crate) struct ContentStore {
    slab: Vec<Option<Entry>>,
    free: Vec<u32>,
    by_hash: HashTable<(u64, u32)>,
    order: Order,
    oldest: u32,
    newest: u32,
    bytes: usize,
    entries_max: usize,
    bytes_max: usize,
    admits: bool,
    serves: bool,
}

impl ContentStore {
    /// A store of at most that many packets and octets (tables included). Zero of either stores
    /// nothing.
    pub(crate) fn new(entries_max: usize, bytes_max: usize) -> Self {
        Self {
            slab: Vec::new(),
            free: Vec::new(),
            by_hash: HashTable::new(),
            order: Order::default(),
            oldest: NONE,
            newest: NONE,
            bytes: 0,
            entries_max: entries_max.min(NONE as usize - 1),
            bytes_max,
            admits: true,
            serves: true,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.by_hash.len()
    }

    pub(crate) fn entries_max(&self) -> usize {
        self.entries_max
    }

    /// Keeps `data`, whose name has `prefixes`. False when it does not fit at all.
    pub(crate) fn insert(&mut self, prefixes: &Prefixes, data: &Data<'_>, now_ns: u64) -> bool {
        let (wire, name, hash) = (data.wire(), data.name.value(), prefixes.whole());
        let cost = cost_bytes(wire.len(), name.len());
        if !self.admits || self.entries_max == 0 || cost > self.bytes_max {
            return false;
        }
        let Some(name_start) = name_offset(wire) else { return false };
        let parent = prefixes.component_count().checked_sub(1).and_then(|n| prefixes.get(n));
        let mut recycled = self.find(hash, name).and_then(|index| self.remove(index));
        while self.len() >= self.entries_max || self.bytes + cost > self.bytes_max {
            recycled = self.remove(self.oldest);
        }
        let bytes = buffer_bytes(wire.len());
        let mut buffer = recycled
            .filter(|buffer| buffer_bytes(buffer.len()) == bytes)
            .unwrap_or_else(|| Vec::with_capacity(bytes));
        buffer.clear();
        buffer.extend_from_slice(wire);
        let fresh_ns = data.meta.freshness_ms.saturating_mul(1_000_000);
        self.add(Entry {
            hash,
            wire: buffer,
            name_start: name_start as u32,
            last_start: (name_start + parent.map_or(0, |parent| parent.end)) as u32,
            name_end: (name_start + name.len()) as u32,
            place: Place::Full,
            fresh_until_ns: now_ns.saturating_add(fresh_ns),
            older: NONE,
            newer: NONE,
        });
        true
    }

    fn add(&mut self, mut entry: Entry) {
        self.bytes += entry.cost_bytes();
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                self.slab.push(None);
                self.slab.len() as u32 - 1
            }
        };
        entry.place = self.order.insert(entry.name_value(), entry.last_offset(), index);
        self.by_hash.insert_unique(entry.hash, (entry.hash, index), |(hash, _)| *hash);
        self.slab[index as usize] = Some(entry);
        self.link_newest(index);
    }

    /// A packet that answers `interest`; it becomes the most recently used one.
    pub(crate) fn find_match(
        &mut self,
        interest: &Interest<'_>,
        prefixes: &Prefixes,
        now_ns: u64,
    ) -> Option<&[u8]> {
        if !self.serves {
            return None;
        }
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
            found = self.order.last_below(
                interest.name,
                |index| self.entry(index).map_or(&[], Entry::name_value),
                |index| self.entry(index).is_some_and(usable),
            );
        }
        let index = found?;
        self.unlink(index);
        self.link_newest(index);
        self.entry(index).map(|entry| entry.wire.as_slice())
    }

    /// The packet whose name and digest `name` spells out.
    fn find_digest(&self, name: NameRef<'_>, prefixes: &Prefixes) -> Option<u32> {
        let last = name.last().filter(|last| last.typ == types::IMPLICIT_SHA256_DIGEST)?;
        let prefix = prefixes.get(prefixes.component_count().checked_sub(1)?)?;
        let index = self.find(prefix.hash, &name.value()[..prefix.end])?;
        let entry = self.entry(index)?;
        (sha256(&[&entry.wire]) == last.value).then_some(index)
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

    /// Removes a packet; its buffer.
    fn remove(&mut self, index: u32) -> Option<Vec<u8>> {
        self.unlink(index);
        let entry = self.slab.get_mut(index as usize)?.take()?;
        if let Ok(found) = self.by_hash.find_entry(entry.hash, |(_, i)| *i == index) {
            found.remove();
        }
        self.order.remove(entry.name_value(), entry.last_offset(), entry.place);
        self.bytes -= entry.cost_bytes();
        self.free.push(index);
        Some(entry.wire)
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

/// Where the value of the name begins in a Data packet.
fn name_offset(wire: &[u8]) -> Option<usize> {
    let value = tlv::Reader::new(wire).read().ok()??.value;
    let name = tlv::Reader::new(value).read().ok()??;
    Some(wire.len() - value.len() + name.wire.len() - name.value.len())
}

#[cfg(test)]
mod tests;
