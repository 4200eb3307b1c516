//! The content store: Data packets kept in case somebody else asks.
//!
//! Exact names are found by hash; names for CanBePrefix through `order`. Of several matches
//! the exact name wins, then the last in canonical order: that is the newest version, where a
//! search from the front would dig through every outdated one. A search looks at a bounded number
//! of packets; a miss is always a legal answer.
//!
//! One packet per name: a later packet of the same name replaces the earlier one. Bounded by count
//! and by octets; which packet goes first is up to a `policy`, and what a full store takes in up to
//! `admission`. Buffers come in few sizes and are
//! charged in full, and a packet takes over the buffer of one that it drives out when that has its
//! size: a full store that segments pass through allocates no buffers.

mod admin;
mod admission;
mod order;
mod policy;

use byname_packet::{Data, Interest, NameRef, sha256, tlv, types};
use hashbrown::HashTable;

use crate::face::FaceId;
use crate::hash::Prefixes;
use crate::slab::Slab;
use admission::{Admission, Segment, Use};
use order::{Order, SplitName};
use policy::Policy;

pub use policy::CsPolicy;

/// Estimated octets of tables around one packet, copies of its name not counted.
const OVERHEAD_BYTES: usize = 256;

/// Buffers of small packets are multiples of this; see [`buffer_bytes`].
const BUFFER_STEP_BYTES_MIN: usize = 64;

/// More packets than this are never kept.
const ENTRIES_MAX: usize = 1 << 30;

/// First octets of an implicit digest.
const DIGEST_TYPE_LENGTH: [u8; 2] = [types::IMPLICIT_SHA256_DIGEST as u8, 32];

#[derive(Debug, Default)]
struct Entry {
    hash: u64,
    /// Its capacity is [`buffer_bytes`] of its length. Empty in an unused place.
    wire: Vec<u8>,
    name_start: u32,
    last_start: u32,
    name_end: u32,
    fresh_until_ns: u64,
    /// Time at which it came or was asked for last.
    used_ns: u64,
    /// The same, as `admission` counts.
    used: Use,
    /// SHA-256 of the packet, once somebody has asked for it by digest.
    digest: Option<Box<[u8; 32]>>,
}

impl Entry {
    fn name_value(&self) -> &[u8] {
        &self.wire[self.name_start as usize..self.name_end as usize]
    }

    /// The name, and where its last component begins.
    fn split_name(&self) -> SplitName<'_> {
        (self.name_value(), (self.last_start - self.name_start) as usize)
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

/// Charge of a packet: `order` may keep a copy of its name.
fn cost_bytes(wire_bytes: usize, name_bytes: usize) -> usize {
    buffer_bytes(wire_bytes) + name_bytes + OVERHEAD_BYTES
}

/// A packet that answers an Interest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Match<'a> {
    /// The packet.
    pub(crate) packet: &'a [u8],
    /// It came no longer ago than its FreshnessPeriod says.
    pub(crate) is_fresh: bool,
}

/// The store.
#[derive(Debug)]
pub(crate) struct ContentStore {
    entries: Slab<Entry>,
    /// Some bits of the hash, and the entry.
    by_hash: HashTable<(u32, u32)>,
    order: Order,
    policy: Box<dyn Policy>,
    admission: Admission,
    bytes: usize,
    entries_max: usize,
    bytes_max: usize,
    admits: bool,
    serves: bool,
}

/// The bits of a hash that the table itself uses least.
fn tag(hash: u64) -> u32 {
    (hash >> 24) as u32
}

impl ContentStore {
    /// A store of at most that many packets and octets (tables included). Zero of either stores
    /// nothing.
    pub(crate) fn new(entries_max: usize, bytes_max: usize, policy: CsPolicy) -> Self {
        Self {
            entries: Slab::default(),
            by_hash: HashTable::new(),
            order: Order::default(),
            policy: policy.build(),
            admission: Admission::default(),
            bytes: 0,
            entries_max: Self::bounded_entries(entries_max),
            bytes_max,
            admits: true,
            serves: true,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.by_hash.len()
    }

    /// Octets held, tables included.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn entries_max(&self) -> usize {
        self.entries_max
    }

    /// Keeps `data`, whose name has `prefixes` and for which a face waits. False when it does not
    /// fit at all or is not worth another packet's place.
    pub(crate) fn insert(
        &mut self,
        prefixes: &Prefixes,
        data: &Data<'_>,
        waiting: FaceId,
        now_ns: u64,
    ) -> bool {
        let (wire, name, hash) = (data.wire(), data.name.value(), prefixes.whole());
        let cost = cost_bytes(wire.len(), name.len());
        if !self.admits || self.entries_max == 0 || cost > self.bytes_max {
            return false;
        }
        let Some(name_start) = name_offset(wire) else { return false };
        let known = self.find(hash, name);
        self.admission.count_packet(self.len());
        if known.is_none() && self.is_full(cost) {
            let segment = segment_of(prefixes, data.name);
            if segment.is_some_and(|segment| !self.is_worth_room(segment, waiting, now_ns)) {
                return false;
            }
        }
        let used = self.admission.used_by(waiting);
        let mut recycled = known.and_then(|index| self.remove(index));
        while self.is_full(cost) {
            let Some(victim) = self.policy.victim() else { return false };
            recycled = self.remove(victim);
        }
        let bytes = buffer_bytes(wire.len());
        let mut buffer = recycled
            .filter(|buffer| buffer_bytes(buffer.len()) == bytes)
            .unwrap_or_else(|| Vec::with_capacity(bytes));
        buffer.clear();
        buffer.extend_from_slice(wire);
        let fresh_ns = data.meta.freshness_ms.saturating_mul(1_000_000);
        let last_offset = prefixes.parent().map_or(0, |parent| parent.end);
        self.add(Entry {
            hash,
            wire: buffer,
            name_start: name_start as u32,
            last_start: (name_start + last_offset) as u32,
            name_end: (name_start + name.len()) as u32,
            fresh_until_ns: now_ns.saturating_add(fresh_ns),
            used_ns: now_ns,
            used,
            digest: None,
        });
        true
    }

