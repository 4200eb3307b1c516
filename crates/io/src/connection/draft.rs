//! Frames that are written where they are sent from, and queued all together or not at all.

use super::Inner;
use super::frame_list::{FRAMES_MAX, FrameList};
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
            Inner::Held(held) => held.draft(length)?,
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

    /// Appends frames of these lengths, as many of the first ones as can be lent together (at
    /// least one, at most [`FRAMES_MAX`]), which `write` fills; it says how many of them, from the
    /// first on, are to be kept. Says how many were lent and how many kept.
    pub fn frames(
        &mut self,
        lengths: &[usize],
        write: impl FnOnce(&mut [&mut [u8]]) -> usize,
    ) -> Result<(usize, usize), QueueFull> {
        let lengths = &lengths[..lengths.len().min(FRAMES_MAX)];
        let mut frames = match &mut self.inner {
            Inner::Stream(stream) => stream.draft_frames(lengths)?,
            Inner::Memif(channel) => channel.draft_frames(lengths)?,
            Inner::Datagram(datagram) => first(lengths, |length| datagram.draft(length))?,
            Inner::WebSocket(socket) => first(lengths, |length| socket.draft(length))?,
            Inner::Held(held) => held.draft_frames(lengths)?,
        };
        let lent = frames.len();
        let kept = write(&mut frames).min(lent);
        drop(frames);
        let bytes = |range: std::ops::Range<usize>| lengths[range].iter().sum::<usize>();
        self.frames += kept;
        self.bytes += bytes(0..kept);
        if kept < lent {
            take_back(self.inner, lent - kept, bytes(kept..lent));
        }
        Ok((lent, kept))
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

/// Only the first frame, for transports that lend one at a time.
fn first<'f>(
    lengths: &[usize],
    draft: impl FnOnce(usize) -> Result<&'f mut [u8], QueueFull>,
) -> Result<FrameList<'f>, QueueFull> {
    let mut frames = FrameList::new();
    if let Some(length) = lengths.first() {
        frames.push(draft(*length)?);
    }
    Ok(frames)
}

/// The last frames, with so many bytes, are not to be sent.
fn take_back(inner: &mut Inner, frames: usize, bytes: usize) {
    match inner {
        Inner::Stream(stream) => stream.take_back(bytes),
        Inner::Datagram(datagram) => datagram.take_back(frames),
        Inner::Memif(channel) => channel.take_back(frames, bytes),
        Inner::WebSocket(socket) => socket.take_back(frames),
        Inner::Held(held) => held.take_back(bytes),
    }
}
