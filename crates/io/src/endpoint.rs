//! Where to listen or connect, as users write it: `unix:///path`, `tcp://host[:port]`, `udp://…`,
//! `memif:///path[?id=N&role=client]`, `ws://host[:9696]`, `udp://GROUP[:56363]?dev=INTERFACE`.
//!
//! Parsing never asks the network; [`Endpoint::resolve`] and [`Endpoint::resolve_listen`] do.
//! `tcp4`, `tcp6`, `udp4` and `udp6` restrict the family, which is kept in [`Host`]. When
//! listening, `0.0.0.0` is every IPv4 address, `[::]` every IPv6 address, `*` both.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;

use crate::error::EndpointError;

#[cfg(test)]
mod tests;

/// The port NDN forwarders listen on.
pub const DEFAULT_PORT: u16 = 6363;

/// The port for WebSocket.
pub const WEBSOCKET_PORT: u16 = 9696;

/// The port of multicast groups. The groups are 224.0.23.170 and, for IPv6, ff02::1234 with NFD
/// but ff02::114 with NDNd.
pub const MULTICAST_PORT: u16 = 56363;

/// The longest name of a network interface (`IFNAMSIZ` less its terminating zero).
const DEVICE_BYTES_MAX: usize = 15;

/// The longest socket path the kernel takes (`sun_path` less its terminating zero).
pub const UNIX_PATH_BYTES_MAX: usize = 107;

/// The longest host accepted; DNS allows no more.
const HOST_BYTES_MAX: usize = 253;

/// Which addresses of a host count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Family {
    /// IPv4 and IPv6.
    #[default]
    Any,
    /// IPv4 only.
    V4,
    /// IPv6 only.
    V6,
}

/// A host name or literal address (IPv6 without brackets), or `*`, and the family wanted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Host {
    /// The name or address.
    pub name: String,
    /// Which of its addresses count.
    pub family: Family,
}

/// A place to listen or to connect to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// A Unix stream socket.
    Unix(PathBuf),
    /// A TCP port.
    Tcp {
        /// Whose.
        host: Host,
        /// Which; 0 when listening lets the kernel choose.
        port: u16,
    },
    /// A UDP port.
    Udp {
        /// Whose.
        host: Host,
        /// Which; 0 when listening lets the kernel choose.
        port: u16,
    },
    /// WebSocket over TCP.
    WebSocket {
        /// Whose.
        host: Host,
        /// Which; 0 when listening lets the kernel choose.
        port: u16,
    },
    /// A UDP multicast group: connecting is joining.
    Multicast {
        /// The group's address.
        group: IpAddr,
        /// Its port.
        port: u16,
        /// The network interface by name.
        device: String,
    },
    /// Shared memory, arranged over a Unix socket.
    Memif {
        /// The socket's file.
        path: PathBuf,
        /// Which of a server's interfaces a client wants; our server takes any.
        id: u32,
        /// `None`: a client when connecting, a server when listening.
        role: Option<MemifRole>,
    },
}

/// Who makes the memory of a memif connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemifRole {
    /// Makes the memory; connects.
    Client,
    /// Maps the client's memory; listens.
    Server,
}

/// One address to bind, and whether an IPv6 socket takes IPv4 peers too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListenAddress {
    pub(crate) address: SocketAddr,
    pub(crate) dual_stack: bool,
}

impl Host {
    /// A literal address.
    pub fn address(&self) -> Option<IpAddr> {
        self.name.parse().ok()
    }

    /// True for `*`.
    pub fn is_any(&self) -> bool {
        self.name == "*"
    }

    fn resolve(&self, port: u16) -> Result<Vec<SocketAddr>, EndpointError> {
        if self.is_any() {
            return Err(EndpointError::Wildcard);
        }
        let found = (self.name.as_str(), port)
            .to_socket_addrs()
            .map_err(|source| EndpointError::Unresolved { host: self.name.clone(), source })?;
        let addresses: Vec<SocketAddr> = found.filter(|a| self.family.admits(a.ip())).collect();
        if addresses.is_empty() {
            let family = self.family.label();
            return Err(EndpointError::NoAddress { host: self.name.clone(), family });
        }
        Ok(addresses)
    }

    fn resolve_listen(&self, port: u16) -> Result<Vec<ListenAddress>, EndpointError> {
        let v4 = ListenAddress {
            address: SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port),
            dual_stack: false,
        };
        let v6 = |dual_stack| ListenAddress {
            address: SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), port),
            dual_stack,
        };
        match (self.is_any(), self.family) {
            // A kernel without IPv6 refuses the first and gets the second.
            (true, Family::Any) => Ok(vec![v6(true), v4]),
            (true, Family::V4) => Ok(vec![v4]),
            (true, Family::V6) => Ok(vec![v6(false)]),
            (false, _) => Ok(self
                .resolve(port)?
                .into_iter()
                .map(|address| ListenAddress { address, dual_stack: false })
                .collect()),
        }
    }
}

