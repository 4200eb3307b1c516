//! A ring of descriptors in shared memory, as every memif implementation lays it out.
//!
//! ```text
//!   0 cookie u32 · 4 flags u16 · 6 head u16      64 tail u16      128 descriptors, 16 octets each:
//!                                flags u16 · region u16 · length u32 · offset u32 · metadata u32
//! ```
//! Which index is whose depends on the direction. In the ring to the server the client fills slots
//! and moves `head`, the server empties them and moves `tail`. In the ring to the client the
//! client hands over empty buffers by moving `head`, the server fills them and moves `tail`.
//! So the client always moves `head` and the server always moves `tail`.
//!
//! The other side can write anything anywhere at any time: each field is read once, indices with
//! atomic, descriptors with volatile accesses. [`Ring::see_peer`] is the only way to an index of a
//! peer and checks it, [`Buffers::resolve`](super::buffers::Buffers::resolve) the only way from a
//! descriptor to memory. Our own index is never read back after the beginning.
//!
//! Invariant: `seen` never goes back, and never passes what we have shown the peer: the client's
//! own index, or a whole turn of the ring after the server's.
#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering, fence};

use super::error::{MemifError, RingRefusal};
use super::region::Region;

/// The first word of every ring of version 2.
pub(super) const COOKIE: u32 = 0x03E3_1F20;

/// The receiver is awake and looks by itself.
const NO_INTERRUPT: u16 = 1;

/// In a descriptor: the packet goes on in the next one.
pub(super) const NEXT: u16 = 1;

const FLAGS_AT: usize = 4;
const HEAD_AT: usize = 6;
const TAIL_AT: usize = 64;
const DESCRIPTORS_AT: usize = 128;
const DESCRIPTOR_BYTES: usize = 16;

/// Required alignment of offsets in bytes, for our accesses to be aligned.
const ALIGNMENT: usize = 8;

/// Rings have 2^1 to 2^14 slots, so that distances of 16-bit indices are never ambiguous.
pub(super) const LOG2_RANGE: std::ops::RangeInclusive<u8> = 1..=14;

/// One slot: where a buffer is, and what is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Descriptor {
    pub(super) flags: u16,
    pub(super) region: u16,
    pub(super) bytes: u32,
    pub(super) offset: u32,
}

/// Who we are, and hence which index is ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Server,
}

#[derive(Debug)]
pub(super) struct Ring {
    base: NonNull<u8>,
    slots: u16,
    side: Side,
    /// Our index, as the peer was shown it.
    own: u16,
    /// The peer's index, as it was last seen.
    seen: u16,
    /// Keeps `base` mapped.
    _region: Arc<Region>,
}

// SAFETY: the pointer is into the region, which is held; all accesses are atomic or volatile.
unsafe impl Send for Ring {}
// SAFETY: as above.
unsafe impl Sync for Ring {}

/// Octets that a ring takes.
pub(super) fn ring_bytes(slots: u16) -> usize {
    DESCRIPTORS_AT + usize::from(slots) * DESCRIPTOR_BYTES
}

impl Ring {
    /// The ring at `offset` of a region.
    pub(super) fn new(
        region: &Arc<Region>,
        offset: usize,
        log2: u8,
        side: Side,
    ) -> Result<Self, RingRefusal> {
        if !LOG2_RANGE.contains(&log2) {
            return Err(RingRefusal::Size { log2 });
        }
        let slots = 1 << log2;
        if !offset.is_multiple_of(ALIGNMENT) {
            return Err(RingRefusal::Place);
        }
        let base = region.at(offset, ring_bytes(slots)).ok_or(RingRefusal::Place)?;
        let mut ring = Ring { base, slots, side, own: 0, seen: 0, _region: Arc::clone(region) };
        if side == Side::Server {
            // The memory is the client's: where it begins is as good as anywhere.
            ring.own = ring.word(TAIL_AT).load(Ordering::Relaxed);
            ring.seen = ring.own;
        }
        Ok(ring)
    }

    pub(super) fn slots(&self) -> u16 {
        self.slots
    }

    pub(super) fn side(&self) -> Side {
        self.side
    }

    /// Makes a ring of fresh, zeroed memory.
    pub(super) fn initialise(&self) {
        // SAFETY: the ring lies within its region (checked in `new`), its base is aligned to 8.
        unsafe { self.base.cast::<u32>().write_volatile(COOKIE) };
    }

    pub(super) fn cookie(&self) -> u32 {
        // SAFETY: as in `initialise`.
        unsafe { self.base.cast::<u32>().read_volatile() }
    }

    fn word(&self, at: usize) -> &AtomicU16 {
        // SAFETY: `at` is one of three constants below 128, even, within the ring; the memory is
        // mapped as long as `self` lives, and is only accessed atomically by us.
        unsafe { AtomicU16::from_ptr(self.base.add(at).cast().as_ptr()) }
    }

