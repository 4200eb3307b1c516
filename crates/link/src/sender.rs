//! Packets to frames.

use byname_packet::lp::{self, FragmentFields, LinkFields, LpHeader, LpPacket};
use byname_packet::{tlv, types};
use thiserror::Error;

use crate::feedback::Feedback;
use crate::fragment::{Needs, Plan};
use crate::options::LinkOptions;
use crate::reliability::{FrameIds, Reliability, ReliabilityCounters};

/// The smallest MTU in use; below, headers leave no room for fragments.
pub(crate) const MTU_BYTES_MIN: usize = 128;
/// Sequence and TxSequence of a packet that is not split.
const RELIABLE_FIELDS_BYTES: usize = 10 + 12;
/// One Ack.
const ACK_BYTES: usize = 12;
/// TYPE and LENGTH of an LpPacket.
const OUTER_BYTES: usize = 4;
/// Acknowledgements in one frame, where the MTU allows more.
const ACKS_PER_FRAME_MAX: usize = 100;

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

/// The sending half of a link. See [`crate::LinkService`].
#[derive(Debug)]
pub struct LinkSender {
    /// Longest frame of the link itself; `None` on streams.
    link_mtu_bytes: Option<usize>,
    mtu_bytes: Option<usize>,
    fragments_max: u64,
    next_sequence: u64,
    head: Vec<u8>,
    acks: Vec<u64>,
    reliability: Option<Box<Reliability>>,
    /// Token to be returned before the next packet.
    owed_token: Option<u64>,
    /// Token that the peer returned, until it is asked for.
    returned_token: Option<u64>,
}

impl LinkSender {
    pub(crate) fn new(mtu_bytes: Option<usize>, next_sequence: u64, fragments_max: u64) -> Self {
        let link_mtu_bytes = mtu_bytes.map(|bytes| bytes.max(MTU_BYTES_MIN));
        Self {
            link_mtu_bytes,
            mtu_bytes: link_mtu_bytes,
            fragments_max,
            next_sequence,
            head: Vec::new(),
            acks: Vec::new(),
            reliability: None,
            owed_token: None,
            returned_token: None,
        }
    }

    /// Changes what the link does from now on. Turning reliability off forgets what is
    /// unacknowledged.
    pub fn set_options(&mut self, options: &LinkOptions) {
        let chosen = options.mtu_bytes.map(|bytes| bytes.max(MTU_BYTES_MIN));
        self.mtu_bytes = match (self.link_mtu_bytes, chosen) {
            (Some(link), Some(chosen)) => Some(link.min(chosen)),
            (link, chosen) => link.or(chosen),
        };
        match (&self.reliability, options.reliability) {
            (None, true) => {
                self.reliability = Some(Box::new(Reliability::new(self.next_sequence)));
            }
            (Some(_), false) => self.reliability = None,
            _ => {}
        }
    }

    /// The longest frame that this half makes; `None` on streams.
    pub fn mtu_bytes(&self) -> Option<usize> {
        self.mtu_bytes
    }

    /// True if lost frames are sent again.
    pub fn is_reliable(&self) -> bool {
        self.reliability.is_some()
    }

    /// Counters of reliability; zeros without it.
    pub fn reliability_counters(&self) -> ReliabilityCounters {
        self.reliability.as_ref().map(|it| it.counters()).unwrap_or_default()
    }

    /// Turns a packet into one frame, or several where it does not fit. `emit` gets each frame in
    /// two parts, to be sent one after the other without copying the packet. `now_ns` matters only
    /// with reliability.
    ///
    /// # Errors
    /// [`SendError::TooLarge`], with nothing emitted.
    pub fn send(
        &mut self,
        header: &LpHeader<'_>,
        packet: &[u8],
        now_ns: u64,
        emit: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), SendError> {
        let mut emit = emit;
        if let Some(token) = self.owed_token.take() {
            self.head.clear();
            lp::encode_returned_token(token, &mut self.head);
            emit(&self.head, &[]);
        }
        if self.reliability.is_some() {
            return self.send_reliably(header, packet, now_ns, emit);
        }
        self.head.clear();
        lp::encode_header(header, None, packet.len(), &mut self.head);
        match self.mtu_bytes {
            Some(mtu_bytes) if self.head.len() + packet.len() > mtu_bytes => {
                self.send_fragments(header, packet, None, emit)
            }
            _ => {
                emit(&self.head, packet);
                Ok(())
            }
        }
    }

