//! One established memif connection: bursts in, frames out, asleep in between.
//!
//! **Sleeping.** The receiver of a ring says in its flags whether it looks by itself. It goes to
//! sleep in this order: say so, take note of old wake-ups, look once more. A peer that publishes
//! after that look finds us asleep and wakes us; what it published before, the look finds.
//!
//! **A full ring.** Frames that find no room wait in a bounded queue. Memif tells nobody when room
//! becomes free, so they are tried again whenever the connection is used or wakes, and by a timer
//! that runs only as long as there are any. All this happens within `recv_burst` too: the one
//! descriptor of a connection only ever becomes readable.
//!
//! Invariants: the ring holds frames in order, the overflow only ones that come after them; nothing
//! is published while a draft is open, for only `queue` and `flush` publish.
#![allow(unsafe_code)]

use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use smallvec::SmallVec;

use super::consumer::Consumer;
use super::control;
use super::error::MemifError;
use super::kick::Kick;
use super::overflow::Overflow;
use super::producer::{Place, Producer};
use super::seats::Seat;
use super::wake::Wake;
use super::wire::Message;
use crate::connection::{FRAMES_MAX, FrameList, RecvStatus};
use crate::error::{IoError, QueueFull};
use crate::limits::Limits;
use crate::{FrameFn, FrameSink};

/// Slots handed out in one burst; the others then have their turn, and the peer, what follows from
/// these, before there is nothing left for it to do.
const SLOTS_PER_BURST_MAX: usize = 64;

/// Frames that are shown to the peer without waiting for `flush`, so that it can begin.
const PUBLISH_FRAMES: u16 = 32;

/// Control messages read at one time; after the handshake there is at most one, a farewell.
const MESSAGES_MAX: usize = 4;

/// Delay before the next check for room in the ring; doubled while there is none.
const RETRY_MIN: Duration = Duration::from_micros(50);
const RETRY_MAX: Duration = Duration::from_millis(20);

/// Both rings of a connection, and what they need to be used.
#[derive(Debug)]
pub(super) struct Ends {
    pub(super) consumer: Consumer,
    pub(super) producer: Producer,
    pub(super) kick: Kick,
    pub(super) wake: Wake,
    /// The peer is trusted with the memory that we look at and write to.
    pub(super) is_in_place: bool,
    /// The longest frame that goes through, as far as known.
    pub(super) frame_bytes_max: usize,
}

/// A memif connection after its handshake.
#[derive(Debug)]
pub(crate) struct Channel {
    control: OwnedFd,
    ends: Ends,
    overflow: Overflow,
    /// Bytes in the ring that are not yet published.
    unpublished_bytes: usize,
    retry: Duration,
    send_dropped: u64,
    /// The peer has said goodbye, or is gone.
    is_closed: bool,
    /// Found where no error can be returned; returned by the next call that can.
    fault: Option<MemifError>,
    /// The peer broke the rules and was told so; its memory is not looked at any more.
    is_ended: bool,
    /// Of a client of a listener of ours.
    seat: Option<Seat>,
}

impl Channel {
    pub(super) fn new(control: OwnedFd, ends: Ends, limits: Limits) -> Self {
        let mut channel = Channel {
            control,
            ends,
            overflow: Overflow::new(limits.send_bytes_max),
            unpublished_bytes: 0,
            retry: RETRY_MIN,
            send_dropped: 0,
            is_closed: false,
            fault: None,
            is_ended: false,
            seat: None,
        };
        channel.fault = channel.begin_asleep().err();
        channel
    }

    /// Begins with the receiver asleep, whatever the client that made the ring has written there:
    /// gomemif masks interrupts, and would not wake us until we say otherwise. What was sent before
    /// that woke nobody, so it makes the descriptor readable.
    fn begin_asleep(&mut self) -> Result<(), MemifError> {
        self.ends.consumer.set_awake(false);
        let found = self.ends.consumer.has_more();
        self.ends.wake.set_rest(!matches!(found, Ok(false)))?;
        found.map(|_| ())
    }

