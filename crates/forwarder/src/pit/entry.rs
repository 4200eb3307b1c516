//! One pending Interest: its packet, the faces it came from and the faces it was sent to.

use byname_packet::{Interest, NameRef, tlv, types};
use smallvec::SmallVec;

use crate::face::FaceId;
use crate::hash::{NameHasher, Prefixes};
use crate::hint;
use crate::records::Records;
use crate::strategy::Chosen;

/// Place where an entry stands in the slab. Valid until the entry is removed.
pub(crate) type PitIndex = u32;

/// Selectors: they distinguish the entries of one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Selectors {
    pub(crate) can_be_prefix: bool,
    pub(crate) must_be_fresh: bool,
    /// No cache shall answer.
    pub(crate) past_caches: bool,
    /// Hash of the forwarding hint, 0 without one.
    pub(crate) hint_hash: u64,
}

impl Selectors {
    pub(crate) fn of(interest: &Interest<'_>, hasher: &NameHasher) -> Self {
        let hint_hash = interest.forwarding_hint.map_or(0, |hint| {
            hint.names().fold(1, |acc, name| hasher.combine(acc, hasher.hash(name.value())))
        });
        Self {
            can_be_prefix: interest.can_be_prefix,
            must_be_fresh: interest.must_be_fresh,
            past_caches: interest.past_caches,
            hint_hash,
        }
    }
}

/// An Interest that shall get an entry.
pub(crate) struct Request<'a> {
    pub(crate) face: FaceId,
    pub(crate) name: NameRef<'a>,
    pub(crate) prefixes: &'a Prefixes,
    pub(crate) selectors: Selectors,
    /// As it is forwarded.
    pub(crate) wire: &'a [u8],
    pub(crate) now_ns: u64,
}

/// First octets of an implicit digest.
const DIGEST_TYPE_LENGTH: [u8; 2] = [types::IMPLICIT_SHA256_DIGEST as u8, 32];

/// Strategy that learns what becomes of an Interest.
#[derive(Debug, Clone)]
pub(crate) struct Measured {
    /// The strategy that sent it.
    pub(crate) strategy: Chosen,
    /// The hash of the prefix under which it measures.
    pub(crate) namespace: u64,
}

/// Interests up to this size are kept in place.
const WIRE_INLINE_BYTES: usize = 128;

/// A pending Interest: its packet and its records. Nearly always the packet is small and kept in
/// place.
#[derive(Debug, Default)]
pub(crate) struct PitEntry {
    pub(crate) records: Records,
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
        self.wire.clear();
        self.records.clear();
        self.measured = None;
    }

    /// The octets of the name.
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
    pub(crate) fn wire(&self) -> &[u8] {
        &self.wire
    }

    /// Returns whether Data `name` that it brings may be kept for others.
    pub(crate) fn may_be_cached(&self, name: NameRef<'_>) -> bool {
        self.selectors.hint_hash == 0
            || Interest::decode(&self.wire)
                .is_ok_and(|interest| hint::may_be_cached(name, interest.forwarding_hint.as_ref()))
    }

    pub(crate) fn was_asked_of(&self, face: FaceId) -> bool {
        self.records.out_record(face).is_some()
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

/// Place where the nonce's octets stand in a checked Interest.
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
