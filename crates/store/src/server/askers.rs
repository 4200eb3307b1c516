//! The forwarder's word about who asks: the face by which each Interest came to it.
//!
//! Behind a forwarder all readers share one connection. So that a flood of one does not use up the
//! turns of the others, a forwarder of this machine is asked for `IncomingFaceId` on what it sends
//! (spec: NDNLPv2, "Local fields"; NFD management, "faces/update" without FaceId is about the face
//! that asks). One that refuses, or is on another machine, counts as one asker.

use byname_face::{CommandClock, ControlCommand, random_u64};
use byname_packet::DigestSigner;
use byname_packet::mgmt::{ControlParameters, FACE_FLAG_LOCAL_FIELDS};
use byname_transfer::server::Now;

use super::face::Face;

/// Lifetime of the command; nobody waits for its answer.
const LIFETIME_MS: u64 = 1_000;

impl Face {
    /// Asks the forwarder, if it is on this machine, to tell its readers apart.
    pub(super) fn ask_for_askers(&mut self, clock: &CommandClock, now: Now) {
        if !self.is_local_forwarder() {
            return;
        }
        let parameters = ControlParameters {
            flags: Some(FACE_FLAG_LOCAL_FIELDS),
            mask: Some(FACE_FLAG_LOCAL_FIELDS),
            ..ControlParameters::default()
        };
        let command = ControlCommand {
            is_local: true,
            path: "faces/update",
            parameters: &parameters,
            lifetime_ms: LIFETIME_MS,
        };
        match command.sign(&DigestSigner, clock.next_ms(now.unix_ns), &mut random_u64) {
            Ok(wire) if self.send(&wire, now.now_ns) => {}
            Ok(_) => tracing::debug!("no room for asking who asks"),
            Err(error) => tracing::debug!(%error, "cannot ask who asks"),
        }
    }
}
