//! Telling other shards what changes here, taking over what is told, and showing the totals.

use std::sync::Arc;

use super::Forwarder;
use crate::counters::Counters;
use crate::face::{Face, FaceCounters, FaceId};
use crate::rib::NextHops;
use crate::shard::{Change, Figures};

impl Forwarder {
    /// From now on, what the other shards have to know is kept for [`Forwarder::take_changes`],
    /// which is to be called after every other call. To be called before there are faces.
    pub fn lead_shards(&mut self) {
        self.changes = Some(Vec::new());
    }

    /// What has changed since the last call, in order.
    pub fn take_changes(&mut self) -> Vec<Change> {
        self.changes.as_mut().map(std::mem::take).unwrap_or_default()
    }

    pub(crate) fn tell(&mut self, change: impl FnOnce() -> Change) {
        if let Some(changes) = &mut self.changes {
            changes.push(change());
        }
    }

    /// Tells how a face is now.
    pub(crate) fn tell_face(&mut self, id: FaceId) {
        let Some(changes) = &mut self.changes else { return };
        if let Some(face) = self.faces.get(id) {
            changes.push(Change::Face {
                face: id,
                info: Arc::new(face.info.clone()),
                options: face.options.clone(),
                up: face.up,
            });
        }
    }

    /// Takes over what shard 0 tells.
    pub fn apply(&mut self, change: Change) {
        match change {
            Change::Face { face: id, info, options, up } => {
                let info = Arc::unwrap_or_clone(info);
                match self.faces.get_mut(id) {
                    Some(face) => (face.info, face.options, face.up) = (info, options, up),
                    None => {
                        let mut face = Face::new(info);
                        (face.options, face.up) = (options, up);
                        self.faces.put(id, face);
                    }
                }
            }
            Change::FaceGone(face) => self.remove_face(face),
            Change::Hops(prefix, hops) if hops.is_empty() => {
                self.fib.remove(&self.hasher, prefix.view());
            }
            Change::Hops(prefix, hops) => {
                self.fib.insert(&self.hasher, prefix.view(), NextHops::from_slice(&hops));
            }
            Change::Strategy(prefix, Some(strategy)) => self.set_strategy(&prefix, strategy),
            Change::Strategy(prefix, None) => self.unset_strategy(&prefix),
            Change::Store { entries_max, admits, serves } => {
                self.cs.set_entries_max(entries_max);
                self.cs.set_admits(admits);
                self.cs.set_serves(serves);
            }
            Change::StoreBytes(bytes_max) => self.cs.set_bytes_max(bytes_max),
            Change::Erase(prefix, max) => {
                self.cs.erase(prefix.view(), &self.hasher, max);
            }
            Change::Regions(regions) => self.config.regions = regions,
        }
    }

    /// How many shards there are.
    pub(crate) fn shard_count(&self) -> usize {
        self.config.shard.map_or(1, |place| usize::from(place.count.max(1)))
    }

    /// What this shard has to show.
    pub fn figures(&self) -> Figures {
        Figures {
            counters: self.counters,
            pending: self.pit.len(),
            cs_entries: self.cs.len(),
            faces: self.faces.iter().map(|(id, face)| (id, face.counters)).collect(),
        }
    }

    /// What another shard has to show; it counts in all that is told of totals.
    pub fn set_figures(&mut self, shard: usize, figures: Figures) {
        if self.others.len() <= shard {
            self.others.resize_with(shard + 1, Figures::default);
        }
        self.others[shard] = figures;
    }

    /// Totals of all shards.
    pub fn total_counters(&self) -> Counters {
        let mut total = self.counters;
        self.others.iter().for_each(|other| total.add(&other.counters));
        total
    }

    /// Interests pending in all shards.
    pub fn total_pending(&self) -> usize {
        self.pit.len() + self.others.iter().map(|other| other.pending).sum::<usize>()
    }

    /// Packets in the content stores of all shards.
    pub(crate) fn total_cs_entries(&self) -> usize {
        self.cs.len() + self.others.iter().map(|other| other.cs_entries).sum::<usize>()
    }

    /// What passed a face in all shards.
    pub fn total_face_counters(&self, id: FaceId) -> Option<FaceCounters> {
        let mut total = self.faces.get(id)?.counters;
        for other in &self.others {
            if let Ok(at) = other.faces.binary_search_by_key(&id, |(face, _)| *face) {
                total.add(&other.faces[at].1);
            }
        }
        Some(total)
    }
}
