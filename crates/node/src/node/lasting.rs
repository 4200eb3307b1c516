//! Faces that outlive their link: static ones and those made by command.
//!
//! UDP peers are reached through the socket we listen on where there is one, so that both sides see
//! the well-known port; else, and for all other transports, the face has a link of its own.

use std::net::SocketAddr;

use byname_face::{link_over, mtu, random_u64};
use byname_forwarder::{FaceId, FaceInfo, LinkType, Persistency};
use byname_io::{ConnectError, Connection, DatagramSocket, Endpoint, Family, IoError, UdpPeer};
use byname_link::{LinkService, ReassemblyLimits};
use tracing::{debug, info, warn};

use super::Node;
use super::connections::describe;
use crate::connector::{Attempt, Purpose, Reached};
use crate::lasting::Lasting;
use crate::links::{Carrier, Link};

/// Opening a UDP socket to a numeric address waits for nobody.
const UDP_CONNECT_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(1);

impl Node {
    /// The lasting face to `endpoint`, made if there is none; its link follows.
    pub(super) fn lasting_face(&mut self, endpoint: &Endpoint) -> FaceId {
        let known = self.lasting.iter().find(|(_, lasting)| lasting.endpoint == *endpoint);
        if let Some((face, _)) = known {
            return *face;
        }
        let info = FaceInfo {
            persistency: Persistency::Permanent,
            remote_uri: endpoint.to_string(),
            ..FaceInfo::default()
        };
        let face = self.forwarder.add_face(info);
        self.forwarder.set_face_up(face, false);
        let link = Link::new(Carrier::Down, LinkService::stream(), 0);
        self.links.faces.insert(face, link);
        self.lasting.insert(face, Lasting::new(endpoint.clone()));
        self.find_next_attempt();
        self.start_options(face);
        face
    }

    /// Learns when the next attempt is due, so that nobody looks through all faces at each wake.
    fn find_next_attempt(&mut self) {
        self.next_attempt_ns = self.lasting.values().filter_map(Lasting::due_ns).min();
    }

    pub(super) fn start_due_attempts(&mut self, now_ns: u64) {
        if self.next_attempt_ns.is_none_or(|due_ns| due_ns > now_ns) {
            return;
        }
        let (limits, back_off) = (self.limits(), self.back_off());
        for (face, lasting) in &mut self.lasting {
            if lasting.due_ns().is_none_or(|due_ns| due_ns > now_ns) {
                continue;
            }
            lasting.on_started();
            let (purpose, timeout_ns) = (Purpose::Face(*face), self.config.connect_timeout_ns);
            if !self.connector.start(purpose, lasting.endpoint.clone(), timeout_ns, limits) {
                warn!(endpoint = %lasting.endpoint, "no thread to connect with");
                lasting.on_lost(now_ns, back_off, random_u64());
            }
        }
        self.find_next_attempt();
    }

    pub(super) fn collect_attempts(&mut self) {
        while let Some(attempt) = self.connector.poll() {
            match attempt.purpose {
                Purpose::Face(face) => self.on_attempt(face, attempt),
                Purpose::Request(id) => self.on_requested_link(id, attempt),
            }
        }
    }

    fn on_attempt(&mut self, face: FaceId, attempt: Attempt) {
        if !self.lasting.contains_key(&face) {
            // Destroyed meanwhile.
            return;
        }
        let persistency =
            self.forwarder.face_info(face).map_or(Persistency::Permanent, |it| it.persistency);
        let restored = match attempt.result {
            Ok(Reached::Connection(connection)) => {
                self.carry_by_connection(face, *connection, persistency).map_err(|e| e.to_string())
            }
            Ok(Reached::Address(address)) => {
                self.carry_by_address(face, address, persistency).map_err(|e| e.to_string())
            }
            Err(error) => Err(error.to_string()),
        };
        if restored.is_ok() {
            self.on_restored(face);
        }
        let (now_ns, back_off) = (self.clock.now_ns(), self.back_off());
        let Some(lasting) = self.lasting.get_mut(&face) else { return };
        match restored {
            Ok(()) => info!(endpoint = %lasting.endpoint, face = face.0, "connected"),
            Err(reason) => {
                debug!(endpoint = %lasting.endpoint, face = face.0, reason, "not connected");
                lasting.on_lost(now_ns, back_off, random_u64());
                self.find_next_attempt();
                self.detach(face);
            }
        }
    }

    /// A lasting face has a link now.
    pub(super) fn on_restored(&mut self, face: FaceId) {
        let now_ns = self.clock.now_ns();
        if let Some(lasting) = self.lasting.get_mut(&face) {
            lasting.on_connected(now_ns);
        }
        self.forwarder.set_face_up(face, true);
        self.apply_options(face);
    }

    /// Lets a connection carry a lasting face.
    pub(super) fn carry_by_connection(
        &mut self,
        face: FaceId,
        connection: Connection,
        persistency: Persistency,
    ) -> Result<(), IoError> {
        let mtu_bytes = self.mtu_of(&connection);
        let described = describe(&connection);
        self.forwarder.update_face(face, FaceInfo { persistency, mtu_bytes, ..described });
        self.attach(face, connection)
    }

