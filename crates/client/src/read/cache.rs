//! Verified granules of an open file, kept for the next read: bounded, the longest unused go first.

use std::collections::{BTreeMap, HashMap};

/// Memory that a kept granule takes besides its bytes, roughly.
const OVERHEAD_BYTES: usize = 128;

#[derive(Debug)]
struct Block {
    bytes: Box<[u8]>,
    used: u64,
    is_unread: bool,
}

/// The kept granules.
#[derive(Debug, Default)]
pub(crate) struct BlockCache {
    blocks: HashMap<u64, Block>,
    by_use: BTreeMap<u64, u64>,
    bytes: usize,
    unread_bytes: usize,
    tick: u64,
    wasted_bytes: u64,
}

impl BlockCache {
    /// Keeps a copy. `is_unread` marks what nobody has asked for yet.
    pub(crate) fn insert(&mut self, granule: u64, bytes: &[u8], is_unread: bool) {
        self.remove(granule);
        self.tick += 1;
        self.by_use.insert(self.tick, granule);
        self.bytes += bytes.len() + OVERHEAD_BYTES;
        if is_unread {
            self.unread_bytes += bytes.len();
        }
        self.blocks.insert(granule, Block { bytes: bytes.into(), used: self.tick, is_unread });
    }

    /// True if a granule is there; does not count as use.
    pub(crate) fn contains(&self, granule: u64) -> bool {
        self.blocks.contains_key(&granule)
    }

    /// The bytes of a granule, and whether this is the first read of what was read ahead.
    pub(crate) fn read(&mut self, granule: u64) -> Option<(&[u8], bool)> {
        let block = self.blocks.get_mut(&granule)?;
        self.tick += 1;
        self.by_use.remove(&block.used);
        self.by_use.insert(self.tick, granule);
        block.used = self.tick;
        let was_unread = std::mem::replace(&mut block.is_unread, false);
        if was_unread {
            self.unread_bytes -= block.bytes.len();
        }
        Some((&block.bytes, was_unread))
    }

    /// Drops a granule.
    pub(crate) fn remove(&mut self, granule: u64) {
        let Some(block) = self.blocks.remove(&granule) else { return };
        self.by_use.remove(&block.used);
        self.bytes -= block.bytes.len() + OVERHEAD_BYTES;
        if block.is_unread {
            self.unread_bytes -= block.bytes.len();
            self.wasted_bytes += block.bytes.len() as u64;
        }
    }

    /// Drops what is above the bound.
    pub(crate) fn shrink_to(&mut self, bytes_max: usize) {
        while self.bytes > bytes_max
            && let Some((_, granule)) = self.by_use.first_key_value()
        {
            self.remove(*granule);
        }
    }

    /// Read ahead and not read yet.
    pub(crate) fn unread_bytes(&self) -> usize {
        self.unread_bytes
    }

    /// Read ahead and dropped unread since the last call.
    pub(crate) fn take_wasted(&mut self) -> u64 {
        std::mem::take(&mut self.wasted_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_longest_ago_goes_first_and_counts_as_wasted_if_unread() {
        let mut cache = BlockCache::default();
        for granule in 0..4 {
            cache.insert(granule, &[granule as u8; 1000], granule == 1);
        }
        assert_eq!(cache.read(0), Some((&[0; 1000][..], false)));
        cache.shrink_to(2 * (1000 + OVERHEAD_BYTES));
        let left: Vec<u64> = (0..4).filter(|granule| cache.contains(*granule)).collect();
        assert_eq!(left, [0, 3]);
        assert_eq!((cache.take_wasted(), cache.take_wasted()), (1000, 0));
        cache.shrink_to(0);
        assert_eq!((cache.bytes, cache.by_use.len()), (0, 0));
    }

    #[test]
    fn the_first_read_of_what_was_read_ahead_is_reported_once() {
        let mut cache = BlockCache::default();
        cache.insert(7, b"ahead", true);
        assert_eq!(cache.unread_bytes(), 5);
        assert_eq!(cache.read(7), Some((&b"ahead"[..], true)));
        assert_eq!(cache.read(7), Some((&b"ahead"[..], false)));
        assert_eq!(cache.unread_bytes(), 0);
        assert_eq!(cache.read(8), None);
    }
}
