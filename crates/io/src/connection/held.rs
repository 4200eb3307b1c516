//! A queue in the clothes of a connection: what is sent stays here until it is received from the
//! same end.
//!
//! Whoever fills a connection's send buffer in place can fill this instead, and the frames can then
//! be taken out one by one, to be cut into datagrams or changed.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};

use super::RecvStatus;
use super::frame_list::FrameList;
use super::send::SendBuffer;
use crate::budget::MemoryBudget;
use crate::error::{FrameError, IoError, QueueFull};
use crate::limits::Limits;
use crate::{FrameFn, FrameSink};

#[derive(Debug)]
pub(super) struct Held {
    /// Never ready: there is nobody to wait for.
    fd: OwnedFd,
    buffer: SendBuffer,
}

impl Held {
    pub(super) fn new(limits: Limits) -> Result<Self, IoError> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|e| IoError::new("eventfd", e))?;
        Ok(Held { fd, buffer: SendBuffer::new(limits.send_bytes_max) })
    }

    pub(super) fn set_budget(&mut self, budget: &MemoryBudget) {
        self.buffer.set_budget(budget);
    }

    pub(super) fn trim(&mut self, now_ns: u64) -> u64 {
        self.buffer.trim(now_ns)
    }

    pub(super) fn queue(&mut self, parts: &[&[u8]]) -> Result<(), QueueFull> {
        self.buffer.append(parts)
    }

    pub(super) fn draft(&mut self, frame_bytes: usize) -> Result<&mut [u8], QueueFull> {
        self.buffer.extend(frame_bytes)
    }

    pub(super) fn draft_frames(&mut self, lengths: &[usize]) -> Result<FrameList<'_>, QueueFull> {
        self.buffer.extend_frames(lengths)
    }

    pub(super) fn take_back(&mut self, bytes: usize) {
        self.buffer.take_back(bytes);
    }

    pub(super) fn queued_bytes(&self) -> usize {
        self.buffer.len()
    }

    /// Hands out all that was queued.
    pub(super) fn recv_burst(
        &mut self,
        framer: FrameFn,
        sink: &mut dyn FrameSink,
    ) -> Result<RecvStatus, IoError> {
        let mut status = RecvStatus { drained: true, ..RecvStatus::default() };
        while let Some(length) = self.first_frame(framer)? {
            sink.frame(&self.buffer.as_slice()[..length]);
            self.buffer.sent(length);
            status.frames += 1;
        }
        Ok(status)
    }

    /// Hands out the first frame; false if there is none.
    pub(super) fn take_first(
        &mut self,
        framer: FrameFn,
        on_frame: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, IoError> {
        let Some(length) = self.first_frame(framer)? else { return Ok(false) };
        on_frame(&self.buffer.as_slice()[..length]);
        self.buffer.sent(length);
        Ok(true)
    }

    /// Hands out all that was queued, in one piece.
    pub(super) fn take_all<T>(&mut self, on_frames: impl FnOnce(&[u8]) -> T) -> T {
        let taken = on_frames(self.buffer.as_slice());
        self.buffer.sent(self.buffer.len());
        taken
    }

    fn first_frame(&self, framer: FrameFn) -> Result<Option<usize>, IoError> {
        let waiting = self.buffer.as_slice();
        if waiting.is_empty() {
            return Ok(None);
        }
        match framer(waiting)? {
            Some(length) if (1..=waiting.len()).contains(&length) => Ok(Some(length)),
            _ => Err(FrameError("what was queued is no sequence of frames").into()),
        }
    }
}

impl AsFd for Held {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
