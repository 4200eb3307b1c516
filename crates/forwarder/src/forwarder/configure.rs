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

    /// Says how a face is to behave, as `faces/update` would. The driver sees to the link itself.
    pub fn set_face_options(&mut self, face: FaceId, options: FaceOptions) {
        if let Some(face) = self.faces.get_mut(face) {
            face.options = options;
        }
        self.tell_face(face);
    }
}
