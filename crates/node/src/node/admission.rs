//! Admission of connections: who finds room, and who gives way when there is none.
//!
//! Some places more than `faces_max` are kept for peers that the kernel vouches for (Unix sockets,
//! memif), so that nobody on the network can lock the operator out. When the others are taken, a
//! connection that a peer has opened and that has been silent gives way to a new one. The address
//! with the most connections gives first, so one machine that opens a thousand competes with
//! itself; of its connections those without a route go first, then those silent for longest.

use std::net::IpAddr;

use byname_forwarder::{FaceId, Persistency};
use byname_io::Connection;
use byname_io::admission::gives_way;
use tracing::info;

use super::Node;
use crate::links::Carrier;

/// Places kept for vouched peers.
const RESERVED: usize = 64;

/// While nobody can give way, the faces are not searched again before this time has passed.
const SEARCH_PAUSE_NS: u64 = 100_000_000;

impl Node {
    /// Returns whether a connection may become a face; a silent one may have to give way.
    pub(super) fn admit(&mut self, connection: &Connection) -> bool {
        let count = self.links.faces.len().saturating_sub(self.peers.len());
        let is_vouched = connection.peer_credentials().is_some();
        let reserved = if is_vouched { RESERVED } else { 0 };
        if count < self.faces_max().saturating_add(reserved) {
            return true;
        }
        let now_ns = self.clock.now_ns();
        if now_ns < self.next_give_way_ns {
            return false;
        }
        match self.silent_face(connection.machine(), now_ns) {
            Some(face) => {
                info!(face = face.0, "a silent connection gives way to a new one");
                self.drop_face(face);
                true
            }
            None => {
                self.next_give_way_ns = now_ns.saturating_add(SEARCH_PAUSE_NS);
                false
            }
        }
    }

    /// The face that gives way to a newcomer from `newcomer`.
    fn silent_face(&self, newcomer: Option<IpAddr>, now_ns: u64) -> Option<FaceId> {
        let silent_since_ns = now_ns.saturating_sub(self.config.silent_face_ns);
        let links = self.links.faces.iter().filter_map(|(face, link)| {
            let machine = link.origin?;
            let is_connection = matches!(link.carrier, Carrier::Connection(Some(_)));
            let info = self.forwarder.face_info(*face)?;
            let counts = is_connection && info.persistency == Persistency::OnDemand;
            let is_silent = link.last_active_ns <= silent_since_ns;
            let key = || (self.forwarder.has_routes(*face), link.last_active_ns);
            counts.then(|| (*face, machine, is_silent.then(key)))
        });
        gives_way(&links.collect::<Vec<_>>(), newcomer)
    }
}
