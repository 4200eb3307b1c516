//! Persistent faces of static routes.

use byname_forwarder::{FaceId, FaceInfo, Persistency, Route};
use byname_io::{Connection, Endpoint};
use byname_packet::Name;
use byname_packet::mgmt::{ROUTE_FLAG_CHILD_INHERIT, route_origin};
use tracing::{debug, info, warn};

use super::Node;
use super::connections::describe;
use crate::error::NodeError;
use crate::links::{Carrier, Link};
use crate::uplink::Uplink;

impl Node {
    /// Adds a route over a persistent face; the face is made on first mention of its endpoint.
    pub(super) fn add_static_route(
        &mut self,
        prefix: &Name,
        endpoint: Endpoint,
    ) -> Result<(), NodeError> {
        let known = self.uplinks.iter().find(|uplink| uplink.endpoint == endpoint);
        let face = match known {
            Some(uplink) => uplink.face,
            None => self.add_uplink(endpoint),
        };
        let route = Route {
            face,
            origin: route_origin::STATIC,
            cost: 0,
            flags: ROUTE_FLAG_CHILD_INHERIT,
            expires_ns: None,
        };
        Ok(self.forwarder.add_route(prefix, route)?)
    }

    fn add_uplink(&mut self, endpoint: Endpoint) -> FaceId {
        let info = FaceInfo {
            persistency: Persistency::Persistent,
            remote_uri: endpoint.to_string(),
            ..FaceInfo::default()
        };
        let face = self.forwarder.add_face(info);
        self.forwarder.set_face_up(face, false);
        let link = Link::new(Carrier::Down, self.services(false, false), 0);
        self.links.faces.insert(face, link);
        self.uplinks.push(Uplink::new(endpoint, face, self.back_off()));
        face
    }

    pub(super) fn start_due_attempts(&mut self, now_ns: u64) {
        let (limits, back_off) = (self.limits(), self.back_off());
        for (index, uplink) in self.uplinks.iter_mut().enumerate() {
            if uplink.due_ns().is_none_or(|due_ns| due_ns > now_ns) {
                continue;
            }
            uplink.on_started();
            let timeout_ns = self.config.connect_timeout_ns;
            if !self.connector.start(index, uplink.endpoint.clone(), timeout_ns, limits) {
                warn!(endpoint = %uplink.endpoint, "no thread to connect with");
                uplink.on_lost(now_ns, back_off);
            }
        }
    }

    pub(super) fn collect_attempts(&mut self) {
        while let Some(attempt) = self.connector.poll() {
            let uplink = &mut self.uplinks[attempt.uplink];
            let face = uplink.face;
            match attempt.result {
                Ok(connection) => {
                    info!(endpoint = %uplink.endpoint, "connected");
                    self.uplink_connected(attempt.uplink, connection);
                }
                Err(error) => {
                    debug!(endpoint = %uplink.endpoint, face = face.0, %error, "not connected");
                    let (now_ns, back_off) = (self.clock.now_ns(), self.back_off());
                    self.uplinks[attempt.uplink].on_lost(now_ns, back_off);
                }
            }
        }
    }

    fn uplink_connected(&mut self, index: usize, connection: Connection) {
        let face = self.uplinks[index].face;
        let is_datagram = connection.is_datagram();
        let mtu_bytes = is_datagram.then(|| self.mtu_bytes(connection.is_local()));
        let described = describe(&connection);
        let info = FaceInfo { persistency: Persistency::Persistent, mtu_bytes, ..described };
        self.uplinks[index].on_connected(self.clock.now_ns());
        self.forwarder.update_face(face, info);
        match self.attach(face, connection) {
            Ok(()) => self.forwarder.set_face_up(face, true),
            Err(error) => {
                self.uplink_lost(face, &error.to_string());
            }
        }
    }

    /// Whether the face is an uplink, which then keeps its routes and connects again.
    pub(super) fn uplink_lost(&mut self, face: FaceId, reason: &str) -> bool {
        let Some(index) = self.uplinks.iter().position(|uplink| uplink.face == face) else {
            return false;
        };
        self.detach(face);
        self.forwarder.set_face_up(face, false);
        let back_off = self.back_off();
        let uplink = &mut self.uplinks[index];
        let wait_ns = uplink.on_lost(self.clock.now_ns(), back_off);
        let wait_ms = wait_ns / 1_000_000;
        warn!(endpoint = %uplink.endpoint, reason, wait_ms, "connection lost");
        true
    }
}
