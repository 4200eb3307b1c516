//! FaceUris in canonical form: an address, its family in the scheme, and a port.
//!
//! Other forwarders (NFD) take no other form, and ours shows faces in this one. People write host
//! names and leave out ports.

use byname_io::{Endpoint, EndpointError, peer_uri};
use byname_packet::mgmt::ControlParameters;

/// The canonical form of what a person wrote; asks the name server for a host name. What only a
/// forwarder may know (`ether://…`, `dev://…`) stays as it is.
pub(crate) fn canonical(text: &str) -> Result<String, EndpointError> {
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

    #[test]
    fn what_makes_no_address_is_refused_before_anything_is_sent() {
        for typed in ["udp4://[2001:db8::7]", "tcp6://192.0.2.7", "udp4://", "tcp://h:port"] {
            assert!(canonical(typed).is_err(), "{typed}");
        }
    }
}
