//! Sockets that accept connections: Unix, TCP, WebSocket and memif.
//!
//! A memif or WebSocket client is handed out when its handshake is done; until then it waits in the
//! pending.
//!
//! A Unix socket's file belongs to the listener: made with mode 0600 from its first moment, gone
//! when the listener is dropped, left alone if somebody else has put another in its place.

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with};
use socket2::{Socket, Type};

use crate::bind;
use crate::connection::Connection;
use crate::endpoint::{Endpoint, MemifRole};
use crate::error::{BindError, IoError};
use crate::limits::Limits;
use crate::memif;
use crate::pending::PendingHandshakes;
use crate::port_owner::Transport;
use crate::websocket::{self, AllowedOrigins};

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
    accepting: Accepting,
}

/// The step from a client to a connection, and what to watch meanwhile.
#[derive(Debug)]
enum Accepting {
    /// It is one at once.
    Streams,
    Memif(PendingHandshakes<memif::Handshake>, memif::Seats),
    WebSocket(PendingHandshakes<websocket::Handshake>, Arc<AllowedOrigins>),
}

impl Listener {
    /// Listens at a `unix://`, `tcp://`, `ws://` or `memif://` endpoint.
    pub fn bind(endpoint: &Endpoint) -> Result<Self, BindError> {
        let limits = Limits::default();
        match endpoint {
            Endpoint::Unix(path) => {
                let (socket, file) = unix::bind(endpoint, path, Type::STREAM)?;
                let endpoint = endpoint.clone();
                Ok(Listener {
                    file: Some(file),
                    socket,
                    endpoint,
                    limits,
                    accepting: Accepting::Streams,
                })
            }
            Endpoint::Tcp { .. } | Endpoint::WebSocket { .. } => {
                let socket = bind::bind(endpoint, Transport::Tcp)?;
                let address = bind::local_address(&socket)
                    .map_err(|e| bind::bind_error(endpoint, "getsockname", e))?;
                let accepting = match endpoint {
                    Endpoint::WebSocket { .. } => PendingHandshakes::new(&socket)
                        .map(|pending| Accepting::WebSocket(pending, Arc::default()))
                        .map_err(|e| bind::bind_error(endpoint, "epoll", e.into()))?,
                    _ => Accepting::Streams,
                };
                let endpoint = bind::with_port(endpoint, address.port());
                Ok(Listener { file: None, socket, endpoint, limits, accepting })
            }
            Endpoint::Memif { path, role, .. } if *role != Some(MemifRole::Client) => {
                let (socket, file) = unix::bind(endpoint, path, Type::SEQPACKET)?;
                let pending = PendingHandshakes::new(&socket)
                    .map_err(|e| bind::bind_error(endpoint, "epoll", e.into()))?;
                let (file, accepting) =
                    (Some(file), Accepting::Memif(pending, memif::Seats::default()));
                Ok(Listener { file, socket, endpoint: endpoint.clone(), limits, accepting })
            }
            Endpoint::Memif { .. } => Err(endpoint.wrong_transport("role=server").into()),
            Endpoint::Udp { .. } | Endpoint::Multicast { .. } => {
                Err(endpoint.wrong_transport("unix://, tcp://, ws:// or memif://").into())
            }
        }
    }

    /// The limits that connections accepted from now on have.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Pages of which origins may connect by WebSocket from now on; only of the same host
    /// otherwise. No effect on other transports.
    pub fn set_allowed_origins(&mut self, origins: AllowedOrigins) {
        if let Accepting::WebSocket(_, allowed) = &mut self.accepting {
            *allowed = Arc::new(origins);
        }
    }

    /// The endpoint given to `bind`, with the actual port.
    pub fn local_endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The address bound, for TCP and WebSocket.
    pub fn local_address(&self) -> Option<SocketAddr> {
        bind::local_address(&self.socket).ok()
    }

    /// The next connection that waits, if one does.
    ///
    /// After [`IoError::Exhausted`] the connection still waits and the poller will say so at
    /// once: stop watching the listener until a descriptor has been closed.
    pub fn accept(&self) -> Result<Option<Connection>, IoError> {
        let limits = self.limits;
        match &self.accepting {
            Accepting::Streams => {
                let stream = self.accept_socket()?;
                stream.map(|it| Connection::accepted(it, &self.endpoint, limits)).transpose()
            }
            Accepting::Memif(pending, seats) => {
                let channel = pending.next(|| {
                    let client = self.accept_socket()?;
                    let begin = |it: Socket| memif::Handshake::begin(it.into(), limits, seats);
                    Ok(client.map(|it| begin(it).ok()))
                })?;
                Ok(channel.map(|channel| Connection::memif(channel, &self.endpoint, true)))
            }
            Accepting::WebSocket(pending, origins) => {
                let socket = pending.next(|| {
                    let client = self.accept_socket()?;
                    Ok(client.map(|it| websocket::Handshake::begin(it, origins, limits)))
                })?;
                // Whoever is gone already has no address.
                Ok(socket.and_then(|socket| Connection::websocket(socket, true).ok()))
            }
        }
    }

    fn accept_socket(&self) -> Result<Option<Socket>, IoError> {
        for _ in 0..ABORTED_MAX {
            match accept_with(&self.socket, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok(stream) => return Ok(Some(stream.into())),
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
        match &self.accepting {
            Accepting::Streams => self.socket.as_fd(),
            Accepting::Memif(pending, _) => pending.as_fd(),
            Accepting::WebSocket(pending, _) => pending.as_fd(),
        }
    }
}
