//! A TCP socket as tungstenite sees it: never waiting, bounded both ways.
//!
//! Writing appends to a run of bytes, all of what is given or, when too much waits, nothing; so
//! what the run holds always ends between two WebSocket frames. During the handshake there is no
//! run: a refusal has to leave before the socket is closed.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{SendFlags, send};

use crate::run::ByteRun;

/// Bytes of a request or response, headers and all. Browsers send their cookies along.
const HANDSHAKE_BYTES_MAX: usize = 16 << 10;

/// Bytes handed to tungstenite in one burst, and system calls made for it.
const BURST_BYTES: usize = 256 << 10;
const BURST_READS: usize = 64;

/// Encoded bytes above which nothing more is encoded.
const OUT_BYTES_MAX: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct Wire {
    fd: OwnedFd,
    out: ByteRun,
    is_shaking: bool,
    burst_bytes: usize,
    bytes_left: usize,
    reads_left: usize,
    is_drained: bool,
    has_read: bool,
}

impl Wire {
    /// A wire for a handshake, on a non-blocking socket.
    pub(super) fn new(fd: OwnedFd) -> Self {
        Wire {
            fd,
            out: ByteRun::new(2 * OUT_BYTES_MAX),
            is_shaking: true,
            burst_bytes: 0,
            bytes_left: HANDSHAKE_BYTES_MAX,
            reads_left: usize::MAX,
            is_drained: false,
            has_read: false,
        }
    }

    pub(super) fn end_handshake(&mut self) {
        self.is_shaking = false;
        self.bytes_left = 0;
    }

    /// Allows another bounded amount of reading.
    pub(super) fn begin_burst(&mut self, bytes_max: usize) {
        self.burst_bytes = bytes_max.min(BURST_BYTES);
        self.bytes_left = self.burst_bytes;
        self.reads_left = BURST_READS;
        self.is_drained = false;
        self.has_read = false;
    }

    /// The kernel had no more.
    pub(super) fn is_drained(&self) -> bool {
        self.is_drained
    }

    /// Something came since the burst began.
    pub(super) fn has_read(&self) -> bool {
        self.has_read
    }

    /// Bytes that came since the burst began.
    pub(super) fn read_bytes(&self) -> usize {
        self.burst_bytes.saturating_sub(self.bytes_left)
    }

    pub(super) fn has_room(&self) -> bool {
        self.out.len() < OUT_BYTES_MAX
    }

    pub(super) fn unsent_bytes(&self) -> usize {
        self.out.len()
    }

    /// Appends an unmasked binary message in one piece (RFC 6455, section 5.2).
    pub(super) fn append_binary(&mut self, payload: &[u8]) {
        const FINAL_BINARY: u8 = 0x82;
        match payload.len() {
            length @ 0..=125 => self.out.append(&[&[FINAL_BINARY, length as u8], payload]),
            length @ 126..=0xffff => {
                let [high, low] = (length as u16).to_be_bytes();
                self.out.append(&[&[FINAL_BINARY, 126, high, low], payload]);
            }
            length => {
                let length = (length as u64).to_be_bytes();
                self.out.append(&[&[FINAL_BINARY, 127], &length, payload]);
            }
        }
    }

    /// Hands the run to the kernel; whether all of it was taken.
    pub(super) fn drain(&mut self) -> Result<bool, Errno> {
        while self.out.len() > 0 {
            match transmit(&self.fd, self.out.as_slice()) {
                Ok(count) => self.out.consume(count),
                Err(Errno::AGAIN) => return Ok(false),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

/// Without NOSIGNAL a peer that has closed would end the whole process.
fn transmit(fd: &OwnedFd, bytes: &[u8]) -> Result<usize, Errno> {
    send(fd, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)
}

impl Read for Wire {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.is_shaking && self.bytes_left == 0 {
            return Err(io::Error::other("the WebSocket handshake is too long"));
        }
        if self.bytes_left == 0 || self.reads_left == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let room = buffer.len().min(self.bytes_left);
        match rustix::io::read(&self.fd, &mut buffer[..room]) {
            Ok(count) => {
                self.bytes_left -= count;
                self.reads_left -= 1;
                self.has_read |= count > 0;
                Ok(count)
            }
            Err(error) => {
                self.is_drained |= error == Errno::AGAIN;
                Err(error.into())
            }
        }
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_shaking {
            return Ok(transmit(&self.fd, bytes)?);
        }
        if !self.has_room() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.out.append(&[bytes]);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
