//! The pending Interest table: who waits for what, and whom it was asked of.
//!
//! Entries live in a slab and are found through one hash table keyed by the hash of the name;
//! Interests for one name that differ in CanBePrefix, MustBeFresh or forwarding hint have entries
//! of their own. For an arriving Data every prefix of its name may have a CanBePrefix entry, so the
//! table counts entries per number of components and probes only lengths that occur.
//!
//! Each entry keeps one copy of the Interest as forwarded, from which Nacks and second tries are
//! made. Bounds: number of entries and octets of those copies; what does not fit is refused, never
//! evicted, so that one consumer's flood does not undo another's request. What each face may have
//! of them is up to `shares`.

mod record;
mod shares;

use std::collections::BTreeSet;

use byname_packet::{Interest, NameRef, sha256, tlv, types};
use hashbrown::HashTable;

use crate::face::FaceId;
use crate::hash::{NameHasher, Prefixes};
use shares::Shares;

pub(crate) use record::PitToken;
pub use record::{InRecord, OutRecord, PitEntry};

/// Where an entry stands in the slab. Valid until the entry is removed.
pub(crate) type PitIndex = u32;

/// What tells entries of one name apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Selectors {
    pub(crate) can_be_prefix: bool,
    pub(crate) must_be_fresh: bool,
    /// Hash of the forwarding hint, 0 without one.
    pub(crate) hint_hash: u64,
}

impl Selectors {
    pub(crate) fn of(interest: &Interest<'_>, hasher: &NameHasher) -> Self {
        let hint_hash = interest.forwarding_hint.map_or(0, |hint| {
            hint.names().fold(1, |acc: u64, name| acc.rotate_left(5) ^ hasher.hash(name.value()))
        });
        Self {
            can_be_prefix: interest.can_be_prefix,
            must_be_fresh: interest.must_be_fresh,
            hint_hash,
        }
    }
}

/// The table.
#[derive(Debug)]
pub(crate) struct Pit {
    slab: Vec<Option<PitEntry>>,
    free: Vec<PitIndex>,
    by_name: HashTable<(u64, PitIndex)>,
    expiries: BTreeSet<(u64, PitIndex)>,
    /// Entries whose name has n components.
    counts: Vec<usize>,
    /// Entries whose name ends in an implicit digest.
    digest_count: usize,
    shares: Shares,
    bytes: usize,
    entries_max: usize,
    bytes_max: usize,
}