    fn send_reliably(
        &mut self,
        header: &LpHeader<'_>,
        packet: &[u8],
        now_ns: u64,
        emit: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), SendError> {
        let fields_bytes = header.fields_len() + RELIABLE_FIELDS_BYTES;
        let bytes = frame_bytes(fields_bytes, packet.len());
        if self.mtu_bytes.is_some_and(|mtu_bytes| bytes > mtu_bytes) {
            return self.send_fragments(header, packet, Some(now_ns), emit);
        }
        let mut emit = emit;
        let sequence = self.take_sequences(1);
        let fragment = FragmentFields { sequence, index: 0, count: 1 };
        let acks_max = self.acks_beside(bytes);
        let mut frame = Frame { header: *header, fragment, padding_bytes: 0, acks_max };
        let ids = self.reliable_ids(&mut frame, (sequence, 1), bytes);
        self.emit_frame(&frame, packet, ids.map(|ids| (ids, now_ns)), &mut emit);
        Ok(())
    }

    fn send_fragments(
        &mut self,
        header: &LpHeader<'_>,
        packet: &[u8],
        reliable_ns: Option<u64>,
        mut emit: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), SendError> {
        let mtu_bytes = self.mtu_bytes.unwrap_or(usize::MAX);
        let needs = Needs {
            packet_bytes: packet.len(),
            header_bytes: header.fields_len(),
            mtu_bytes,
            fragments_max: self.fragments_max,
            is_reliable: reliable_ns.is_some(),
        };
        let too_large = SendError::TooLarge { packet_bytes: packet.len(), mtu_bytes };
        let plan = Plan::new(&needs).ok_or(too_large)?;
        let first_sequence = self.take_sequences(plan.count);
        let (first, rest) = packet.split_at(plan.first_bytes.min(packet.len()));
        let payloads = std::iter::once(first).chain(rest.chunks(plan.other_bytes));
        let is_kept = reliable_ns.filter(|_| {
            let bytes = plan.count as usize * mtu_bytes;
            self.has_room(plan.count, bytes, first_sequence)
        });
        for (payload, index) in payloads.zip(0..) {
            let is_last = index + 1 == plan.count;
            let sequence = first_sequence.wrapping_add(index);
            let frame = Frame {
                header: if index == 0 { *header } else { LpHeader::default() },
                fragment: FragmentFields { sequence, index, count: plan.count },
                padding_bytes: if is_last { plan.padding_bytes } else { 0 },
                // Acknowledgements would make frames unequal.
                acks_max: 0,
            };
            let kept = is_kept.and_then(|now_ns| {
                let tx_sequence = self.reliability.as_ref()?.next_tx();
                Some((FrameIds { tx_sequence, sequence, message: first_sequence }, now_ns))
            });
            self.emit_frame(&frame, payload, kept, &mut emit);
        }
        Ok(())
    }

    fn take_sequences(&mut self, count: u64) -> u64 {
        let first = self.next_sequence;
        self.next_sequence = first.wrapping_add(count);
        first
    }

    fn has_room(&mut self, count: u64, bytes: usize, sequence: u64) -> bool {
        self.reliability.as_mut().is_some_and(|it| it.has_room(count, bytes, sequence))
    }

    fn reliable_ids(
        &mut self,
        frame: &mut Frame<'_>,
        (message, count): (u64, u64),
        bytes: usize,
    ) -> Option<FrameIds> {
        if !self.has_room(count, bytes + frame.acks_max * ACK_BYTES, message) {
            return None;
        }
        let tx_sequence = self.reliability.as_ref()?.next_tx();
        Some(FrameIds { tx_sequence, sequence: frame.fragment.sequence, message })
    }

    /// Acknowledgements that fit beside `bytes` of frame.
    fn acks_beside(&self, bytes: usize) -> usize {
        let mtu_bytes = self.mtu_bytes.unwrap_or(usize::MAX);
        // With more inside, the lengths may take two octets more.
        (mtu_bytes.saturating_sub(bytes + 2) / ACK_BYTES).min(ACKS_PER_FRAME_MAX)
    }