impl Family {
    fn admits(self, address: IpAddr) -> bool {
        match self {
            Family::Any => true,
            Family::V4 => address.is_ipv4(),
            Family::V6 => address.is_ipv6(),
        }
    }

    fn label(self) -> &'static str {
        match self {
            Family::Any => "IP",
            Family::V4 => "IPv4",
            Family::V6 => "IPv6",
        }
    }

    fn suffix(self) -> &'static str {
        match self {
            Family::Any => "",
            Family::V4 => "4",
            Family::V6 => "6",
        }
    }
}

impl Endpoint {
    /// The addresses to connect to, in the order to try them. May ask a name server and block.
    pub fn resolve(&self) -> Result<Vec<SocketAddr>, EndpointError> {
        match self {
            Endpoint::Tcp { host, port }
            | Endpoint::Udp { host, port }
            | Endpoint::WebSocket { host, port } => host.resolve(*port),
            Endpoint::Unix(_) | Endpoint::Memif { .. } | Endpoint::Multicast { .. } => {
                Err(self.wrong_transport("tcp:// or udp://"))
            }
        }
    }

    /// The addresses to bind, in the order to try them.
    pub(crate) fn resolve_listen(&self) -> Result<Vec<ListenAddress>, EndpointError> {
        match self {
            Endpoint::Tcp { host, port }
            | Endpoint::Udp { host, port }
            | Endpoint::WebSocket { host, port } => host.resolve_listen(*port),
            Endpoint::Unix(_) | Endpoint::Memif { .. } | Endpoint::Multicast { .. } => {
                Err(self.wrong_transport("tcp:// or udp://"))
            }
        }
    }

    pub(crate) fn wrong_transport(&self, wanted: &'static str) -> EndpointError {
        EndpointError::WrongTransport { uri: self.to_string(), wanted }
    }
}

impl MemifRole {
    fn label(self) -> &'static str {
        match self {
            MemifRole::Client => "client",
            MemifRole::Server => "server",
        }
    }
}

impl From<&str> for Host {
    fn from(name: &str) -> Self {
        Host { name: name.to_owned(), family: Family::Any }
    }
}

impl From<String> for Host {
    fn from(name: String) -> Self {
        Host { name, family: Family::Any }
    }
}

impl From<IpAddr> for Host {
    fn from(address: IpAddr) -> Self {
        Host { name: address.to_string(), family: Family::Any }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name.contains(':') { write!(f, "[{}]", self.name) } else { f.write_str(&self.name) }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Unix(path) => write!(f, "unix://{}", path.display()),
            Endpoint::Tcp { host, port } => {
                write!(f, "tcp{}://{host}:{port}", host.family.suffix())
            }
            Endpoint::Udp { host, port } => {
                write!(f, "udp{}://{host}:{port}", host.family.suffix())
            }
            Endpoint::WebSocket { host, port } => write!(f, "ws://{host}:{port}"),
            Endpoint::Multicast { group, port, device } => {
                let family = if group.is_ipv4() { 4 } else { 6 };
                write!(f, "udp{family}://{}?dev={device}", SocketAddr::new(*group, *port))
            }
            Endpoint::Memif { path, id, role } => {
                write!(f, "memif://{}", path.display())?;
                let mut separator = '?';
                if *id != 0 {
                    write!(f, "{separator}id={id}")?;
                    separator = '&';
                }
                role.map_or(Ok(()), |role| write!(f, "{separator}role={}", role.label()))
            }
        }
    }
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(uri: &str) -> Result<Self, Self::Err> {
        let (scheme, rest) = uri
            .split_once("://")
            .ok_or_else(|| EndpointError::MissingScheme { uri: uri.to_owned() })?;
        if scheme == "unix" {
            return parse_path(uri, rest).map(Endpoint::Unix);
        }
        if scheme == "memif" {
            return parse_memif(uri, rest);
        }
        let (transport, family) = match scheme.strip_suffix(['4', '6']) {
            Some(transport) if scheme.ends_with('4') => (transport, Family::V4),
            Some(transport) => (transport, Family::V6),
            None => (scheme, Family::Any),
        };
        let default_port = match transport {
            "tcp" | "udp" => DEFAULT_PORT,
            "ws" if family == Family::Any => WEBSOCKET_PORT,
            _ => return Err(EndpointError::UnknownScheme { scheme: scheme.to_owned() }),
        };
        let (rest, query) = match rest.split_once('?') {
            Some((rest, query)) if transport == "udp" => (rest, Some(query)),
            _ => (rest, None),
        };
        let (name, port) = parse_authority(uri, rest)?;
        let host = Host { name, family };
        if host.address().is_some_and(|address| !family.admits(address)) {
            let scheme = scheme.to_owned();
            return Err(EndpointError::FamilyMismatch { host: host.name, scheme });
        }
        if let Some(group) = host.address().filter(IpAddr::is_multicast)
            && transport == "udp"
        {
            return parse_multicast(uri, group, port.unwrap_or(MULTICAST_PORT), query);
        }
        if let Some(query) = query {
            return Err(EndpointError::BadParameter { parameter: query.to_owned() });
        }
        let port = port.unwrap_or(default_port);
        Ok(match transport {
            "tcp" => Endpoint::Tcp { host, port },
            "ws" => Endpoint::WebSocket { host, port },
            _ => Endpoint::Udp { host, port },
        })
    }
}

