//! UDP: one socket for many peers, batches in and out.
//!
//! The network may lose any datagram, so nothing that concerns a single one is an error: what is
//! too long is counted as dropped, what the network sends back about one sent before (ICMP) is
//! counted as unreachable, and the socket goes on. The same machinery serves a
//! [`crate::Connection`] over UDP.

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::sockopt;

use crate::address::{is_loopback, peer_uri};
use crate::bind;
use crate::connection::RecvStatus;
use crate::endpoint::Endpoint;
use crate::error::{BindError, IoError, QueueFull};
use crate::holder::Transport;
use crate::limits::{DATAGRAM_KERNEL_BYTES, Limits, READS_PER_BURST_MAX};

mod batch;
mod queue;

use batch::ReceiveBatch;
use queue::SendQueue;

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

    /// Appends one datagram for `peer`, gathered from `parts`.
    pub fn queue(&mut self, peer: SocketAddr, parts: &[&[u8]]) -> Result<(), QueueFull> {
        self.io.queue(Some(peer), parts)
    }

    /// Hands queued datagrams to the kernel as long as it takes them. One that it refuses is
    /// dropped and counted.
    pub fn flush(&mut self) -> Result<(), IoError> {
        self.io.flush()
    }

    /// True while queued datagrams wait: watch for a writable event, then `flush`.
    pub fn wants_write(&self) -> bool {
        self.io.queued_bytes() > 0
    }

    /// Datagrams that the kernel refused since the beginning.
    pub fn send_dropped(&self) -> u64 {
        self.io.send_dropped()
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

/// Batched receiving and sending on any UDP socket, connected or not.
#[derive(Debug)]
pub(crate) struct DatagramIo {
    fd: OwnedFd,
    receive: ReceiveBatch,
    queue: SendQueue,
    send_dropped: u64,
    unreachable: usize,
}

impl DatagramIo {
    pub(crate) fn new(fd: OwnedFd, limits: Limits) -> Self {
        grow_kernel_buffers(&fd);
        DatagramIo {
            fd,
            receive: ReceiveBatch::new(limits.frame_bytes_max),
            queue: SendQueue::new(limits.send_bytes_max),
            send_dropped: 0,
            unreachable: 0,
        }
    }

    pub(crate) fn recv_burst(
        &mut self,
        on_frame: &mut dyn FnMut(SocketAddr, &[u8]),
    ) -> Result<RecvStatus, IoError> {
        let unreachable = std::mem::take(&mut self.unreachable);
        let mut status = RecvStatus { unreachable, ..RecvStatus::default() };
        for _ in 0..READS_PER_BURST_MAX {
            match self.receive.receive(self.fd.as_fd()) {
                Ok(count) => {
                    let taken = self.receive.deliver(count, on_frame);
                    status.frames += taken;
                    status.dropped += count - taken;
                    if count < ReceiveBatch::LENGTH {
                        status.drained = true;
                        break;
                    }
                }
                Err(Errno::AGAIN) => {
                    status.drained = true;
                    break;
                }
                Err(Errno::INTR) => {}
                Err(error) if is_about_one_datagram(error) => status.unreachable += 1,
                Err(error) => return Err(IoError::new("recvmmsg", error)),
            }
        }
        Ok(status)
    }

    /// Appends a datagram that is yet to be written.
    pub(crate) fn draft(&mut self, frame_bytes: usize) -> Result<&mut [u8], QueueFull> {
        self.queue.extend(None, frame_bytes)
    }

    /// The last `count` datagrams are not to be sent.
    pub(crate) fn take_back(&mut self, count: usize) {
        self.queue.take_back(count);
    }

    pub(crate) fn queue(
        &mut self,
        peer: Option<SocketAddr>,
        parts: &[&[u8]],
    ) -> Result<(), QueueFull> {
        self.queue.append(peer, parts)
    }

    pub(crate) fn queued_bytes(&self) -> usize {
        self.queue.cost_bytes()
    }

    pub(crate) fn send_dropped(&self) -> u64 {
        self.send_dropped
    }

    pub(crate) fn flush(&mut self) -> Result<(), IoError> {
        let mut retrying = false;
        while !self.queue.is_empty() {
            match batch::send(self.fd.as_fd(), self.queue.next_batch()) {
                Ok(count) => {
                    self.queue.sent(count);
                    self.unreachable += usize::from(retrying);
                    retrying = false;
                }
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(error) if is_fatal(error) => return Err(IoError::new("sendmmsg", error)),
                // It may be the network's answer to an earlier datagram, told on this occasion
                // and thereby forgotten: if a second try succeeds, it was.
                Err(_) if !retrying => retrying = true,
                Err(_) => {
                    self.queue.sent(1);
                    self.send_dropped += 1;
                    retrying = false;
                }
            }
        }
        Ok(())
    }
}

impl AsFd for DatagramIo {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A burst must fit while we are busy. Only root may exceed the system's limit; whoever may not
/// gets as much as there is, so failing is fine.
fn grow_kernel_buffers(fd: &OwnedFd) {
    if sockopt::set_socket_recv_buffer_size_force(fd, DATAGRAM_KERNEL_BYTES).is_err() {
        let _ = sockopt::set_socket_recv_buffer_size(fd, DATAGRAM_KERNEL_BYTES);
    }
    if sockopt::set_socket_send_buffer_size_force(fd, DATAGRAM_KERNEL_BYTES).is_err() {
        let _ = sockopt::set_socket_send_buffer_size(fd, DATAGRAM_KERNEL_BYTES);
    }
}

/// What ICMP messages turn into.
fn is_about_one_datagram(error: Errno) -> bool {
    matches!(
        error,
        Errno::CONNREFUSED
            | Errno::HOSTUNREACH
            | Errno::NETUNREACH
            | Errno::HOSTDOWN
            | Errno::NETDOWN
            | Errno::PROTO
            | Errno::NOPROTOOPT
            | Errno::OPNOTSUPP
            | Errno::ACCESS
            | Errno::MSGSIZE
    )
}

/// What no other datagram would fare better with.
fn is_fatal(error: Errno) -> bool {
    matches!(error, Errno::BADF | Errno::NOTSOCK | Errno::FAULT | Errno::NOMEM | Errno::NOTCONN)
}
