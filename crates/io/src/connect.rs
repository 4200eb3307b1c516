//! Connecting within a time limit, to the first address of a host that answers.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use socket2::{Domain, SockAddr, Socket, Type};

use crate::connection::{Connection, prepare_tcp};
use crate::datagram::join_multicast;
use crate::endpoint::{Endpoint, MemifRole, UNIX_PATH_BYTES_MAX};
use crate::error::{BindError, ConnectError, EndpointError};
use crate::limits::Limits;
use crate::listener::Listener;
use crate::memif;
use crate::poller::{Interest, Poller, Token};
use crate::websocket;

impl Connection {
    /// Connects with the default limits. Blocks up to `timeout`, and while resolving a host name.
    /// A host's addresses are tried in order within the one `timeout`.
    pub fn connect(endpoint: &Endpoint, timeout: Duration) -> Result<Self, ConnectError> {
        Self::connect_with(endpoint, timeout, Limits::default())
    }

    /// Connects with other limits.
    pub fn connect_with(
        endpoint: &Endpoint,
        timeout: Duration,
        limits: Limits,
    ) -> Result<Self, ConnectError> {
        let failed = |e| ConnectError::new(endpoint.to_string(), timeout, e);
        if let Endpoint::Memif { role: Some(MemifRole::Server), .. } = endpoint {
            return await_client(endpoint, timeout, limits);
        }
        let deadline = Instant::now() + timeout;
        let socket = connected(endpoint, timeout)?;
        match endpoint {
            Endpoint::Unix(path) => {
                let remote = format!("unix://{}", path.display());
                Self::unix(socket.into(), None, Some(remote), limits).map_err(failed)
            }
            Endpoint::Tcp { .. } => Self::tcp(socket, limits).map_err(failed),
            Endpoint::Udp { .. } => Self::udp(socket, limits).map_err(failed),
            Endpoint::Multicast { group, port, device } => {
                Ok(Self::multicast(socket, (*group, *port), device, limits))
            }
            Endpoint::WebSocket { .. } => {
                prepare_tcp(&socket).map_err(failed)?;
                let left = deadline.saturating_duration_since(Instant::now());
                let socket = websocket::connect(socket, &endpoint.to_string(), left, limits)
                    .map_err(failed)?;
                Self::websocket(socket, false).map_err(failed)
            }
            Endpoint::Memif { id, .. } => {
                let channel =
                    memif::connect(socket.into(), *id, timeout, limits).map_err(|error| {
                        ConnectError::of_memif(endpoint.to_string(), timeout, error)
                    })?;
                Ok(Self::memif(channel, endpoint, false))
            }
        }
    }
}

/// A connected, non-blocking socket.
fn connected(endpoint: &Endpoint, timeout: Duration) -> Result<Socket, ConnectError> {
    let failed = |error| ConnectError::new(endpoint.to_string(), timeout, error);
    let socket = match endpoint {
        Endpoint::Unix(path) => connect_unix(path, Type::STREAM, timeout, &failed)?,
        Endpoint::Memif { path, .. } => connect_unix(path, Type::SEQPACKET, timeout, &failed)?,
        Endpoint::Multicast { group, port, device } => {
            join_multicast(*group, *port, device).map_err(failed)?.0
        }
        Endpoint::Tcp { .. } | Endpoint::WebSocket { .. } => {
            connect_first(&endpoint.resolve()?, timeout, Type::STREAM).map_err(failed)?
        }
        Endpoint::Udp { .. } => {
            connect_first(&endpoint.resolve()?, timeout, Type::DGRAM).map_err(failed)?
        }
    };
    socket.set_nonblocking(true).map_err(failed)?;
    Ok(socket)
}

fn connect_unix(
    path: &Path,
    kind: Type,
    timeout: Duration,
    failed: &dyn Fn(io::Error) -> ConnectError,
) -> Result<Socket, ConnectError> {
    if path.as_os_str().len() > UNIX_PATH_BYTES_MAX {
        let path = path.to_owned();
        return Err(EndpointError::PathTooLong { path, max: UNIX_PATH_BYTES_MAX }.into());
    }
    let connect = || {
        let socket = Socket::new(Domain::UNIX, kind, None)?;
        // Connecting waits only while the listener's queue is full, and counts that as sending.
        socket.set_write_timeout(Some(timeout.max(Duration::from_millis(1))))?;
        socket.connect(&SockAddr::unix(path)?)?;
        Ok(socket)
    };
    connect().map_err(failed)
}

/// Waits for the first memif client at an endpoint whose role is the server's.
fn await_client(
    endpoint: &Endpoint,
    timeout: Duration,
    limits: Limits,
) -> Result<Connection, ConnectError> {
    let failed = |error| ConnectError::new(endpoint.to_string(), timeout, error);
    let mut listener = Listener::bind(endpoint).map_err(|error| match error {
        BindError::Endpoint(error) => ConnectError::Endpoint(error),
        error => failed(io::Error::other(error)),
    })?;
    listener.set_limits(limits);
    let deadline = Instant::now() + timeout;
    let mut poller = Poller::new().map_err(|e| failed(io::Error::other(e)))?;
    poller.add(&listener, Token(0), Interest::READ).map_err(|e| failed(io::Error::other(e)))?;
    let mut events = Vec::new();
    loop {
        if let Some(found) = listener.accept().map_err(|e| failed(io::Error::other(e)))? {
            return Ok(found);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(failed(io::ErrorKind::TimedOut.into()));
        }
        poller.wait(&mut events, Some(left)).map_err(|e| failed(io::Error::other(e)))?;
    }
}

fn connect_first(addresses: &[SocketAddr], timeout: Duration, kind: Type) -> io::Result<Socket> {
    let deadline = Instant::now() + timeout;
    let mut last = io::Error::from(io::ErrorKind::TimedOut);
    for address in addresses {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        match connect_one(*address, left, kind) {
            Ok(socket) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn connect_one(address: SocketAddr, timeout: Duration, kind: Type) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), kind, None)?;
    if kind == Type::STREAM {
        socket.connect_timeout(&address.into(), timeout)?;
    } else {
        socket.connect(&address.into())?;
    }
    Ok(socket)
}
