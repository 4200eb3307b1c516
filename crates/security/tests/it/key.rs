//! Keys and signatures.

use std::sync::Arc;

use byname_packet::{
    Data, DigestSigner, Interest, InterestBuilder, NullSigner, SignatureExtra, Signer,
    signature_type,
};
use byname_security::base64::{Base64Error, decode_lines, decode_url, encode_lines, encode_url};
use byname_security::key::{Algorithm, HmacSigner, KeyError, KeyId, KeyPair, KeySigner, PublicKey};
use byname_security::trust::Signed;
use byname_security::verify::{VerifyError, VerifyKey};
use proptest::prelude::*;

use crate::identity::{data, name};

/// Signs a Data, checks it, then checks that every changed octet of what is signed is noticed.
fn round_trip(signer: &dyn Signer, key: VerifyKey<'_>) {
    let wire = data(name("/lab/file/v=1").view(), b"content", signer);
    let decoded = Data::decode(&wire).unwrap();
    Signed::from(&decoded).verify(key).unwrap();
    let content = wire.windows(7).position(|window| window == b"content").unwrap();
    for position in [content, content + 6, wire.len() - 1] {
        let mut altered = wire.clone();
        altered[position] ^= 1;
        let decoded = Data::decode(&altered).unwrap();
        assert_eq!(Signed::from(&decoded).verify(key), Err(VerifyError::Mismatch));
    }
}

#[test]
fn ed25519_ecdsa_hmac_and_digest_verify_and_notice_changes() {
    for algorithm in [Algorithm::Ed25519, Algorithm::EcdsaP256] {
        let key = Arc::new(KeyPair::generate(algorithm).unwrap());
        let public = key.public_key();
        let signer = KeySigner::new(key, name("/lab/KEY/k/self/v=1"));
        for _ in 0..8 {
            round_trip(&signer, VerifyKey::Public(&public));
        }
    }
    round_trip(&HmacSigner::new(b"secret", name("/shared")), VerifyKey::Hmac(b"secret"));
    round_trip(&DigestSigner, VerifyKey::None);
}

#[test]
fn the_wrong_key_secret_or_kind_of_key_is_told_apart() {
    let ed25519 = KeyPair::ed25519_from_seed(&[1; 32]);
    let ecdsa = KeyPair::generate(Algorithm::EcdsaP256).unwrap();
    let other = KeyPair::ed25519_from_seed(&[2; 32]).public_key();
    let ecdsa_public = ecdsa.public_key();
    let signer = KeySigner::new(Arc::new(ed25519), name("/lab/KEY/k"));
    let wire = data(name("/lab/x").view(), b"", &signer);
    let decoded = Data::decode(&wire).unwrap();
    let signed = Signed::from(&decoded);
    assert_eq!(signed.verify(VerifyKey::Public(&other)), Err(VerifyError::Mismatch));
    let wrong = Err(VerifyError::WrongKey { signature_type: signature_type::ED25519 });
    assert_eq!(signed.verify(VerifyKey::Public(&ecdsa_public)), wrong);
    assert_eq!(signed.verify(VerifyKey::Hmac(b"secret")), wrong);
    assert_eq!(signed.verify(VerifyKey::None), wrong);

    let wire = data(name("/x").view(), b"", &HmacSigner::new(b"secret", name("/shared")));
    let decoded = Data::decode(&wire).unwrap();
    let signed = Signed::from(&decoded);
    assert_eq!(signed.verify(VerifyKey::Hmac(b"Secret")), Err(VerifyError::Mismatch));
    let wrong = Err(VerifyError::WrongKey { signature_type: signature_type::HMAC });
    assert_eq!(signed.verify(VerifyKey::Public(&other)), wrong);

    let wire = data(name("/x").view(), b"", &NullSigner);
    let decoded = Data::decode(&wire).unwrap();
    let unsigned = Signed::from(&decoded).verify(VerifyKey::Public(&other));
    assert_eq!(unsigned, Err(VerifyError::Unsigned));
    let mut future = Signed::from(&decoded);
    future.signature_type = 77;
    let unknown = Err(VerifyError::UnsupportedType { signature_type: 77 });
    assert_eq!(future.verify(VerifyKey::Public(&other)), unknown);
}

#[test]
fn signed_interests_verify_over_their_two_parts() {
    let key = KeyPair::ed25519_from_seed(&[1; 32]);
    let public = key.public_key();
    let signer = KeySigner::new(Arc::new(key), name("/lab/KEY/k/self/v=1"));
    let command = name("/localhost/nfd/rib/register/params");
    let mut wire = Vec::new();
    let extra = SignatureExtra { nonce: Some(&[7; 8]), time_ms: Some(1), ..Default::default() };
    InterestBuilder::new(command.view()).encode_signed(&signer, extra, &mut wire).unwrap();
    let interest = Interest::decode(&wire).unwrap();
    let subject = name("/lab/files");
    let signed = Signed::from_interest(&interest, subject.view()).unwrap();
    signed.verify(VerifyKey::Public(&public)).unwrap();
    let mut altered = wire.clone();
    let place = altered.windows(6).position(|window| window == b"params").unwrap();
    altered[place] ^= 1;
    let interest = Interest::decode(&altered).unwrap();
    let signed = Signed::from_interest(&interest, subject.view()).unwrap();
    assert_eq!(signed.verify(VerifyKey::Public(&public)), Err(VerifyError::Mismatch));

    let mut plain = Vec::new();
    InterestBuilder::new(command.view()).encode(&mut plain);
    let interest = Interest::decode(&plain).unwrap();
    assert!(Signed::from_interest(&interest, subject.view()).is_none());
}

