//! The receiving end of a ring.
//!
//! From a stranger, or as a server, each frame is copied to private memory before anybody looks at
//! it, because the peer can change it at any time. A client whose server is trusted hands out its
//! own buffers in place.
//!
//! To a server of ours a client offers as many empty buffers as it has lately used, and some more:
//! what goes round is then small enough to stay in the cache. Other servers may drop what finds no
//! buffer at once, so they are offered all.
//!
//! Invariants: slots from `released` to `taken` have been read and are not yet given back; the one
//! that is being looked at is never among them. A server has filled at most what was offered.
#![allow(unsafe_code)]

use std::ptr::NonNull;

use super::buffers::{Buffers, Span};
use super::error::MemifError;
use super::ring::{Ring, Side, prefetch};
use crate::connection::RecvStatus;
use crate::{FrameFn, FrameSink};

/// Slots given back together: less traffic between the caches of both sides.
const RELEASE_SLOTS: u16 = 16;

/// The fewest buffers that a client offers.
const OFFER_MIN: u16 = 32;

/// Bursts after which a client considers offering fewer.
const OFFER_BURSTS: u32 = 256;

#[derive(Debug)]
pub(super) struct Consumer {
    ring: Ring,
    buffers: Buffers,
    /// Where frames are copied to; `None`: they are looked at in place.
    staging: Option<Box<[u8]>>,
    frame_bytes_max: usize,
    taken: u16,
    released: u16,
    /// Where a client's offer of empty buffers ends; a server's is always empty.
    offered: u16,
    offer: Offer,
    /// Filled slots that we know of, from `taken` on.
    available: u16,
    /// The previous slot announced that its packet continues.
    is_in_chain: bool,
    /// Wake-up state last written into the flags of the ring; `None`: as the client set them.
    is_awake: Option<bool>,
}

impl Consumer {
    pub(super) fn new(ring: Ring, buffers: Buffers, frame_bytes_max: usize) -> Self {
        let start = ring.own_index();
        let offer = Offer { slots: ring.slots(), is_fixed: true, peak: 0, bursts: 0 };
        let staging = Some(vec![0; frame_bytes_max].into_boxed_slice());
        Consumer {
            ring,
            buffers,
            staging,
            frame_bytes_max,
            taken: start,
            released: start,
            offered: start,
            offer,
            available: 0,
            is_in_chain: false,
            is_awake: None,
        }
    }

    /// From now on frames are handed out where they lie.
    ///
    /// # Safety
    /// Nobody may write to a buffer between filling it and getting it back: the buffers must be
    /// ours and the peer must be trusted.
    pub(super) unsafe fn hand_out_in_place(&mut self) {
        self.staging = None;
    }

    /// From now on fewer buffers are offered while few are used.
    pub(super) fn offer_what_is_used(&mut self) {
        self.offer.is_fixed = false;
    }

    /// Tells the peer whether we look by ourselves; see [`Ring::set_awake`].
    pub(super) fn set_awake(&mut self, is_awake: bool) {
        if self.is_awake != Some(is_awake) {
            self.ring.set_awake(is_awake);
            self.is_awake = Some(is_awake);
        }
    }

    /// True if filled slots are left to take.
    pub(super) fn has_more(&mut self) -> Result<bool, MemifError> {
        if self.available == 0 {
            self.available = self.ring.see_peer()?.wrapping_sub(self.taken);
            if self.ring.side() == Side::Client {
                self.offer.peak = self.offer.peak.max(self.available);
            }
        }
        Ok(self.available > 0)
    }

