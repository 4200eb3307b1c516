//! Socket addresses as people and NFD write them.

use std::net::{IpAddr, SocketAddr};

/// An IPv4 peer of a dual-stack socket appears as `::ffff:a.b.c.d`; elsewhere it is plain IPv4.
pub(crate) fn canonical(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V6(v6) => match v6.ip().to_ipv4_mapped() {
            Some(v4) => SocketAddr::new(IpAddr::V4(v4), v6.port()),
            None => address,
        },
        SocketAddr::V4(_) => address,
    }
}

/// The FaceUri of an address: `transport` is `tcp` or `udp`, and `4` or `6` is appended.
pub fn peer_uri(transport: &str, address: SocketAddr) -> String {
    let family = if canonical(address).is_ipv4() { '4' } else { '6' };
    format!("{transport}{family}://{}", canonical(address))
}

/// True if packets to this address never leave the machine.
pub fn is_loopback(address: SocketAddr) -> bool {
    canonical(address).ip().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_carry_the_family() {
        let uri = |text: &str| peer_uri("tcp", text.parse().unwrap());
        assert_eq!(uri("127.0.0.1:6363"), "tcp4://127.0.0.1:6363");
        assert_eq!(uri("[::1]:1234"), "tcp6://[::1]:1234");
        assert_eq!(uri("[::ffff:192.0.2.1]:9"), "tcp4://192.0.2.1:9");
    }

    #[test]
    fn mapped_loopback_is_loopback() {
        assert!(is_loopback("[::ffff:127.0.0.1]:1".parse().unwrap()));
        assert!(is_loopback("[::1]:1".parse().unwrap()));
        assert!(!is_loopback("[::ffff:192.0.2.1]:1".parse().unwrap()));
    }
}
