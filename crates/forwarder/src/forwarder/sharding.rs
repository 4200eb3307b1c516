//! Other shards: changes are recorded for them, theirs are applied here, and figures are totalled.

use std::sync::Arc;

use super::Forwarder;
use super::view::Tables;
use crate::counters::Counters;
use crate::face::{FaceCounters, FaceId};
use crate::face_table::Face;
use crate::management::View;
use crate::pipeline::Pipeline;
use crate::rib::NextHops;
use crate::shard::{Change, Figures};

impl Forwarder {
    /// From now on, changes for the other shards are kept for [`Forwarder::take_changes`], which is
    /// to be called after every other call. To be called before there are faces.
    pub fn lead_shards(&mut self) {
        self.changes = Some(Vec::new());
    }

    /// Changes since the last call, in order.
    pub fn take_changes(&mut self) -> Vec<Change> {
        self.changes.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Records a change for the other shards, if there are any.
    pub(super) fn record(&mut self, change: impl FnOnce() -> Change) {
        if let Some(changes) = &mut self.changes {
            changes.push(change());
        }
    }

    /// Records how a face is now.
    pub(super) fn record_face(&mut self, id: FaceId) {
        let Some(changes) = &mut self.changes else { return };
        if let Some(face) = self.pipeline.faces.get(id) {
            changes.push(Change::Face {
                face: id,
                info: Arc::new(face.info.clone()),
                options: face.options.clone(),
                up: face.up,
            });
        }
    }

    /// Applies a change of shard 0.
    pub fn apply(&mut self, change: Change) {
        match change {
            Change::Face { face: id, info, options, up } => {
                if !up {
                    self.pipeline.lose_upstream(id);
                }
                let info = Arc::unwrap_or_clone(info);
                match self.pipeline.faces.get_mut(id) {
                    Some(face) => (face.info, face.options, face.up) = (info, options, up),
                    None => {
                        let mut face = Face::new(info);
                        (face.options, face.up) = (options, up);
                        self.pipeline.faces.put(id, face);
                    }
                }
            }
            Change::FaceGone(face) => self.remove_face(face),
            Change::Hops(prefix, hops) if hops.is_empty() => {
                let Pipeline { fib, hasher, .. } = &mut self.pipeline;
                fib.remove(hasher, prefix.view());
            }
            Change::Hops(prefix, hops) => {
                let Pipeline { fib, hasher, .. } = &mut self.pipeline;
                fib.insert(hasher, prefix.view(), NextHops::from_slice(&hops));
            }
            Change::Strategy(prefix, Some(strategy)) => self.set_strategy(&prefix, strategy),
            Change::Strategy(prefix, None) => self.unset_strategy(&prefix),
            Change::Store { entries_max, admits, serves } => {
                self.pipeline.cs.set_entries_max(entries_max);
                self.pipeline.cs.set_admits(admits);
                self.pipeline.cs.set_serves(serves);
            }
            Change::StoreBytes(bytes_max) => self.pipeline.cs.set_bytes_max(bytes_max),
            Change::Erase(prefix, max) => {
                let Pipeline { cs, hasher, .. } = &mut self.pipeline;
                cs.erase(prefix.view(), hasher, max);
            }
            Change::Regions(regions) => self.pipeline.regions = regions,
            Change::Trace(policy) => self.pipeline.tracer.policy = policy,
        }
    }

    /// Figures of this shard.
    pub fn figures(&self) -> Figures {
        Figures {
            counters: self.pipeline.counters,
            pending: self.pipeline.pit.len(),
            cs_entries: self.pipeline.cs.len(),
            faces: self.pipeline.faces.iter().map(|(id, face)| (id, face.counters)).collect(),
        }
    }

    /// Sets the figures of another shard, which count in all totals.
    pub fn set_figures(&mut self, shard: usize, figures: Figures) {
        if self.others.len() <= shard {
            self.others.resize_with(shard + 1, Figures::default);
        }
        self.others[shard] = figures;
    }

    /// Totals of all shards.
    pub fn total_counters(&self) -> Counters {
        self.tables().totals().counters
    }

    /// Interests pending in all shards.
    pub fn total_pending(&self) -> usize {
        self.tables().totals().pit_entries
    }

    /// Counts of a face in all shards.
    pub fn total_face_counters(&self, id: FaceId) -> Option<FaceCounters> {
        let mut total = self.pipeline.faces.get(id)?.counters;
        self.tables().add_others(id, &mut total);
        Some(total)
    }

    fn tables(&self) -> Tables<'_> {
        Tables {
            pipeline: &self.pipeline,
            rib: &self.rib,
            others: &self.others,
            shard_count: self.config.shard_count(),
        }
    }
}
