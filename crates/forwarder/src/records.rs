//! In-records and out-records: the faces that wait for an answer, and the faces that were asked.
//!
//! They are what a pending Interest and a strategy share. The table itself is in `pit`.

use smallvec::SmallVec;

use crate::face::FaceId;

/// The longest PIT token a peer may attach (spec: NDNLPv2 "PIT token").
const TOKEN_BYTES_MAX: usize = 32;

/// A peer's PIT token, kept in place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PitToken {
    octets: [u8; TOKEN_BYTES_MAX],
    len: u8,
}

impl PitToken {
    /// Keeps a token; `None` for one longer than allowed.
    pub(crate) fn new(token: Option<&[u8]>) -> Option<Self> {
        let token = token.unwrap_or_default();
        let mut octets = [0; TOKEN_BYTES_MAX];
        octets.get_mut(..token.len())?.copy_from_slice(token);
        Some(Self { octets, len: token.len() as u8 })
    }

    pub(crate) fn get(&self) -> Option<&[u8]> {
        let token = &self.octets[..usize::from(self.len)];
        (!token.is_empty()).then_some(token)
    }
}

/// A downstream face: it waits for an answer.
#[derive(Debug, Clone)]
pub struct InRecord {
    /// Which.
    pub face: FaceId,
    /// The nonce of its latest Interest.
    pub nonce: [u8; 4],
    /// Time at which it stops waiting.
    pub expires_ns: u64,
    pub(crate) token: PitToken,
    /// True if the answer is to be traced.
    pub(crate) is_traced: bool,
}

/// An upstream face: it was asked.
#[derive(Debug, Clone)]
pub struct OutRecord {
    /// Which.
    pub face: FaceId,
    /// The nonce sent last.
    pub nonce: [u8; 4],
    /// Time at which it was sent last.
    pub sent_ns: u64,
    /// Until when an answer can be expected.
    pub expires_ns: u64,
    /// The reason of the Nack it answered with.
    pub nacked: Option<u64>,
    /// Time for which retransmissions to this face are held back (multicast).
    pub suppression_ns: u64,
}

/// The records of one pending Interest. Nearly always one face waits and one was asked: these are
/// kept in place.
#[derive(Debug, Default)]
pub struct Records {
    /// Faces that wait.
    pub incoming: SmallVec<[InRecord; 1]>,
    /// Faces that were asked.
    pub outgoing: SmallVec<[OutRecord; 1]>,
    /// Time for which retransmissions are held back (best-route).
    pub suppression_ns: u64,
}

impl Records {
    /// Forgets all of them, and lets go of what is not kept in place.
    pub(crate) fn clear(&mut self) {
        if self.incoming.spilled() {
            self.incoming = SmallVec::new();
        }
        if self.outgoing.spilled() {
            self.outgoing = SmallVec::new();
        }
        self.incoming.clear();
        self.outgoing.clear();
        self.suppression_ns = 0;
    }

    /// The out-record of `face`.
    pub fn out_record(&self, face: FaceId) -> Option<&OutRecord> {
        self.outgoing.iter().find(|record| record.face == face)
    }

    pub(crate) fn out_record_mut(&mut self, face: FaceId) -> Option<&mut OutRecord> {
        self.outgoing.iter_mut().find(|record| record.face == face)
    }

    /// Returns whether somebody wants the answer traced.
    pub(crate) fn is_traced(&self) -> bool {
        self.incoming.iter().any(|record| record.is_traced)
    }

    /// Returns whether `face` was not asked, or so long ago that no answer is expected any more.
    /// Consumers that repeat an Interest keep it pending for longer than any face may take.
    pub(crate) fn is_unused(&self, face: FaceId, now_ns: u64) -> bool {
        self.out_record(face).is_none_or(|record| record.expires_ns <= now_ns)
    }

    /// Returns whether an answer from some face is still expected at `now_ns`.
    pub fn is_awaited(&self, now_ns: u64) -> bool {
        self.outgoing.iter().any(|r| r.nacked.is_none() && r.expires_ns > now_ns)
    }

    /// Time at which the Interest was last sent to any face.
    pub fn last_sent_ns(&self) -> Option<u64> {
        self.outgoing.iter().map(|record| record.sent_ns).max()
    }
}
