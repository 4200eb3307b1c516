//! Puts segments of any size together to the 8192-byte blocks of an object.
//!
//! A block is a unit of content or a node of a tree level. When a segment covers a whole block,
//! which is the normal case, its bytes are handed through without a copy.

use std::collections::HashMap;

use byname_security::tree::UNIT_BYTES;

/// Smallest segment that is put together: a block then has at most 65 pieces.
pub const SEGMENT_BYTES_MIN: u64 = 128;

#[derive(Debug)]
struct Partial {
    bytes: Box<[u8]>,
    pieces: u128,
    missing_bytes: usize,
}

/// Blocks of one object, of which some segments have come.
#[derive(Debug, Default)]
pub struct Assembler {
    size: u64,
    segment_bytes: u64,
    partial: HashMap<u64, Partial>,
}

impl Assembler {
    /// For an object of `size` bytes in segments of `segment_bytes` (at least
    /// [`SEGMENT_BYTES_MIN`]), the last one shorter.
    pub fn new(size: u64, segment_bytes: u64) -> Self {
        Assembler {
            size,
            segment_bytes: segment_bytes.max(SEGMENT_BYTES_MIN),
            partial: HashMap::new(),
        }
    }

    /// Number of the last segment.
    pub fn last_segment(&self) -> u64 {
        crate::naming::last_segment(self.size, self.segment_bytes)
    }

    /// Payload of a full segment.
    pub fn segment_bytes(&self) -> u64 {
        self.segment_bytes
    }

    /// Blocks of which a part is there.
    pub fn partial_count(&self) -> usize {
        self.partial.len()
    }

    /// The segments that hold a byte of the block.
    pub fn segments_of(&self, block: u64) -> std::ops::RangeInclusive<u64> {
        let start = block * UNIT_BYTES as u64;
        let last_byte = (start + UNIT_BYTES as u64).min(self.size).saturating_sub(1).max(start);
        start / self.segment_bytes..=last_byte / self.segment_bytes
    }

    /// The blocks of which the segment holds a byte.
    pub fn blocks_of(&self, segment: u64) -> std::ops::RangeInclusive<u64> {
        let start = segment.saturating_mul(self.segment_bytes).min(self.size);
        let last_byte =
            start.saturating_add(self.segment_bytes).min(self.size).saturating_sub(1).max(start);
        start / UNIT_BYTES as u64..=last_byte / UNIT_BYTES as u64
    }

    /// Takes a segment; calls `emit(block, bytes)` for each block that is whole now. False if no
    /// segment of this number and length exists.
    pub fn take(&mut self, segment: u64, bytes: &[u8], emit: &mut dyn FnMut(u64, &[u8])) -> bool {
        let Some(start) = segment.checked_mul(self.segment_bytes) else { return false };
        let left = self.size.saturating_sub(start);
        let exists = left > 0 || (segment == 0 && self.size == 0);
        if !exists || bytes.len() as u64 != left.min(self.segment_bytes) {
            return false;
        }
        if bytes.is_empty() {
            emit(0, bytes);
            return true;
        }
        let (mut at, mut rest) = (start, bytes);
        while !rest.is_empty() {
            let block = at / UNIT_BYTES as u64;
            let offset = (at % UNIT_BYTES as u64) as usize;
            let length = rest.len().min(UNIT_BYTES - offset);
            let (piece, tail) = rest.split_at(length);
            self.take_piece(segment, (block, offset), piece, emit);
            at += length as u64;
            rest = tail;
        }
        true
    }

    /// Forgets what is there of a block, because its segments are asked for again.
    pub fn forget(&mut self, block: u64) {
        self.partial.remove(&block);
    }

    /// Forgets the pieces of all blocks.
    pub fn clear(&mut self) {
        self.partial.clear();
    }

