//! Frames to packets.

use byname_packet::MAX_PACKET_BYTES;
use byname_packet::lp::{LpHeader, LpPacket};

use crate::drop_reason::DropReason;
use crate::feedback::Feedback;
use crate::options::LinkOptions;
use crate::reassembly::{Reassembler, ReassemblyLimits, Whole};
use crate::recent::Recent;

/// Acknowledgements, of either direction, that wait for the sending half; what is more is dropped
/// and repaired by retransmission.
const FEEDBACK_MAX: usize = 4096;

/// A packet with its header, borrowed from the frame or from the receiver.
#[derive(Debug)]
pub struct Received<'a> {
    /// The header that came with the packet.
    pub header: LpHeader<'a>,
    /// The network-layer packet.
    pub packet: &'a [u8],
}

/// The receiving half of a link. See [`crate::LinkService`].
#[derive(Debug)]
pub struct LinkReceiver {
    is_stream: bool,
    takes_fragments: bool,
    limits: ReassemblyLimits,
    reassembler: Reassembler,
    whole: Option<Whole>,
    recent: Option<Box<Recent>>,
}

impl LinkReceiver {
    pub(crate) fn new(is_stream: bool, limits: ReassemblyLimits) -> Self {
        Self {
            is_stream,
            takes_fragments: !is_stream,
            limits,
            reassembler: Reassembler::new(limits),
            whole: None,
            recent: None,
        }
    }

    /// Changes what the link does from now on.
    pub fn set_options(&mut self, options: &LinkOptions) {
        self.takes_fragments = !self.is_stream || options.mtu_bytes.is_some();
        if self.recent.is_some() == options.reliability {
            return;
        }
        let (limits, reliability) = (self.limits, options.reliability);
        self.recent = reliability.then(|| Box::new(Recent::new()));
        let limits = if reliability { limits.with_reliability() } else { limits };
        self.reassembler.set_limits(limits);
    }

    /// Takes a frame. `Ok(None)` means that it is a fragment and others are awaited. Whatever comes
    /// of it, `feedback` is for [`crate::LinkSender::handle_feedback`] unless it is empty.
    ///
    /// # Errors
    /// [`DropReason`]; the link goes on.
    pub fn receive<'a>(
        &'a mut self,
        frame: &'a [u8],
        now_ns: u64,
        feedback: &mut Feedback,
    ) -> Result<Option<Received<'a>>, DropReason> {
        let lp = LpPacket::decode(frame)?;
        if let Some(recent) = &mut self.recent {
            note_reliability(recent, &lp, now_ns, feedback)?;
        }
        if !self.is_stream {
            feedback.address_token = lp.address_token.or(feedback.address_token);
            feedback.returned_token = lp.returned_token.or(feedback.returned_token);
        }
        let fragment = lp.fragment.ok_or(DropReason::Idle)?;
        if lp.frag_count <= 1 {
            return check_size(lp.header, fragment).map(Some);
        }
        if !self.takes_fragments {
            return Err(DropReason::FragmentOnStream);
        }
        if let Some(whole) = self.whole.take() {
            self.reassembler.recycle(whole);
        }
        self.whole = self.reassembler.add(&lp, frame, now_ns)?;
        let Some(whole) = &self.whole else { return Ok(None) };
        let first = LpPacket::decode(whole.first_frame())?;
        check_size(first.header, whole.packet()).map(Some)
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

/// spec: NDNLPv2 "Reliability": only a frame with a Fragment is acknowledged, a repeated one too.
fn note_reliability(
    recent: &mut Recent,
    lp: &LpPacket<'_>,
    now_ns: u64,
    feedback: &mut Feedback,
) -> Result<(), DropReason> {
    let room = FEEDBACK_MAX.saturating_sub(feedback.acks.len());
    feedback.acks.extend(lp.acks().take(room));
    let Some(tx_sequence) = lp.tx_sequence.filter(|_| lp.fragment.is_some()) else {
        return Ok(());
    };
    if feedback.received.len() < FEEDBACK_MAX {
        feedback.received.push(tx_sequence);
    }
    match lp.sequence {
        Some(sequence) if !recent.insert(sequence, now_ns) => Err(DropReason::DuplicateFrame),
        _ => Ok(()),
    }
}

fn check_size<'a>(header: LpHeader<'a>, packet: &'a [u8]) -> Result<Received<'a>, DropReason> {
    if packet.len() > MAX_PACKET_BYTES {
        return Err(DropReason::TooLarge);
    }
    Ok(Received { header, packet })
}
