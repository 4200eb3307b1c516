//! FaceUris in canonical form: an address, its family in the scheme, and a port.
//!
//! Other forwarders (NFD) take no other form, and ours shows faces in this one. People write host
//! names and leave out ports.

use byname_io::{Endpoint, EndpointError, peer_uri};
use byname_packet::mgmt::ControlParameters;

/// The canonical form of what a person wrote; asks the name server for a host name. A scheme that
/// only a forwarder may know stays as it is.
pub(crate) fn canonical(text: &str) -> Result<String, EndpointError> {
    if let Some(ether) = canonical_ether(text) {
        return Ok(ether);
    }
    let endpoint = match text.parse::<Endpoint>() {
        Err(EndpointError::UnknownScheme { .. }) => return Ok(text.to_owned()),
        endpoint => endpoint?,
    };
    let transport = match endpoint {
        Endpoint::Tcp { .. } => "tcp",
        Endpoint::Udp { .. } => "udp",
        Endpoint::Unix(_)
        | Endpoint::WebSocket { .. }
        | Endpoint::Multicast { .. }
        | Endpoint::Memif { .. } => return Ok(endpoint.to_string()),
    };
    let addresses = endpoint.resolve()?;
    // `resolve` fails if there is none.
    Ok(addresses.first().map_or_else(|| text.to_owned(), |first| peer_uri(transport, *first)))
}

/// `ether://[…]` with six octets of two lower-case digits each.
fn canonical_ether(text: &str) -> Option<String> {
    let octets = text.strip_prefix("ether://[")?.strip_suffix(']')?;
    let octets = octets.split(':').map(|octet| match octet.len() {
        1 | 2 => u8::from_str_radix(octet, 16).ok(),
        _ => None,
    });
    let octets: Vec<u8> = octets.collect::<Option<_>>()?;
    let octets: [u8; 6] = octets.try_into().ok()?;
    Some(format!("ether://[{}]", octets.map(|octet| format!("{octet:02x}")).join(":")))
}

/// Fields of the command that makes a face to a peer.
pub(crate) fn to_peer(uri: &str, local: Option<&str>) -> Result<ControlParameters, EndpointError> {
    let local_uri = local.map(canonical).transpose()?;
    Ok(ControlParameters { uri: Some(canonical(uri)?), local_uri, ..Default::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_is_canonical() {
        let cases = [
            ("udp4://192.0.2.7", "udp4://192.0.2.7:6363"),
            ("tcp4://192.0.2.7", "tcp4://192.0.2.7:6363"),
            ("udp://192.0.2.7", "udp4://192.0.2.7:6363"),
            ("udp4://192.0.2.7:7000", "udp4://192.0.2.7:7000"),
            ("tcp://[2001:db8::7]", "tcp6://[2001:db8::7]:6363"),
            ("udp6://[2001:DB8:0::7]:7000", "udp6://[2001:db8::7]:7000"),
            ("tcp4://localhost", "tcp4://127.0.0.1:6363"),
            ("udp4://localhost:1", "udp4://127.0.0.1:1"),
            ("unix:///run/nfd/nfd.sock", "unix:///run/nfd/nfd.sock"),
            ("ws://192.0.2.7", "ws://192.0.2.7:9696"),
            ("ether://[01:00:5e:00:17:aa]", "ether://[01:00:5e:00:17:aa]"),
            ("ether://[1:0:5E:00:17:AA]", "ether://[01:00:5e:00:17:aa]"),
            ("ether://[01:00:5e]", "ether://[01:00:5e]"),
        ];
        for (typed, sent) in cases {
            let mut wire = Vec::new();
            to_peer(typed, None).unwrap().encode(&mut wire);
            let decoded = ControlParameters::decode(&wire).unwrap();
            assert_eq!(decoded.uri.as_deref(), Some(sent), "{typed}");
            assert_eq!(decoded.local_uri, None);
        }
        let mut wire = Vec::new();
        to_peer("udp4://192.0.2.7", Some("udp4://192.0.2.1")).unwrap().encode(&mut wire);
        let decoded = ControlParameters::decode(&wire).unwrap();
        assert_eq!(decoded.local_uri.as_deref(), Some("udp4://192.0.2.1:6363"));
        assert_eq!(canonical("dev://eth0").unwrap(), "dev://eth0");
    }

    /// NFD's rule for TCP and UDP: the scheme says which IP, there is a port, and the address is
    /// written as the system writes it. What breaks it is answered with 400.
    fn is_canonical_to_nfd(uri: &str) -> bool {
        let Some((scheme, authority)) = uri.split_once("://") else { return false };
        let Some((host, port)) = authority.rsplit_once(':') else { return false };
        let (family, host) = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
            Some(host) => ("6", host),
            None => ("4", host),
        };
        let is_known = ["tcp", "udp"].iter().any(|base| *scheme == format!("{base}{family}"));
        let address = host.parse::<std::net::IpAddr>();
        let is_written_so = address.is_ok_and(|address| {
            address.to_string() == host && address.is_ipv6() == (family == "6")
        });
        is_known && is_written_so && port.parse::<u16>().is_ok()
    }

    #[test]
    fn what_is_sent_satisfies_the_rule_of_nfd() {
        let typed = [
            "tcp://192.0.2.7",
            "tcp4://192.0.2.7:1",
            "udp4://192.0.2.7",
            "udp://localhost",
            "tcp4://localhost",
            "tcp6://[::1]",
            "udp6://[2001:0DB8::0:7]",
            "udp://[2001:db8:0:0:0:0:0:7]:65535",
            "tcp://[::ffff:192.0.2.7]",
        ];
        for typed in typed {
            let sent = canonical(typed).unwrap();
            assert!(is_canonical_to_nfd(&sent), "{typed}: {sent}");
            assert_eq!(canonical(&sent).unwrap(), sent, "and stays what it is");
        }
        for wrong in ["udp4://192.0.2.7", "udp://192.0.2.7:1", "udp6://[2001:DB8::7]:1"] {
            assert!(!is_canonical_to_nfd(wrong), "{wrong}");
        }
    }

    #[test]
    fn what_makes_no_address_is_refused_before_anything_is_sent() {
        for typed in ["udp4://[2001:db8::7]", "tcp6://192.0.2.7", "udp4://", "tcp://h:port"] {
            assert!(canonical(typed).is_err(), "{typed}");
        }
    }
}
