//! Ed25519 signatures of one key, verified together.
//!
//! A signature (R, s) of a message is good if s·B − R − k·A is the neutral element; B is the base
//! point, A the key, k the hash of R, A and the message. Of many good signatures the sum is, each
//! with a factor of its own that nobody can choose before all signatures are there: so one pass
//! over the digits serves all, and from some sixteen on a signature costs less than half of what it
//! costs alone. The factors are drawn from a hash of everything that is verified, so that there is
//! no randomness here; a bad signature passes with a probability of 2⁻¹²⁸.
//!
//! Only the answer "all are good" means something. Otherwise the caller verifies one by one
//! ([`crate::verify`]): which is bad, and whether any is, that decides.
//!
//! The equation is multiplied by the cofactor, which the library that verifies one by one does not
//! do: whoever has the private key can make signatures that are good here and bad there. Nobody
//! else can.

use aws_lc_rs::digest;
use curve25519_dalek::constants::ED25519_BASEPOINT_POINT;
use curve25519_dalek::edwards::{CompressedEdwardsY, EdwardsPoint};
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::{IsIdentity, VartimeMultiscalarMul};

/// Signatures below which one after the other is as fast.
pub const TOGETHER_MIN: usize = 3;

/// Octets of R and of s.
const HALF_BYTES: usize = 32;
/// Octets of a factor.
const FACTOR_BYTES: usize = 16;
/// Begins the hash that factors are drawn from.
const FACTOR_CONTEXT: &str = "byname 2026-11-24 factors of Ed25519 signatures verified together";

/// A message and its signature.
#[derive(Debug, Clone)]
pub struct Signature<'a> {
    /// The message, in pieces.
    pub parts: &'a [&'a [u8]],
    /// The signature.
    pub value: &'a [u8],
}

/// A signature, taken apart.
struct Equation {
    r: EdwardsPoint,
    s: Scalar,
    k: Scalar,
}

