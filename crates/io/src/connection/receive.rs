//! The receive buffer of a stream: bytes in, whole frames out, in place.
//!
//! Invariant: between bursts it holds less than one frame, at any offset; before each read that
//! rest moves to the front, so that there is always room for [`RECV_BYTES`].

use crate::error::{FrameError, IoError};
use crate::limits::RECV_BYTES;
use crate::{FrameFn, FrameSink};

/// Bytes that have come and are not yet handed out: `bytes[start..end]`.
#[derive(Debug)]
pub(super) struct RecvBuffer {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    frame_bytes_max: usize,
}

impl RecvBuffer {
    pub(super) fn new(frame_bytes_max: usize) -> Self {
        // Zeroed memory costs nothing until the kernel writes to it: an idle connection is small.
        let bytes = vec![0; RECV_BYTES + frame_bytes_max];
        RecvBuffer { bytes, start: 0, end: 0, frame_bytes_max }
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
        &mut self.bytes[self.end..]
    }

    /// Says that `count` bytes of `space` have been filled.
    pub(super) fn filled(&mut self, count: usize) {
        self.end = (self.end + count).min(self.bytes.len());
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
