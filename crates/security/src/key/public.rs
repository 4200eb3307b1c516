//! Public keys as they stand in certificates: SubjectPublicKeyInfo in DER.
//!
//! The forms are few and fixed, so they are compared octet by octet instead of parsed: what is
//! not exactly one of them is refused, and a key has one encoding and therefore one id.

use byname_packet::{sha256, signature_type};

use super::{KeyError, KeyId};

const ED25519_PREFIX: [u8; 12] = *b"\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00";

const ECDSA_P256_PREFIX: [u8; 26] = *b"\x30\x59\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\
    \x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07\x03\x42\x00";

/// AlgorithmIdentifier of rsaEncryption; it follows the four octets that give the length.
const RSA_ALGORITHM: [u8; 15] = *b"\x30\x0d\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01\x05\x00";

/// An RSA key of 8192 bits has about 1060 octets.
const RSA_DER_MAX: usize = 1200;

/// A public key that signatures can be checked with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PublicKey {
    /// Ed25519.
    Ed25519([u8; 32]),
    /// ECDSA over P-256: the uncompressed point.
    EcdsaP256([u8; 65]),
    /// RSA, kept as SubjectPublicKeyInfo.
    Rsa(Vec<u8>),
}

impl PublicKey {
    /// Reads a SubjectPublicKeyInfo.
    ///
    /// # Errors
    /// [`KeyError::PublicKey`] for other kinds of keys and other encodings.
    pub fn from_der(der: &[u8]) -> Result<Self, KeyError> {
        let refused = KeyError::PublicKey { length: der.len() };
        if let Some(point) = der.strip_prefix(&ED25519_PREFIX) {
            return point.try_into().map(Self::Ed25519).map_err(|_| refused);
        }
        if let Some(point) = der.strip_prefix(&ECDSA_P256_PREFIX) {
            return point.try_into().map(Self::EcdsaP256).map_err(|_| refused);
        }
        let is_rsa = der.get(4..).is_some_and(|rest| rest.starts_with(&RSA_ALGORITHM));
        if is_rsa && der.len() <= RSA_DER_MAX {
            return Ok(Self::Rsa(der.to_vec()));
        }
        Err(refused)
    }

    /// The SubjectPublicKeyInfo.
    pub fn to_der(&self) -> Vec<u8> {
        match self {
            Self::Ed25519(point) => [&ED25519_PREFIX[..], point].concat(),
            Self::EcdsaP256(point) => [&ECDSA_P256_PREFIX[..], point].concat(),
            Self::Rsa(der) => der.clone(),
        }
    }

    /// The digest that names this key.
    pub fn key_id(&self) -> KeyId {
        KeyId(sha256(&[&self.to_der()]))
    }

    /// The type of the signatures this key verifies.
    pub fn signature_type(&self) -> u64 {
        match self {
            Self::Ed25519(_) => signature_type::ED25519,
            Self::EcdsaP256(_) => signature_type::ECDSA,
            Self::Rsa(_) => signature_type::RSA,
        }
    }
}
