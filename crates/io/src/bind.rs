//! Binding an Internet socket, the same for TCP and UDP: which address, and whose it is if taken.

use std::io;
use std::net::SocketAddr;

use socket2::{Domain, Socket, Type};

use crate::address::canonical;
use crate::endpoint::{Endpoint, ListenAddress};
use crate::error::BindError;
use crate::port_owner::{self, Transport};

/// Connections that wait for `accept`.
const BACKLOG: i32 = 1024;

/// A non-blocking socket on the first address of `endpoint` that this machine has.
pub(crate) fn bind(endpoint: &Endpoint, transport: Transport) -> Result<Socket, BindError> {
    let mut missing = None;
    for listen in endpoint.resolve_listen()? {
        match bind_one(listen, transport) {
            Ok(socket) => return Ok(socket),
            Err((operation, source)) => match source.raw_os_error() {
                // A family the kernel has not, or an address that no interface has.
                Some(libc::EAFNOSUPPORT | libc::EADDRNOTAVAIL) => {
                    missing = Some((operation, source));
                }
                Some(libc::EADDRINUSE) => {
                    let owner = port_owner::find(transport, listen.address);
                    return Err(BindError::InUse { uri: endpoint.to_string(), owner });
                }
                _ => return Err(bind_error(endpoint, operation, source)),
            },
        }
    }
    let (operation, source) = missing.expect("resolving yields at least one address");
    Err(bind_error(endpoint, operation, source))
}

/// Sorts what the kernel said, except for an address in use, where the owner is to be found.
pub(crate) fn bind_error(
    endpoint: &Endpoint,
    operation: &'static str,
    source: io::Error,
) -> BindError {
    let uri = endpoint.to_string();
    match source.kind() {
        io::ErrorKind::PermissionDenied => BindError::Denied { uri, source },
        _ => BindError::Failed { uri, operation, source },
    }
}

/// The address a socket is bound to; IPv4 in a dual-stack socket stays `[::]`.
pub(crate) fn local_address(socket: &Socket) -> io::Result<SocketAddr> {
    let address = socket.local_addr()?;
    address.as_socket().map(canonical).ok_or_else(|| io::Error::from(io::ErrorKind::Unsupported))
}

/// The endpoint as asked for, with the port the kernel chose.
pub(crate) fn with_port(endpoint: &Endpoint, actual: u16) -> Endpoint {
    let mut endpoint = endpoint.clone();
    match &mut endpoint {
        Endpoint::Tcp { port, .. }
        | Endpoint::Udp { port, .. }
        | Endpoint::WebSocket { port, .. } => *port = actual,
        Endpoint::Unix(_) | Endpoint::Memif { .. } | Endpoint::Multicast { .. } => {}
    }
    endpoint
}

fn bind_one(
    listen: ListenAddress,
    transport: Transport,
) -> Result<Socket, (&'static str, io::Error)> {
    let kind = match transport {
        Transport::Tcp => Type::STREAM,
        Transport::Udp => Type::DGRAM,
    };
    let socket = Socket::new(Domain::for_address(listen.address), kind.nonblocking(), None)
        .map_err(|e| ("socket", e))?;
    if listen.address.is_ipv6() {
        socket.set_only_v6(!listen.dual_stack).map_err(|e| ("setsockopt(V6ONLY)", e))?;
    }
    if transport == Transport::Tcp {
        // Only for connections that linger after a restart. On UDP it would let two processes
        // share one port without knowing.
        socket.set_reuse_address(true).map_err(|e| ("setsockopt(REUSEADDR)", e))?;
    }
    socket.bind(&listen.address.into()).map_err(|e| ("bind", e))?;
    if transport == Transport::Tcp {
        socket.listen(BACKLOG).map_err(|e| ("listen", e))?;
    }
    Ok(socket)
}
