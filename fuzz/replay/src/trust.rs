//! Targets for what decides whether something is believed.

use byname_access::{LOAN_TEXT_BYTES_MAX, Loan};
use byname_packet::{NameRef, sha256};
use byname_profile::link::{LINK_BYTES_MAX, Link};
use byname_security::base64;
use byname_security::cert::Certificate;
use byname_security::tree::{Check, HASH_BYTES, NODE_BYTES, NodeId, Tree, UNIT_BYTES, Verifier};

/// A certificate, as a packet or in its text form.
pub(crate) fn certificate(input: &[u8]) {
    if let Ok(text) = std::str::from_utf8(input)
        && let Ok(wire) = base64::decode_lines(text)
    {
        assert_eq!(base64::decode_lines(&base64::encode_lines(&wire)), Ok(wire.clone()));
        one_certificate(&wire);
    }
    one_certificate(input);
}

fn one_certificate(wire: &[u8]) {
    let Ok(found) = Certificate::decode(wire) else { return };
    assert_eq!(found.wire(), wire);
    let (identity, key_name): (NameRef<'_>, NameRef<'_>) = (found.identity(), found.key_name());
    assert!(identity.is_prefix_of(key_name) && key_name.is_prefix_of(found.name()));
    assert_eq!(key_name.count(), identity.count() + 2);
    assert_eq!(Some(found.key_component()), key_name.last());
    let validity = found.validity();
    assert!(found.check_validity(validity.not_before_s).is_ok());
    assert!(found.check_validity(validity.not_after_s).is_ok());
    assert!(found.check_validity(validity.not_after_s + 1).is_err());
    let _ = found.verify_signed_by(found.public_key());
    let _ = (found.is_self_signed(), found.issuer());
}

/// A link that somebody pastes.
pub(crate) fn byname_link(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(found) = text.parse::<Link>() else { return };
    assert!(Link::is_link(text));
    let printed = found.to_string();
    assert!(printed.is_ascii() && !printed.contains(char::is_whitespace), "{printed}");
    // Escapes can make the printed form of a long link longer than a link may be.
    if printed.len() <= LINK_BYTES_MAX {
        assert_eq!(printed.parse::<Link>(), Ok(found), "{printed}");
    }
}

/// A lent key as a text, and as one whose sum is right.
pub(crate) fn loan(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let sum = base64::encode_url(&sha256(&[input])[..16]);
    one_loan(text);
    one_loan(&format!("{text} {sum}"));
}

fn one_loan(text: &str) {
    let Ok(found) = Loan::decode(text) else { return };
    assert_eq!(found.key_id(), found.identity.signer.key().key_id());
    let written = found.encode().expect("a key that was read is written");
    let secret = written.rsplit(' ').nth(1).expect("a key");
    assert!(!format!("{found:?}").contains(secret));
    // Escapes can make a name longer.
    if written.len() <= LOAN_TEXT_BYTES_MAX {
        let again = Loan::decode(&written).expect("what is written is read");
        assert_eq!((&again.site, &again.user), (&found.site, &found.user));
        assert_eq!((again.site_key, again.until_ns), (found.site_key, found.until_ns));
    }
}

/// Units and nodes of a file as offered by a peer: its size (3 octets), then claims. A claim is:
/// its kind (1 octet: 0 for a unit, else the level of a node), its index (1), a bit to flip (2).
pub(crate) fn tree_verifier(input: &[u8]) {
    let Some((head, claims)) = input.split_at_checked(3) else { return };
    let size = head.iter().fold(0, |size, octet| size << 8 | usize::from(*octet)) % SIZE_MAX;
    let content: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
    let tree = Tree::of(&content);
    let mut verifier = Verifier::new(tree.root, size as u64, 4);
    for claim in claims.chunks_exact(4).take(CLAIMS_MAX) {
        let flip = usize::from(u16::from_be_bytes([claim[2], claim[3]]));
        let index = u64::from(claim[1]);
        if claim[0] == 0 {
            claim_unit(&mut verifier, &content, index, flip);
        } else {
            claim_node(&mut verifier, &tree, NodeId { level: claim[0], index }, flip);
        }
    }
}

/// Two level-1 nodes and a bit; larger files only take longer.
const SIZE_MAX: usize = 257 * UNIT_BYTES;
const CLAIMS_MAX: usize = 64;

/// Flips a bit unless `flip` says to leave the octets as they are.
fn altered(verified: &[u8], flip: usize) -> Vec<u8> {
    let mut octets = verified.to_vec();
    if flip > 0
        && let Some(octet) = octets.get_mut(flip >> 3)
    {
        *octet ^= 1 << (flip & 7);
    }
    octets
}

fn claim_unit(verifier: &mut Verifier, content: &[u8], index: u64, flip: usize) {
    let start = (index as usize).saturating_mul(UNIT_BYTES).min(content.len());
    let end = (start + UNIT_BYTES).min(content.len());
    let verified = &content[start..end];
    let offered = altered(verified, flip);
    if verifier.check(index, &offered) == Check::Verified {
        assert_eq!(offered, verified, "unit {index} is not what was signed");
    }
}

fn claim_node(verifier: &mut Verifier, tree: &Tree, id: NodeId, flip: usize) {
    let verified = tree.node(id).unwrap_or(&[0; HASH_BYTES]);
    assert!(verified.len() <= NODE_BYTES);
    let offered = altered(verified, flip);
    if verifier.add_node(id, &offered).is_ok() {
        assert_eq!(tree.node(id), Some(&offered[..]), "{id:?} is not what was signed");
    }
}
