//! Replays `vectors/security`: packets with signatures, made here and by other software.
//!
//! `BYNAME_WRITE_VECTORS=1 cargo test -p byname-security vectors` writes `packets.json` anew.

use std::path::PathBuf;
use std::sync::Arc;

use byname_packet::{Data, DigestSigner, NullSigner};
use byname_security::cert::Certificate;
use byname_security::key::{HmacSigner, KeyPair, KeySigner, PublicKey};
use byname_security::trust::Signed;
use byname_security::verify::{VerifyError, VerifyKey, verify_signature};
use serde_json::{Value, json};

use crate::identity::{Publisher, data, name};

fn path(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../vectors/security").join(file)
}

fn read(file: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(path(file)).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    document["cases"].as_array().unwrap().clone()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(value: &Value) -> Vec<u8> {
    let text = value.as_str().unwrap();
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

const SEED: [u8; 32] = [7; 32];
const SECRET: &[u8] = b"a secret of both ends";

fn packets() -> Value {
    let packet = name("/lab/file/v=1/seg=0");
    let content = b"signed once";
    let ed25519 = KeySigner::new(
        Arc::new(KeyPair::ed25519_from_seed(&SEED)),
        name("/lab/KEY/%07%07%07%07%07%07%07%07/self/v=1"),
    );
    let hmac = HmacSigner::new(SECRET, name("/lab/shared"));
    let case = |about: &str, wire: Vec<u8>| json!({"about": about, "wire": hex(&wire)});
    json!({
        "about": "Data packets in hexadecimal. Deterministic signatures: signing the same gives \
                  the same octets. The name is /lab/file/v=1/seg=0, the content 'signed once', the \
                  freshness 1000 ms; the last case is the self-signed certificate of the same key.",
        "ed25519_seed": hex(&SEED),
        "ed25519_public_key": hex(&KeyPair::ed25519_from_seed(&SEED).public_key_der()),
        "hmac_secret": hex(SECRET),
        "cases": [
            case("Null", data(packet.view(), content, &NullSigner)),
            case("DigestSha256", data(packet.view(), content, &DigestSigner)),
            case("Ed25519", data(packet.view(), content, &ed25519)),
            case("HMAC-SHA256", data(packet.view(), content, &hmac)),
            case("certificate", Publisher::new("/lab", 7).certificate.wire().to_vec()),
        ],
    })
}

#[test]
fn golden_packets_are_made_and_verified_octet_by_octet() {
    let computed = packets();
    if std::env::var_os("BYNAME_WRITE_VECTORS").is_some() {
        let text = serde_json::to_string_pretty(&computed).unwrap() + "\n";
        std::fs::write(path("packets.json"), text).unwrap();
    }
    let stored = read("packets.json");
    let computed = computed["cases"].as_array().unwrap();
    assert_eq!(stored.len(), computed.len());
    let public = KeyPair::ed25519_from_seed(&SEED).public_key();
    for (stored, computed) in stored.iter().zip(computed) {
        assert_eq!(stored, computed);
        let wire = unhex(&stored["wire"]);
        let decoded = Data::decode(&wire).unwrap();
        let about = stored["about"].as_str().unwrap();
        let (key, expected) = match about {
            "Null" => (VerifyKey::None, Err(VerifyError::Unsigned)),
            "DigestSha256" => (VerifyKey::None, Ok(())),
            "HMAC-SHA256" => (VerifyKey::Hmac(SECRET), Ok(())),
            _ => (VerifyKey::Public(&public), Ok(())),
        };
        assert_eq!(Signed::from(&decoded).verify(key), expected, "{about}");
    }
    let certificate = unhex(&stored[4]["wire"]);
    assert_eq!(Certificate::decode(&certificate).unwrap().key_id(), public.key_id());
}

#[test]
fn signatures_made_by_openssl_verify() {
    for case in read("openssl.json") {
        let public = PublicKey::from_der(&unhex(&case["public_key"])).unwrap();
        let signature_type = case["signature_type"].as_u64().unwrap();
        let (message, mut signature) = (unhex(&case["message"]), unhex(&case["signature"]));
        let (head, tail) = message.split_at(10);
        let key = VerifyKey::Public(&public);
        verify_signature(signature_type, key, &[head, tail], &signature).unwrap();
        let mismatch = Err(VerifyError::Mismatch);
        assert_eq!(verify_signature(signature_type, key, &[head], &signature), mismatch);
        *signature.last_mut().unwrap() ^= 1;
        assert_eq!(verify_signature(signature_type, key, &[head, tail], &signature), mismatch);
    }
}

#[test]
fn certificates_of_other_software_decode_and_verify() {
    // 2026-12-01 00:00 UTC.
    const NOW_S: u64 = 1_796_083_200;
    let certificates: Vec<Certificate> = read("certificates.json")
        .iter()
        .map(|case| Certificate::decode(&unhex(&case["wire"])).unwrap())
        .collect();
    let mut issuer_before = None;
    for certificate in &certificates {
        assert_eq!(certificate.check_validity(NOW_S), Ok(()), "{}", certificate.name());
        if certificate.is_self_signed() {
            certificate.verify_signed_by(certificate.public_key()).unwrap();
        } else {
            let issuer: &Certificate = issuer_before.unwrap();
            assert!(certificate.issuer().unwrap().is_prefix_of(issuer.name()));
            assert!(issuer.identity().is_prefix_of(certificate.identity()));
            certificate.verify_signed_by(issuer.public_key()).unwrap();
            assert!(certificate.verify_signed_by(certificate.public_key()).is_err());
        }
        issuer_before = Some(certificate);
    }
    assert_eq!(certificates.iter().filter(|c| !c.is_self_signed()).count(), 1);
}
