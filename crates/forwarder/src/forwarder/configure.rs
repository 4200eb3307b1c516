//! Changes of the configuration while the forwarder runs.

use byname_packet::Name;

use super::Forwarder;
use crate::config::Config;
use crate::face::{FaceId, FaceOptions};
use crate::pipeline::Pipeline;
use crate::shard::Change;

impl Forwarder {
    /// Takes over who may command, where the forwarder stands and whom it tells about paths. Bounds
    /// of tables stay as they were at the start.
    pub fn reconfigure(&mut self, config: &Config) {
        self.management.reconfigure(config);
        self.pipeline.regions.clone_from(&config.regions);
        self.record(|| Change::Regions(config.regions.clone()));
        self.pipeline.tracer.policy = config.trace;
        self.record(|| Change::Trace(config.trace));
    }

    /// Lets a prefix have the strategy of the next shorter one again. `/` keeps what it has.
    pub fn unset_strategy(&mut self, prefix: &Name) {
        if !prefix.view().is_empty() {
            let Pipeline { strategies, hasher, .. } = &mut self.pipeline;
            strategies.remove(hasher, prefix.view());
            self.record(|| Change::Strategy(prefix.clone(), None));
        }
    }

    /// Bounds the content stores of all shards together. What is over goes at once.
    pub fn set_content_store_bounds(&mut self, entries_max: usize, bytes_max: usize) {
        let shards = self.config.shard_count();
        self.pipeline.cs.set_entries_max(entries_max.div_ceil(shards));
        self.pipeline.cs.set_bytes_max(bytes_max / shards);
        self.record(|| Change::StoreBytes(bytes_max / shards));
        self.record_content_store();
    }

    /// Says whether the content store takes packets, and whether it answers.
    pub fn set_content_store_flags(&mut self, admits: bool, serves: bool) {
        self.pipeline.cs.set_admits(admits);
        self.pipeline.cs.set_serves(serves);
        self.record_content_store();
    }

    /// Bounds (for all shards together) and opens or closes the content store.
    pub(super) fn configure_store(&mut self, capacity: Option<usize>, admits: bool, serves: bool) {
        if let Some(capacity) = capacity {
            self.pipeline.cs.set_entries_max(capacity.div_ceil(self.config.shard_count()));
        }
        self.set_content_store_flags(admits, serves);
    }

    fn record_content_store(&mut self) {
        let (entries_max, admits) = (self.pipeline.cs.entries_max(), self.pipeline.cs.admits());
        let serves = self.pipeline.cs.serves();
        self.record(|| Change::Store { entries_max, admits, serves });
    }

    /// Says how a face is to behave, as `faces/update` would. The driver sees to the link itself.
    pub fn set_face_options(&mut self, face: FaceId, options: FaceOptions) {
        if let Some(face) = self.pipeline.faces.get_mut(face) {
            face.options = options;
        }
        self.record_face(face);
    }
}
