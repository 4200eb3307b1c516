//! One pending Interest: its packet, the faces it came from and the faces it was sent to.

use byname_packet::{NameRef, tlv, types};
use smallvec::SmallVec;

use super::{Request, Selectors};
use crate::face::FaceId;
use crate::strategy::Chosen;

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

/// A face that waits.
#[derive(Debug, Clone)]
pub struct InRecord {
    /// Which.
    pub face: FaceId,
    /// The nonce of its latest Interest.
    pub nonce: [u8; 4],
    /// When it stops waiting.
    pub expires_ns: u64,
    pub(crate) token: PitToken,
}

/// A face that was asked.
#[derive(Debug, Clone)]
pub struct OutRecord {
    /// Which.
    pub face: FaceId,
    /// The nonce sent last.
    pub nonce: [u8; 4],
    /// When it was sent last.
    pub sent_ns: u64,
    /// Until when an answer can be expected.
    pub expires_ns: u64,
    /// The reason of the Nack it answered with.
    pub nacked: Option<u64>,
    /// How long retransmissions to this face are held back (multicast).
    pub suppression_ns: u64,
}

/// How an implicit digest begins.
const DIGEST_TYPE_LENGTH: [u8; 2] = [types::IMPLICIT_SHA256_DIGEST as u8, 32];

/// Who is told what becomes of an Interest.
#[derive(Debug, Clone)]
pub(crate) struct Measured {
    /// The strategy that sent it.
    pub(crate) strategy: Chosen,
    /// The hash of the prefix under which it measures.
    pub(crate) namespace: u64,
}

/// Interests up to this size are kept in place.
const WIRE_INLINE_BYTES: usize = 128;

/// A pending Interest. Nearly always one face waits and one was asked, and the packet is small:
/// these are kept in place.
#[derive(Debug, Default)]
pub struct PitEntry {
    /// Faces that wait.
    pub in_records: SmallVec<[InRecord; 1]>,
    /// Faces that were asked.
    pub out_records: SmallVec<[OutRecord; 1]>,
    /// How long retransmissions are held back (best-route).
    pub suppression_ns: u64,
    pub(crate) hash: u64,
    pub(crate) selectors: Selectors,
    pub(crate) expires_ns: u64,
    /// Set by strategies that measure.
    pub(crate) measured: Option<Measured>,
    pub(super) made_ns: u64,
    /// The hash of the name without its last component, if that is an implicit digest.
    digest_parent: Option<u64>,
    component_count: u32,
    name_at: (u32, u32),
    wire: SmallVec<[u8; WIRE_INLINE_BYTES]>,
}

impl PitEntry {
    /// Makes this the entry of `request`, without records. `None` when the packet is no Interest;
    /// callers have decoded it before.
    pub(super) fn reset(&mut self, request: &Request<'_>) -> Option<()> {
        let wire = request.wire;
        let outer_value = tlv::Reader::new(wire).read().ok()??.value;
        let name = tlv::Reader::new(outer_value).read().ok()??;
        let name_end = wire.len() - outer_value.len() + name.wire.len();
        self.name_at = ((name_end - name.value.len()) as u32, name_end as u32);
        self.wire.extend_from_slice(wire);
        self.hash = request.prefixes.whole();
        self.selectors = request.selectors;
        self.made_ns = request.now_ns;
        self.suppression_ns = 0;
        self.component_count = request.prefixes.component_count() as u32;
        let is_digest = |octets: &[u8]| octets.starts_with(&DIGEST_TYPE_LENGTH);
        let parent = request.prefixes.parent();
        let parent = parent.filter(|parent| is_digest(&request.name.value()[parent.end..]));
        self.digest_parent = parent.map(|parent| parent.hash);
        Some(())
    }

    /// Lets go of whatever is not kept in place.
    pub(super) fn clear(&mut self) {
        // A new vector where there was a heap block, so that a flood of large packets leaves
        // nothing behind.
        if self.wire.spilled() {
            self.wire = SmallVec::new();
        }
        if self.in_records.spilled() {
            self.in_records = SmallVec::new();
        }
        if self.out_records.spilled() {
            self.out_records = SmallVec::new();
        }
        self.wire.clear();
        self.in_records.clear();
        self.out_records.clear();
        self.measured = None;
    }

    /// What is asked for.
    pub fn name(&self) -> NameRef<'_> {
        NameRef::from_value(self.name_value()).unwrap_or_default()
    }

    /// The octets of the name, without the check that [`PitEntry::name`] repeats.
    pub(crate) fn name_value(&self) -> &[u8] {
        &self.wire[self.name_at.0 as usize..self.name_at.1 as usize]
    }

    pub(super) fn component_count(&self) -> usize {
        self.component_count as usize
    }

    pub(super) fn digest_parent(&self) -> Option<u64> {
        self.digest_parent
    }

    /// The Interest as first forwarded.
    pub fn wire(&self) -> &[u8] {
        &self.wire
    }

    /// The out-record of `face`.
    pub fn out_record(&self, face: FaceId) -> Option<&OutRecord> {
        self.out_records.iter().find(|record| record.face == face)
    }

    pub(crate) fn out_record_mut(&mut self, face: FaceId) -> Option<&mut OutRecord> {
        self.out_records.iter_mut().find(|record| record.face == face)
    }

    /// Whether an answer from some face is still expected at `now_ns`.
    pub fn has_pending_out_record(&self, now_ns: u64) -> bool {
        self.out_records.iter().any(|r| r.nacked.is_none() && r.expires_ns > now_ns)
    }

    /// When the Interest was last sent to any face.
    pub fn last_sent_ns(&self) -> Option<u64> {
        self.out_records.iter().map(|record| record.sent_ns).max()
    }

    pub(crate) fn was_asked_of(&self, face: FaceId) -> bool {
        self.out_record(face).is_some()
    }

    /// Replaces `out` by the Interest with `nonce`.
    pub(crate) fn encode_with_nonce(&self, nonce: [u8; 4], out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&self.wire);
        if let Some(at) = nonce_offset(&self.wire) {
            out[at..at + 4].copy_from_slice(&nonce);
        }
    }
}

/// Where the nonce's octets stand in a checked Interest.
fn nonce_offset(wire: &[u8]) -> Option<usize> {
    let value = tlv::Reader::new(wire).read().ok()??.value;
    let start = wire.len() - value.len();
    let mut reader = tlv::Reader::new(value);
    while let Ok(Some(element)) = reader.read() {
        if element.typ == types::NONCE && element.value.len() == 4 {
            return Some(start + reader.position() - 4);
        }
    }
    None
}
