//! The table of pending Interests; see `pit`.

use std::cmp::Reverse;

use byname_packet::{NameRef, sha256, tlv, types};
use hashbrown::HashTable;
use smallvec::SmallVec;

use super::HINTS_PER_NAME_MAX;
use super::entry::{PitEntry, PitIndex, Request, Selectors};
use super::shares::Shares;
use crate::face::FaceId;
use crate::hash::{NameHasher, Prefixes};
use crate::slab::Slab;
use crate::wheel::Wheel;

/// Time for which an Interest waits before its face may give it up for a newer one.
const PATIENCE_NS: u64 = 1_000_000_000;

/// The table.
#[derive(Debug)]
pub(crate) struct Pit {
    entries: Slab<PitEntry>,
    /// Some bits of the hash, and the entry.
    by_name: HashTable<(u32, PitIndex)>,
    expiries: Wheel,
    /// Time at which strategies want to see an entry again.
    wakeups: Wheel,
    /// CanBePrefix entries whose name has n components.
    prefix_counts: Vec<u32>,
    /// Number of entries that end in an implicit digest, by the hash of the name before it.
    digest_parents: HashTable<(u64, u32)>,
    shares: Shares,
    bytes: usize,
    entries_max: usize,
    bytes_max: usize,
}

/// The bits of a hash that the table itself uses least.
fn tag(hash: u64) -> u32 {
    (hash >> 24) as u32
}

