//! Frame lengths: how long a frame over some connection may be.
//!
//! The kernel knows what the first interface carries, which says nothing about tunnels behind it: a
//! cautious length is used, or less if the interface carries less. An interface for jumbo frames
//! was made one for the whole path; if it was not, routers say so and the kernel fragments.

use std::net::SocketAddr;

use byname_io::Connection;
use byname_link::CAUTIOUS_MTU_BYTES;

/// Longest IP packet on Ethernet. Interfaces that carry more were configured to.
const ETHERNET_BYTES: usize = 1500;
/// Every NDN packet in one datagram; receivers take no more.
pub const LARGEST_BYTES: usize = 8800;

/// Longest frame for a connection; `None` for streams, where every packet is one frame.
pub fn of_connection(connection: &Connection) -> Option<usize> {
    if !connection.is_datagram() {
        return None;
    }
    Some(connection.frame_bytes_max().unwrap_or_else(|| to_peer(peer_address(connection))))
}

/// Longest frame in one UDP datagram to `peer`. Nothing is sent to find out.
pub fn to_peer(peer: Option<SocketAddr>) -> usize {
    // The path to a group is that to all its members.
    let single = peer.filter(|peer| !peer.ip().is_multicast());
    over_path(single.and_then(byname_io::datagram_bytes_max))
}

/// The address of a UDP connection's peer. One with the name of an interface is not parsed: nothing
/// is known of its path.
pub fn peer_address(connection: &Connection) -> Option<SocketAddr> {
    let (_, address) = connection.remote_uri().split_once("://")?;
    address.parse().ok()
}

fn over_path(carried_bytes: Option<usize>) -> usize {
    match carried_bytes {
        Some(carried @ ETHERNET_BYTES..) => carried.min(LARGEST_BYTES),
        Some(carried) => carried.min(CAUTIOUS_MTU_BYTES),
        None => CAUTIOUS_MTU_BYTES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_are_large_only_where_the_first_interface_is_one_for_jumbo_frames() {
        for (carried, mtu) in [
            (None, 1420),
            (Some(500), 500),
            (Some(1472), 1420),
            (Some(1300), 1300),
            (Some(1420), 1420),
            (Some(8972), 8800),
            (Some(4000), 4000),
            (Some(65_507), 8800),
        ] {
            assert_eq!(over_path(carried), mtu, "{carried:?}");
        }
    }

    #[test]
    fn streams_have_none_and_groups_are_unknown() {
        let (stream, _other) = Connection::pair().unwrap();
        assert_eq!(of_connection(&stream), None);
        let (memory, _other) = Connection::pair_in_memory().unwrap();
        assert_eq!(of_connection(&memory), memory.frame_bytes_max());
        assert!(memory.frame_bytes_max().is_some());
        assert_eq!(to_peer("224.0.23.170:56363".parse().ok()), CAUTIOUS_MTU_BYTES);
        assert_eq!(to_peer(None), CAUTIOUS_MTU_BYTES);
    }
}
