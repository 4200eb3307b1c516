//! Longest datagram to some peer, as far as this host knows.

use std::net::SocketAddr;

use rustix::net::sockopt;
use socket2::{Domain, Socket, Type};

/// Headers of IP, without options, and UDP.
const HEADER_BYTES_V4: usize = 20 + 8;
const HEADER_BYTES_V6: usize = 40 + 8;

/// Octets of payload that one datagram to `peer` can carry without being cut by IP: what the
/// interface on the way to it allows, or a router said was too much. Nothing is sent to find out.
pub fn datagram_bytes_max(peer: SocketAddr) -> Option<usize> {
    let socket = Socket::new(Domain::for_address(peer), Type::DGRAM, None).ok()?;
    // Of a datagram socket this only looks up the route.
    socket.connect(&peer.into()).ok()?;
    let (mtu, headers) = match peer {
        SocketAddr::V4(_) => (sockopt::ip_mtu(&socket).ok()?, HEADER_BYTES_V4),
        SocketAddr::V6(_) => (sockopt::ipv6_mtu(&socket).ok()?, HEADER_BYTES_V6),
    };
    usize::try_from(mtu).ok()?.checked_sub(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_says_what_it_carries() {
        let device = std::fs::read_to_string("/sys/class/net/lo/mtu").expect("a loopback device");
        let mtu: usize = device.trim().parse().expect("a number");
        let peer = "127.0.0.1:9".parse().expect("an address");
        // No packet of IP is longer, whatever the device would carry.
        let most = mtu.min(usize::from(u16::MAX));
        assert_eq!(datagram_bytes_max(peer), Some(most - HEADER_BYTES_V4));
    }
}
