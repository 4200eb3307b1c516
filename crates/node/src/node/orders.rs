//! Orders of other threads, carried out between two bursts.

use byname_forwarder::FaceId;
use byname_io::DatagramCounters;

use super::Node;
use crate::control::{Control, ControlOrder};
use crate::links::Carrier;
use crate::metrics::{FaceSnapshot, Snapshot};

impl Node {
    /// A handle for orders from other threads.
    pub fn control(&self) -> Control {
        self.control.clone()
    }

    /// Does what was ordered. Whoever has given up waiting gets no answer.
    pub(super) fn serve_orders(&mut self) {
        while let Ok(order) = self.orders.try_recv() {
            match order {
                ControlOrder::Reload(config, reply) => {
                    let _ = reply.send(self.reload(*config));
                }
                ControlOrder::Snapshot(reply) => {
                    let _ = reply.send(self.snapshot());
                }
            }
        }
    }

    /// Takes a snapshot of the figures.
    pub fn snapshot(&self) -> Snapshot {
        let face = |face: &FaceId| {
            Some(FaceSnapshot {
                face: Some(*face),
                remote_uri: self.forwarder.face_info(*face)?.remote_uri.clone(),
                is_up: !matches!(self.links.faces.get(face)?.carrier, Carrier::Down),
                counters: self.forwarder.total_face_counters(*face)?,
            })
        };
        let uptime_ns = self.clock.now_ns().saturating_sub(self.config.forwarder.start_now_ns);
        let mut udp = DatagramCounters::default();
        for socket in self.links.shared.sockets.iter().filter_map(|shared| shared.socket.as_ref()) {
            udp += socket.counters();
        }
        let mut snapshot = Snapshot {
            udp,
            counters: self.forwarder.total_counters(),
            pending: self.forwarder.total_pending(),
            faces: self.links.faces.keys().filter_map(face).collect(),
            face_count: self.links.faces.len(),
            queue_full: self.links.dropped_full + self.forwarder.dropped(),
            unsendable: self.links.dropped_other,
            udp_unvalidated: self.links.shared.limiter.dropped(),
            surplus_connections: self.surplus_count,
            stalled_connections: self.stalled_count,
            connection_bytes: self.memory.taken_bytes() as u64,
            wakeups: self.wakeup_count,
            uptime_s: uptime_ns / 1_000_000_000,
        };
        snapshot.bound_faces();
        snapshot
    }
}
