//! The receive buffer of a stream: bytes in, whole frames out, in place.
//!
//! Invariant: between bursts it holds less than one frame, at any offset; before each read that
//! rest moves to the front, so that there is always room for [`RECV_BYTES_MIN`]. A peer that fills
//! it gets room for [`RECV_BYTES`], unless memory is short.

use crate::budget::{Charge, MemoryBudget};
use crate::error::{FrameError, IoError};
use crate::limits::{RECV_BYTES, RECV_BYTES_MIN};
use crate::{FrameFn, FrameSink};

/// Bytes that have come and are not yet handed out: `bytes[start..end]`.
#[derive(Debug)]
pub(super) struct RecvBuffer {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    frame_bytes_max: usize,
    charge: Charge,
    /// True if the last read left no room.
    is_filled: bool,
    /// True if something came since the last trim.
    is_used: bool,
}

impl RecvBuffer {
    pub(super) fn new(frame_bytes_max: usize) -> Self {
        RecvBuffer {
            bytes: Vec::new(),
            start: 0,
            end: 0,
            frame_bytes_max,
            charge: Charge::default(),
            is_filled: false,
            is_used: false,
        }
    }

    pub(super) fn set_budget(&mut self, budget: &MemoryBudget) {
        self.charge.move_to(budget);
    }

    /// Frees the buffer if it was not used since the last call, or if memory is short.
    pub(super) fn trim(&mut self) {
        let was_used = std::mem::replace(&mut self.is_used, false);
        if self.start == self.end && (!was_used || self.charge.is_short()) {
            self.bytes = Vec::new();
            (self.start, self.end, self.is_filled) = (0, 0, false);
            self.charge.set(0);
        }
    }

    fn make_room(&mut self) {
        let is_large = self.is_filled && !self.charge.is_short();
        let read_bytes = if is_large { RECV_BYTES } else { RECV_BYTES_MIN };
        let wanted = read_bytes + self.frame_bytes_max;
        if wanted > self.bytes.len() {
            self.bytes.resize(wanted, 0);
            self.charge.set(self.bytes.len());
        }
    }

    /// Bytes of an unfinished frame.
    pub(super) fn len(&self) -> usize {
        self.end - self.start
    }

    /// Where to read to; never empty.
    pub(super) fn space(&mut self) -> &mut [u8] {
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        self.make_room();
        &mut self.bytes[self.end..]
    }

    /// Says that `count` bytes of `space` have been filled.
    pub(super) fn filled(&mut self, count: usize) {
        self.end = (self.end + count).min(self.bytes.len());
        self.is_filled = self.end == self.bytes.len();
        self.is_used = true;
    }

    /// Hands out every whole frame and returns how many there were.
    pub(super) fn deliver(
        &mut self,
        framer: FrameFn,
        sink: &mut dyn FrameSink,
    ) -> Result<usize, IoError> {
        let (start, end) = (self.start, self.end);
        sink.begin(&self.bytes[start..end]);
        let result = self.deliver_frames(framer, sink);
        sink.end(&self.bytes[start..end]);
        result
    }

    fn deliver_frames(
        &mut self,
        framer: FrameFn,
        sink: &mut dyn FrameSink,
    ) -> Result<usize, IoError> {
        let max = self.frame_bytes_max;
        let mut frames = 0;
        while self.start < self.end {
            let pending = &self.bytes[self.start..self.end];
            match framer(pending)? {
                Some(0) => return Err(FrameError("a frame of no bytes").into()),
                Some(length) if length > max => {
                    return Err(IoError::FrameTooLarge { length, max });
                }
                Some(length) if length <= pending.len() => {
                    self.start += length;
                    frames += 1;
                    sink.frame(&pending[..length]);
                }
                _ if pending.len() >= max => {
                    return Err(IoError::FrameTooLarge { length: pending.len() + 1, max });
                }
                _ => break,
            }
        }
        Ok(frames)
    }
}