/// A group is nothing without an interface.
fn parse_multicast(
    uri: &str,
    group: IpAddr,
    port: u16,
    query: Option<&str>,
) -> Result<Endpoint, EndpointError> {
    let Some(query) = query else { return Err(EndpointError::NoDevice { uri: uri.to_owned() }) };
    match query.strip_prefix("dev=") {
        Some(device) if is_device_name(device) => {
            Ok(Endpoint::Multicast { group, port, device: device.to_owned() })
        }
        _ => Err(EndpointError::BadParameter { parameter: query.to_owned() }),
    }
}

fn is_device_name(name: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_graphic() && !matches!(b, b'/' | b'&' | b'?' | b'=');
    (1..=DEVICE_BYTES_MAX).contains(&name.len()) && name.bytes().all(allowed)
}

/// A path and, behind a question mark, `id` and `role` in any order.
fn parse_memif(uri: &str, rest: &str) -> Result<Endpoint, EndpointError> {
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let path = parse_path(uri, path)?;
    let (mut id, mut role) = (None, None);
    for field in query.split('&').filter(|field| !field.is_empty()) {
        let bad = || EndpointError::BadParameter { parameter: field.to_owned() };
        let (key, value) = field.split_once('=').ok_or_else(bad)?;
        let is_new = match (key, value) {
            ("role", "client") => role.replace(MemifRole::Client).is_none(),
            ("role", "server") => role.replace(MemifRole::Server).is_none(),
            ("id", number) => id.replace(parse_number(number).ok_or_else(bad)?).is_none(),
            _ => false,
        };
        if !is_new {
            return Err(bad());
        }
    }
    Ok(Endpoint::Memif { path, id: id.unwrap_or(0), role })
}

fn parse_path(uri: &str, rest: &str) -> Result<PathBuf, EndpointError> {
    if !rest.starts_with('/') || rest.ends_with('/') || rest.contains('\0') {
        return Err(EndpointError::RelativePath { uri: uri.to_owned() });
    }
    if rest.len() > UNIX_PATH_BYTES_MAX {
        return Err(EndpointError::PathTooLong { path: rest.into(), max: UNIX_PATH_BYTES_MAX });
    }
    Ok(rest.into())
}

/// Host and port of `host`, `host:port`, `[v6]` or `[v6]:port`; one trailing slash is a habit
/// from other URIs and harmless.
fn parse_authority(uri: &str, rest: &str) -> Result<(String, Option<u16>), EndpointError> {
    let bad_host = || EndpointError::BadHost { uri: uri.to_owned() };
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let (name, port) = match rest.strip_prefix('[') {
        Some(inner) => {
            let (name, after) = inner.split_once(']').ok_or_else(bad_host)?;
            // A zone (`%eth0`) follows the address of a link-local peer.
            let address = name.split('%').next().unwrap_or(name);
            if address.parse::<Ipv6Addr>().is_err() || name.len() > HOST_BYTES_MAX {
                return Err(bad_host());
            }
            match after.strip_prefix(':') {
                Some(port) => (name, Some(port)),
                None if after.is_empty() => (name, None),
                None => return Err(bad_host()),
            }
        }
        None => {
            let (name, port) = match rest.split_once(':') {
                Some((name, port)) => (name, Some(port)),
                None => (rest, None),
            };
            if !is_host_name(name) || port.is_some_and(|p| p.contains(':')) {
                return Err(bad_host());
            }
            (name, port)
        }
    };
    Ok((name.to_owned(), port.map(parse_port).transpose()?))
}

fn parse_port(port: &str) -> Result<u16, EndpointError> {
    parse_number(port).ok_or_else(|| EndpointError::BadPort { port: port.to_owned() })
}

/// Digits only; `parse` alone would take `+80`.
fn parse_number<T: FromStr>(digits: &str) -> Option<T> {
    let is_number = digits.bytes().all(|b| b.is_ascii_digit());
    digits.parse().ok().filter(|_| is_number)
}

fn is_host_name(name: &str) -> bool {
    let allowed = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_');
    name == "*" || (!name.is_empty() && name.len() <= HOST_BYTES_MAX && name.chars().all(allowed))
}
