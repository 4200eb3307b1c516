//! Connections that have to do something at times without being asked: WebSockets send pings, and
//! notice peers that vanished.

use byname_forwarder::FaceId;
use byname_io::Connection;

use super::Node;
use crate::links::Carrier;

impl Node {
    /// Takes note of a connection that wants to be called at times; the first time is now.
    pub(super) fn watch_time(&mut self, face: FaceId, connection: &Connection) {
        if connection.tick_due_ns().is_some() {
            self.ticking.retain(|other| *other != face);
            self.ticking.push(face);
            self.next_tick_ns = Some(0);
        }
    }

    /// Calls those that are due and learns when the next will be.
    pub(super) fn tick(&mut self, now_ns: u64) {
        let mut next_ns: Option<u64> = None;
        let (mut lost, mut waiting) = (Vec::new(), Vec::new());
        let (ticking, links) = (&mut self.ticking, &mut self.links);
        ticking.retain(|face| {
            let link = links.faces.get_mut(face);
            let Some(Carrier::Connection(Some(connection))) = link.map(|link| &mut link.carrier)
            else {
                return false;
            };
            if let Err(error) = connection.tick(now_ns) {
                lost.push((*face, error.to_string()));
                return false;
            }
            if connection.wants_write() {
                waiting.push(*face);
            }
            let due_ns = connection.tick_due_ns();
            next_ns = next_ns.into_iter().chain(due_ns).min();
            due_ns.is_some()
        });
        self.next_tick_ns = next_ns;
        for face in waiting {
            self.flush_face(face);
        }
        for (face, reason) in lost {
            self.close_face(face, &reason);
        }
    }
}
