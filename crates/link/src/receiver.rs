//! Frames to packets.

use byname_packet::lp::{LpHeader, LpPacket};
use byname_packet::{DecodeError, MAX_PACKET_BYTES};
use thiserror::Error;

use crate::reassembly::{Reassembler, ReassemblyLimits, Whole};
use crate::recent::Recent;
use crate::service::LinkOptions;

/// Acknowledgements, of either direction, that wait for the sending half; what is more is dropped
/// and repaired by retransmission.
const FEEDBACK_MAX: usize = 4096;

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
    /// A frame that came before: its acknowledgement was late or lost.
    #[error("a frame came twice")]
    DuplicateFrame,
    /// The packet is, or would become, larger than any NDN packet.
    #[error("larger than an NDN packet")]
    TooLarge,
}

/// A packet with its header, borrowed from the frame or from the receiver.
#[derive(Debug)]
pub struct Received<'a> {
    /// What came with the packet.
    pub header: LpHeader<'a>,
    /// The network-layer packet.
    pub packet: &'a [u8],
}

/// What the receiving half of a reliable link learned for the sending half.
#[derive(Debug, Default)]
pub struct Feedback {
    /// TxSequences that the peer acknowledged.
    pub(crate) acks: Vec<u64>,
    /// TxSequences to be acknowledged.
    pub(crate) received: Vec<u64>,
}

impl Feedback {
    /// Whether there is nothing to tell: always so without reliability.
    pub fn is_empty(&self) -> bool {
        self.acks.is_empty() && self.received.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.acks.clear();
        self.received.clear();
    }
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
