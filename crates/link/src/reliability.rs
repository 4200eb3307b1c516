//! The sender's side of reliability: what was sent and not acknowledged, what is lost, and which
//! acknowledgements the peer is owed.
//!
//! Every transmission gets a TxSequence of its own; those follow each other, so the unacknowledged
//! ones stand in a queue where the number tells the place. A frame is lost when its time is over or
//! when three sent after it were acknowledged; it is sent again at most three times, under a new
//! TxSequence. When one fragment is given up, so are the others of its packet.
//!
//! Frames and octets kept are bounded: what finds no room is sent without a TxSequence, that is,
//! without a promise.
//!
//! spec: NDNLPv2 "Reliability".

use std::collections::VecDeque;

use crate::recent::RECENT_MAX;
use crate::rtt::RttEstimator;

/// Longest wait of an acknowledgement for a frame to travel with.
pub const IDLE_ACK_NS: u64 = 5_000_000;
/// Later frames acknowledged that make one lost.
const PASSED_MAX: u8 = 3;
/// Retransmissions of one frame.
pub const RETRIES_MAX: u8 = 3;
/// Acknowledgements owed; above, the oldest is forgotten and its frame will come again.
const ACKS_MAX: usize = 4096;
/// Frames kept, acknowledged ones in between included.
const FRAMES_MAX: usize = 1024;
/// Octets of frames kept.
const BYTES_MAX: usize = 2 << 20;
/// Buffers kept for the next frames.
const SPARE_MAX: usize = 64;

/// Counters of reliability on one link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReliabilityCounters {
    /// Frames that were acknowledged.
    pub acknowledged: u64,
    /// Frames sent again.
    pub retransmitted: u64,
    /// Packets given up after their last retransmission.
    pub exhausted: u64,
    /// Frames sent without a promise, because too many were unacknowledged.
    pub unprotected: u64,
}

/// A frame that was sent, as it was sent.
#[derive(Debug)]
pub(crate) struct Unacked {
    pub(crate) frame: Vec<u8>,
    /// The link's sequence number of the frame.
    sequence: u64,
    /// The sequence number of its packet's first fragment.
    message: u64,
    sent_ns: u64,
    retries: u8,
    passed: u8,
}

/// The numbers of a frame about to be sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrameIds {
    pub(crate) tx_sequence: u64,
    pub(crate) sequence: u64,
    pub(crate) message: u64,
}

#[derive(Debug)]
pub(crate) struct Reliability {
    /// The frame with TxSequence `first_tx` + i stands at i; `None` once it needs no more care.
    unacked: VecDeque<Option<Unacked>>,
    first_tx: u64,
    resend: VecDeque<Unacked>,
    held_bytes: usize,
    /// No frame kept has a lower sequence number.
    oldest_sequence: u64,
    rtt: RttEstimator,
    acks: VecDeque<u64>,
    /// When owed acknowledgements travel alone.
    idle_ack_ns: Option<u64>,
    spare: Vec<Vec<u8>>,
    counters: ReliabilityCounters,
}

impl Reliability {
    pub(crate) fn new(first_tx: u64) -> Self {
        Self {
            unacked: VecDeque::new(),
            first_tx,
            resend: VecDeque::new(),
            held_bytes: 0,
            oldest_sequence: 0,
            rtt: RttEstimator::new(),
            acks: VecDeque::new(),
            idle_ack_ns: None,
            spare: Vec::new(),
            counters: ReliabilityCounters::default(),
        }
    }

    pub(crate) fn counters(&self) -> ReliabilityCounters {
        self.counters
    }

    /// True if so many more frames can be kept, the first of which gets `sequence`.
    pub(crate) fn has_room(&mut self, count: u64, bytes: usize, sequence: u64) -> bool {
        let frames = self.unacked.len() + self.resend.len();
        let has_room = frames as u64 + count <= FRAMES_MAX as u64
            && self.held_bytes + bytes <= BYTES_MAX
            && self.is_near(sequence.wrapping_add(count));
        if !has_room {
            self.counters.unprotected += count;
        }
        has_room
    }

    /// True if the receiver still knows all frames kept when one with `sequence` comes.
    fn is_near(&mut self, sequence: u64) -> bool {
        if sequence.wrapping_sub(self.oldest_sequence) < RECENT_MAX as u64 {
            return true;
        }
        let kept = self.resend.iter().chain(self.unacked.iter().flatten());
        let behind = kept.map(|frame| sequence.wrapping_sub(frame.sequence)).max().unwrap_or(0);
        self.oldest_sequence = sequence.wrapping_sub(behind);
        behind < RECENT_MAX as u64
    }

    /// The TxSequence of the next frame.
    pub(crate) fn next_tx(&self) -> u64 {
        self.first_tx.wrapping_add(self.unacked.len() as u64)
    }

