//! The send buffer of a stream: a bounded ring of bytes, so that draining it moves nothing.

use std::collections::VecDeque;
use std::io::IoSlice;

use crate::error::QueueFull;

/// Bytes queued and not yet taken by the kernel.
#[derive(Debug)]
pub(super) struct SendBuffer {
    bytes: VecDeque<u8>,
    bytes_max: usize,
}

impl SendBuffer {
    pub(super) fn new(bytes_max: usize) -> Self {
        SendBuffer { bytes: VecDeque::new(), bytes_max }
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Appends the parts as one frame, or nothing of it.
    pub(super) fn append(&mut self, parts: &[&[u8]]) -> Result<(), QueueFull> {
        let frame_bytes = parts.iter().map(|part| part.len()).sum::<usize>();
        if frame_bytes > self.bytes_max - self.bytes.len() {
            let (queued_bytes, bytes_max) = (self.bytes.len(), self.bytes_max);
            return Err(QueueFull { frame_bytes, queued_bytes, bytes_max });
        }
        self.bytes.reserve(frame_bytes);
        for part in parts {
            self.bytes.extend(*part);
        }
        Ok(())
    }

    /// What to send next, in order.
    pub(super) fn slices(&self) -> [IoSlice<'_>; 2] {
        let (first, second) = self.bytes.as_slices();
        [IoSlice::new(first), IoSlice::new(second)]
    }

    /// Says that the kernel took the first `count` bytes.
    pub(super) fn sent(&mut self, count: usize) {
        self.bytes.drain(..count.min(self.bytes.len()));
    }
}
