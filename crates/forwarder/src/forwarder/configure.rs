//! What of the configuration can change while the forwarder runs.

use byname_packet::Name;

use super::{Config, Forwarder};
use crate::face::{FaceId, FaceOptions};
use crate::shard::Change;

impl Forwarder {
    /// Takes over who may command and where the forwarder stands. Bounds of tables stay as they
    /// were at the start.
    pub fn reconfigure(&mut self, config: &Config) {
        self.config.authorized_gid = config.authorized_gid;
        self.config.command_verifier.clone_from(&config.command_verifier);
        self.config.regions.clone_from(&config.regions);
        self.tell(|| Change::Regions(config.regions.clone()));
    }

    /// Lets a prefix have the strategy of the next shorter one again. `/` keeps what it has.
    pub fn unset_strategy(&mut self, prefix: &Name) {
        if !prefix.view().is_empty() {
            self.strategies.remove(&self.hasher, prefix.view());
            self.tell(|| Change::Strategy(prefix.clone(), None));
        }
    }

    /// Bounds the content stores of all shards together. What is over goes at once.
    pub fn set_content_store_bounds(&mut self, entries_max: usize, bytes_max: usize) {
        let shards = self.shard_count();
        self.cs.set_entries_max(entries_max.div_ceil(shards));
        self.cs.set_bytes_max(bytes_max / shards);
        self.tell(|| Change::StoreBytes(bytes_max / shards));
        self.tell_content_store();
    }

    /// Says whether the content store takes packets, and whether it answers.
    pub fn set_content_store_flags(&mut self, admits: bool, serves: bool) {
        self.cs.set_admits(admits);
        self.cs.set_serves(serves);
        self.tell_content_store();
    }

    fn tell_content_store(&mut self) {
        let (entries_max, admits) = (self.cs.entries_max(), self.cs.admits());
        let serves = self.cs.serves();
        self.tell(|| Change::Store { entries_max, admits, serves });
    }

    /// Says how a face is to behave, as `faces/update` would. The driver sees to the link itself.
    pub fn set_face_options(&mut self, face: FaceId, options: FaceOptions) {
        if let Some(face) = self.faces.get_mut(face) {
            face.options = options;
        }
        self.tell_face(face);
    }
}
