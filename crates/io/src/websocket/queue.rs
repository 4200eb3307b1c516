//! Frames that wait to become messages: one run of bytes, and how long each is.

use std::collections::VecDeque;

use crate::budget::MemoryBudget;
use crate::error::QueueFull;
use crate::run::ByteRun;

/// Cost of a frame beyond its bytes, so that empty ones are bounded too.
const ENTRY_BYTES: usize = size_of::<usize>();

#[derive(Debug)]
pub(super) struct FrameQueue {
    run: ByteRun,
    lengths: VecDeque<usize>,
}

impl FrameQueue {
    pub(super) fn new(bytes_max: usize) -> Self {
        FrameQueue { run: ByteRun::new(bytes_max), lengths: VecDeque::new() }
    }

    /// Bytes that wait, with a little for each frame.
    pub(super) fn len(&self) -> usize {
        self.run.len() + self.lengths.len() * ENTRY_BYTES
    }

    pub(super) fn set_budget(&mut self, budget: &MemoryBudget) {
        self.run.set_budget(budget);
    }

    pub(super) fn trim(&mut self, now_ns: u64) -> u64 {
        self.run.trim(now_ns)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// Appends the parts as one frame, or nothing of it.
    pub(super) fn append(&mut self, parts: &[&[u8]]) -> Result<(), QueueFull> {
        self.admit(parts.iter().map(|part| part.len()).sum())?;
        self.run.append(parts);
        Ok(())
    }

    /// Appends one frame that is yet to be written.
    pub(super) fn extend(&mut self, frame_bytes: usize) -> Result<&mut [u8], QueueFull> {
        self.admit(frame_bytes)?;
        Ok(self.run.extend(frame_bytes))
    }

    fn admit(&mut self, frame_bytes: usize) -> Result<(), QueueFull> {
        let (queued_bytes, bytes_max) = (self.len(), self.run.bytes_max());
        if frame_bytes + ENTRY_BYTES > bytes_max.saturating_sub(queued_bytes) {
            return Err(QueueFull { frame_bytes, queued_bytes, bytes_max });
        }
        self.lengths.push_back(frame_bytes);
        Ok(())
    }

    pub(super) fn first(&self) -> Option<&[u8]> {
        self.lengths.front().map(|length| &self.run.as_slice()[..*length])
    }

    pub(super) fn sent_first(&mut self) {
        if let Some(length) = self.lengths.pop_front() {
            self.run.consume(length);
        }
    }

    /// Forgets the last `count` frames.
    pub(super) fn take_back(&mut self, count: usize) {
        for _ in 0..count {
            let Some(length) = self.lengths.pop_back() else { return };
            self.run.take_back(length);
        }
    }
}
