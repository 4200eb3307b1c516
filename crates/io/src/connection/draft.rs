//! Frames that are written where they are sent from, and queued all together or not at all.

use super::Inner;
use crate::error::QueueFull;

/// Frames being written into a connection's send buffer.
///
/// They are queued by [`Draft::commit`]; dropped without it, nothing of them is.
#[derive(Debug)]
pub struct Draft<'a> {
    inner: &'a mut Inner,
    /// Since the beginning of the draft.
    frames: usize,
    bytes: usize,
}

impl<'a> Draft<'a> {
    pub(super) fn new(inner: &'a mut Inner) -> Self {
        Draft { inner, frames: 0, bytes: 0 }
    }

    /// Appends a frame of `length` bytes, which `write` fills; says what `write` says. If that is
    /// false, the frame is left out. What `write` leaves as it is may be bytes of earlier frames.
    pub fn frame(
        &mut self,
        length: usize,
        write: impl FnOnce(&mut [u8]) -> bool,
    ) -> Result<bool, QueueFull> {
        let frame = match &mut self.inner {
            Inner::Stream(stream) => stream.draft(length)?,
            Inner::Datagram(datagram) => datagram.draft(length)?,
            Inner::Memif(channel) => channel.draft(length)?,
            Inner::WebSocket(socket) => socket.draft(length)?,
        };
        self.frames += 1;
        self.bytes += length;
        let is_written = write(frame);
        if !is_written {
            self.frames -= 1;
            self.bytes -= length;
            take_back(self.inner, 1, length);
        }
        Ok(is_written)
    }

    /// Queues the frames.
    pub fn commit(mut self) {
        (self.frames, self.bytes) = (0, 0);
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        take_back(self.inner, self.frames, self.bytes);
    }
}

/// The last frames, with so many bytes, are not to be sent.
fn take_back(inner: &mut Inner, frames: usize, bytes: usize) {
    match inner {
        Inner::Stream(stream) => stream.take_back(bytes),
        Inner::Datagram(datagram) => datagram.take_back(frames),
        Inner::Memif(channel) => channel.take_back(frames, bytes),
        Inner::WebSocket(socket) => socket.take_back(frames),
    }
}