impl Pit {
    pub(crate) fn new(entries_max: usize, bytes_max: usize) -> Self {
        Self {
            slab: Vec::new(),
            free: Vec::new(),
            by_name: HashTable::new(),
            expiries: BTreeSet::new(),
            counts: Vec::new(),
            digest_count: 0,
            shares: Shares::default(),
            bytes: 0,
            entries_max,
            bytes_max,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.by_name.len()
    }

    /// The entry that `name` with `selectors` would join.
    pub(crate) fn find(
        &self,
        hash: u64,
        name: NameRef<'_>,
        selectors: Selectors,
    ) -> Option<PitIndex> {
        self.by_name.iter_hash(hash).find_map(|(found, index)| {
            let entry = self.get(*index)?;
            let same = *found == hash
                && entry.name_value() == name.value()
                && entry.selectors == selectors;
            same.then_some(*index)
        })
    }

    /// Makes an entry for `interest` from `face`, which is forwarded as `wire`; `None` when the
    /// table, or the face's share of it, is full. It has no records and does not expire yet.
    pub(crate) fn insert(
        &mut self,
        face: FaceId,
        interest: &Interest<'_>,
        (hash, selectors): (u64, Selectors),
        wire: &[u8],
    ) -> Option<PitIndex> {
        let free = (
            self.entries_max.saturating_sub(self.len()),
            self.bytes_max.saturating_sub(self.bytes),
        );
        if !self.shares.allows(face, wire.len(), free) {
            return None;
        }
        let mut entry = PitEntry::new(hash, selectors, wire)?;
        let count = interest.name.count();
        if self.counts.len() <= count {
            self.counts.resize(count + 1, 0);
        }
        self.counts[count] += 1;
        self.digest_count += usize::from(ends_in_digest(interest.name));
        self.bytes += wire.len();
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                self.slab.push(None);
                PitIndex::try_from(self.slab.len() - 1).ok()?
            }
        };
        entry.owner = Some(self.shares.add(face, index, wire.len()));
        self.slab[index as usize] = Some(entry);
        self.by_name.insert_unique(hash, (hash, index), |(hash, _)| *hash);
        Some(index)
    }

    pub(crate) fn get(&self, index: PitIndex) -> Option<&PitEntry> {
        self.slab.get(index as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, index: PitIndex) -> Option<&mut PitEntry> {
        self.slab.get_mut(index as usize)?.as_mut()
    }

    /// Removes an entry and hands it out.
    pub(crate) fn remove(&mut self, index: PitIndex) -> Option<PitEntry> {
        let entry = self.slab.get_mut(index as usize)?.take()?;
        let is_it = |(_, found): &(u64, PitIndex)| *found == index;
        if let Ok(found) = self.by_name.find_entry(entry.hash, is_it) {
            found.remove();
        }
        self.expiries.remove(&(entry.expires_ns, index));
        self.counts[entry.name().count()] -= 1;
        self.digest_count -= usize::from(ends_in_digest(entry.name()));
        self.bytes -= entry.wire().len();
        self.disown(entry.owner, entry.wire().len());
        self.free.push(index);
        Some(entry)
    }

    /// Takes one entry away from a face that is gone. It ends unless others wait for it too; then
    /// it stays, charged to nobody. `None` when the face has no more.
    pub(crate) fn pop_orphan(&mut self, face: FaceId) -> Option<Orphan> {
        let index = self.shares.last_of(face)?;
        let entry = self.get_mut(index)?;
        entry.in_records.retain(|record| record.face != face);
        if entry.in_records.is_empty() {
            return self.remove(index).map(|_| Orphan::Ended);
        }
        let (owner, bytes) = (entry.owner.take(), entry.wire().len());
        self.disown(owner, bytes);
        Some(Orphan::Kept)
    }

    fn disown(&mut self, owner: Option<shares::Owner>, bytes: usize) {
        let moved = owner.and_then(|owner| self.shares.remove(owner, bytes));
        if let Some((index, owner)) = moved
            && let Some(entry) = self.get_mut(index)
        {
            entry.owner = Some(owner);
        }
    }

    /// Sets when the entry expires: when its last in-record does.
    pub(crate) fn reschedule(&mut self, index: PitIndex) {
        let Some(entry) = self.slab.get_mut(index as usize).and_then(Option::as_mut) else {
            return;
        };
        let expires_ns = entry.in_records.iter().map(|record| record.expires_ns).max();
        self.expiries.remove(&(entry.expires_ns, index));
        entry.expires_ns = expires_ns.unwrap_or(0);
        self.expiries.insert((entry.expires_ns, index));
    }

    /// When the next entry expires.
    pub(crate) fn next_expiry_ns(&self) -> Option<u64> {
        self.expiries.first().map(|(at, _)| *at)
    }

    /// Takes out one entry that has expired.
    pub(crate) fn pop_expired(&mut self, now_ns: u64) -> Option<PitEntry> {
        let (at, index) = *self.expiries.first()?;
        if at > now_ns { None } else { self.remove(index) }
    }

    /// Replaces `out` by the entries that Data `name` with packet `wire` satisfies when it comes
    /// from `face`: those that were asked of that face.
    pub(crate) fn satisfied_by(&self, data: &Arrived<'_>, out: &mut Vec<PitIndex>) {
        out.clear();
        let whole = data.prefixes.component_count();
        let longest = whole.min(self.counts.len().saturating_sub(1));
        for count in 0..=longest {
            if self.counts.get(count).is_none_or(|entries| *entries == 0) {
                continue;
            }
            let Some(prefix) = data.prefixes.get(count) else { break };
            let octets = &data.name.value()[..prefix.end];
            self.collect(prefix.hash, data.face, out, |entry| {
                entry.name_value() == octets && (count == whole || entry.selectors.can_be_prefix)
            });
        }
        if self.digest_count > 0 {
            let mut full = data.name.value().to_vec();
            let digest = sha256(&[data.wire]);
            tlv::write_element(&mut full, u32::from(types::IMPLICIT_SHA256_DIGEST), &digest);
            let hash = data.hasher.hash(&full);
            self.collect(hash, data.face, out, |entry| entry.name_value() == full);
        }
    }

    fn collect(
        &self,
        hash: u64,
        face: FaceId,
        out: &mut Vec<PitIndex>,
        matches: impl Fn(&PitEntry) -> bool,
    ) {
        for (found, index) in self.by_name.iter_hash(hash) {
            let Some(entry) = self.get(*index) else { continue };
            if *found == hash && matches(entry) && entry.was_asked_of(face) {
                out.push(*index);
            }
        }
    }
}

/// What became of an entry whose face is gone.
pub(crate) enum Orphan {
    /// It has ended.
    Ended,
    /// Others wait for it too.
    Kept,
}

/// A Data packet to be matched against the table.
pub(crate) struct Arrived<'a> {
    pub(crate) name: NameRef<'a>,
    pub(crate) wire: &'a [u8],
    pub(crate) prefixes: &'a Prefixes,
    pub(crate) hasher: &'a NameHasher,
    pub(crate) face: FaceId,
}

fn ends_in_digest(name: NameRef<'_>) -> bool {
    name.last().is_some_and(|last| last.typ == types::IMPLICIT_SHA256_DIGEST)
}
