//! The send buffer of a stream: a bounded run of bytes, into which frames can be written in place.

use super::frame_list::FrameList;
use crate::budget::MemoryBudget;
use crate::error::QueueFull;
use crate::run::ByteRun;

/// Bytes queued and not yet taken by the kernel.
#[derive(Debug)]
pub(super) struct SendBuffer {
    run: ByteRun,
}

impl SendBuffer {
    pub(super) fn new(bytes_max: usize) -> Self {
        SendBuffer { run: ByteRun::new(bytes_max) }
    }

    pub(super) fn len(&self) -> usize {
        self.run.len()
    }

    /// Appends the parts as one frame, or nothing of it.
    pub(super) fn append(&mut self, parts: &[&[u8]]) -> Result<(), QueueFull> {
        self.check(parts.iter().map(|part| part.len()).sum())?;
        self.run.append(parts);
        Ok(())
    }

    /// Appends the rest of a frame whose beginning has been sent: it may not be left out, whatever
    /// the bound says. It is less than one frame, and called only when nothing waits.
    pub(super) fn append_rest(&mut self, parts: &[&[u8]]) {
        self.run.append(parts);
    }

    /// Appends one frame that is yet to be written.
    pub(super) fn extend(&mut self, frame_bytes: usize) -> Result<&mut [u8], QueueFull> {
        self.check(frame_bytes)?;
        Ok(self.run.extend(frame_bytes))
    }

    /// Appends several frames that are yet to be written, one behind the other.
    pub(super) fn extend_frames(&mut self, lengths: &[usize]) -> Result<FrameList<'_>, QueueFull> {
        let mut rest = self.extend(lengths.iter().sum())?;
        let mut frames = FrameList::new();
        for length in lengths {
            let (frame, behind) = rest.split_at_mut(*length);
            frames.push(frame);
            rest = behind;
        }
        Ok(frames)
    }

    /// Takes the last `count` bytes away.
    pub(super) fn take_back(&mut self, count: usize) {
        self.run.take_back(count);
    }

    fn check(&self, frame_bytes: usize) -> Result<(), QueueFull> {
        let (queued_bytes, bytes_max) = (self.run.len(), self.run.bytes_max());
        if frame_bytes > bytes_max.saturating_sub(queued_bytes) {
            return Err(QueueFull { frame_bytes, queued_bytes, bytes_max });
        }
        Ok(())
    }

    pub(super) fn set_budget(&mut self, budget: &MemoryBudget) {
        self.run.set_budget(budget);
    }

    /// See [`ByteRun::trim`].
    pub(super) fn trim(&mut self, now_ns: u64) -> u64 {
        self.run.trim(now_ns)
    }

    /// The octets to send next.
    pub(super) fn as_slice(&self) -> &[u8] {
        self.run.as_slice()
    }

    /// Says that the kernel took the first `count` bytes.
    pub(super) fn sent(&mut self, count: usize) {
        self.run.consume(count);
    }
}
