//! Checking one signature. Whether its key may sign that name is decided in [`crate::trust`].

use aws_lc_rs::hmac;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ED25519, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey,
};
use byname_packet::{sha256, signature_type};
use thiserror::Error;

use crate::key::{PublicKey, contiguous};

/// Key with which a signature is checked.
#[derive(Debug, Clone, Copy)]
pub enum VerifyKey<'a> {
    /// Nothing: only a digest can be checked.
    None,
    /// The public key of a certificate.
    Public(&'a PublicKey),
    /// A secret that both ends know.
    Hmac(&'a [u8]),
}

/// Why a signature does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum VerifyError {
    /// The signature does not belong to these octets and this key.
    #[error("the signature does not match")]
    Mismatch,
    /// There is no signature (type Null).
    #[error("there is no signature")]
    Unsigned,
    /// The signature is of a type that this key does not make.
    #[error("signature type {signature_type} needs another kind of key")]
    WrongKey {
        /// SignatureType of the packet.
        signature_type: u64,
    },
    /// The signature type is not known here.
    #[error("signature type {signature_type} is not supported")]
    UnsupportedType {
        /// SignatureType of the packet.
        signature_type: u64,
    },
}

/// Checks that `value` is a signature of the concatenated `parts`.
///
/// A digest (type 0) says nothing about who wrote the packet; it is checked whatever the key.
///
/// # Errors
/// [`VerifyError`]; [`VerifyError::Unsigned`] always for type Null.
pub fn verify_signature(
    signature_type: u64,
    key: VerifyKey<'_>,
    parts: &[&[u8]],
    value: &[u8],
) -> Result<(), VerifyError> {
    let matches = match (signature_type, key) {
        (signature_type::NULL, _) => return Err(VerifyError::Unsigned),
        (signature_type::SHA256, _) => sha256(parts) == value,
        (signature_type::HMAC, VerifyKey::Hmac(secret)) => {
            let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
            hmac::verify(&key, &contiguous(parts), value).is_ok()
        }
        (_, VerifyKey::Public(key)) if key.signature_type() == signature_type => {
            verify_public(key, &contiguous(parts), value)
        }
        (
            signature_type::RSA
            | signature_type::ECDSA
            | signature_type::HMAC
            | signature_type::ED25519,
            _,
        ) => return Err(VerifyError::WrongKey { signature_type }),
        _ => return Err(VerifyError::UnsupportedType { signature_type }),
    };
    if matches { Ok(()) } else { Err(VerifyError::Mismatch) }
}

fn verify_public(key: &PublicKey, message: &[u8], value: &[u8]) -> bool {
    match key {
        PublicKey::Ed25519(point) => {
            UnparsedPublicKey::new(&ED25519, point).verify(message, value).is_ok()
        }
        PublicKey::EcdsaP256(point) => {
            UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, point).verify(message, value).is_ok()
        }
        PublicKey::Rsa(der) => {
            UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, der).verify(message, value).is_ok()
        }
    }
}
