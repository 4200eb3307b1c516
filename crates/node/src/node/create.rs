//! Faces made, changed and ended by command.
//!
//! Management asks for a face; this file finds out what the FaceUri means, lets `connector`
//! resolve and connect, and reports. Host names are resolved and absent ports added, though NFD
//! leaves that to clients. Two commands for one peer end in one face: the later gets the earlier's.

use std::net::SocketAddr;

use byname_forwarder::{
    FaceFailure, FaceId, FaceInfo, FaceOptions, FaceRequest, LinkType, Persistency, RequestId,
};
use byname_io::{Endpoint, EndpointError};
use byname_link::LinkOptions;
use tracing::info;

use super::Node;
use super::lasting::udp_endpoint;
use crate::connector::{Attempt, Purpose, Reached};
use crate::lasting::Lasting;
use crate::links::{Carrier, Link};
use crate::pending_face::PendingFace;

/// Faces that may be pending at a time.
const PENDING_MAX: usize = 64;

impl Node {
    /// Does what management has asked for.
    pub(super) fn serve_requests(&mut self) {
        while let Some((id, request)) = self.forwarder.poll_request() {
            match request {
                FaceRequest::Create { uri, local_uri, persistency, .. } => {
                    let pending = PendingFace { local_uri, persistency };
                    if let Err(failure) = self.start_pending(id, &uri, pending) {
                        self.report(id, Err(failure));
                    }
                }
                FaceRequest::Destroy { face } => self.on_destroy(face),
                FaceRequest::Changed { face } => self.apply_options(face),
            }
        }
        self.flush_dirty();
    }

    fn start_pending(
        &mut self,
        id: RequestId,
        uri: &str,
        pending: PendingFace,
    ) -> Result<(), FaceFailure> {
        let endpoint = with_device(uri, pending.local_uri.as_deref());
        let endpoint: Endpoint = endpoint.parse().map_err(|error| match error {
            EndpointError::UnknownScheme { .. } => FaceFailure::Unsupported(error.to_string()),
            _ => FaceFailure::NotCanonical(error.to_string()),
        })?;
        if pending.persistency == Persistency::OnDemand {
            let text = "a face to a peer of our choice is persistent or permanent";
            return Err(FaceFailure::Unsupported(text.to_owned()));
        }
        let is_udp = matches!(endpoint, Endpoint::Udp { .. } | Endpoint::Multicast { .. });
        if pending.local_uri.is_some() && !is_udp {
            let text = "LocalUri is of use for UDP only";
            return Err(FaceFailure::Unsupported(text.to_owned()));
        }
        if let Some(face) = self.face_to(&canonical_uri(&endpoint), None) {
            return Err(FaceFailure::Exists(face));
        }
        if self.pending_faces.len() >= PENDING_MAX || self.is_full() {
            return Err(FaceFailure::Failed("too many faces".to_owned()));
        }
        let (limits, timeout_ns) = (self.limits(), self.config.connect_timeout_ns);
        if !self.connector.start(Purpose::Request(id), endpoint, timeout_ns, limits) {
            return Err(FaceFailure::Failed("too many attempts to connect".to_owned()));
        }
        self.pending_faces.insert(id, pending);
        Ok(())
    }

    /// The face to a peer, whoever opened it.
    fn face_to(&self, remote_uri: &str, local_uri: Option<&str>) -> Option<FaceId> {
        let mut faces = self.links.faces.keys().copied();
        faces.find(|face| {
            self.forwarder.face_info(*face).is_some_and(|info| {
                info.remote_uri == remote_uri
                    && local_uri.is_none_or(|local_uri| info.local_uri == local_uri)
            })
        })
    }

    /// The link of a pending face is there, or cannot be had.
    pub(super) fn on_requested_link(&mut self, id: RequestId, attempt: Attempt) {
        let Some(pending) = self.pending_faces.remove(&id) else { return };
        let outcome = match attempt.result {
            Ok(reached) => self.grant(&pending, &attempt.endpoint, reached),
            Err(byname_io::ConnectError::Endpoint(error)) => {
                Err(FaceFailure::NotCanonical(error.to_string()))
            }
            Err(error) => Err(FaceFailure::Failed(error.to_string())),
        };
        self.report(id, outcome);
    }

