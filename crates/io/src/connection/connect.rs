//! Connecting within a time limit, to the first address of a host that answers.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use socket2::{Domain, SockAddr, Socket, Type};

use super::Connection;
use crate::datagram::join_multicast;
use crate::endpoint::{Endpoint, UNIX_PATH_BYTES_MAX};
use crate::error::{BindError, ConnectError, EndpointError};
use crate::limits::Limits;
use crate::listener::Listener;
use crate::poller::{Interest, Poller, Token};

/// A connected, non-blocking socket.
pub(super) fn connect(endpoint: &Endpoint, timeout: Duration) -> Result<Socket, ConnectError> {
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
pub(super) fn await_client(
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
