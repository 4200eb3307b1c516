//! The tables as management sees them.

use byname_packet::NameRef;

use crate::content_store::ContentStore;
use crate::face::{FaceCounters, FaceId};
use crate::management::{FaceView, StoreView, Totals, View};
use crate::pipeline::Pipeline;
use crate::rib::{NextHop, NextHops, Rib};
use crate::shard::Figures;
use crate::strategy::Strategy;

/// The tables of this shard, and the figures of the others.
pub(super) struct Tables<'a> {
    pub(super) pipeline: &'a Pipeline,
    pub(super) rib: &'a Rib,
    pub(super) others: &'a [Figures],
    pub(super) shard_count: usize,
}

impl Tables<'_> {
    /// Counts of a face in all shards, added to `counters` of this one.
    pub(super) fn add_others(&self, id: FaceId, counters: &mut FaceCounters) {
        for other in self.others {
            if let Ok(at) = other.faces.binary_search_by_key(&id, |(face, _)| *face) {
                counters.add(&other.faces[at].1);
            }
        }
    }
}

impl View for Tables<'_> {
    fn face(&self, id: FaceId) -> Option<FaceView<'_>> {
        let face = self.pipeline.faces.get(id).filter(|face| face.inbox.is_none())?;
        Some(face.view(id))
    }

    fn for_each_face(&self, show: &mut dyn FnMut(FaceView<'_>, &FaceCounters)) {
        for (id, face) in self.pipeline.faces.iter().filter(|(_, face)| face.inbox.is_none()) {
            let mut counters = face.counters;
            self.add_others(id, &mut counters);
            show(face.view(id), &counters);
        }
    }

    fn rib(&self) -> &Rib {
        self.rib
    }

    fn next_hops(&self, prefix: NameRef<'_>) -> Option<&[NextHop]> {
        self.pipeline.fib.get(&self.pipeline.hasher, prefix).map(NextHops::as_slice)
    }

    fn has_strategy(&self, prefix: NameRef<'_>) -> bool {
        self.pipeline.strategies.get(&self.pipeline.hasher, prefix).is_some()
    }

    fn strategy_count(&self) -> usize {
        self.pipeline.strategies.len()
    }

    fn for_each_strategy(&self, show: &mut dyn FnMut(NameRef<'_>, &dyn Strategy)) {
        self.pipeline.strategies.iter().for_each(|(prefix, chosen)| show(prefix, &**chosen));
    }

    fn store(&self) -> StoreView {
        let store = &self.pipeline.cs;
        StoreView {
            capacity: store.entries_max().saturating_mul(self.shard_count),
            admits: store.admits(),
            serves: store.serves(),
        }
    }

    fn capacity_for(&self, wanted: usize) -> usize {
        let of_shard = ContentStore::bounded_entries(wanted.div_ceil(self.shard_count));
        of_shard.saturating_mul(self.shard_count)
    }

    fn totals(&self) -> Totals {
        let mut counters = self.pipeline.counters;
        self.others.iter().for_each(|other| counters.add(&other.counters));
        let sum = |of: fn(&Figures) -> usize| self.others.iter().map(of).sum::<usize>();
        Totals {
            counters,
            fib_entries: self.pipeline.fib.len(),
            pit_entries: self.pipeline.pit.len() + sum(|other| other.pending),
            cs_entries: self.pipeline.cs.len() + sum(|other| other.cs_entries),
        }
    }
}