    fn take_piece(
        &mut self,
        segment: u64,
        (block, offset): (u64, usize),
        piece: &[u8],
        emit: &mut dyn FnMut(u64, &[u8]),
    ) {
        let block_start = block * UNIT_BYTES as u64;
        let block_len = (self.size - block_start).min(UNIT_BYTES as u64) as usize;
        if piece.len() == block_len {
            self.partial.remove(&block);
            return emit(block, piece);
        }
        let bit = 1u128 << (segment - block_start / self.segment_bytes);
        let partial = self.partial.entry(block).or_insert_with(|| Partial {
            bytes: vec![0; block_len].into(),
            pieces: 0,
            missing_bytes: block_len,
        });
        if partial.pieces & bit == 0 {
            partial.pieces |= bit;
            partial.missing_bytes -= piece.len();
            partial.bytes[offset..offset + piece.len()].copy_from_slice(piece);
        }
        if partial.missing_bytes == 0
            && let Some(whole) = self.partial.remove(&block)
        {
            emit(block, &whole.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn content(size: usize) -> Vec<u8> {
        (0..size).map(|at| (at * 31 + at / 251) as u8).collect()
    }

    proptest! {
        #[test]
        fn any_segment_size_and_order_gives_each_block_once(
            size in 0usize..60_000,
            segment_bytes in 128u64..9_000,
            seed in any::<u64>(),
        ) {
            let bytes = content(size);
            let mut assembler = Assembler::new(size as u64, segment_bytes);
            let mut order: Vec<u64> = (0..=assembler.last_segment()).collect();
            order.sort_by_key(|segment| (segment + 1).wrapping_mul(seed | 1));
            let mut blocks = BTreeMap::new();
            for segment in order {
                let start = (segment * segment_bytes) as usize;
                let end = (start + segment_bytes as usize).min(size);
                let mut emit = |block: u64, bytes: &[u8]| {
                    assert!(blocks.insert(block, bytes.to_vec()).is_none());
                };
                prop_assert!(assembler.take(segment, &bytes[start..end], &mut emit));
            }
            prop_assert_eq!(assembler.partial_count(), 0);
            prop_assert_eq!(blocks.into_values().flatten().collect::<Vec<_>>(), bytes);
        }
    }

    #[test]
    fn a_segment_of_the_wrong_length_or_number_is_refused() {
        let mut assembler = Assembler::new(10_000, 8192);
        let mut emit = |_: u64, _: &[u8]| panic!("nothing is whole");
        assert!(!assembler.take(0, &[0; 8191], &mut emit));
        assert!(!assembler.take(1, &[0; 1809], &mut emit));
        assert!(!assembler.take(2, &[], &mut emit));
        assert!(!assembler.take(u64::MAX, &[0; 10], &mut emit));
    }

    #[test]
    fn an_empty_object_has_one_empty_segment() {
        let mut assembler = Assembler::new(0, 8192);
        let mut whole = Vec::new();
        let mut emit = |block: u64, bytes: &[u8]| whole.push((block, bytes.len()));
        assert!(!assembler.take(1, &[], &mut emit));
        assert!(assembler.take(0, &[], &mut emit));
        assert_eq!(whole, [(0, 0)]);
    }

    #[test]
    fn a_segment_that_comes_twice_counts_once() {
        let bytes = content(10_000);
        let mut assembler = Assembler::new(10_000, 3000);
        let mut whole = Vec::new();
        for segment in [1, 1, 0, 1, 2, 2, 3] {
            let piece = &bytes[segment * 3000..(segment * 3000 + 3000).min(10_000)];
            let mut emit = |block: u64, bytes: &[u8]| whole.push((block, bytes.to_vec()));
            assert!(assembler.take(segment as u64, piece, &mut emit));
        }
        assert_eq!(whole, [(0, bytes[..8192].to_vec()), (1, bytes[8192..].to_vec())]);
    }

    #[test]
    fn pieces_that_were_forgotten_have_to_come_again() {
        let bytes = content(8192);
        let mut assembler = Assembler::new(8192, 4096);
        let mut emit = |_: u64, _: &[u8]| panic!("nothing is whole");
        assert!(assembler.take(0, &bytes[..4096], &mut emit));
        assembler.clear();
        assert_eq!(assembler.partial_count(), 0);
        assert!(assembler.take(1, &bytes[4096..], &mut emit));
    }

    #[test]
    fn the_segments_of_a_block_cover_it_and_no_more() {
        let assembler = Assembler::new(20_000, 3000);
        assert_eq!(assembler.segments_of(0), 0..=2);
        assert_eq!(assembler.segments_of(1), 2..=5);
        assert_eq!(assembler.segments_of(2), 5..=6);
        assert_eq!(Assembler::new(0, 3000).segments_of(0), 0..=0);
    }
}
