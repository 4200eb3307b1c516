//! What a node is told at its start.

use byname_io::Endpoint;
use byname_packet::Name;

/// Where a node listens and sends, and how much it may hold.
#[derive(Debug, Clone)]
pub struct NodeConfig {
    /// Where to listen: Unix and TCP sockets for connections, UDP sockets for datagrams.
    pub listen: Vec<Endpoint>,
    /// Static routes. One persistent face for each different endpoint.
    pub routes: Vec<(Name, Endpoint)>,
    /// Bounds of the tables. Seed, user and start time are filled in by the node.
    pub forwarder: byname_forwarder::Config,
    /// Faces at a time, UDP faces not counted. Further connections are closed at once.
    pub faces_max: usize,
    /// UDP faces made by peers' packets. Beyond, the longest idle one is given up.
    pub udp_faces_max: usize,
    /// UDP faces made by peers' packets end after this long without one.
    pub udp_idle_ns: u64,
    /// Largest datagram sent to peers on this machine.
    pub udp_mtu_loopback_bytes: usize,
    /// Largest datagram sent to other peers.
    pub udp_mtu_bytes: usize,
    /// Octets that wait to be sent on one connection or UDP socket. What does not fit is dropped.
    pub send_bytes_max: usize,
    /// Time an attempt to connect has.
    pub connect_timeout_ns: u64,
    /// Wait before the first attempt to reconnect; doubled after each that fails,
    pub reconnect_min_ns: u64,
    /// up to this.
    pub reconnect_max_ns: u64,
}

impl Default for NodeConfig {
    fn default() -> Self {
        const SECOND_NS: u64 = 1_000_000_000;
        Self {
            listen: Vec::new(),
            routes: Vec::new(),
            forwarder: byname_forwarder::Config::default(),
            faces_max: 1024,
            udp_faces_max: 1024,
            udp_idle_ns: 600 * SECOND_NS,
            udp_mtu_loopback_bytes: 8800,
            udp_mtu_bytes: 1420,
            send_bytes_max: byname_io::limits::SEND_BYTES_MAX,
            connect_timeout_ns: 5 * SECOND_NS,
            reconnect_min_ns: SECOND_NS / 10,
            reconnect_max_ns: 30 * SECOND_NS,
        }
    }
}