    fn emit_frame(
        &mut self,
        frame: &Frame<'_>,
        payload: &[u8],
        kept: Option<(FrameIds, u64)>,
        emit: &mut impl FnMut(&[u8], &[u8]),
    ) {
        self.acks.clear();
        if let Some(reliability) = &mut self.reliability {
            reliability.take_acks(frame.acks_max, &mut self.acks);
        }
        let fields = LinkFields {
            fragment: Some(frame.fragment),
            tx_sequence: kept.map(|(ids, _)| ids.tx_sequence),
            acks: &self.acks,
            padding_bytes: frame.padding_bytes,
        };
        self.head.clear();
        lp::encode_link_header(&frame.header, &fields, payload.len(), &mut self.head);
        emit(&self.head, payload);
        if let (Some((ids, now_ns)), Some(reliability)) = (kept, &mut self.reliability) {
            reliability.keep(ids, [&self.head, payload], now_ns);
        }
    }

    /// Takes what the receiving half learned for this one, and leaves `feedback` empty.
    pub fn handle_feedback(&mut self, feedback: &mut Feedback, now_ns: u64) {
        self.owed_token = feedback.address_token.or(self.owed_token);
        self.returned_token = feedback.returned_token.or(self.returned_token);
        if let Some(reliability) = &mut self.reliability {
            for ack in &feedback.acks {
                reliability.on_ack(*ack, now_ns);
            }
            for tx_sequence in &feedback.received {
                reliability.owe_ack(*tx_sequence, now_ns);
            }
        }
        feedback.clear();
    }

    /// Takes the token that the peer has returned since the last call: something at its address
    /// receives. Whether it is one of ours is for the caller to say.
    pub fn take_returned_token(&mut self) -> Option<u64> {
        self.returned_token.take()
    }

    /// When [`LinkSender::handle_timeout`] has something to do; never without reliability.
    pub fn poll_timeout(&self) -> Option<u64> {
        self.reliability.as_ref()?.poll_timeout()
    }

    /// Sends lost frames again, and acknowledgements that waited too long for a frame.
    pub fn handle_timeout(&mut self, now_ns: u64, mut emit: impl FnMut(&[u8], &[u8])) {
        let Some(reliability) = &mut self.reliability else { return };
        reliability.expire(now_ns);
        while let Some(kept) = self.reliability.as_mut().and_then(|it| it.poll_resend()) {
            self.resend(kept, now_ns, &mut emit);
        }
        while self.reliability.as_ref().is_some_and(|it| it.owes_acks(now_ns)) {
            self.send_idle(&mut emit);
        }
    }

    /// Sends a frame again as it was, but for TxSequence and acknowledgements.
    fn resend(
        &mut self,
        mut kept: crate::reliability::Unacked,
        now_ns: u64,
        emit: &mut impl FnMut(&[u8], &[u8]),
    ) {
        let Some(reliability) = &mut self.reliability else { return };
        let before = kept.frame.len();
        let lp = LpPacket::decode(&kept.frame).expect("this half made the frame");
        let (payload, sequence) = (lp.fragment.unwrap_or_default(), lp.sequence.unwrap_or(0));
        let fragment = FragmentFields { sequence, index: lp.frag_index, count: lp.frag_count };
        let fields = LinkFields {
            fragment: Some(fragment),
            tx_sequence: Some(reliability.next_tx()),
            ..LinkFields::default()
        };
        self.head.clear();
        lp::encode_link_header(&lp.header, &fields, payload.len(), &mut self.head);
        emit(&self.head, payload);
        self.head.extend_from_slice(payload);
        std::mem::swap(&mut self.head, &mut kept.frame);
        reliability.keep_again(kept, before, now_ns);
    }

    fn send_idle(&mut self, emit: &mut impl FnMut(&[u8], &[u8])) {
        let count = self.acks_beside(OUTER_BYTES).max(1);
        self.acks.clear();
        let Some(reliability) = &mut self.reliability else { return };
        reliability.take_acks(count, &mut self.acks);
        let fields = LinkFields { acks: &self.acks, ..LinkFields::default() };
        self.head.clear();
        lp::encode_link_header(&LpHeader::default(), &fields, 0, &mut self.head);
        emit(&self.head, &[]);
    }
}

/// A frame about to be sent.
struct Frame<'a> {
    header: LpHeader<'a>,
    fragment: FragmentFields,
    padding_bytes: usize,
    acks_max: usize,
}

fn frame_bytes(fields_bytes: usize, payload_bytes: usize) -> usize {
    let inside = fields_bytes + tlv::element_len(types::LP_FRAGMENT, payload_bytes);
    tlv::element_len(types::LP_PACKET, inside)
}
