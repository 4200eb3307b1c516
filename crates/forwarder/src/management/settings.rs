//! Identity of the forwarder and who may command it.

use std::sync::Arc;

use byname_packet::mgmt::CommandVerifier;

use super::authority::{Authority, Rules};
use super::view::FaceView;
use crate::config::Config;

/// The part of the configuration that management uses.
pub(super) struct Settings {
    rules: Rules,
    pub(super) verifier: Option<Arc<dyn CommandVerifier>>,
    pub(super) version: String,
    pub(super) start_unix_ns: u64,
}

impl Settings {
    pub(super) fn of(config: &Config) -> Self {
        Self {
            rules: Rules {
                own_uid: config.own_uid,
                authorized_gid: config.authorized_gid,
                allow_loopback: config.allow_register_loopback,
            },
            verifier: config.command_verifier.clone(),
            version: config.version.clone(),
            start_unix_ns: config.start_unix_ns,
        }
    }

    /// Takes over who may command.
    pub(super) fn reconfigure(&mut self, config: &Config) {
        self.rules.authorized_gid = config.authorized_gid;
        self.rules.allow_loopback = config.allow_register_loopback;
        self.verifier.clone_from(&config.command_verifier);
    }

    /// Authority of the sender of a command; nothing if it is gone.
    pub(super) fn authority(&self, face: Option<FaceView<'_>>) -> Authority {
        face.map_or(Authority::Nothing, |face| Authority::of(face.info, &self.rules))
    }
}
