//! Configuration of a node: at its start, and again when it is read anew.

use std::net::SocketAddr;

use byname_face::mtu;
use byname_forwarder::FaceOptions;
use byname_io::{Endpoint, UnvalidatedRates};
use byname_packet::Name;

/// Endpoints, peers and limits of a node.
#[derive(Debug, Clone)]
pub struct NodeConfig {
    /// Endpoints to listen on, whatever the transport; multicast groups too.
    pub listen: Vec<Endpoint>,
    /// Users who may connect to the Unix sockets, beside the owner.
    pub socket_access: SocketAccess,
    /// Web pages that may connect to WebSocket listeners, as `scheme://host[:port]`; [`SAME_HOST`]
    /// for those of the host that the browser connects to, `*` for all.
    pub websocket_origins: Vec<String>,
    /// Static routes. One permanent face for each different endpoint.
    pub routes: Vec<StaticRoute>,
    /// Permanent faces, with or without static routes over them.
    pub faces: Vec<StaticFace>,
    /// Strategies by prefix; the last component of the strategy's name is enough.
    pub strategies: Vec<(Name, String)>,
    /// Options that faces start with, unless their own options say otherwise.
    pub face_defaults: FaceOptions,
    /// True if new Data is admitted to the content store.
    pub cs_admit: bool,
    /// True if the content store answers.
    pub cs_serve: bool,
    /// Forwarders that share the faces, each but the first on a thread of its own. What the tables
    /// may hold is for all together. Taken from the first configuration only.
    pub shards: usize,
    /// Bounds of the tables. Seed, user and start time are filled in by the node.
    pub forwarder: byname_forwarder::Config,
    /// Faces at a time, UDP faces not counted; Unix and memif peers may have 64 more. Fewer where
    /// descriptors are few ([`byname_io::descriptors::connections_max`]). Beyond, a
    /// silent connection gives way to a new one; if none is silent, the new one is closed.
    pub faces_max: usize,
    /// A connection is silent when nothing has come over it for this long.
    pub silent_face_ns: u64,
    /// Octets a second that UDP peers get which have not shown that they receive.
    pub udp_unvalidated: UnvalidatedRates,
    /// UDP faces made by peers' packets. Beyond, the longest idle one is given up.
    pub udp_faces_max: usize,
    /// UDP faces made by peers' packets end after this long without one.
    pub udp_idle_ns: u64,
    /// Largest datagram sent to peers on this machine.
    pub udp_mtu_loopback_bytes: usize,
    /// Largest datagram sent to other peers; `None`: see [`NodeConfig::udp_mtu_to`].
    pub udp_mtu_bytes: Option<usize>,
    /// Octets that wait to be sent on one connection or UDP socket. What does not fit is dropped.
    pub send_bytes_max: usize,
    /// Octets that the buffers of all connections may take together. Long queues get less when they
    /// are many; see [`byname_io::MemoryBudget`].
    pub connection_bytes_max: usize,
    /// While more than half of that is taken, a connection that a peer has opened is closed when
    /// its queue has not moved for this long.
    pub stalled_face_ns: u64,
    /// Time an attempt to connect has.
    pub connect_timeout_ns: u64,
    /// Longest pause before the first attempt to reconnect; doubled after each that fails,
    pub reconnect_min_ns: u64,
    /// up to this.
    pub reconnect_max_ns: u64,
}

impl NodeConfig {
    /// Largest datagram sent to a peer; unless configured what [`byname_face::mtu`] says.
    pub(crate) fn udp_mtu_to(&self, peer: Option<SocketAddr>) -> usize {
        if peer.is_some_and(byname_io::is_loopback) {
            return self.udp_mtu_loopback_bytes;
        }
        self.udp_mtu_bytes.unwrap_or_else(|| mtu::to_peer(peer))
    }
}

/// Stands for pages of the host that a browser believes it is connecting to.
pub const SAME_HOST: &str = "same-host";

/// A route that the configuration names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaticRoute {
    /// Names it is for.
    pub prefix: Name,
    /// Peer that they are forwarded to.
    pub endpoint: Endpoint,
    /// Lower is preferred.
    pub cost: u64,
    /// NFD's route flags.
    pub flags: u64,
}

/// A face that the configuration names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaticFace {
    /// Its peer.
    pub endpoint: Endpoint,
    /// Its options.
    pub options: FaceOptions,
}

/// Users who may connect to a Unix socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SocketAccess {
    /// Mode of the socket's file.
    pub mode: u32,
    /// Its group, if not the process's own.
    pub gid: Option<u32>,
}

impl From<(Name, Endpoint)> for StaticRoute {
    fn from((prefix, endpoint): (Name, Endpoint)) -> Self {
        let flags = byname_packet::mgmt::ROUTE_FLAG_CHILD_INHERIT;
        Self { prefix, endpoint, cost: 0, flags }
    }
}

impl Default for SocketAccess {
    fn default() -> Self {
        Self { mode: 0o600, gid: None }
    }
}

impl Default for NodeConfig {
    fn default() -> Self {
        const SECOND_NS: u64 = 1_000_000_000;
        Self {
            listen: Vec::new(),
            socket_access: SocketAccess::default(),
            websocket_origins: vec![SAME_HOST.to_owned()],
            routes: Vec::new(),
            faces: Vec::new(),
            strategies: Vec::new(),
            face_defaults: FaceOptions::default(),
            cs_admit: true,
            cs_serve: true,
            shards: 1,
            forwarder: byname_forwarder::Config::default(),
            faces_max: 1024,
            silent_face_ns: 10_000_000_000,
            udp_unvalidated: UnvalidatedRates::default(),
            udp_faces_max: 1024,
            udp_idle_ns: 600 * SECOND_NS,
            udp_mtu_loopback_bytes: 8800,
            udp_mtu_bytes: None,
            send_bytes_max: byname_io::limits::SEND_BYTES_MAX,
            connection_bytes_max: byname_io::budget::MEMORY_BYTES_MAX,
            stalled_face_ns: 5 * SECOND_NS,
            connect_timeout_ns: 5 * SECOND_NS,
            reconnect_min_ns: SECOND_NS / 10,
            reconnect_max_ns: SECOND_NS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_configured_counts_wherever_the_peer_is() {
        let config = NodeConfig { udp_mtu_bytes: Some(2000), ..NodeConfig::default() };
        let (far, multicast) = ("192.0.2.1:6363".parse().ok(), "224.0.23.170:56363".parse().ok());
        assert!(far.is_some() && multicast.is_some());
        for peer in [far, multicast, None] {
            assert_eq!(config.udp_mtu_to(peer), 2000);
        }
        assert_eq!(config.udp_mtu_to("127.0.0.1:9".parse().ok()), 8800);
        assert_eq!(NodeConfig::default().udp_mtu_to(multicast), 1420);
    }
}

/// Counts of what a reload has changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Changes {
    /// Endpoints that are listened on now.
    pub listeners_added: usize,
    /// Endpoints that are not any more.
    pub listeners_removed: usize,
    /// Static routes that are there now.
    pub routes_added: usize,
    /// Static routes that are not any more.
    pub routes_removed: usize,
    /// Prefixes whose strategy has changed.
    pub strategies_changed: usize,
    /// Static faces that were ended.
    pub faces_removed: usize,
}