    /// Hands out up to `slots_max` frames; says how many slots it took.
    pub(super) fn take(
        &mut self,
        slots_max: usize,
        framer: FrameFn,
        sink: &mut dyn FrameSink,
        status: &mut RecvStatus,
    ) -> Result<usize, MemifError> {
        let mut slots = 0;
        while slots < slots_max && self.has_more()? {
            let index = self.taken;
            let span = self.buffers.resolve(index, self.ring.descriptor(index))?;
            self.prefetch_next(index);
            let is_part = std::mem::replace(&mut self.is_in_chain, span.goes_on);
            match self.frame(span) {
                // A chain counts once, with its last slot.
                _ if span.goes_on => {}
                Some(frame) if !is_part && is_one_frame(framer, frame) => {
                    status.frames += 1;
                    sink.frame(frame);
                }
                _ => status.dropped += 1,
            }
            if let Buffers::Own(pool) = &mut self.buffers {
                pool.reclaim(index);
            }
            self.taken = index.wrapping_add(1);
            self.available -= 1;
            slots += 1;
            if self.taken.wrapping_sub(self.released) >= RELEASE_SLOTS {
                self.release();
            }
        }
        self.release();
        self.offer.adapt(self.ring.slots());
        Ok(slots)
    }

    /// The bytes of a slot; `None` if there are more than a frame may have.
    fn frame(&mut self, span: Span) -> Option<&[u8]> {
        let Span { start, bytes, .. } = span;
        if bytes > self.frame_bytes_max {
            return None;
        }
        let Some(staging) = &mut self.staging else {
            // SAFETY: `start` points to `bytes` mapped and initialised bytes of our own region,
            // which outlives the borrow; who called `hand_out_in_place` answers for nobody writing
            // to them before the slot is given back, which happens after the borrow.
            return Some(unsafe { std::slice::from_raw_parts(start.as_ptr(), bytes) });
        };
        let copy = &mut staging[..bytes];
        // SAFETY: `start` points to `bytes` mapped bytes, `copy` is private and as long. The peer
        // may write there meanwhile; then the copy is anything, as bytes from a peer always are.
        unsafe { start.copy_to_nonoverlapping(NonNull::from(&mut *copy).cast(), bytes) };
        Some(copy)
    }

    /// Fetches what is needed next while this frame is being worked on.
    fn prefetch_next(&self, index: u16) {
        if self.available > 2 {
            self.ring.prefetch(index.wrapping_add(2));
        }
        if self.available > 1 {
            let next = index.wrapping_add(1);
            if let Ok(span) = self.buffers.resolve(next, self.ring.descriptor(next)) {
                prefetch(span.start);
                // Packets are read from both ends: the signature is at the end.
                let last = span.bytes.saturating_sub(1);
                prefetch(span.start.map_addr(|at| at.saturating_add(last)));
            }
        }
    }

    /// Gives slots back that have been read.
    fn release(&mut self) {
        if self.released == self.taken {
            return;
        }
        self.released = self.taken;
        match self.ring.side() {
            Side::Server => self.ring.set_own_index(self.taken),
            Side::Client => self.offer(),
        }
    }

    /// Hands empty buffers to the server: at the beginning, whenever some have been read, and again
    /// when the server says that it is ready, for some set all indices to zero at that moment.
    pub(super) fn offer(&mut self) {
        let Buffers::Own(pool) = &mut self.buffers else { return };
        while self.offered.wrapping_sub(self.taken) < self.offer.slots {
            let Some((_, empty)) = pool.next(0) else { break };
            pool.assign(self.offered);
            self.ring.set_descriptor(self.offered, empty);
            self.offered = self.offered.wrapping_add(1);
        }
        self.ring.set_own_index(self.offered);
    }
}

/// Number of empty buffers that a client offers.
#[derive(Debug)]
struct Offer {
    slots: u16,
    is_fixed: bool,
    /// The most that were found filled at one time, since the last change.
    peak: u16,
    bursts: u32,
}

impl Offer {
    /// More as soon as most were used, fewer when few have been used for a while.
    fn adapt(&mut self, slots_max: u16) {
        self.bursts += 1;
        let is_tight = self.peak > self.slots / 2;
        if self.is_fixed || (!is_tight && self.bursts < OFFER_BURSTS) {
            return;
        }
        if is_tight {
            self.slots = self.slots.saturating_mul(2).min(slots_max);
        } else if self.peak <= self.slots / 8 {
            self.slots = (self.slots / 2).max(OFFER_MIN).min(slots_max);
        }
        (self.peak, self.bursts) = (0, 0);
    }
}

fn is_one_frame(framer: FrameFn, frame: &[u8]) -> bool {
    !frame.is_empty() && matches!(framer(frame), Ok(Some(length)) if length == frame.len())
}
