//! Memory of connections: what they do not need is freed, and who does not read goes when it is
//! short.

use byname_forwarder::{FaceId, Persistency};
use byname_io::Connection;
use tracing::warn;

use super::Node;
use crate::links::Carrier;

/// Time between two looks at the connections, while they take any memory.
const TRIM_NS: u64 = 1_000_000_000;

impl Node {
    /// When [`Node::trim`] is due; `None` while there is nothing to free.
    pub(super) fn trim_due_ns(&self) -> Option<u64> {
        self.memory.needs_sweep().then_some(self.next_trim_ns)
    }

    /// Frees what connections do not need; closes those that nobody reads if memory is short.
    pub(super) fn trim(&mut self, now_ns: u64) {
        self.next_trim_ns = now_ns.saturating_add(TRIM_NS.min(self.config.stalled_face_ns));
        let mut stalled: Vec<(u64, FaceId)> = Vec::new();
        for (face, link) in &mut self.links.faces {
            let Carrier::Connection(Some(connection)) = &mut link.carrier else { continue };
            let waited_ns = connection.trim(now_ns);
            if waited_ns >= self.config.stalled_face_ns && !is_own(connection) {
                stalled.push((waited_ns, *face));
            }
        }
        stalled.sort_unstable();
        while self.memory.is_short()
            && let Some((_, face)) = stalled.pop()
        {
            let info = self.forwarder.face_info(face);
            if info.is_some_and(|info| info.persistency == Persistency::OnDemand) {
                self.close_stalled(face);
            }
        }
        self.memory.return_freed();
    }

    /// Logged at the first, second, fourth, … so that nobody can fill a disk with it.
    fn close_stalled(&mut self, face: FaceId) {
        self.stalled_count += 1;
        let (count, max) = (self.stalled_count, self.memory.bytes_max());
        if count.is_power_of_two() {
            warn!(face = face.0, count, max, "memory is short and nobody reads: face closed");
        }
        self.drop_face(face);
    }
}

/// True for a connection within this process, such as that of the file server of `up`.
fn is_own(connection: &Connection) -> bool {
    let peer = connection.peer_credentials().and_then(|peer| peer.pid);
    peer == Some(std::process::id())
}