    /// Returns whether something must go before a packet that is charged `cost` can come in.
    fn is_full(&self, cost: usize) -> bool {
        self.len() >= self.entries_max || self.bytes + cost > self.bytes_max
    }

    fn is_worth_room(&mut self, segment: Segment, waiting: FaceId, now_ns: u64) -> bool {
        let victim = self.policy.victim().and_then(|index| self.entry(index));
        let idle_ns = victim.map_or(u64::MAX, |entry| now_ns.saturating_sub(entry.used_ns));
        self.admission.takes(segment, waiting, idle_ns)
    }

    /// Notes that several wait for `name`: its object is worth keeping.
    pub(crate) fn note_wanted(&mut self, prefixes: &Prefixes, name: NameRef<'_>) {
        if let Some(segment) = segment_of(prefixes, name) {
            self.admission.note_wanted(segment.object_hash);
        }
    }

    fn add(&mut self, entry: Entry) {
        self.bytes += entry.cost_bytes();
        let (hash, index) = (entry.hash, self.entries.take());
        if let Some(place) = self.entries.get_mut(index) {
            *place = entry;
        }
        let entries = &self.entries;
        self.by_hash.insert_unique(hash, (tag(hash), index), |(_, index)| {
            entries.get(*index).map_or(0, |entry| entry.hash)
        });
        self.order.insert(index);
        self.policy.on_insert(index);
    }

    /// A packet that answers `interest`.
    pub(crate) fn find_match(
        &mut self,
        interest: &Interest<'_>,
        prefixes: &Prefixes,
        asking: FaceId,
        now_ns: u64,
    ) -> Option<Match<'_>> {
        if !self.serves || self.len() == 0 {
            return None;
        }
        let usable = |entry: &Entry| !interest.must_be_fresh || now_ns < entry.fresh_until_ns;
        let mut found = self
            .find(prefixes.whole(), interest.name.value())
            .filter(|index| self.entry(*index).is_some_and(usable));
        let used = self.admission.used_by(asking);
        if let Some(entry) = found.and_then(|index| self.entries.get(index)) {
            if let Some(segment) = segment_of(prefixes, interest.name) {
                self.admission.note_again(segment.object_hash, entry.used, used);
            }
        } else {
            found = self
                .find_digest(interest.name, prefixes)
                .filter(|i| self.entry(*i).is_some_and(usable));
        }
        if found.is_none() && interest.can_be_prefix {
            let entries = &self.entries;
            found = self.order.last_below(
                interest.name,
                |index| entries.get(index).map_or((&[], 0), Entry::split_name),
                |index| entries.get(index).is_some_and(usable),
            );
        }
        let index = found?;
        self.policy.on_hit(index);
        let entry = self.entries.get_mut(index)?;
        (entry.used_ns, entry.used) = (now_ns, used);
        Some(Match { packet: &entry.wire, is_fresh: now_ns < entry.fresh_until_ns })
    }

    /// The packet whose name and digest `name` spells out.
    fn find_digest(&mut self, name: NameRef<'_>, prefixes: &Prefixes) -> Option<u32> {
        let parent = prefixes.parent()?;
        let wanted = name.value()[parent.end..].strip_prefix(&DIGEST_TYPE_LENGTH)?;
        let index = self.find(parent.hash, &name.value()[..parent.end])?;
        let entry = self.entries.get_mut(index)?;
        let digest = entry.digest.get_or_insert_with(|| Box::new(sha256(&[&entry.wire])));
        (digest[..] == *wanted).then_some(index)
    }

    fn find(&self, hash: u64, name: &[u8]) -> Option<u32> {
        let is_it = |(found, index): &(u32, u32)| {
            *found == tag(hash) && self.entry(*index).is_some_and(|e| e.name_value() == name)
        };
        self.by_hash.find(hash, is_it).map(|(_, index)| *index)
    }

    fn entry(&self, index: u32) -> Option<&Entry> {
        self.entries.get(index)
    }

    /// Removes a packet; its buffer.
    fn remove(&mut self, index: u32) -> Option<Vec<u8>> {
        let entry = self.entries.get_mut(index)?;
        let found = self.by_hash.find_entry(entry.hash, |(_, i)| *i == index);
        found.ok()?.remove();
        self.policy.on_remove(index);
        self.order.remove(index, entry.split_name());
        self.bytes -= entry.cost_bytes();
        let buffer = std::mem::take(entry).wire;
        self.entries.give_back(index);
        Some(buffer)
    }
}

/// Object and number of a segment, if `name` is that of one.
fn segment_of(prefixes: &Prefixes, name: NameRef<'_>) -> Option<Segment> {
    let parent = prefixes.parent()?;
    let number = order::segment_number(&name.value()[parent.end..])?;
    Some(Segment { hash: prefixes.whole(), object_hash: parent.hash, number })
}

/// Place where the value of the name begins in a Data packet.
fn name_offset(wire: &[u8]) -> Option<usize> {
    let value = tlv::Reader::new(wire).read().ok()??.value;
    let name = tlv::Reader::new(value).read().ok()??;
    Some(wire.len() - value.len() + name.wire.len() - name.value.len())
}

#[cfg(test)]
mod tests;
