//! UDP: one socket for many peers, batches in and out.
//!
//! The network may lose any datagram, so nothing that concerns a single one is an error: what is
//! too long is counted as dropped, what the network sends back about one sent before (ICMP) is
//! counted as unreachable, and the socket goes on. The same machinery serves a
//! [`crate::Connection`] over UDP.
//!
//! Datagrams of one length to one peer that are queued one behind the other leave as segments of
//! one message (GSO; the last may be shorter), and come in like that (GRO), wherever the kernel
//! and the path to the peer allow it: that is most of what a datagram costs. So keep them equal.

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

use crate::address::{is_loopback, peer_uri};
use crate::bind;
use crate::connection::RecvStatus;
use crate::endpoint::Endpoint;
use crate::error::{BindError, IoError, QueueFull};
use crate::limits::Limits;
use crate::port_owner::Transport;

mod io;
mod multicast;
mod queue;
mod raw;
mod receive;
mod receiver;
mod send;

pub use io::DatagramCounters;
pub(crate) use io::DatagramIo;
pub(crate) use multicast::join as join_multicast;
pub use receiver::DatagramReceiver;

/// An unconnected UDP socket that serves any number of peers.
#[derive(Debug)]
pub struct DatagramSocket {
    io: DatagramIo,
    endpoint: Endpoint,
    address: SocketAddr,
}

impl DatagramSocket {
    /// Binds a `udp://` endpoint with the default limits.
    pub fn bind(endpoint: &Endpoint) -> Result<Self, BindError> {
        Self::bind_with(endpoint, Limits::default())
    }

    /// Binds with other limits.
    pub fn bind_with(endpoint: &Endpoint, limits: Limits) -> Result<Self, BindError> {
        let Endpoint::Udp { .. } = endpoint else {
            return Err(endpoint.wrong_transport("udp://").into());
        };
        let socket = bind::bind(endpoint, Transport::Udp)?;
        let address = bind::local_address(&socket)
            .map_err(|e| bind::bind_error(endpoint, "getsockname", e))?;
        let io = DatagramIo::new(socket.into(), limits);
        Ok(DatagramSocket { io, endpoint: bind::with_port(endpoint, address.port()), address })
    }

    /// Hands what has come, with its sender, to `on_frame`, up to a bounded number of batches.
    /// The sender of an IPv4 datagram is an IPv4 address on dual-stack sockets too.
    pub fn recv_burst(
        &mut self,
        on_frame: &mut dyn FnMut(SocketAddr, &[u8]),
    ) -> Result<RecvStatus, IoError> {
        self.io.recv_burst(on_frame)
    }

    /// Lends the receiving half, so that its datagrams can be answered over this very socket while
    /// they are handed out; `None` while it is lent. Its counts are missing here meanwhile.
    pub fn lend_receiver(&mut self) -> Option<Box<DatagramReceiver>> {
        self.io.lend_receiver()
    }

    /// Takes the receiving half back.
    pub fn return_receiver(&mut self, receiver: Box<DatagramReceiver>) {
        self.io.return_receiver(receiver);
    }

    /// Appends one datagram for `peer`, gathered from `parts`.
    pub fn queue(&mut self, peer: SocketAddr, parts: &[&[u8]]) -> Result<(), QueueFull> {
        self.io.queue(Some(peer), parts)
    }

    /// Hands queued datagrams to the kernel as long as it takes them, up to
    /// [`crate::limits::FLUSH_BYTES`] bytes: the rest waits for the next writable event. One
    /// that it refuses is dropped and counted.
    pub fn flush(&mut self) -> Result<(), IoError> {
        self.io.flush()
    }

    /// True while queued datagrams wait: watch for a writable event, then `flush`.
    pub fn wants_write(&self) -> bool {
        self.io.queued_bytes() > 0
    }

    /// Octets that wait, a little more than its length for each datagram.
    pub fn queued_bytes(&self) -> usize {
        self.io.queued_bytes()
    }

    /// Datagrams that the kernel refused since the beginning.
    pub fn send_dropped(&self) -> u64 {
        self.io.send_dropped()
    }

    /// Counters of this socket, and its buffers. Costs system calls: not for every packet.
    pub fn counters(&self) -> DatagramCounters {
        self.io.counters()
    }

    /// Lets the kernel send and receive many datagrams as one message where it can, or not. On
    /// from the beginning; nobody sees it but the kernel, so this is for measuring.
    pub fn set_segmentation(&mut self, wanted: bool) {
        self.io.set_segmentation(wanted);
    }

    /// The endpoint given to `bind`, with the actual port.
    pub fn local_endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The address bound.
    pub fn local_address(&self) -> SocketAddr {
        self.address
    }

    /// The FaceUri of this socket.
    pub fn local_uri(&self) -> String {
        peer_uri("udp", self.address)
    }

    /// The FaceUri of one of its peers.
    pub fn remote_uri(&self, peer: SocketAddr) -> String {
        peer_uri("udp", peer)
    }

    /// True if packets to and from this peer never leave the machine. The kernel does not let a
    /// packet from outside carry a loopback address.
    pub fn is_local(&self, peer: SocketAddr) -> bool {
        is_loopback(peer)
    }
}

impl AsFd for DatagramSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.io.as_fd()
    }
}
