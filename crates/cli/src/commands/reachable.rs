//! Addresses of this machine for a link, as other machines reach it.

use byname_io::Endpoint;
use byname_io::interfaces::global_addresses;
use std::net::{IpAddr, ToSocketAddrs, UdpSocket};

/// Most addresses of this machine in one link.
const HOSTS_MAX: usize = 4;

/// Addresses for a link: what is listened on, with `*` replaced by this machine's full name where
/// that leads here, else by its addresses. Unix sockets only when there is nothing else.
pub(crate) fn addresses(listening: &[Endpoint]) -> Vec<String> {
    let mut uris: Vec<String> = Vec::new();
    let hosts = own_hosts();
    for endpoint in listening {
        let (scheme, host, port) = match endpoint {
            Endpoint::Tcp { host, port } => ("tcp", host, port),
            Endpoint::Udp { host, port } => ("udp", host, port),
            Endpoint::WebSocket { host, port } => ("ws", host, port),
            Endpoint::Unix(_) | Endpoint::Memif { .. } | Endpoint::Multicast { .. } => continue,
        };
        if host.is_any() || host.address().is_some_and(|address| address.is_unspecified()) {
            let is_four = host.address().is_some_and(|address| address.is_ipv4());
            let fit = hosts.iter().filter(|host| !is_four || !host.starts_with('['));
            uris.extend(fit.map(|host| format!("{scheme}://{host}:{port}")));
        } else {
            uris.push(endpoint.to_string());
        }
    }
    if uris.is_empty() {
        uris.extend(listening.iter().map(Endpoint::to_string).take(1));
    }
    let mut seen = std::collections::HashSet::new();
    uris.retain(|uri| seen.insert(uri.clone()));
    uris.truncate(byname_profile::link::VIA_MAX);
    uris
}

/// The hosts that stand for this machine in an address.
fn own_hosts() -> Vec<String> {
    let known = global_addresses();
    let name = host_name();
    if name.contains('.') && leads_here(&name, &known) {
        return vec![name];
    }
    // The one that speaks to others comes first.
    let first = own_address();
    let others = known.into_iter().filter(|address| Some(*address) != first);
    let addresses: Vec<IpAddr> = first.into_iter().chain(others).take(HOSTS_MAX).collect();
    if addresses.is_empty() {
        // A network of its own, without a route out: its members may know the name.
        return vec![name];
    }
    addresses.iter().map(shown).collect()
}

/// True if the name has addresses and all of them are this machine's.
fn leads_here(name: &str, known: &[IpAddr]) -> bool {
    let Ok(found) = (name, 0).to_socket_addrs() else { return false };
    let found: Vec<IpAddr> = found.map(|address| address.ip()).collect();
    !found.is_empty() && found.iter().all(|address| known.contains(address))
}

fn shown(address: &IpAddr) -> String {
    match address {
        IpAddr::V4(four) => four.to_string(),
        IpAddr::V6(six) => format!("[{six}]"),
    }
}

/// The address from which this machine would speak to others. Connecting a datagram socket only
/// looks up the route; nothing is sent.
fn own_address() -> Option<IpAddr> {
    // Addresses that are reserved for documentation and never local.
    let candidates = [("0.0.0.0:0", "192.0.2.1:9"), ("[::]:0", "[2001:db8::1]:9")];
    candidates.into_iter().find_map(|(any, outside)| {
        let socket = UdpSocket::bind(any).ok()?;
        socket.connect(outside).ok()?;
        let address = socket.local_addr().ok()?.ip();
        (!address.is_unspecified()).then_some(address)
    })
}

/// The name that this machine has for itself.
pub(crate) fn host_name() -> String {
    let system = rustix::system::uname();
    let host = system.nodename().to_string_lossy().into_owned();
    if host.is_empty() { "localhost".to_owned() } else { host }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_of_this_machine_is_in_the_link_and_each_once() {
        let listening: Vec<Endpoint> =
            ["tcp://*:7000", "udp://*:7000", "tcp://192.0.2.9:7000", "tcp://192.0.2.9:7000"]
                .map(|uri| uri.parse().unwrap_or_else(|_| panic!("{uri}")))
                .to_vec();
        let found = addresses(&listening);
        for scheme in ["tcp", "udp"] {
            for host in own_hosts() {
                assert!(found.contains(&format!("{scheme}://{host}:7000")), "{found:?}");
            }
        }
        assert_eq!(found.iter().filter(|uri| uri.contains("192.0.2.9")).count(), 1, "{found:?}");
        assert!(!found.iter().any(|uri| uri.contains("127.0.0.1")), "{found:?}");
    }

    #[test]
    fn a_name_that_leads_elsewhere_is_not_used() {
        assert!(!leads_here("localhost", &["192.0.2.1".parse().expect("an address")]));
        assert!(leads_here("127.0.0.1", &["127.0.0.1".parse().expect("an address")]));
    }
}
