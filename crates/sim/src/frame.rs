//! Octets on their way, shared by all that hold them.
//!
//! Content that is zeros is not stored: a long run of zeros in a frame is left out and put back
//! when the frame is looked at. So a study that only needs sizes publishes zeros, and what is in
//! flight on 100 Gbit/s × 200 ms fits into memory. Nothing is lost by that: any frame comes out as
//! it went in.

use std::sync::Arc;

use byname_packet::lp::{FragmentFields, LinkFields, LpPacket, encode_link_header};

/// Zeros are looked for in steps of this.
const STEP: usize = 64;
/// At first in steps of this.
const STRIDE: usize = 1024;
/// Shorter packets are stored as they are.
const PACKED_BYTES_MIN: usize = 1024;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    octets: Arc<[u8]>,
    /// Where zeros were left out, and how many.
    zeros_at: u32,
    zeros: u32,
}

impl Frame {
    /// Two parts, one after the other.
    pub fn new(head: &[u8], body: &[u8]) -> Self {
        let (start, end) = zeros_in(body);
        if start == end {
            let octets =
                if head.is_empty() { Arc::from(body) } else { Arc::from([head, body].concat()) };
            return Frame { octets, zeros_at: 0, zeros: 0 };
        }
        let octets = Arc::from([head, &body[..start], &body[end..]].concat());
        Frame { octets, zeros_at: (head.len() + start) as u32, zeros: (end - start) as u32 }
    }

    /// Octets of the frame, wherever they are.
    pub fn len(&self) -> usize {
        self.octets.len() + self.zeros as usize
    }

    /// True if there is nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Octets that it takes in memory.
    pub fn stored_bytes(&self) -> usize {
        self.octets.len()
    }

    /// The whole frame: as it is stored, or put together in `scratch`.
    pub fn bytes<'a>(&'a self, scratch: &'a mut Vec<u8>) -> &'a [u8] {
        if self.zeros == 0 {
            return &self.octets;
        }
        let (before, after) = self.octets.split_at(self.zeros_at as usize);
        scratch.clear();
        scratch.extend_from_slice(before);
        scratch.resize(before.len() + self.zeros as usize, 0);
        scratch.extend_from_slice(after);
        scratch
    }

    /// The same with one bit the other way round.
    pub fn with_flipped_bit(&self, bit: u64) -> Self {
        let mut scratch = Vec::new();
        let mut octets = self.bytes(&mut scratch).to_vec();
        if let Some(octet) = octets.get_mut((bit / 8) as usize) {
            *octet ^= 1 << (bit % 8);
        }
        Frame::new(&[], &octets)
    }

    /// The same with a congestion mark; `None` if it is nothing that can carry one.
    pub fn with_mark(&self) -> Option<Self> {
        let mut scratch = Vec::new();
        let link = LpPacket::decode(self.bytes(&mut scratch)).ok()?;
        let fragment = link.fragment?;
        let acks: Vec<u64> = link.acks().collect();
        let place = link.sequence.map(|sequence| FragmentFields {
            sequence,
            index: link.frag_index,
            count: link.frag_count,
        });
        let fields = LinkFields {
            fragment: place,
            tx_sequence: link.tx_sequence,
            acks: &acks,
            padding_bytes: 0,
        };
        let mut header = link.header;
        header.congestion_mark = Some(header.congestion_mark.unwrap_or(0).max(1));
        let mut head = Vec::new();
        encode_link_header(&header, &fields, fragment.len(), &mut head);
        Some(Frame::new(&head, fragment))
    }
}

/// Where the zeros around the middle begin and end, in whole steps.
fn zeros_in(body: &[u8]) -> (usize, usize) {
    let is_zeros = |start: usize| body[start..start + STEP] == [0; STEP];
    let middle = body.len() / 2;
    if body.len() < PACKED_BYTES_MIN || !is_zeros(middle) {
        return (0, 0);
    }
    let (mut start, mut end) = (middle, middle + STEP);
    // Long strides first: most packets of zeros are zeros nearly to their ends.
    while start >= STRIDE && body[start - STRIDE..start] == [0; STRIDE] {
        start -= STRIDE;
    }
    while end + STRIDE <= body.len() && body[end..end + STRIDE] == [0; STRIDE] {
        end += STRIDE;
    }
    while start >= STEP && is_zeros(start - STEP) {
        start -= STEP;
    }
    while end + STEP <= body.len() && is_zeros(end) {
        end += STEP;
    }
    (start, end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use byname_packet::lp::LpHeader;

    fn bytes(frame: &Frame) -> Vec<u8> {
        frame.bytes(&mut Vec::new()).to_vec()
    }

    #[test]
    fn zeros_are_not_stored_and_nothing_is_lost() {
        for (before, zeros, after) in [(0, 8192, 0), (70, 8000, 130), (500, 600, 3), (9, 100, 9)] {
            let body = [vec![7; before], vec![0; zeros], vec![9; after]].concat();
            let frame = Frame::new(&[1, 2, 3], &body);
            assert_eq!(bytes(&frame), [&[1, 2, 3][..], &body].concat());
            assert_eq!(frame.len(), body.len() + 3);
            let saved = frame.len() - frame.stored_bytes();
            assert!(saved + 2 * STEP >= zeros || zeros < 600, "{saved} of {zeros}");
        }
        let dense: Vec<u8> = (0..8192u32).map(|octet| octet as u8 | 1).collect();
        assert_eq!(Frame::new(&[], &dense).stored_bytes(), 8192);
    }

    #[test]
    fn a_flipped_bit_is_flipped_in_the_zeros_too() {
        let frame = Frame::new(&[], &[0; 4096]).with_flipped_bit(8 * 2048 + 3);
        let mut expected = vec![0; 4096];
        expected[2048] = 8;
        assert_eq!(bytes(&frame), expected);
    }

    #[test]
    fn a_mark_is_added_and_the_rest_stays() {
        let packet = [6, 3, 7, 1, 0];
        let fragment = FragmentFields { sequence: 77, index: 0, count: 1 };
        let fields = LinkFields { fragment: Some(fragment), ..LinkFields::default() };
        let header = LpHeader { pit_token: Some(&[1, 2]), ..LpHeader::default() };
        let mut head = Vec::new();
        encode_link_header(&header, &fields, packet.len(), &mut head);
        for frame in [Frame::new(&head, &packet), Frame::new(&[], &packet)] {
            let marked = frame.with_mark().expect("a frame with a packet");
            let (before, after) = (bytes(&frame), bytes(&marked));
            let before = LpPacket::decode(&before).expect("a frame");
            let after = LpPacket::decode(&after).expect("a frame");
            assert_eq!(after.header.congestion_mark, Some(1));
            assert_eq!(after.header.pit_token, before.header.pit_token);
            assert_eq!(after.sequence, before.sequence);
            assert_eq!(after.fragment, Some(&packet[..]));
        }
        assert_eq!(Frame::new(&[], &[1, 2, 3]).with_mark(), None);
    }
}