    /// Keeps the place at a listener for as long as the connection lives.
    pub(super) fn seated(mut self, seat: Seat) -> Self {
        self.seat = Some(seat);
        self
    }

    pub(crate) fn recv_burst(
        &mut self,
        framer: FrameFn,
        sink: &mut dyn FrameSink,
    ) -> Result<RecvStatus, IoError> {
        self.check_fault()?;
        self.receive(framer, sink).map_err(|error| self.end(error))
    }

    fn receive(
        &mut self,
        framer: FrameFn,
        sink: &mut dyn FrameSink,
    ) -> Result<RecvStatus, MemifError> {
        let mut status = RecvStatus::default();
        self.ends.consumer.set_awake(true);
        let taken = self.ends.consumer.take(SLOTS_PER_BURST_MAX, framer, sink, &mut status)?;
        if taken < SLOTS_PER_BURST_MAX {
            status.drained = self.go_to_sleep()?;
        }
        // The wake-up for the rest may have been taken note of, or never have been sent.
        self.ends.wake.set_rest(!status.drained)?;
        status.closed = status.drained && self.is_closed;
        self.send_waiting()?;
        Ok(status)
    }

    /// The ring was empty: true if it still is and the next frame will wake us.
    fn go_to_sleep(&mut self) -> Result<bool, MemifError> {
        self.ends.consumer.set_awake(false);
        let seen = self.ends.wake.look()?;
        if seen.control {
            self.read_control()?;
        }
        if seen.timer {
            self.retry = (self.retry * 2).min(RETRY_MAX);
        }
        Ok(!self.ends.consumer.has_more()?)
    }

    /// Ends the connection with a peer that broke the rules, and says why.
    fn end(&mut self, error: MemifError) -> IoError {
        if !self.is_closed {
            let _ = control::send(&self.control, &farewell(error.to_string()), None);
        }
        (self.is_closed, self.is_ended) = (true, true);
        error.into()
    }

