//! Where the buffers of a ring are: in a pool of ours, or wherever a peer's descriptors say.
//!
//! Slots of a ring are used in a circle, buffers of a pool need not be: the buffer that was free
//! last is used next, for it is still in the cache. So what goes through the cache is as much as
//! is in flight, not the whole ring.

use std::ptr::NonNull;
use std::sync::Arc;

use super::error::MemifError;
use super::region::Region;
use super::ring::{Descriptor, NEXT};

#[derive(Debug)]
pub(super) enum Buffers {
    /// In our own region 0. What a peer writes into descriptors about the place is not even
    /// looked at.
    Own(Pool),
    /// In the regions of the peer.
    Peer(Arc<[Arc<Region>]>),
}

/// As many buffers as a ring has slots.
#[derive(Debug)]
pub(super) struct Pool {
    region: Arc<Region>,
    offset: usize,
    buffer_bytes: usize,
    /// The last is used next.
    free: Vec<u16>,
    /// Which buffer each slot has, if it has one.
    of_slot: Box<[u16]>,
}

/// The memory that a descriptor stands for: `bytes` mapped bytes from `start` on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) start: NonNull<u8>,
    pub(super) bytes: usize,
    /// The packet goes on in the next slot.
    pub(super) goes_on: bool,
}

impl Buffers {
    /// The memory of a slot, all of it within its buffer or region: the only way from what a peer
    /// has written into a descriptor to an address. Flags that memif does not define are ignored.
    pub(super) fn resolve(&self, index: u16, descriptor: Descriptor) -> Result<Span, MemifError> {
        let Descriptor { flags, region, bytes, offset } = descriptor;
        let found = match self {
            Buffers::Own(pool) => pool.at(pool.of_slot[pool.slot(index)], bytes as usize),
            Buffers::Peer(regions) => {
                let region = regions.get(usize::from(region));
                region.and_then(|it| it.at(offset as usize, bytes as usize))
            }
        };
        let start = found.ok_or(MemifError::Descriptor { slot: index, region, offset, bytes })?;
        Ok(Span { start, bytes: bytes as usize, goes_on: flags & NEXT != 0 })
    }
}

impl Pool {
    /// `slots` buffers, one behind the other from `offset` on.
    pub(super) fn new(
        region: &Arc<Region>,
        offset: usize,
        buffer_bytes: usize,
        slots: u16,
    ) -> Self {
        Pool {
            region: Arc::clone(region),
            offset,
            buffer_bytes,
            free: (0..slots).rev().collect(),
            of_slot: vec![0; usize::from(slots)].into_boxed_slice(),
        }
    }

    fn slot(&self, index: u16) -> usize {
        usize::from(index) & (self.of_slot.len() - 1)
    }

    fn at(&self, buffer: u16, bytes: usize) -> Option<NonNull<u8>> {
        if bytes > self.buffer_bytes {
            return None;
        }
        self.region.at(self.offset_of(buffer), bytes)
    }

    fn offset_of(&self, buffer: u16) -> usize {
        self.offset + usize::from(buffer) * self.buffer_bytes
    }

    /// The buffer that is next, with room for `bytes` bytes, and what its slot is to say.
    pub(super) fn next(&self, bytes: usize) -> Option<(NonNull<u8>, Descriptor)> {
        let buffer = *self.free.last()?;
        let fits = "a region of ours is smaller than 4 GiB";
        let offset = u32::try_from(self.offset_of(buffer)).expect(fits);
        let bytes_max = u32::try_from(self.buffer_bytes).expect(fits);
        let descriptor = Descriptor { flags: 0, region: 0, bytes: bytes_max, offset };
        Some((self.at(buffer, bytes)?, descriptor))
    }

    /// Lets a slot have the buffer that is next.
    pub(super) fn assign(&mut self, index: u16) {
        if let Some(buffer) = self.free.pop() {
            let slot = self.slot(index);
            self.of_slot[slot] = buffer;
        }
    }

    /// Takes the buffer of a slot back.
    pub(super) fn reclaim(&mut self, index: u16) {
        self.free.push(self.of_slot[self.slot(index)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_stay_few_and_are_never_used_twice_at_a_time() {
        const SLOTS: u16 = 8;
        let (region, _memory) = Region::create(4096 + 8 * 64).unwrap();
        let mut pool = Pool::new(&Arc::new(region), 4096, 64, SLOTS);
        let (mut begin, mut end) = (u16::MAX - 20, u16::MAX - 20);
        let mut in_use: Vec<(u16, u32)> = Vec::new();
        let mut ever = std::collections::BTreeSet::new();
        for step in 0..10_000u32 {
            // At most three slots at a time.
            if in_use.len() < 3 && step % 5 != 0 {
                let (_, descriptor) = pool.next(64).unwrap();
                assert!(in_use.iter().all(|(_, offset)| *offset != descriptor.offset));
                pool.assign(end);
                in_use.push((end, descriptor.offset));
                ever.insert(descriptor.offset);
                end = end.wrapping_add(1);
            } else if let Some((index, _)) = in_use.first().copied() {
                assert_eq!(index, begin);
                pool.reclaim(index);
                in_use.remove(0);
                begin = begin.wrapping_add(1);
            }
        }
        assert_eq!(ever.len(), 3);
        assert!(pool.next(65).is_none());
        for index in 0..SLOTS - in_use.len() as u16 {
            assert!(pool.next(1).is_some());
            pool.assign(end.wrapping_add(index));
        }
        assert!(pool.next(1).is_none(), "more buffers than slots");
    }
}