/// True if all signatures are of the key in `point`. False says nothing of any of them.
pub fn verify_together(point: &[u8; HALF_BYTES], signatures: &[Signature<'_>]) -> bool {
    let Some(key) = decompress(point) else { return false };
    let mut transcript = blake3::Hasher::new_derive_key(FACTOR_CONTEXT);
    transcript.update(point);
    let mut equations = Vec::with_capacity(signatures.len());
    for signature in signatures {
        let Some((equation, k)) = equation(point, signature) else { return false };
        transcript.update(signature.value).update(&k);
        equations.push(equation);
    }
    let mut factors = transcript.finalize_xof();
    let (mut base_factor, mut key_factor) = (Scalar::ZERO, Scalar::ZERO);
    let (mut scalars, mut points) = (Vec::new(), Vec::new());
    for Equation { r, s, k } in equations {
        let mut factor = [0; FACTOR_BYTES];
        factors.fill(&mut factor);
        let factor = Scalar::from(u128::from_le_bytes(factor));
        base_factor -= factor * s;
        key_factor += factor * k;
        scalars.push(factor);
        points.push(r);
    }
    scalars.extend([key_factor, base_factor]);
    points.extend([key, ED25519_BASEPOINT_POINT]);
    EdwardsPoint::vartime_multiscalar_mul(&scalars, &points).mul_by_cofactor().is_identity()
}

/// The equation of a signature, and the octets of its k. `None` if an encoding is not the one that
/// its value has.
fn equation(
    point: &[u8; HALF_BYTES],
    signature: &Signature<'_>,
) -> Option<(Equation, [u8; HALF_BYTES])> {
    let (r, s) = signature.value.split_first_chunk::<HALF_BYTES>()?;
    let s = Scalar::from_canonical_bytes(s.try_into().ok()?).into_option()?;
    let mut hash = digest::Context::new(&digest::SHA512);
    [r, &point[..]].iter().chain(signature.parts).for_each(|part| hash.update(part));
    let k = Scalar::from_bytes_mod_order_wide(hash.finish().as_ref().try_into().ok()?);
    Some((Equation { r: decompress(r)?, s, k }, k.to_bytes()))
}

/// The point of an encoding; `None` if it has another one.
fn decompress(octets: &[u8; HALF_BYTES]) -> Option<EdwardsPoint> {
    // spec: RFC 8032 §5.1.3, 1: y is below 2²⁵⁵ − 19.
    let [least, middle @ .., most] = octets;
    let is_too_large =
        *most & 0x7f == 0x7f && middle.iter().all(|octet| *octet == 0xff) && *least >= 0xed;
    if is_too_large { None } else { CompressedEdwardsY(*octets).decompress() }
}

#[cfg(test)]
mod tests {
    use byname_packet::{Name, Signer};
    use proptest::prelude::*;

    use super::*;
    use crate::key::{KeyPair, KeySigner, PublicKey};
    use crate::verify::{VerifyKey, verify_signature};

    /// 2²⁵² + 27742317777372353535851937790883648493, the order of B, little-endian.
    const ORDER: [u8; 32] = [
        0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde,
        0x14, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
    ];

    struct Signed {
        message: Vec<u8>,
        value: Vec<u8>,
    }

    fn key(seed: u8) -> (KeySigner, [u8; 32]) {
        let pair = std::sync::Arc::new(KeyPair::ed25519_from_seed(&[seed; 32]));
        let PublicKey::Ed25519(point) = pair.public_key() else { panic!("an Ed25519 key") };
        (KeySigner::new(pair, Name::default()), point)
    }

    fn signed(signer: &KeySigner, count: usize) -> Vec<Signed> {
        let sign = |number: usize| {
            let message = vec![number as u8; 1 + number * 37 % 700];
            let mut value = vec![0; 64];
            assert_eq!(signer.sign(&[&message], &mut value), Ok(64));
            Signed { message, value }
        };
        (0..count).map(sign).collect()
    }

    fn are_good(point: &[u8; 32], all: &[Signed]) -> bool {
        let parts: Vec<[&[u8]; 1]> = all.iter().map(|one| [&one.message[..]]).collect();
        let signatures: Vec<_> = all
            .iter()
            .zip(&parts)
            .map(|(one, parts)| Signature { parts, value: &one.value })
            .collect();
        verify_together(point, &signatures)
    }

    fn is_good(point: &[u8; 32], one: &Signed) -> bool {
        let key = PublicKey::Ed25519(*point);
        let (key, parts) = (VerifyKey::Public(&key), [&one.message[..]]);
        verify_signature(byname_packet::signature_type::ED25519, key, &parts, &one.value).is_ok()
    }

    #[test]
    fn signatures_of_one_key_are_good_together() {
        let (signer, point) = key(1);
        for count in [0, 1, 2, 3, 16, 64, 200] {
            assert!(are_good(&point, &signed(&signer, count)), "{count}");
        }
    }

    #[test]
    fn what_is_of_another_key_is_not() {
        let ((signer, point), (other, other_point)) = (key(1), key(2));
        let mut all = signed(&signer, 8);
        assert!(!are_good(&other_point, &all));
        all.push(signed(&other, 1).remove(0));
        assert!(!are_good(&point, &all));
    }

    /// Without a factor for each, what one has too much and another too little would not show.
    #[test]
    fn faults_do_not_make_up_for_each_other() {
        let (signer, point) = key(1);
        let mut all = signed(&signer, 4);
        let scalar = |one: &Signed| {
            let octets: [u8; 32] = one.value[32..].try_into().expect("half of a signature");
            Scalar::from_canonical_bytes(octets).expect("below the order")
        };
        let (more, less) = (scalar(&all[0]) + Scalar::ONE, scalar(&all[1]) - Scalar::ONE);
        all[0].value[32..].copy_from_slice(more.as_bytes());
        all[1].value[32..].copy_from_slice(less.as_bytes());
        assert!(!are_good(&point, &all));
    }

    #[test]
    fn other_encodings_of_the_same_values_are_refused() {
        let (signer, point) = key(1);
        let mut all = signed(&signer, 4);
        let mut carry = 0;
        for (octet, order) in all[2].value[32..].iter_mut().zip(ORDER) {
            let sum = u16::from(*octet) + u16::from(order) + carry;
            (*octet, carry) = (sum as u8, sum >> 8);
        }
        assert!(!is_good(&point, &all[2]));
        assert!(!are_good(&point, &all));
        // 1 and 2²⁵⁵ − 18, both the y of the neutral element.
        let (mut least, mut large) = ([0; 32], [0xff; 32]);
        (least[0], large[0], large[31]) = (1, 0xee, 0x7f);
        assert!(decompress(&least).is_some());
        assert!(decompress(&large).is_none());
    }

    #[test]
    fn what_is_no_signature_is_refused() {
        let (signer, point) = key(1);
        for length in [0, 31, 32, 63, 65] {
            let mut all = signed(&signer, 3);
            all[1].value.resize(length, 0);
            assert!(!are_good(&point, &all), "{length}");
        }
        assert!(!verify_together(&[2; 32], &[]), "2 is the y of no point");
    }

    proptest! {
        /// One octet changed anywhere, and all of them are verified one by one.
        #[test]
        fn one_change_is_noticed(
            (at, place, bit) in (0..6_usize, 0..800_usize, 0..8_u8),
            in_message: bool,
        ) {
            let (signer, point) = key(3);
            let mut all = signed(&signer, 6);
            let one = &mut all[at];
            let octets = if in_message { &mut one.message } else { &mut one.value };
            let place = place % octets.len();
            octets[place] ^= 1 << bit;
            prop_assert!(!is_good(&point, &all[at]));
            prop_assert!(!are_good(&point, &all));
        }
    }
}
