//! A byte stream that carries frames: Unix or TCP.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, Shutdown, send, sendmsg, shutdown, sockopt};
use smallvec::SmallVec;
use socket2::{Socket, TcpKeepalive};

use super::RecvStatus;
use super::frame_list::FrameList;
use super::receive::RecvBuffer;
use super::send::SendBuffer;
use crate::budget::MemoryBudget;
use crate::burst_limit::BurstLimit;
use crate::error::{IoError, QueueFull};
use crate::limits::{Limits, READS_PER_BURST_MAX};
use crate::{FrameFn, FrameSink};

/// Octets of a Unix stream that the kernel may hold; its default is a quarter of one of our reads.
const UNIX_KERNEL_BYTES: usize = 1 << 20;

/// A peer that vanished without a word is noticed after a minute or two.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_PROBES: u32 = 3;

/// The same while bytes are on their way, when no probes are sent: the system would try for a
/// quarter of an hour. A peer that is alive, but does not read, has this long, too.
const UNANSWERED_MAX: Duration = Duration::from_secs(120);

/// So little is copied together sooner than the kernel reads a list of places.
const COPIED_BYTES_MAX: usize = 4096;

/// Frames handed to the kernel in one call. Two slices each, and the kernel takes 1024.
const FRAMES_PER_CALL_MAX: usize = 64;

/// The rest of a frame's parts when `count` bytes have been sent.
fn parts_behind(parts: [&[u8]; 2], count: usize) -> [&[u8]; 2] {
    let [head, body] = parts;
    let of_head = count.min(head.len());
    [&head[of_head..], &body[count - of_head..]]
}

/// Small packets leave at once, and a peer that is gone is found out.
pub(crate) fn prepare_tcp(socket: &Socket) -> io::Result<()> {
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_user_timeout(Some(UNANSWERED_MAX))?;
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE_IDLE)
        .with_interval(KEEPALIVE_INTERVAL)
        .with_retries(KEEPALIVE_PROBES);
    socket.set_tcp_keepalive(&keepalive)
}

#[derive(Debug)]
pub(super) struct Stream {
    fd: OwnedFd,
    is_unix: bool,
    receive: RecvBuffer,
    burst: BurstLimit,
    send: SendBuffer,
}

impl Stream {
    pub(super) fn unix(fd: OwnedFd, limits: Limits) -> io::Result<Self> {
        sockopt::set_socket_send_buffer_size(&fd, UNIX_KERNEL_BYTES)?;
        Ok(Self::new(fd, true, limits))
    }

    pub(super) fn tcp(socket: Socket, limits: Limits) -> io::Result<Self> {
        prepare_tcp(&socket)?;
        Ok(Self::new(socket.into(), false, limits))
    }

    fn new(fd: OwnedFd, is_unix: bool, limits: Limits) -> Self {
        Stream {
            fd,
            is_unix,
            receive: RecvBuffer::new(limits.frame_bytes_max),
            burst: BurstLimit::new(limits.burst_frames_max),
            send: SendBuffer::new(limits.send_bytes_max),
        }
    }

    pub(super) fn set_budget(&mut self, budget: &MemoryBudget) {
        self.receive.set_budget(budget);
        self.send.set_budget(budget);
    }

    pub(super) fn trim(&mut self, now_ns: u64) -> u64 {
        self.receive.trim();
        self.send.trim(now_ns)
    }

    /// Lets the kernel of a Unix stream hold fewer octets from now on.
    pub(super) fn limit_kernel_queue(&self, bytes: usize) {
        if self.is_unix {
            // Where it cannot be had, the peer's slowness is noticed later.
            let _ = sockopt::set_socket_send_buffer_size(&self.fd, bytes);
        }
    }

    pub(super) fn is_unix(&self) -> bool {
        self.is_unix
    }