    /// Where the peer's index is now. What the peer did before moving it is seen after this.
    ///
    /// Only forward, and only as far as we have let it: everything else is
    /// [`MemifError::IndexJump`], whatever the role and the direction.
    pub(super) fn see_peer(&mut self) -> Result<u16, MemifError> {
        let at = if self.side == Side::Client { TAIL_AT } else { HEAD_AT };
        let index = self.word(at).load(Ordering::Acquire);
        let end = match self.side {
            // The server fills or empties what was shown to it.
            Side::Client => self.own,
            // The client fills what was emptied, or offers what was taken from it.
            Side::Server => self.own.wrapping_add(self.slots),
        };
        let (moved, at_most) = (index.wrapping_sub(self.seen), end.wrapping_sub(self.seen));
        if moved > at_most {
            // Back by less than half the range rather than forward by more.
            let moved = moved.cast_signed();
            return Err(MemifError::IndexJump { moved, at_most, slots: self.slots });
        }
        self.seen = index;
        Ok(index)
    }

    /// The peer's index as of the last look.
    pub(super) fn seen(&self) -> u16 {
        self.seen
    }

    /// Our index, as the peer was shown it.
    pub(super) fn own_index(&self) -> u16 {
        self.own
    }

    /// Moves our index. The peer sees before what we did before.
    pub(super) fn set_own_index(&mut self, index: u16) {
        self.own = index;
        let at = if self.side == Side::Client { HEAD_AT } else { TAIL_AT };
        self.word(at).store(index, Ordering::Release);
    }

    /// Says, as the receiver, whether we look by ourselves. Whoever goes to sleep must look once
    /// more after saying so.
    pub(super) fn set_awake(&self, is_awake: bool) {
        let flags = if is_awake { NO_INTERRUPT } else { 0 };
        self.word(FLAGS_AT).store(flags, Ordering::Relaxed);
        if !is_awake {
            // The store must be visible before the index is read again: the other half of
            // `wants_interrupt`.
            fence(Ordering::SeqCst);
        }
    }

    /// As the sender, after having moved the index: whether the receiver is to be woken.
    pub(super) fn wants_interrupt(&self) -> bool {
        fence(Ordering::SeqCst);
        self.word(FLAGS_AT).load(Ordering::Relaxed) & NO_INTERRUPT == 0
    }

    fn descriptor_at(&self, index: u16) -> NonNull<u64> {
        let slot = usize::from(index & (self.slots - 1));
        // SAFETY: slot < slots, so the descriptor lies within the ring.
        unsafe { self.base.add(DESCRIPTORS_AT + slot * DESCRIPTOR_BYTES).cast() }
    }

    /// The descriptor that an index stands for, read once.
    pub(super) fn descriptor(&self, index: u16) -> Descriptor {
        let at = self.descriptor_at(index);
        // SAFETY: both words lie within the ring, aligned to 8.
        let (first, second) = unsafe { (at.read_volatile(), at.add(1).read_volatile()) };
        Descriptor::from_words([first, second])
    }

    pub(super) fn set_descriptor(&self, index: u16, descriptor: Descriptor) {
        let [first, second] = descriptor.to_words();
        let at = self.descriptor_at(index);
        // SAFETY: as in `descriptor`.
        unsafe {
            at.write_volatile(first);
            at.add(1).write_volatile(second);
        }
    }

    /// Fetches the descriptor of an index into the cache.
    pub(super) fn prefetch(&self, index: u16) {
        prefetch(self.descriptor_at(index).cast());
    }
}

impl Descriptor {
    fn from_words([first, second]: [u64; 2]) -> Self {
        let (first, second) = (first.to_ne_bytes(), second.to_ne_bytes());
        let [f0, f1, r0, r1, b0, b1, b2, b3] = first;
        let [o0, o1, o2, o3, ..] = second;
        Descriptor {
            flags: u16::from_ne_bytes([f0, f1]),
            region: u16::from_ne_bytes([r0, r1]),
            bytes: u32::from_ne_bytes([b0, b1, b2, b3]),
            offset: u32::from_ne_bytes([o0, o1, o2, o3]),
        }
    }

    fn to_words(self) -> [u64; 2] {
        let ([f0, f1], [r0, r1]) = (self.flags.to_ne_bytes(), self.region.to_ne_bytes());
        let [b0, b1, b2, b3] = self.bytes.to_ne_bytes();
        let [o0, o1, o2, o3] = self.offset.to_ne_bytes();
        let first = u64::from_ne_bytes([f0, f1, r0, r1, b0, b1, b2, b3]);
        [first, u64::from_ne_bytes([o0, o1, o2, o3, 0, 0, 0, 0])]
    }
}

/// Asks the processor for the cache line at an address; nothing if it knows no such thing.
pub(super) fn prefetch(at: NonNull<u8>) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults, whatever the address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at.as_ptr().cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}