    /// Keeps a frame that is sent now, as the two parts it was sent in.
    pub(crate) fn keep(&mut self, ids: FrameIds, parts: [&[u8]; 2], now_ns: u64) {
        debug_assert_eq!(ids.tx_sequence, self.next_tx());
        let mut frame = self.spare.pop().unwrap_or_default();
        frame.clear();
        frame.extend_from_slice(parts[0]);
        frame.extend_from_slice(parts[1]);
        self.held_bytes += frame.len();
        self.unacked.push_back(Some(Unacked {
            frame,
            sequence: ids.sequence,
            message: ids.message,
            sent_ns: now_ns,
            retries: 0,
            passed: 0,
        }));
    }

    /// The next frame to send again; give it back with [`Reliability::keep_again`].
    pub(crate) fn poll_resend(&mut self) -> Option<Unacked> {
        self.resend.pop_front()
    }

    /// Keeps a frame that is sent again and had `before_bytes` the last time.
    pub(crate) fn keep_again(&mut self, mut frame: Unacked, before_bytes: usize, now_ns: u64) {
        self.held_bytes = self.held_bytes - before_bytes + frame.frame.len();
        self.counters.retransmitted += 1;
        frame.sent_ns = now_ns;
        frame.retries += 1;
        frame.passed = 0;
        self.unacked.push_back(Some(frame));
    }

    /// The peer has a frame.
    pub(crate) fn on_ack(&mut self, tx_sequence: u64, now_ns: u64) {
        let at = tx_sequence.wrapping_sub(self.first_tx);
        let Some(at) = usize::try_from(at).ok().filter(|at| *at < self.unacked.len()) else {
            return;
        };
        let Some(frame) = self.unacked[at].take() else { return };
        self.counters.acknowledged += 1;
        // An answer to a retransmission may be one to the first copy (Karn's rule).
        if frame.retries == 0 {
            self.rtt.on_sample(now_ns.saturating_sub(frame.sent_ns));
        }
        self.forget(frame);
        for index in 0..at {
            let Some(earlier) = &mut self.unacked[index] else { continue };
            earlier.passed += 1;
            if earlier.passed >= PASSED_MAX {
                self.lose(index);
            }
        }
        self.trim();
    }

    /// A frame came that wants to be acknowledged.
    pub(crate) fn owe_ack(&mut self, tx_sequence: u64, now_ns: u64) {
        if self.acks.len() >= ACKS_MAX {
            self.acks.pop_front();
        }
        self.acks.push_back(tx_sequence);
        self.idle_ack_ns.get_or_insert(now_ns.saturating_add(IDLE_ACK_NS));
    }

    /// Moves at most `count` owed acknowledgements to the end of `into`.
    pub(crate) fn take_acks(&mut self, count: usize, into: &mut Vec<u64>) {
        let count = count.min(self.acks.len());
        into.extend(self.acks.drain(..count));
        if self.acks.is_empty() {
            self.idle_ack_ns = None;
        }
    }

    pub(crate) fn owes_acks(&self, now_ns: u64) -> bool {
        self.idle_ack_ns.is_some_and(|due_ns| due_ns <= now_ns)
    }

    /// Finds what is lost because its time is over.
    pub(crate) fn expire(&mut self, now_ns: u64) {
        let rto_ns = self.rtt.rto_ns();
        // They stand in the order in which they were sent.
        while let Some(Some(frame)) = self.unacked.front() {
            if frame.sent_ns.saturating_add(rto_ns) > now_ns {
                break;
            }
            self.lose(0);
            self.trim();
        }
    }

    pub(crate) fn poll_timeout(&self) -> Option<u64> {
        if !self.resend.is_empty() {
            return Some(0);
        }
        let front = self.unacked.front().and_then(Option::as_ref);
        let lost_ns = front.map(|frame| frame.sent_ns.saturating_add(self.rtt.rto_ns()));
        [lost_ns, self.idle_ack_ns].into_iter().flatten().min()
    }

    fn lose(&mut self, index: usize) {
        let Some(frame) = self.unacked[index].take() else { return };
        if frame.retries < RETRIES_MAX {
            self.resend.push_back(frame);
            return;
        }
        self.counters.exhausted += 1;
        let message = frame.message;
        self.forget(frame);
        let is_of = |frame: &Unacked| frame.message == message;
        for index in 0..self.unacked.len() {
            if self.unacked[index].as_ref().is_some_and(is_of)
                && let Some(other) = self.unacked[index].take()
            {
                self.forget(other);
            }
        }
        while let Some(at) = self.resend.iter().position(is_of) {
            let other = self.resend.remove(at);
            other.into_iter().for_each(|frame| self.forget(frame));
        }
    }

    fn forget(&mut self, frame: Unacked) {
        self.held_bytes -= frame.frame.len();
        if self.spare.len() < SPARE_MAX {
            self.spare.push(frame.frame);
        }
    }

    fn trim(&mut self) {
        while matches!(self.unacked.front(), Some(None)) {
            self.unacked.pop_front();
            self.first_tx = self.first_tx.wrapping_add(1);
        }
    }
}