    fn read_control(&mut self) -> Result<(), MemifError> {
        for _ in 0..MESSAGES_MAX {
            match control::receive(&self.control) {
                Ok(None) => return Ok(()),
                Ok(Some(received)) => match received.message {
                    Message::Disconnect { .. } => self.is_closed = true,
                    other => {
                        return Err(MemifError::UnexpectedMessage { message: other.label() });
                    }
                },
                Err(MemifError::Gone) => {
                    self.is_closed = true;
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Appends one frame. One that no buffer of the peer can hold is dropped and counted.
    pub(crate) fn queue(&mut self, parts: &[&[u8]]) -> Result<(), QueueFull> {
        if self.overflow.is_empty() {
            match self.ends.producer.reserve(parts.iter().map(|part| part.len()).sum()) {
                Ok(Place::Buffer(slot)) => {
                    slot.fill(parts);
                    self.ends.producer.take(&slot);
                    self.unpublished_bytes += slot.bytes();
                    if self.ends.producer.unpublished() >= PUBLISH_FRAMES {
                        self.publish();
                    }
                    return Ok(());
                }
                Ok(Place::TooLong) => {
                    self.send_dropped += 1;
                    return Ok(());
                }
                // What waits in the ring should not wait for the rest.
                Ok(Place::Full) => self.publish(),
                Err(error) => {
                    self.fault = Some(error);
                    return Ok(());
                }
            }
        }
        self.overflow.append(parts)
    }

    /// Appends a frame that is yet to be written.
    pub(crate) fn draft(&mut self, frame_bytes: usize) -> Result<&mut [u8], QueueFull> {
        if self.ends.is_in_place && self.overflow.is_empty() {
            match self.ends.producer.reserve(frame_bytes) {
                Ok(Place::Buffer(slot)) => {
                    self.ends.producer.take(&slot);
                    self.unpublished_bytes += frame_bytes;
                    // SAFETY: `is_in_place` says that the peer is trusted; the slice borrows
                    // `self`, which publishing and every other slot need too.
                    return Ok(unsafe { slot.in_place() });
                }
                // Dropped and counted when its turn comes.
                Ok(Place::TooLong | Place::Full) => {}
                Err(error) => self.fault = Some(error),
            }
        }
        self.overflow.extend(frame_bytes)
    }

    /// Several frames that are yet to be written: as many as there is room for in the ring, or one.
    pub(crate) fn draft_frames(&mut self, lengths: &[usize]) -> Result<FrameList<'_>, QueueFull> {
        let mut frames = FrameList::new();
        if self.ends.is_in_place && self.overflow.is_empty() {
            let mut ranges: SmallVec<[Range<usize>; FRAMES_MAX]> = SmallVec::new();
            for length in lengths.iter().take(FRAMES_MAX) {
                let slot = match self.ends.producer.reserve(*length) {
                    Ok(Place::Buffer(slot)) => slot,
                    Ok(Place::Full | Place::TooLong) => break,
                    Err(error) => {
                        self.fault = Some(error);
                        break;
                    }
                };
                let range = slot.range();
                // A peer may offer one buffer twice.
                if ranges.iter().any(|it| it.start < range.end && range.start < it.end) {
                    break;
                }
                ranges.push(range);
                self.ends.producer.take(&slot);
                self.unpublished_bytes += length;
                // SAFETY: as in `draft`; the slices are of different memory, which was seen.
                frames.push(unsafe { slot.in_place() });
            }
        }
        if frames.is_empty()
            && let Some(length) = lengths.first()
        {
            frames.push(self.draft(*length)?);
        }
        Ok(frames)
    }

    /// The last `count` frames, with so many bytes, are not to be sent.
    pub(crate) fn take_back(&mut self, count: usize, bytes: usize) {
        let before = self.overflow.bytes();
        let waiting = self.overflow.take_back(count);
        let in_ring_bytes = bytes - (before - self.overflow.bytes()).min(bytes);
        if count > waiting {
            let in_ring = u16::try_from(count - waiting).expect("a ring has at most 2^14 slots");
            self.ends.producer.take_back(in_ring);
            self.unpublished_bytes -= in_ring_bytes;
        }
    }

    pub(crate) fn flush(&mut self) -> Result<(), IoError> {
        self.check_fault()?;
        if self.is_closed {
            return Err(MemifError::Gone.into());
        }
        self.send_waiting().map_err(|error| self.end(error))
    }

    /// Moves what waits into the ring as far as there is room, and shows it to the peer.
    fn send_waiting(&mut self) -> Result<(), MemifError> {
        let mut moved = false;
        while let Some(frame) = self.overflow.first() {
            match self.ends.producer.reserve(frame.len())? {
                Place::Buffer(slot) => {
                    slot.fill(&[frame]);
                    self.ends.producer.take(&slot);
                }
                Place::TooLong => self.send_dropped += 1,
                Place::Full => break,
            }
            self.overflow.remove_first();
            moved = true;
        }
        self.publish();
        if self.ends.producer.must_kick() {
            self.ends.kick.kick();
        }
        if self.overflow.is_empty() || moved {
            self.retry = RETRY_MIN;
        }
        if !self.overflow.is_empty() && !self.is_closed {
            self.ends.wake.call_back(self.retry)?;
        }
        Ok(())
    }

    fn publish(&mut self) {
        self.ends.producer.publish();
        self.unpublished_bytes = 0;
    }

    fn check_fault(&mut self) -> Result<(), IoError> {
        match self.fault.take() {
            Some(error) => Err(self.end(error)),
            None if self.is_ended => Err(MemifError::Gone.into()),
            None => Ok(()),
        }
    }

    pub(crate) fn queued_bytes(&self) -> usize {
        self.unpublished_bytes + self.overflow.cost_bytes()
    }

    pub(crate) fn send_dropped(&self) -> u64 {
        self.send_dropped
    }

    pub(crate) fn frame_bytes_max(&self) -> usize {
        self.ends.frame_bytes_max
    }

    pub(crate) fn control(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        if !self.is_closed {
            let _ = control::send(&self.control, &farewell("closed"), None);
        }
    }
}

/// A message that ends a connection, with the reason that the peer may show.
pub(super) fn farewell(reason: impl Into<String>) -> Message {
    Message::Disconnect { reason: reason.into() }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ends.wake.as_fd()
    }
}
