//! Connecting within a time limit, to the first address of a host that answers.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use socket2::{Domain, SockAddr, Socket, Type};

use crate::endpoint::{Endpoint, UNIX_PATH_BYTES_MAX};
use crate::error::{ConnectError, EndpointError};

/// A connected, non-blocking socket.
pub(super) fn connect(endpoint: &Endpoint, timeout: Duration) -> Result<Socket, ConnectError> {
    let failed = |error| ConnectError::new(endpoint.to_string(), timeout, error);
    let socket = match endpoint {
        Endpoint::Unix(path) => connect_unix(path, timeout, &failed)?,
        Endpoint::Tcp { .. } => {
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
    timeout: Duration,
    failed: &dyn Fn(io::Error) -> ConnectError,
) -> Result<Socket, ConnectError> {
    if path.as_os_str().len() > UNIX_PATH_BYTES_MAX {
        let path = path.to_owned();
        return Err(EndpointError::PathTooLong { path, max: UNIX_PATH_BYTES_MAX }.into());
    }
    let connect = || {
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        // Connecting waits only while the listener's queue is full, and counts that as sending.
        socket.set_write_timeout(Some(timeout.max(Duration::from_millis(1))))?;
        socket.connect(&SockAddr::unix(path)?)?;
        Ok(socket)
    };
    connect().map_err(failed)
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