    pub(super) fn recv_burst(
        &mut self,
        framer: FrameFn,
        sink: &mut dyn FrameSink,
    ) -> Result<RecvStatus, IoError> {
        let mut status = RecvStatus::default();
        for _ in 0..READS_PER_BURST_MAX {
            let Some(allowed_bytes) = self.burst.read_bytes(status.frames) else { break };
            let space = self.receive.space();
            let room = space.len().min(allowed_bytes);
            match rustix::io::read(&self.fd, &mut space[..room]) {
                Ok(0) => {
                    status.closed = true;
                    status.drained = true;
                    status.partial_bytes = self.receive.len();
                    break;
                }
                Ok(count) => {
                    self.receive.filled(count);
                    let frames = self.receive.deliver(framer, sink)?;
                    self.burst.on_read(count, frames);
                    status.frames += frames;
                    if count < room {
                        status.drained = true;
                        break;
                    }
                }
                Err(Errno::AGAIN) => {
                    status.drained = true;
                    break;
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(IoError::new("recv", error)),
            }
        }
        Ok(status)
    }

    pub(super) fn queue(&mut self, parts: &[&[u8]]) -> Result<(), QueueFull> {
        self.send.append(parts)
    }

    /// Sends frames from where they lie, after what is queued; see [`super::Connection`].
    pub(super) fn send_frames(&mut self, frames: &[[&[u8]; 2]]) -> Result<usize, IoError> {
        let bytes: usize = frames.iter().map(|[head, body]| head.len() + body.len()).sum();
        if bytes <= COPIED_BYTES_MAX {
            let lost = frames.iter().filter(|parts| self.send.append(&parts[..]).is_err()).count();
            self.flush()?;
            return Ok(lost);
        }
        let mut rest = frames;
        while self.send.len() == 0 && !rest.is_empty() {
            let chunk = &rest[..rest.len().min(FRAMES_PER_CALL_MAX)];
            let mut sent = self.send_vectored(chunk)?;
            let mut whole = 0;
            for parts in chunk {
                let frame_bytes = parts[0].len() + parts[1].len();
                if sent < frame_bytes {
                    break;
                }
                sent -= frame_bytes;
                whole += 1;
            }
            rest = &rest[whole..];
            if whole < chunk.len() {
                // The kernel is full; of a frame begun, the rest has to follow.
                if sent > 0 {
                    let from_head = parts_behind(rest[0], sent);
                    self.send.append_rest(&from_head);
                    rest = &rest[1..];
                }
                break;
            }
        }
        Ok(rest.iter().filter(|parts| self.send.append(&parts[..]).is_err()).count())
    }

    /// One system call; how many bytes the kernel took.
    fn send_vectored(&self, frames: &[[&[u8]; 2]]) -> Result<usize, IoError> {
        let slices: SmallVec<[IoSlice<'_>; 2 * FRAMES_PER_CALL_MAX]> =
            frames.iter().flatten().map(|part| IoSlice::new(part)).collect();
        // Without NOSIGNAL a peer that has closed would end the whole process.
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        loop {
            let mut no_control = SendAncillaryBuffer::default();
            match sendmsg(&self.fd, &slices, &mut no_control, flags) {
                Ok(count) => return Ok(count),
                Err(Errno::AGAIN) => return Ok(0),
                Err(Errno::INTR) => {}
                Err(error) => return Err(IoError::new("sendmsg", error)),
            }
        }
    }

    /// Sends whole frames, one behind the other, from where they lie, after what is queued. What
    /// the kernel does not take now is copied, whatever the bound says.
    pub(super) fn send_run(&mut self, frames: &[u8]) -> Result<(), IoError> {
        self.flush()?;
        let mut rest = frames;
        while self.send.len() == 0 && !rest.is_empty() {
            // Without NOSIGNAL a peer that has closed would end the whole process.
            match send(&self.fd, rest, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(count) => rest = &rest[count..],
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(IoError::new("send", error)),
            }
        }
        self.send.append_rest(&[rest]);
        Ok(())
    }

    pub(super) fn draft(&mut self, frame_bytes: usize) -> Result<&mut [u8], QueueFull> {
        self.send.extend(frame_bytes)
    }

    /// Several frames, one behind the other.
    pub(super) fn draft_frames(&mut self, lengths: &[usize]) -> Result<FrameList<'_>, QueueFull> {
        self.send.extend_frames(lengths)
    }

    pub(super) fn take_back(&mut self, count: usize) {
        self.send.take_back(count);
    }

    pub(super) fn queued_bytes(&self) -> usize {
        self.send.len()
    }

    pub(super) fn flush(&mut self) -> Result<(), IoError> {
        while self.send.len() > 0 {
            // Without NOSIGNAL a peer that has closed would end the whole process.
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            match send(&self.fd, self.send.as_slice(), flags) {
                Ok(count) => self.send.sent(count),
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(IoError::new("send", error)),
            }
        }
        Ok(())
    }

    pub(super) fn shutdown_write(&self) -> Result<(), IoError> {
        shutdown(&self.fd, Shutdown::Write).map_err(|e| IoError::new("shutdown", e))
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