    fn grant(
        &mut self,
        pending: &PendingFace,
        endpoint: &Endpoint,
        reached: Reached,
    ) -> Result<FaceId, FaceFailure> {
        let (remote_uri, local_uri, canonical) = match &reached {
            Reached::Connection(connection) => {
                let uri = connection.remote_uri().to_owned();
                let canonical = uri.parse().unwrap_or_else(|_| endpoint.clone());
                // One group may be joined on each interface.
                let local = connection.is_multi_access().then(|| connection.local_uri().to_owned());
                (uri, local, canonical)
            }
            Reached::Address(address) => {
                let uri = byname_io::peer_uri("udp", *address);
                (uri, pending.local_uri.clone(), udp_endpoint(*address))
            }
        };
        if let Some(face) = self.face_to(&remote_uri, local_uri.as_deref()) {
            return Err(FaceFailure::Exists(face));
        }
        if let (Reached::Address(address), Some(local_uri)) = (&reached, &pending.local_uri) {
            self.check_socket(*address, local_uri)?;
        }
        let persistency = pending.persistency;
        let info = FaceInfo { persistency, remote_uri, ..FaceInfo::default() };
        let face = self.forwarder.add_face(info);
        let carried = match reached {
            Reached::Connection(connection) => {
                self.carry_by_connection(face, *connection, persistency).map_err(|e| e.to_string())
            }
            Reached::Address(address) => {
                self.carry_by_address(face, address, persistency).map_err(|e| e.to_string())
            }
        };
        if let Err(reason) = carried {
            self.drop_face(face);
            return Err(FaceFailure::Failed(reason));
        }
        let mut lasting = Lasting::new(canonical);
        lasting.on_connected(self.clock.now_ns());
        info!(endpoint = %lasting.endpoint, face = face.0, "face made by command");
        self.lasting.insert(face, lasting);
        Ok(face)
    }

    /// Returns whether the socket that a client asked for is the one that reaches the peer.
    fn check_socket(&self, address: SocketAddr, local_uri: &str) -> Result<(), FaceFailure> {
        let index = self.shared_socket_to(address);
        if index.is_some_and(|index| self.shared_uri(index) == local_uri) {
            return Ok(());
        }
        let text = format!("no datagram socket of ours at {local_uri} reaches this peer");
        Err(FaceFailure::Unsupported(text))
    }

    fn report(&mut self, id: RequestId, outcome: Result<FaceId, FaceFailure>) {
        let made = outcome.as_ref().ok().copied();
        let now_ns = self.clock.now_ns();
        self.forwarder.complete_request(id, outcome, now_ns, &mut self.links);
        if let Some(face) = made {
            self.apply_options(face);
        }
    }

    fn on_destroy(&mut self, face: FaceId) {
        info!(face = face.0, "face ended by command");
        self.end_face(face);
    }

    /// Ends a face, whatever carries it.
    pub(super) fn end_face(&mut self, face: FaceId) {
        self.lasting.remove(&face);
        if let Some(Link { carrier: Carrier::Peer { socket, peer }, .. }) =
            self.links.faces.get(&face)
        {
            self.peers.remove(&(*socket, peer.address()));
        }
        self.drop_face(face);
    }

    /// Gives a new face the options that all start with.
    pub(super) fn start_options(&mut self, face: FaceId) {
        if self.config.face_defaults != FaceOptions::default() {
            self.forwarder.set_face_options(face, self.config.face_defaults.clone());
        }
        self.apply_options(face);
    }

    /// Lets the link of a face do what its options say.
    pub(super) fn apply_options(&mut self, face: FaceId) {
        let Some(options) = self.forwarder.face_options(face) else { return };
        if let Some(link) = self.links.faces.get_mut(&face) {
            link.marking.set_options(options);
        }
        let wanted = options.mtu_bytes.and_then(|bytes| usize::try_from(bytes).ok());
        // UDP would take any NDN packet; what networks deliver is the face's default.
        let info = self.forwarder.face_info(face);
        let mtu_bytes = wanted.or(info.and_then(|info| info.mtu_bytes));
        // Among many, nobody could say whose acknowledgement is missing.
        let is_one_peer = info.is_some_and(|info| info.link_type == LinkType::PointToPoint);
        let options = LinkOptions { reliability: options.reliability && is_one_peer, mtu_bytes };
        self.links.set_options(face, &options);
    }
}

/// A multicast group as NFD's clients write it, with the interface in LocalUri.
fn with_device(uri: &str, local_uri: Option<&str>) -> String {
    match local_uri.and_then(|local_uri| local_uri.strip_prefix("dev://")) {
        Some(device) if !uri.contains('?') => format!("{uri}?dev={device}"),
        _ => uri.to_owned(),
    }
}

/// Name of the face to `endpoint`, as far as that is known without a name server.
fn canonical_uri(endpoint: &Endpoint) -> String {
    let address = |host: &byname_io::Host, port: &u16| {
        host.address().map(|address| SocketAddr::new(address, *port))
    };
    let found = match endpoint {
        Endpoint::Tcp { host, port } => address(host, port).map(|it| ("tcp", it)),
        Endpoint::Udp { host, port } => address(host, port).map(|it| ("udp", it)),
        Endpoint::WebSocket { host, port } => address(host, port).map(|it| ("ws", it)),
        _ => None,
    };
    match found {
        // These have no family in their name.
        Some(("ws", address)) => format!("ws://{address}"),
        Some((transport, address)) => byname_io::peer_uri(transport, address),
        None => endpoint.to_string(),
    }
}