    /// The largest frame that goes over a connection; `None` for streams.
    pub(super) fn mtu_of(&self, connection: &Connection) -> Option<usize> {
        let is_udp = connection.is_datagram() && connection.frame_bytes_max().is_none();
        if !is_udp {
            return connection.frame_bytes_max();
        }
        Some(self.config.udp_mtu_to(mtu::peer_address(connection)))
    }

    /// Lets the shared UDP socket that reaches `address` carry a lasting face, or a socket of its
    /// own. A face that the peer itself has brought about makes room.
    pub(super) fn carry_by_address(
        &mut self,
        face: FaceId,
        address: SocketAddr,
        persistency: Persistency,
    ) -> Result<(), UdpError> {
        let index = self.shared_socket_to(address);
        let occupant = index.and_then(|index| self.peers.get(&(index, address)).copied());
        let is_taken = occupant.is_some_and(|it| it != face && self.lasting.contains_key(&it));
        let (Some(index), false) = (index, is_taken) else {
            let connection = self.connect_udp(address)?;
            return Ok(self.carry_by_connection(face, connection, persistency)?);
        };
        if occupant.is_some_and(|occupant| occupant != face) {
            self.drop_peer((index, address));
        }
        let info = FaceInfo {
            link_type: LinkType::PointToPoint,
            persistency,
            remote_uri: byname_io::peer_uri("udp", address),
            local_uri: self.shared_uri(index),
            mtu_bytes: Some(self.config.udp_mtu_to(Some(address))),
            ..FaceInfo::default()
        };
        self.forwarder.update_face(face, info);
        let carrier = Carrier::Peer { socket: index, peer: UdpPeer::named(address) };
        let mut link = Link::new(carrier, udp_link(), 0);
        link.last_active_ns = self.clock.now_ns();
        self.links.faces.insert(face, link);
        self.peers.insert((index, address), face);
        self.apply_options(face);
        Ok(())
    }

    fn connect_udp(&self, address: SocketAddr) -> Result<Connection, ConnectError> {
        Connection::connect_with(&udp_endpoint(address), UDP_CONNECT_TIMEOUT, self.limits())
    }

    /// The first socket we listen on from which datagrams reach `address`.
    pub(super) fn shared_socket_to(&self, address: SocketAddr) -> Option<usize> {
        let reaches = |socket: &DatagramSocket| {
            let local = socket.local_address().ip();
            if local.is_ipv4() != address.is_ipv4() {
                // A socket bound to `*` is of both families.
                return local.is_ipv6() && is_dual_stack(socket.local_endpoint());
            }
            local.is_unspecified() || local.is_loopback() == address.ip().is_loopback()
        };
        self.links
            .shared
            .sockets
            .iter()
            .position(|shared| shared.socket.as_ref().is_some_and(reaches))
    }

    pub(super) fn shared_uri(&self, index: usize) -> String {
        let socket = self.links.shared.sockets.get(index).and_then(|shared| shared.socket.as_ref());
        socket.map(|socket| socket.local_uri()).unwrap_or_default()
    }

    /// Returns whether the face is a lasting one, which then keeps its routes and gets a new link.
    pub(super) fn lasting_face_lost(&mut self, face: FaceId, reason: &str) -> bool {
        let (now_ns, back_off) = (self.clock.now_ns(), self.back_off());
        let Some(lasting) = self.lasting.get_mut(&face) else { return false };
        let wait_ms = lasting.on_lost(now_ns, back_off, random_u64()) / 1_000_000;
        warn!(endpoint = %lasting.endpoint, reason, wait_ms, "connection lost");
        self.find_next_attempt();
        self.detach(face);
        self.forwarder.set_face_up(face, false);
        true
    }
}

/// The link over a connection. Over UDP an option of the face may raise the MTU, up to what
/// receivers take.
pub(super) fn link_of(connection: &Connection) -> LinkService {
    match connection.frame_bytes_max() {
        None if connection.is_datagram() => udp_link(),
        mtu_bytes => link_over(mtu_bytes, ReassemblyLimits::default()),
    }
}

/// The link to a peer over UDP.
pub(super) fn udp_link() -> LinkService {
    link_over(Some(mtu::LARGEST_BYTES), ReassemblyLimits::default())
}

fn is_dual_stack(endpoint: &Endpoint) -> bool {
    match endpoint {
        Endpoint::Udp { host, .. } => host.is_any() && host.family == Family::Any,
        _ => false,
    }
}

/// An address as an endpoint, with the interface that a link-local one needs.
pub(super) fn udp_endpoint(address: SocketAddr) -> Endpoint {
    let name = match address {
        SocketAddr::V6(v6) if v6.scope_id() != 0 => format!("{}%{}", v6.ip(), v6.scope_id()),
        _ => address.ip().to_string(),
    };
    Endpoint::Udp { host: name.into(), port: address.port() }
}

/// Reason why a UDP peer has no link.
#[derive(Debug, thiserror::Error)]
pub(super) enum UdpError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Io(#[from] IoError),
}
