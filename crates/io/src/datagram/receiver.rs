//! The receiving half of a UDP socket, which can be lent: whoever hands out its datagrams can send
//! over the same socket meanwhile.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::io::Errno;

use super::io::is_about_one_datagram;
use super::receive::ReceiveBatch;
use crate::connection::RecvStatus;
use crate::error::IoError;
use crate::limits::{READS_PER_BURST_MAX, RECV_BURST_BYTES};

/// See the [module](self). Made with its socket; lent by
/// [`DatagramSocket::lend_receiver`](super::DatagramSocket::lend_receiver).
#[derive(Debug)]
pub struct DatagramReceiver {
    fd: Arc<OwnedFd>,
    pub(super) batch: ReceiveBatch,
    frames_max: usize,
    pub(super) received: u64,
    pub(super) coalesced: u64,
    pub(super) dropped: u64,
    pub(super) unreachable: u64,
}

impl DatagramReceiver {
    pub(super) fn new(fd: Arc<OwnedFd>, batch: ReceiveBatch, frames_max: usize) -> Self {
        DatagramReceiver {
            fd,
            batch,
            frames_max,
            received: 0,
            coalesced: 0,
            dropped: 0,
            unreachable: 0,
        }
    }

    /// Hands what has come, with its sender, to `on_frame`, up to a bounded number of batches.
    pub fn recv_burst(
        &mut self,
        on_frame: &mut dyn FnMut(SocketAddr, &[u8]),
    ) -> Result<RecvStatus, IoError> {
        let mut status = RecvStatus::default();
        let mut bytes = 0;
        for _ in 0..READS_PER_BURST_MAX {
            match self.batch.receive(self.fd.as_fd()) {
                Ok(count) => {
                    let met = self.batch.deliver(count, on_frame);
                    status.frames += met.datagrams;
                    status.dropped += met.dropped;
                    self.coalesced += met.coalesced as u64;
                    bytes += met.bytes;
                    if count < self.batch.length() {
                        status.drained = true;
                        break;
                    }
                    if bytes >= RECV_BURST_BYTES || status.frames >= self.frames_max {
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
        self.received += status.frames as u64;
        self.dropped += status.dropped as u64;
        self.unreachable += status.unreachable as u64;
        Ok(status)
    }
}
