//! The sending end of a ring: frames are written into its buffers, and shown to the peer together.
//!
//! Invariants: what the peer has emptied, `published` and `next` follow one another within one turn
//! of the ring; nothing of what was written is ever read back from shared memory.
#![allow(unsafe_code)]

use std::ptr::NonNull;

use super::buffers::Buffers;
use super::error::MemifError;
use super::ring::{Descriptor, Ring};

#[derive(Debug)]
pub(super) struct Producer {
    ring: Ring,
    buffers: Buffers,
    /// The next slot to write.
    next: u16,
    /// Index last published to the peer.
    published: u16,
    /// The peer's index may have moved since the last read.
    is_stale: bool,
    /// Frames were published without checking whether the peer sleeps.
    is_kick_due: bool,
    /// A peer's descriptors of the slots that are written and not shown, in case they are to be as
    /// before.
    lent: Vec<Descriptor>,
}

/// Where a frame can be written.
#[derive(Debug)]
pub(super) enum Place {
    Buffer(Slot),
    /// The peer has not emptied a slot, or offered a buffer.
    Full,
    /// The buffer is smaller than the frame.
    TooLong,
}

/// A buffer with room for the frame asked for, not yet sent.
#[derive(Debug)]
pub(super) struct Slot {
    start: NonNull<u8>,
    bytes: usize,
    descriptor: Descriptor,
}

impl Producer {
    pub(super) fn new(ring: Ring, buffers: Buffers) -> Self {
        let start = ring.own_index();
        Producer {
            ring,
            buffers,
            next: start,
            published: start,
            is_stale: true,
            is_kick_due: false,
            lent: Vec::new(),
        }
    }

    /// Looks how far the peer has come, and takes back the buffers that it has emptied.
    fn refresh(&mut self) -> Result<(), MemifError> {
        self.is_stale = false;
        let mut emptied = self.ring.seen();
        let peer = self.ring.see_peer()?;
        if let Buffers::Own(pool) = &mut self.buffers {
            while emptied != peer {
                pool.reclaim(emptied);
                emptied = emptied.wrapping_add(1);
            }
        }
        Ok(())
    }

    /// Slots that may be written, from `next` on.
    fn room(&self) -> u16 {
        let seen = self.ring.seen();
        match &self.buffers {
            // The peer empties what we have filled.
            Buffers::Own(_) => self.ring.slots() - self.next.wrapping_sub(seen),
            // The peer hands over empty buffers.
            Buffers::Peer(_) => seen.wrapping_sub(self.next),
        }
    }

    /// Looks for a buffer for a frame of `bytes` bytes.
    pub(super) fn reserve(&mut self, bytes: usize) -> Result<Place, MemifError> {
        if self.is_stale || self.room() == 0 {
            self.refresh()?;
            if self.room() == 0 {
                return Ok(Place::Full);
            }
        }
        let (start, descriptor) = match &self.buffers {
            Buffers::Own(pool) => match pool.next(bytes) {
                Some(found) => found,
                None => return Ok(Place::TooLong),
            },
            Buffers::Peer(_) => {
                let descriptor = self.ring.descriptor(self.next);
                let span = self.buffers.resolve(self.next, descriptor)?;
                if bytes > span.bytes {
                    return Ok(Place::TooLong);
                }
                (span.start, descriptor)
            }
        };
        Ok(Place::Buffer(Slot { start, bytes, descriptor }))
    }

    /// Takes the slot, filled or yet to be filled, as the next to be sent.
    pub(super) fn take(&mut self, slot: &Slot) {
        let bytes = u32::try_from(slot.bytes).expect("compared with a 32-bit length before");
        self.ring.set_descriptor(self.next, Descriptor { flags: 0, bytes, ..slot.descriptor });
        match &mut self.buffers {
            Buffers::Own(pool) => pool.assign(self.next),
            Buffers::Peer(_) => self.lent.push(slot.descriptor),
        }
        self.next = self.next.wrapping_add(1);
    }

    /// The last `count` frames, none of them shown yet, are not to be sent.
    pub(super) fn take_back(&mut self, count: u16) {
        debug_assert!(count <= self.unpublished());
        for _ in 0..count {
            self.next = self.next.wrapping_sub(1);
            match &mut self.buffers {
                Buffers::Own(pool) => pool.reclaim(self.next),
                Buffers::Peer(_) => {
                    if let Some(lent) = self.lent.pop() {
                        self.ring.set_descriptor(self.next, lent);
                    }
                }
            }
        }
    }

    /// Frames written and not shown.
    pub(super) fn unpublished(&self) -> u16 {
        self.next.wrapping_sub(self.published)
    }

    /// Shows the peer what has been written.
    pub(super) fn publish(&mut self) {
        if self.published != self.next {
            self.ring.set_own_index(self.next);
            self.published = self.next;
            self.lent.clear();
            self.is_kick_due = true;
            self.is_stale = true;
        }
    }

    /// After publishing: whether the peer sleeps and has to be told.
    pub(super) fn must_kick(&mut self) -> bool {
        std::mem::take(&mut self.is_kick_due) && self.ring.wants_interrupt()
    }
}

impl Slot {
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Where it lies, as addresses.
    pub(super) fn range(&self) -> std::ops::Range<usize> {
        let start = self.start.addr().get();
        start..start + self.bytes
    }

    /// Copies the frame's parts, which add up to what was asked for, one behind the other.
    pub(super) fn fill(&self, parts: &[&[u8]]) {
        let mut at = 0;
        for part in parts {
            let end = at + part.len();
            assert!(end <= self.bytes, "the caller added up the parts");
            // SAFETY: `start` points to `bytes` mapped bytes that no reference of ours covers, for
            // the slot is not sent yet; what the peer does there meanwhile harms only itself.
            unsafe {
                let from = NonNull::from(*part).cast();
                self.start.add(at).copy_from_nonoverlapping(from, part.len());
            }
            at = end;
        }
    }

    /// The buffer itself, to be written in place.
    ///
    /// # Safety
    /// Nobody else, the peer included, may touch the buffer as long as the slice lives: the peer
    /// must be trusted, the slot not published, and no other slot in use have the same buffer.
    pub(super) unsafe fn in_place<'a>(self) -> &'a mut [u8] {
        // SAFETY: `start` points to `bytes` mapped bytes, initialised (shared memory begins with
        // zeroes), and the caller answers for the rest.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}
