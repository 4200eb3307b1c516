//! Sockets that accept connections: Unix and TCP.
//!
//! A Unix socket's file belongs to the listener: made with mode 0600 from its first moment, gone
//! when the listener is dropped, left alone if somebody else has put another in its place.

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with};
use socket2::Socket;

use crate::bind;
use crate::connection::Connection;
use crate::endpoint::Endpoint;
use crate::error::{BindError, IoError};
use crate::holder::Transport;
use crate::limits::Limits;

mod unix;

use unix::SocketFile;

/// Connections that were gone before they were taken, skipped in one `accept`.
const ABORTED_MAX: usize = 16;

/// Waits for peers at one endpoint.
#[derive(Debug)]
pub struct Listener {
    // Before the socket: while the socket is open its inode number cannot be used again, so that
    // the file is recognised with certainty.
    file: Option<SocketFile>,
    socket: Socket,
    endpoint: Endpoint,
    limits: Limits,
}

impl Listener {
    /// Listens at a `unix://` or `tcp://` endpoint.
    pub fn bind(endpoint: &Endpoint) -> Result<Self, BindError> {
        let limits = Limits::default();
        match endpoint {
            Endpoint::Unix(path) => {
                let (socket, file) = unix::bind(endpoint, path)?;
                Ok(Listener { file: Some(file), socket, endpoint: endpoint.clone(), limits })
            }
            Endpoint::Tcp { .. } => {
                let socket = bind::bind(endpoint, Transport::Tcp)?;
                let address = bind::local_address(&socket)
                    .map_err(|e| bind::bind_error(endpoint, "getsockname", e))?;
                let endpoint = bind::with_port(endpoint, address.port());
                Ok(Listener { file: None, socket, endpoint, limits })
            }
            Endpoint::Udp { .. } => Err(endpoint.wrong_transport("unix:// or tcp://").into()),
        }
    }

    /// The limits that connections accepted from now on have.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// The endpoint given to `bind`, with the actual port.
    pub fn local_endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The address bound, for TCP.
    pub fn local_address(&self) -> Option<SocketAddr> {
        bind::local_address(&self.socket).ok()
    }

    /// The next connection that waits, if one does.
    ///
    /// After [`IoError::Exhausted`] the connection still waits and the poller will say so at
    /// once: stop watching the listener until a descriptor has been closed.
    pub fn accept(&self) -> Result<Option<Connection>, IoError> {
        for _ in 0..ABORTED_MAX {
            match accept_with(&self.socket, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok(stream) => {
                    return Connection::accepted(stream.into(), &self.endpoint, self.limits)
                        .map(Some);
                }
                Err(Errno::AGAIN) => return Ok(None),
                // Linux passes errors of the new connection on; the listener is fine.
                Err(Errno::INTR | Errno::CONNABORTED | Errno::PROTO | Errno::NOPROTOOPT) => {}
                Err(Errno::NETDOWN | Errno::HOSTDOWN | Errno::NONET | Errno::HOSTUNREACH) => {}
                Err(Errno::NETUNREACH | Errno::OPNOTSUPP | Errno::PERM) => {}
                Err(error) => return Err(IoError::new("accept", error)),
            }
        }
        Ok(None)
    }

    /// True if the Unix socket's file is still the one this listener made (always, for TCP).
    pub fn is_reachable(&self) -> bool {
        self.file.as_ref().is_none_or(SocketFile::is_ours)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
