//! Batched receiving and sending on any UDP socket, connected or not.
//!
//! **Bursts are bounded.** One `flush` hands the kernel about [`FLUSH_BYTES`], that is one full
//! message of segments; the rest goes with the next writable event, after the caller's loop has
//! looked at everybody else. The kernel does not push back over UDP, and we fill its segments far
//! faster than a reader of one datagram a call empties its buffer (208 KiB unless it asked for
//! more). Slices leave such a reader time, and what it says meanwhile (its next Interests, a mark
//! of congestion) is heard before the next one leaves. Measured on two cores with a reader that
//! takes 3 us for each datagram of 8300 bytes and asks for 256 of them at once: 7 % have to be
//! repeated with slices of 32 KiB, 14 % with 128 KiB or with none.

use std::net::SocketAddr;
use std::ops::AddAssign;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::sockopt;

use super::queue::SendQueue;
use super::raw;
use super::receive::ReceiveBatch;
use super::receiver::DatagramReceiver;
use super::send::{self, Message, Segmentation};
use crate::connection::RecvStatus;
use crate::error::{IoError, QueueFull};
use crate::limits::{DATAGRAM_KERNEL_BYTES, FLUSH_BYTES, Limits};

/// Counters of a UDP socket since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DatagramCounters {
    /// Datagrams handed to the callback.
    pub received: u64,
    /// Messages from the kernel that were several datagrams at once (GRO).
    pub coalesced_receives: u64,
    /// Datagrams that came, but were too long, not exactly one frame, or from no Internet address.
    pub receive_dropped: u64,
    /// Datagrams that came when the kernel's buffer was full, as the kernel counts them.
    pub receive_overflows: u64,
    /// Datagrams that the kernel took.
    pub sent: u64,
    /// Messages to the kernel that were several datagrams at once (GSO).
    pub segmented_sends: u64,
    /// Times the kernel refused such a message, so that its datagrams left one by one.
    pub segmentation_refused: u64,
    /// Datagrams that the kernel refused.
    pub send_dropped: u64,
    /// Times the network said that a datagram could not be delivered.
    pub unreachable: u64,
    /// Octets the kernel grants for datagrams that wait to be read; it counts its own overhead too.
    pub receive_buffer_bytes: u64,
    /// Octets the kernel grants for datagrams that wait to leave.
    pub send_buffer_bytes: u64,
}

impl AddAssign for DatagramCounters {
    /// Of two sockets together.
    fn add_assign(&mut self, other: Self) {
        self.received += other.received;
        self.coalesced_receives += other.coalesced_receives;
        self.receive_dropped += other.receive_dropped;
        self.receive_overflows += other.receive_overflows;
        self.sent += other.sent;
        self.segmented_sends += other.segmented_sends;
        self.segmentation_refused += other.segmentation_refused;
        self.send_dropped += other.send_dropped;
        self.unreachable += other.unreachable;
        self.receive_buffer_bytes += other.receive_buffer_bytes;
        self.send_buffer_bytes += other.send_buffer_bytes;
    }
}

#[derive(Debug)]
pub(crate) struct DatagramIo {
    fd: Arc<OwnedFd>,
    /// Where datagrams without a peer go, if the socket is not connected.
    group: Option<SocketAddr>,
    limits: Limits,
    /// `None` while lent.
    receiver: Option<Box<DatagramReceiver>>,
    queue: SendQueue,
    segmentation: Segmentation,
    counters: DatagramCounters,
    /// Not yet reported in a status.
    unreachable: usize,
}

impl DatagramIo {
    pub(crate) fn new(fd: OwnedFd, limits: Limits) -> Self {
        grow_kernel_buffers(&fd);
        let coalescing = raw::set_coalescing(fd.as_fd(), true);
        let can_segment = raw::can_segment(fd.as_fd());
        let batch = ReceiveBatch::new(limits.frame_bytes_max, coalescing);
        let fd = Arc::new(fd);
        DatagramIo {
            receiver: Some(Box::new(DatagramReceiver::new(
                Arc::clone(&fd),
                batch,
                limits.burst_frames_max,
            ))),
            queue: SendQueue::new(limits.send_bytes_max),
            segmentation: Segmentation::new(can_segment),
            counters: DatagramCounters::default(),
            unreachable: 0,
            group: None,
            fd,
            limits,
        }
    }

    /// The same on a socket that sends to a multicast group.
    pub(crate) fn to_group(fd: OwnedFd, limits: Limits, group: SocketAddr) -> Self {
        DatagramIo { group: Some(group), ..Self::new(fd, limits) }
    }

    pub(crate) fn is_multi_access(&self) -> bool {
        self.group.is_some()
    }

