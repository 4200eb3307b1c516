//! Packets to frames and back.

use byname_packet::lp::{self, FragmentFields, LpHeader, LpPacket};
use byname_packet::{DecodeError, MAX_PACKET_BYTES};
use thiserror::Error;

use crate::reassembly::{Reassembler, ReassemblyLimits, Whole};

/// Octets that a fragment's own fields can need: LpPacket and Fragment TYPE and LENGTH, Sequence,
/// FragIndex and FragCount with their largest allowed values.
const FRAGMENT_FIELDS_BYTES_MAX: usize = 4 + 10 + 4 + 4 + 4;

/// The smallest MTU in use; below, headers leave no room for fragments.
const MTU_BYTES_MIN: usize = 128;

/// Why a frame led to no packet. None of these is the end of the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum DropReason {
    /// Not an Interest, Data or LpPacket, or a malformed one.
    #[error("malformed: {0}")]
    Malformed(#[from] DecodeError),
    /// Nothing for the network layer in it.
    #[error("an idle packet")]
    Idle,
    /// A fragment on a link that does not split packets.
    #[error("a fragment on a stream")]
    FragmentOnStream,
    /// More fragments announced than allowed.
    #[error("{count} fragments announced")]
    TooManyFragments {
        /// The number read.
        count: u64,
    },
    /// Fragments of one message disagree about their count, or lack a sequence number.
    #[error("inconsistent fragments")]
    Inconsistent,
    /// A fragment that is already there.
    #[error("a fragment came twice")]
    DuplicateFragment,
    /// The packet is, or would become, larger than any NDN packet.
    #[error("larger than an NDN packet")]
    TooLarge,
}

/// Why a packet cannot be sent on this link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SendError {
    /// It would need more fragments than receivers take.
    #[error("a packet of {packet_bytes} octets does not fit frames of {mtu_bytes}")]
    TooLarge {
        /// Octets of the packet.
        packet_bytes: usize,
        /// The link's MTU.
        mtu_bytes: usize,
    },
}

/// A packet with its header, borrowed from the frame or from the service.
#[derive(Debug)]
pub struct Received<'a> {
    /// What came with the packet.
    pub header: LpHeader<'a>,
    /// The network-layer packet.
    pub packet: &'a [u8],
}

/// The link layer of one face.
#[derive(Debug)]
pub struct LinkService {
    mtu_bytes: Option<usize>,
    next_sequence: u64,
    reassembler: Reassembler,
    whole: Option<Whole>,
    head: Vec<u8>,
}

impl LinkService {
    /// The link service of a stream: one frame is one packet.
    pub fn stream() -> Self {
        Self::new(None, 0, ReassemblyLimits::default())
    }

    /// The link service of datagrams of at most `mtu_bytes` (at least 128). `first_sequence` should
    /// be random, so that fragments of an earlier life are not mixed in.
    pub fn datagram(mtu_bytes: usize, first_sequence: u64, limits: ReassemblyLimits) -> Self {
        Self::new(Some(mtu_bytes.max(MTU_BYTES_MIN)), first_sequence, limits)
    }

    fn new(mtu_bytes: Option<usize>, next_sequence: u64, limits: ReassemblyLimits) -> Self {
        let reassembler = Reassembler::new(limits);
        Self { mtu_bytes, next_sequence, reassembler, whole: None, head: Vec::new() }
    }

    /// Turns a packet into one frame, or several where it does not fit. `emit` gets each frame in
    /// two parts, to be sent one after the other without copying the packet.
    ///
    /// # Errors
    /// [`SendError::TooLarge`], with nothing emitted.
    pub fn send(
        &mut self,
        header: &LpHeader<'_>,
        packet: &[u8],
        mut emit: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), SendError> {
        self.head.clear();
        lp::encode_header(header, None, packet.len(), &mut self.head);
        let bytes = self.head.len() + packet.len();
        match self.mtu_bytes {
            Some(mtu_bytes) if bytes > mtu_bytes => {
                self.send_fragments((header, packet), bytes, mtu_bytes, emit)
            }
            _ => {
                emit(&self.head, packet);
                Ok(())
            }
        }
    }

    fn send_fragments(
        &mut self,
        (header, packet): (&LpHeader<'_>, &[u8]),
        whole_bytes: usize,
        mtu_bytes: usize,
        mut emit: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), SendError> {
        let too_large = SendError::TooLarge { packet_bytes: packet.len(), mtu_bytes };
        // Fragments are of equal size, so every one leaves room for the header of the first.
        let header_bytes = whole_bytes - packet.len();
        let room = mtu_bytes
            .checked_sub(header_bytes + FRAGMENT_FIELDS_BYTES_MAX)
            .filter(|room| *room > 0)
            .ok_or(too_large)?;
        let count = packet.len().div_ceil(room);
        if count as u64 > self.reassembler.limits().fragments_max {
            return Err(too_large);
        }
        let size = packet.len().div_ceil(count);
        let count = packet.len().div_ceil(size) as u64;
        let bare = LpHeader::default();
        for (index, payload) in packet.chunks(size).enumerate() {
            let index = index as u64;
            let fields = FragmentFields { sequence: self.next_sequence, index, count };
            self.next_sequence = self.next_sequence.wrapping_add(1);
            let header = if index == 0 { header } else { &bare };
            self.head.clear();
            lp::encode_header(header, Some(fields), payload.len(), &mut self.head);
            emit(&self.head, payload);
        }
        Ok(())
    }

    /// Takes a frame. `Ok(None)` means that it is a fragment and others are awaited.
    ///
    /// # Errors
    /// [`DropReason`]; the link goes on.
    pub fn receive<'a>(
        &'a mut self,
        frame: &'a [u8],
        now_ns: u64,
    ) -> Result<Option<Received<'a>>, DropReason> {
        let lp = LpPacket::decode(frame)?;
        let fragment = lp.fragment.ok_or(DropReason::Idle)?;
        if lp.frag_count <= 1 {
            return check_size(lp.header, fragment).map(Some);
        }
        if self.mtu_bytes.is_none() {
            return Err(DropReason::FragmentOnStream);
        }
        self.whole = self.reassembler.add(&lp, frame, now_ns)?;
        let Some(whole) = &self.whole else { return Ok(None) };
        let first = LpPacket::decode(&whole.first_frame)?;
        check_size(first.header, &whole.packet).map(Some)
    }

    /// Unfinished messages given up so far.
    pub fn evicted_count(&self) -> u64 {
        self.reassembler.evicted()
    }

    /// Octets of unfinished messages.
    pub fn held_bytes(&self) -> usize {
        self.reassembler.held_bytes()
    }
}

fn check_size<'a>(header: LpHeader<'a>, packet: &'a [u8]) -> Result<Received<'a>, DropReason> {
    if packet.len() > MAX_PACKET_BYTES {
        return Err(DropReason::TooLarge);
    }
    Ok(Received { header, packet })
}

#[cfg(test)]
mod tests;
