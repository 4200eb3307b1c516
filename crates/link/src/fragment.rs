//! Where to cut a packet that does not fit one frame.
//!
//! All frames of a packet get the same length, the last one too: segmented sends want that (only
//! the very last segment of one call may be shorter), so fragments of several packets of one size
//! can leave together. The first fragment carries the header of the packet, hence less of it; what
//! is missing at the end is padded with an element that everybody ignores. Where equal length
//! cannot be had (no room for the padding), the last frame is shorter, never longer; only with MTUs
//! below 400, where LENGTHs around 253 change their own length, it may be up to 4 octets longer.

use byname_packet::lp::{PADDING_BYTES_MAX, PADDING_BYTES_MIN};
use byname_packet::{tlv, types};

/// Sequence, FragIndex and FragCount when all numbers fit one octet.
const FIELDS_BYTES: usize = 10 + 3 + 3;
/// Further octets when they do not.
const WIDE_FIELDS_BYTES: usize = 2;
/// Fragments whose numbers fit one octet.
const NARROW_COUNT_MAX: u64 = 256;
/// TxSequence, in every fragment of a reliable link.
const TX_SEQUENCE_BYTES: usize = 12;

/// Inputs of the plan.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Needs {
    pub(crate) packet_bytes: usize,
    /// Octets of the packet's own header fields.
    pub(crate) header_bytes: usize,
    pub(crate) mtu_bytes: usize,
    pub(crate) fragments_max: u64,
    pub(crate) is_reliable: bool,
}

/// Plan of a packet's fragments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) count: u64,
    /// Octets of the packet in the first fragment, and in each of the others but the last.
    pub(crate) first_bytes: usize,
    pub(crate) other_bytes: usize,
    pub(crate) padding_bytes: usize,
}

impl Plan {
    /// `None` if the packet cannot be sent in so many frames.
    pub(crate) fn new(needs: &Needs) -> Option<Self> {
        let widest = Room::new(needs, needs.mtu_bytes, true)?;
        // Numbers of two octets only where they are needed.
        let is_wide = widest.count_for(needs.packet_bytes) > NARROW_COUNT_MAX;
        let room = Room::new(needs, needs.mtu_bytes, is_wide)?;
        let count = room.count_for(needs.packet_bytes);
        if count > needs.fragments_max {
            return None;
        }
        let overhead = needs.mtu_bytes - room.other;
        let spent = needs.packet_bytes + needs.header_bytes + overhead * count as usize;
        let start = spent.div_ceil(count as usize).min(needs.mtu_bytes);
        let lengths = start..=needs.mtu_bytes;
        let fitting = lengths.filter_map(|len| Room::new(needs, len, is_wide)).filter_map(|room| {
            let surplus = room.capacity(count).checked_sub(needs.packet_bytes)?;
            // All fragments must carry something.
            (surplus < room.other).then_some((room, surplus))
        });
        let is_exact = |surplus: usize| {
            surplus == 0 || (PADDING_BYTES_MIN..=PADDING_BYTES_MAX).contains(&surplus)
        };
        let mut fitting = fitting.take(PADDING_BYTES_MIN + 1).peekable();
        let first = *fitting.peek()?;
        let (room, surplus) = fitting.find(|(_, surplus)| is_exact(*surplus)).unwrap_or(first);
        let padding_bytes = if is_exact(surplus) { surplus } else { 0 };
        Some(Self { count, first_bytes: room.first, other_bytes: room.other, padding_bytes })
    }
}

/// Octets of the packet that frames of some length hold.
#[derive(Debug, Clone, Copy)]
struct Room {
    first: usize,
    other: usize,
}

impl Room {
    fn new(needs: &Needs, frame_bytes: usize, is_wide: bool) -> Option<Self> {
        let wide = if is_wide { WIDE_FIELDS_BYTES } else { 0 };
        let reliable = if needs.is_reliable { TX_SEQUENCE_BYTES } else { 0 };
        let fields = FIELDS_BYTES + wide + reliable;
        let first = payload_bytes(frame_bytes, fields + needs.header_bytes)?;
        Some(Self { first, other: payload_bytes(frame_bytes, fields)? })
    }

    fn count_for(&self, packet_bytes: usize) -> u64 {
        1 + packet_bytes.saturating_sub(self.first).div_ceil(self.other) as u64
    }

    fn capacity(&self, count: u64) -> usize {
        self.first + self.other * (count as usize - 1)
    }
}

/// Octets of packet that fit a frame of `frame_bytes` beside `fields` octets of fields.
fn payload_bytes(frame_bytes: usize, fields: usize) -> Option<usize> {
    let inside = value_bytes(frame_bytes)?.checked_sub(fields)?;
    value_bytes(inside).filter(|payload| *payload > 0)
}

/// Octets of value in the largest element of at most `element_bytes` whose TYPE is one octet.
fn value_bytes(element_bytes: usize) -> Option<usize> {
    // LENGTH takes 1 octet up to 252, then 3; 5 cannot occur below any MTU.
    let long = element_bytes.checked_sub(4).filter(|len| *len > 252);
    let value = long.or_else(|| Some(element_bytes.checked_sub(2)?.min(252)))?;
    debug_assert!(tlv::element_len(types::LP_FRAGMENT, value) <= element_bytes);
    Some(value)
}
