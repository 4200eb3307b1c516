//! Segments that are being signed by workers, signed nodes at hand, and the packet itself.

use std::collections::HashMap;

use byname_packet::{DataBuilder, NameRef, NumberComponent, SignError, Signer};

use super::cache::Cache;
use super::config::ServerConfig;
use super::open_files::{PendingSegment, segment_builder};
use super::ops::SignSegment;
use super::reply::Budget;

/// Segments that workers are signing, by the name of the packet.
pub(super) struct SigningQueue {
    pub(super) waiting: HashMap<Vec<u8>, Vec<PendingSegment>>,
    /// Signed nodes, for those who ask later; weighed in octets.
    pub(super) nodes: Cache<Vec<u8>>,
    pub(super) nodes_in_flight: usize,
    pub(super) budget: Budget,
}

impl SigningQueue {
    pub(super) fn new(config: &ServerConfig) -> Self {
        Self {
            waiting: HashMap::new(),
            nodes: Cache::new(config.nodes_bytes_max),
            nodes_in_flight: 0,
            budget: Budget::new(config.nodes_per_s),
        }
    }

    pub(super) fn may_sign(&mut self, now_ns: u64) -> bool {
        self.budget.take(now_ns)
    }

    pub(super) fn node_bytes(&self) -> usize {
        self.nodes.weight()
    }

    pub(super) fn nodes_in_flight(&self) -> usize {
        self.nodes_in_flight
    }
}

/// Octets that signature and key locator take in a packet, at most.
pub(super) fn signature_bytes(signer: &dyn Signer) -> usize {
    // Heads of SignatureInfo, KeyLocator and SignatureValue, and SignatureType.
    const HEADS_BYTES: usize = 4 + 4 + 4 + 3;
    let locator = signer.key_locator().map_or(0, |locator| locator.wire_len());
    HEADS_BYTES + locator + signer.signature_len_max()
}

/// The packet of a segment with this content; for executors.
///
/// # Errors
/// [`SignError`] of the signer.
pub fn sign_segment(make: &SignSegment, content: &[u8]) -> Result<Vec<u8>, SignError> {
    let name = NameRef::from_value(&make.name).map_err(|_| SignError::Failed)?;
    let last = NumberComponent::segment(make.last_segment);
    let builder: DataBuilder<'_> = segment_builder(name, &last);
    let mut wire = Vec::with_capacity(content.len() + name.wire_len() + 512);
    builder.encode(content, &*make.signer.0, &mut wire)?;
    Ok(wire)
}