impl Pit {
    pub(crate) fn new(entries_max: usize, bytes_max: usize) -> Self {
        Self {
            entries: Slab::default(),
            by_name: HashTable::new(),
            expiries: Wheel::new(),
            wakeups: Wheel::new(),
            prefix_counts: Vec::new(),
            digest_parents: HashTable::new(),
            shares: Shares::default(),
            bytes: 0,
            entries_max: entries_max.min(1 << 30),
            bytes_max,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Octets of the Interests.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The entry that `name` with `selectors` would join.
    pub(crate) fn find(
        &self,
        hash: u64,
        name: NameRef<'_>,
        selectors: Selectors,
    ) -> Option<PitIndex> {
        let found = self.by_name.find(hash, |(found, index)| {
            *found == tag(hash)
                && self.get(*index).is_some_and(|entry| {
                    entry.name_value() == name.value() && entry.selectors == selectors
                })
        });
        found.map(|(_, index)| *index)
    }

    /// The entry that has to make room for another one of this name with a hint: the oldest one of
    /// the face that has most. `None` while there is room.
    pub(crate) fn surplus_hint(&self, hash: u64, name: NameRef<'_>) -> Option<PitIndex> {
        let mut hinted: SmallVec<[(FaceId, u64, PitIndex); HINTS_PER_NAME_MAX]> = SmallVec::new();
        for (found, index) in self.by_name.iter_hash(hash) {
            let Some(entry) = self.get(*index).filter(|_| *found == tag(hash)) else { continue };
            if entry.selectors.hint_hash != 0 && entry.name_value() == name.value() {
                let first = entry.records.incoming.first();
                let face = first.map_or(FaceId(0), |record| record.face);
                hinted.push((face, entry.made_ns, *index));
            }
        }
        if hinted.len() < HINTS_PER_NAME_MAX {
            return None;
        }
        let count = |of: FaceId| hinted.iter().filter(|(face, _, _)| *face == of).count();
        let surplus =
            hinted.iter().max_by_key(|(face, made_ns, _)| (count(*face), Reverse(*made_ns)));
        surplus.map(|(_, _, index)| *index)
    }

    /// Returns whether `face` may have another entry of `bytes` octets.
    pub(crate) fn has_room(&self, face: FaceId, bytes: usize) -> bool {
        // Nobody can hold more than is free while less than half is taken.
        if self.len() < self.entries_max / 2 && self.bytes + bytes < self.bytes_max / 2 {
            return true;
        }
        let free = (
            self.entries_max.saturating_sub(self.len()),
            self.bytes_max.saturating_sub(self.bytes),
        );
        self.shares.allows(face, bytes, free)
    }

    /// The entry that `face` may give up for a newer one. What others wait for too is charged to
    /// one of them from now on.
    pub(crate) fn pop_impatient(&mut self, face: FaceId, now_ns: u64) -> Option<Shed> {
        let index = self.shares.oldest_of(face)?;
        let entry = self.entries.get_mut(index)?;
        if now_ns.saturating_sub(entry.made_ns) < PATIENCE_NS {
            return None;
        }
        let bytes = entry.wire().len();
        let other = entry.records.incoming.iter().map(|record| record.face).find(|of| *of != face);
        let Some(other) = other else { return Some(Shed::Ends(index)) };
        entry.records.incoming.retain(|record| record.face != face);
        self.shares.remove(index, bytes);
        self.shares.add(other, index, bytes);
        Some(Shed::Stays)
    }

    /// Makes an entry; `None` when there is no room. It has no records and does not expire yet.
    pub(crate) fn insert(&mut self, request: &Request<'_>) -> Option<PitIndex> {
        let bytes = request.wire.len();
        if !self.has_room(request.face, bytes) {
            return None;
        }
        let index = self.entries.take();
        let entry = self.entries.get_mut(index)?;
        if entry.reset(request).is_none() {
            self.entries.give_back(index);
            return None;
        }
        let hash = entry.hash;
        if request.selectors.can_be_prefix {
            let count = request.prefixes.component_count();
            if self.prefix_counts.len() <= count {
                self.prefix_counts.resize(count + 1, 0);
            }
            self.prefix_counts[count] += 1;
        }
        if let Some(parent) = self.entries.get(index).and_then(PitEntry::digest_parent) {
            let count = self.digest_parents.entry(parent, |(h, _)| *h == parent, |(h, _)| *h);
            count.or_insert((parent, 0)).get_mut().1 += 1;
        }
        self.bytes += bytes;
        self.shares.add(request.face, index, bytes);
        let entries = &self.entries;
        self.by_name.insert_unique(hash, (tag(hash), index), |(_, index)| {
            entries.get(*index).map_or(0, |entry| entry.hash)
        });
        Some(index)
    }

    pub(crate) fn get(&self, index: PitIndex) -> Option<&PitEntry> {
        self.entries.get(index)
    }

    pub(crate) fn get_mut(&mut self, index: PitIndex) -> Option<&mut PitEntry> {
        self.entries.get_mut(index)
    }

    /// Removes an entry after a last look at it.
    pub(crate) fn remove<R>(
        &mut self,
        index: PitIndex,
        look: impl FnOnce(&mut PitEntry) -> R,
    ) -> Option<R> {
        let entry = self.entries.get_mut(index)?;
        let found = self.by_name.find_entry(entry.hash, |(_, found)| *found == index);
        found.ok()?.remove();
        self.expiries.cancel(index);
        self.wakeups.cancel(index);
        if entry.selectors.can_be_prefix
            && let Some(count) = self.prefix_counts.get_mut(entry.component_count())
        {
            *count -= 1;
        }
        if let Some(parent) = entry.digest_parent()
            && let Ok(mut found) = self.digest_parents.find_entry(parent, |(h, _)| *h == parent)
        {
            found.get_mut().1 -= 1;
            if found.get().1 == 0 {
                found.remove();
            }
        }
        self.bytes -= entry.wire().len();
        self.shares.remove(index, entry.wire().len());
        let result = look(entry);
        entry.clear();
        self.entries.give_back(index);
        Some(result)
    }

    /// Takes one entry away from a face that is gone. It ends unless others wait for it too; then
    /// it stays, charged to nobody. `None` when the face has no more.
    pub(crate) fn pop_orphan(&mut self, face: FaceId) -> Option<Shed> {
        let Some(index) = self.shares.oldest_of(face) else {
            self.shares.close(face);
            return None;
        };
        let entry = self.entries.get_mut(index)?;
        entry.records.incoming.retain(|record| record.face != face);
        if entry.records.incoming.is_empty() {
            return Some(Shed::Ends(index));
        }
        self.shares.remove(index, entry.wire().len());
        Some(Shed::Stays)
    }

    /// Entries that wait for an answer from a face. Looks at all entries.
    pub(crate) fn asked_of(&self, face: FaceId) -> impl Iterator<Item = PitIndex> {
        let entries = self.by_name.iter().map(|(_, index)| *index);
        entries.filter(move |index| {
            let entry = self.entries.get(*index);
            entry.and_then(|entry| entry.records.out_record(face)).is_some()
        })
    }

    /// Sets when the entry expires: when its last in-record does.
    pub(crate) fn reschedule(&mut self, index: PitIndex) {
        let Some(entry) = self.entries.get_mut(index) else { return };
        let expires_ns = entry.records.incoming.iter().map(|record| record.expires_ns).max();
        entry.expires_ns = expires_ns.unwrap_or(0);
        self.expiries.set(index, entry.expires_ns);
    }

    /// Time at which the table must be asked for expired or woken entries next.
    pub(crate) fn next_due_ns(&self) -> Option<u64> {
        [self.expiries.next_ns(), self.wakeups.next_ns()].into_iter().flatten().min()
    }

    /// Sets when the strategy wants to see the entry again.
    pub(crate) fn wake_at(&mut self, index: PitIndex, at_ns: u64) {
        self.wakeups.set(index, at_ns);
    }

    /// An entry whose strategy wants to see it.
    pub(crate) fn pop_woken(&mut self, now_ns: u64) -> Option<PitIndex> {
        self.wakeups.pop_due(now_ns)
    }

    /// An entry that has expired. It is to be removed.
    pub(crate) fn pop_expired(&mut self, now_ns: u64) -> Option<PitIndex> {
        self.expiries.pop_due(now_ns)
    }

    /// Replaces `out` by the entries that Data `name` with packet `wire` satisfies when it comes
    /// from `face`: those that were asked of that face. What is not fresh comes because somebody
    /// takes whatever there is, and satisfies nobody who waits for what is said now.
    pub(crate) fn satisfied_by(&self, data: &Arrived<'_>, out: &mut Vec<PitIndex>) {
        out.clear();
        let whole = data.prefixes.component_count();
        let hash = data.prefixes.whole();
        self.collect(hash, data, out, |entry| entry.name_value() == data.name.value());
        for (count, entries) in self.prefix_counts.iter().enumerate().take(whole) {
            if *entries == 0 {
                continue;
            }
            let Some(prefix) = data.prefixes.get(count) else { break };
            let octets = &data.name.value()[..prefix.end];
            self.collect(prefix.hash, data, out, |entry| {
                entry.selectors.can_be_prefix && entry.name_value() == octets
            });
        }
        if self.digest_parents.find(hash, |(parent, _)| *parent == hash).is_some() {
            let mut full = data.name.value().to_vec();
            let digest = sha256(&[data.wire]);
            tlv::write_element(&mut full, u32::from(types::IMPLICIT_SHA256_DIGEST), &digest);
            let hash = data.hasher.hash(&full);
            self.collect(hash, data, out, |entry| entry.name_value() == full);
        }
    }

    fn collect(
        &self,
        hash: u64,
        data: &Arrived<'_>,
        out: &mut Vec<PitIndex>,
        matches: impl Fn(&PitEntry) -> bool,
    ) {
        for (found, index) in self.by_name.iter_hash(hash) {
            if *found != tag(hash) {
                continue;
            }
            let Some(entry) = self.get(*index) else { continue };
            let is_answer = !(data.not_fresh && entry.selectors.must_be_fresh);
            if is_answer && matches(entry) && entry.was_asked_of(data.face) {
                out.push(*index);
            }
        }
    }
}

/// Fate of an entry that its face has to do without.
pub(crate) enum Shed {
    /// It is to be removed.
    Ends(PitIndex),
    /// Others wait for it too.
    Stays,
}

/// A Data packet to be matched against the table.
pub(crate) struct Arrived<'a> {
    pub(crate) name: NameRef<'a>,
    pub(crate) wire: &'a [u8],
    pub(crate) prefixes: &'a Prefixes,
    pub(crate) hasher: &'a NameHasher,
    pub(crate) face: FaceId,
    /// It is no answer to what must be fresh.
    pub(crate) not_fresh: bool,
}

#[cfg(test)]
mod tests;