    /// Segments out and coalesced messages in, where the kernel can; on from the beginning.
    pub(crate) fn set_segmentation(&mut self, wanted: bool) {
        let can_segment = raw::can_segment(self.fd.as_fd());
        self.segmentation = Segmentation::new(wanted && can_segment);
        let coalescing = raw::set_coalescing(self.fd.as_fd(), wanted) && wanted;
        // What was coalesced before still waits in the kernel: the slots stay long.
        if let Some(receiver) = self.receiver.as_mut().filter(|_| coalescing) {
            receiver.batch = ReceiveBatch::new(self.limits.frame_bytes_max, true);
        }
    }

    pub(crate) fn recv_burst(
        &mut self,
        on_frame: &mut dyn FnMut(SocketAddr, &[u8]),
    ) -> Result<RecvStatus, IoError> {
        let reported = std::mem::take(&mut self.unreachable);
        let Some(receiver) = &mut self.receiver else { return Ok(RecvStatus::default()) };
        let status = receiver.recv_burst(on_frame)?;
        receiver.unreachable += reported as u64;
        Ok(RecvStatus { unreachable: status.unreachable + reported, ..status })
    }

    pub(crate) fn lend_receiver(&mut self) -> Option<Box<DatagramReceiver>> {
        self.receiver.take()
    }

    pub(crate) fn return_receiver(&mut self, receiver: Box<DatagramReceiver>) {
        self.receiver = Some(receiver);
    }

    /// So many of the datagrams handed out last were no frames.
    pub(crate) fn on_malformed(&mut self, datagrams: usize) {
        if let Some(receiver) = &mut self.receiver {
            receiver.received -= datagrams as u64;
            receiver.dropped += datagrams as u64;
        }
    }

    /// Appends a datagram that is yet to be written.
    pub(crate) fn draft(&mut self, frame_bytes: usize) -> Result<&mut [u8], QueueFull> {
        self.queue.extend(self.group, frame_bytes)
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
        self.queue.append(peer.or(self.group), parts)
    }

    pub(crate) fn queued_bytes(&self) -> usize {
        self.queue.cost_bytes()
    }

    pub(crate) fn send_dropped(&self) -> u64 {
        self.counters.send_dropped
    }

    pub(crate) fn counters(&self) -> DatagramCounters {
        let granted = |size: Result<usize, Errno>| size.unwrap_or(0) as u64;
        let receiver = self.receiver.as_deref();
        DatagramCounters {
            received: receiver.map_or(0, |it| it.received),
            coalesced_receives: receiver.map_or(0, |it| it.coalesced),
            receive_dropped: receiver.map_or(0, |it| it.dropped),
            unreachable: receiver.map_or(0, |it| it.unreachable),
            receive_overflows: u64::from(raw::receive_overflows(self.fd.as_fd())),
            receive_buffer_bytes: granted(sockopt::socket_recv_buffer_size(self.fd.as_fd())),
            send_buffer_bytes: granted(sockopt::socket_send_buffer_size(self.fd.as_fd())),
            ..self.counters
        }
    }

    /// Hands the kernel one slice of what waits.
    pub(crate) fn flush(&mut self) -> Result<(), IoError> {
        let (mut slice_bytes, mut retrying) = (FLUSH_BYTES, false);
        while !self.queue.is_empty() && slice_bytes > 0 {
            let queued_bytes = self.queue.cost_bytes();
            let messages = self.queue.messages(self.segmentation, slice_bytes);
            match send::send(self.fd.as_fd(), messages) {
                Ok(sent) => {
                    self.queue.sent(sent.datagrams);
                    let taken_bytes = queued_bytes - self.queue.cost_bytes();
                    slice_bytes = slice_bytes.saturating_sub(taken_bytes);
                    self.segmentation.on_sent(sent.datagrams);
                    self.counters.sent += sent.datagrams as u64;
                    self.counters.segmented_sends += sent.segmented as u64;
                    self.unreachable += usize::from(retrying);
                    retrying = false;
                }
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(error) if is_fatal(error) => return Err(IoError::new("sendmmsg", error)),
                // It may be the network's answer to an earlier datagram, reported on this occasion
                // and thereby forgotten: if a second try succeeds, it was.
                Err(_) if !retrying => retrying = true,
                Err(error) => {
                    self.on_refused(error);
                    retrying = false;
                }
            }
        }
        Ok(())
    }

    /// The kernel does not take the first message: as segments, or at all.
    fn on_refused(&mut self, error: Errno) {
        let first = self.queue.messages(self.segmentation, FLUSH_BYTES).next();
        if let Some(message) = first.filter(Message::is_segmented) {
            self.counters.segmentation_refused += 1;
            self.segmentation.on_refused(&message, error);
        } else {
            self.queue.sent(1);
            self.segmentation.on_sent(1);
            self.counters.send_dropped += 1;
        }
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

/// Errors that ICMP messages turn into.
pub(super) fn is_about_one_datagram(error: Errno) -> bool {
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

/// Errors that any other datagram would meet, too.
fn is_fatal(error: Errno) -> bool {
    matches!(error, Errno::BADF | Errno::NOTSOCK | Errno::FAULT | Errno::NOMEM | Errno::NOTCONN)
}
