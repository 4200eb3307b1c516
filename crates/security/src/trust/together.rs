//! Signatures of packets that came together, verified together.
//!
//! Nothing is decided here. What was found good is remembered, by a digest of key, signed portion
//! and signature, until the next packets come together; the walk up the chain then need not verify
//! it again. Everything else that it checks, it checks.

use std::collections::HashSet;

use byname_packet::{KeyLocator, NameRef, sha256, signature_type};

use super::signed::Signed;
use crate::batch::{Signature, TOGETHER_MIN, verify_together};
use crate::key::PublicKey;

/// Octets of every signature that can be good.
const SIGNATURE_BYTES: usize = 64;

/// Signatures that were found good together.
#[derive(Debug, Default)]
pub(super) struct Together(HashSet<[u8; 32]>);

impl Together {
    /// True if the signature of this packet was found to be of this key.
    pub(super) fn has(&self, key: &PublicKey, signed: &Signed<'_>) -> bool {
        match key {
            PublicKey::Ed25519(point) if !self.0.is_empty() => {
                signed.value.len() == SIGNATURE_BYTES && self.0.contains(&digest(point, signed))
            }
            _ => false,
        }
    }
}

/// Ed25519 signatures of one key.
struct OfKey<'a> {
    locator: NameRef<'a>,
    point: [u8; 32],
    packets: Vec<&'a Signed<'a>>,
}

impl Together {
    /// Verifies the signatures of packets that came together, as far as a key is known, and forgets
    /// those of before. `point_of` finds the Ed25519 key of a KeyLocator.
    pub(super) fn verify(
        &mut self,
        packets: &[Signed<'_>],
        point_of: &mut dyn FnMut(NameRef<'_>) -> Option<[u8; 32]>,
    ) {
        self.0.clear();
        if packets.len() < TOGETHER_MIN {
            return;
        }
        for OfKey { point, packets, .. } in by_key(packets, point_of) {
            let signatures: Vec<Signature<'_>> = packets
                .iter()
                .map(|signed| Signature { parts: &signed.parts, value: signed.value })
                .collect();
            if signatures.len() >= TOGETHER_MIN && verify_together(&point, &signatures) {
                self.0.extend(packets.iter().map(|signed| digest(&point, signed)));
            }
        }
    }
}

/// The packets by the Ed25519 keys that they say they are signed with.
fn by_key<'a>(
    packets: &'a [Signed<'a>],
    point_of: &mut dyn FnMut(NameRef<'_>) -> Option<[u8; 32]>,
) -> Vec<OfKey<'a>> {
    let mut keys: Vec<OfKey<'a>> = Vec::new();
    for signed in packets {
        let Some(KeyLocator::Name(locator)) = signed.key_locator else { continue };
        if signed.signature_type != signature_type::ED25519 {
            continue;
        }
        if let Some(known) = keys.iter_mut().find(|known| known.locator == locator) {
            known.packets.push(signed);
        } else if let Some(point) = point_of(locator) {
            keys.push(OfKey { locator, point, packets: vec![signed] });
        }
    }
    keys
}

/// A digest of who signed what, and how. Key and signature come first and have fixed lengths, so
/// that no octet can count as part of another piece.
fn digest(point: &[u8; 32], signed: &Signed<'_>) -> [u8; 32] {
    let mut pieces = vec![&point[..], signed.value];
    pieces.extend(&signed.parts);
    sha256(&pieces)
}