#[test]
fn keys_survive_pkcs8_and_public_keys_survive_der() {
    for algorithm in [Algorithm::Ed25519, Algorithm::EcdsaP256] {
        let key = KeyPair::generate(algorithm).unwrap();
        let again = KeyPair::from_pkcs8(&key.to_pkcs8().unwrap()).unwrap();
        assert_eq!(again.algorithm(), algorithm);
        assert_eq!(again.key_id(), key.key_id());
        let public = PublicKey::from_der(&key.public_key_der()).unwrap();
        assert_eq!(public, key.public_key());
        assert_eq!(public.key_id(), key.key_id());
    }
    assert_eq!(KeyPair::from_pkcs8(b"").unwrap_err(), KeyError::PrivateKey);
    assert_eq!(KeyPair::from_pkcs8(&[0x30; 48]).unwrap_err(), KeyError::PrivateKey);
}

#[test]
fn public_keys_of_other_kinds_or_with_extra_octets_are_refused() {
    let good = KeyPair::ed25519_from_seed(&[1; 32]).public_key_der();
    let long = [&good[..], &[0]].concat();
    for der in [&good[..43], &long, &[], &[0x30; 91]] {
        let refused = PublicKey::from_der(der).unwrap_err();
        assert_eq!(refused, KeyError::PublicKey { length: der.len() });
    }
}

#[test]
fn a_private_key_never_shows_in_debug_output() {
    let key = KeyPair::ed25519_from_seed(&[0x41; 32]);
    assert_eq!(format!("{key:?}"), format!("KeyPair({})", key.key_id()));
    let signer = HmacSigner::new(b"AAAAAAAAAAAAAAAA", name("/shared"));
    assert!(!format!("{signer:?}").contains("AAAA"));
    assert!(!format!("{signer:?}").contains("65, 65"));
}

#[test]
fn a_key_id_is_the_digest_of_the_der_in_url_safe_base64() {
    // Computed with Python's hashlib for the key of RFC 8032 §7.1 test 1.
    let seed = [
        0x9d, 0x61, 0xb1, 0x9d, 0xef, 0xfd, 0x5a, 0x60, 0xba, 0x84, 0x4a, 0xf4, 0x92, 0xec, 0x2c,
        0xc4, 0x44, 0x49, 0xc5, 0x69, 0x7b, 0x32, 0x69, 0x19, 0x70, 0x3b, 0xac, 0x03, 0x1c, 0xae,
        0x7f, 0x60,
    ];
    let key = KeyPair::ed25519_from_seed(&seed);
    let text = "SHA256:BuP9j9opu2CrWVV95h7bCuzbIxE0vjDnW0Vfjht5L6k";
    assert_eq!(key.key_id().to_string(), text);
    assert_eq!(format!("{:?}", key.key_id()), text);
    assert_eq!(text.parse::<KeyId>().unwrap(), key.key_id());
    let last_changed = format!("{}x", &text[..text.len() - 1]);
    for bad in ["", "SHA256:", "SHA256:AAAA", &text[7..], &last_changed, "sha256:AAAA", "é"] {
        let message = bad.parse::<KeyId>().unwrap_err().to_string();
        assert!(message.starts_with("a key id looks like SHA256:"), "{bad}: {message}");
    }
}

#[test]
fn base64_has_one_spelling() {
    assert_eq!(encode_url(&[0xfb, 0xff]), "-_8");
    assert_eq!(decode_url("-_8").unwrap(), [0xfb, 0xff]);
    assert_eq!(decode_url("-_9"), Err(Base64Error::StrayBits));
    assert_eq!(decode_url("-_8="), Err(Base64Error::Character { position: 3 }));
    assert_eq!(decode_url("A"), Err(Base64Error::Length { length: 1 }));
    assert_eq!(encode_lines(&[0xfb, 0xff]), "+/8=\n");
    assert_eq!(decode_lines(" +/\n8= ").unwrap(), [0xfb, 0xff]);
    assert_eq!(decode_lines("+/8"), Err(Base64Error::Length { length: 3 }));
    assert_eq!(decode_lines("A==="), Err(Base64Error::Length { length: 4 }));
    assert_eq!(encode_lines(&[0; 49]).lines().map(str::len).collect::<Vec<_>>(), [64, 4]);
    assert_eq!(encode_lines(&[0; 48]).lines().map(str::len).collect::<Vec<_>>(), [64]);
}

proptest! {
    #[test]
    fn base64_round_trips(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert_eq!(&decode_url(&encode_url(&bytes)).unwrap(), &bytes);
        prop_assert_eq!(&decode_lines(&encode_lines(&bytes)).unwrap(), &bytes);
    }

    #[test]
    fn hostile_keys_and_texts_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = PublicKey::from_der(&bytes);
        let _ = KeyPair::from_pkcs8(&bytes);
        let text = String::from_utf8_lossy(&bytes);
        let _ = decode_url(&text);
        let _ = decode_lines(&text);
        let _ = text.parse::<KeyId>();
    }
}
