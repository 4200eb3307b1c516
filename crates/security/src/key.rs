//! Keys: generating, storing, naming by digest, and signing packets with them.
//!
//! A key is known to people by its [`KeyId`], the SHA-256 of its public key in DER; that is what a
//! link carries and what trust is given to. A key's *name* (`/lab/KEY/<8 octets>`) says which
//! names it may sign, and is no proof of anything.

mod public;

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use aws_lc_rs::encoding::{AsDer, EcPrivateKeyRfc5915Der, Pkcs8V1Der, PublicKeyX509Der};
use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256,
};
use byname_packet::{Name, NameRef, SignError, Signer, signature_type};
use thiserror::Error;

use crate::base64;

pub use public::PublicKey;

/// Octets of an Ed25519 seed.
pub const SEED_BYTES: usize = 32;

/// Longest ASN.1 form of an ECDSA signature over P-256.
const ECDSA_P256_SIGNATURE_MAX: usize = 72;

/// Why a key could not be made or read. Never carries key material.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum KeyError {
    /// The library could not generate a key.
    #[error("the cryptographic library could not generate a key")]
    Generate,
    /// The octets are no private key of a kind that byname signs with.
    #[error("not a private key of type Ed25519, ECDSA P-256 or RSA (2048 to 8192 bits)")]
    PrivateKey,
    /// The key could not be written as PKCS#8.
    #[error("the key cannot be written as PKCS#8")]
    Encode,
    /// The octets are no SubjectPublicKeyInfo of a kind that byname verifies with.
    #[error("a public key of {length} octets is not Ed25519, ECDSA P-256 or RSA in DER form")]
    PublicKey {
        /// Octets given.
        length: usize,
    },
}

/// Why a text is no [`KeyId`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("a key id looks like SHA256: and 43 letters, digits, - or _, not {text:?}")]
pub struct ParseKeyIdError {
    /// The text, shortened if long.
    pub text: String,
}

/// SHA-256 of a public key in DER form (SubjectPublicKeyInfo).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(pub [u8; 32]);

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SHA256:{}", base64::encode_url(&self.0))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for KeyId {
    type Err = ParseKeyIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digest = text.strip_prefix("SHA256:").and_then(|rest| base64::decode_url(rest).ok());
        let digest = digest.and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
        digest.map(Self).ok_or_else(|| ParseKeyIdError { text: text.chars().take(80).collect() })
    }
}

/// Kinds of keys that byname makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Algorithm {
    /// Ed25519: short, fast, the default.
    #[default]
    Ed25519,
    /// ECDSA over P-256, for peers that know no Ed25519.
    EcdsaP256,
    /// RSA with 2048 bits, for peers that know nothing else.
    Rsa,
}

/// A private key with its public half.
pub enum KeyPair {
    /// Ed25519.
    Ed25519(Ed25519KeyPair),
    /// ECDSA over P-256 with SHA-256.
    EcdsaP256(EcdsaKeyPair),
    /// RSA with PKCS#1 v1.5 and SHA-256.
    Rsa(rsa::KeyPair),
}

impl fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyPair({})", self.key_id())
    }
}

impl KeyPair {
    /// The Ed25519 key of a seed, which is all the randomness it has.
    pub fn ed25519_from_seed(seed: &[u8; SEED_BYTES]) -> Self {
        Self::Ed25519(Ed25519KeyPair::from_seed_unchecked(seed).expect("any 32 octets are a seed"))
    }

    /// A new key from the cryptographic library's random source.
    ///
    /// # Errors
    /// [`KeyError::Generate`] when the library fails.
    pub fn generate(algorithm: Algorithm) -> Result<Self, KeyError> {
        match algorithm {
            Algorithm::Ed25519 => {
                Ed25519KeyPair::generate().map(Self::Ed25519).map_err(|_| KeyError::Generate)
            }
            Algorithm::EcdsaP256 => EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING)
                .map(Self::EcdsaP256)
                .map_err(|_| KeyError::Generate),
            Algorithm::Rsa => rsa::KeyPair::generate(rsa::KeySize::Rsa2048)
                .map(Self::Rsa)
                .map_err(|_| KeyError::Generate),
        }
    }

    /// Reads a private key in PKCS#8 DER.
    ///
    /// # Errors
    /// [`KeyError::PrivateKey`] for anything else, or another kind of key.
    pub fn from_pkcs8(der: &[u8]) -> Result<Self, KeyError> {
        if let Ok(pair) = Ed25519KeyPair::from_pkcs8(der) {
            return Ok(Self::Ed25519(pair));
        }
        if let Ok(pair) = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, der) {
            return Ok(Self::EcdsaP256(pair));
        }
        rsa::KeyPair::from_pkcs8(der).map(Self::Rsa).map_err(|_| KeyError::PrivateKey)
    }

    /// Reads a private key in DER, in whatever of the usual forms: PKCS#8, PKCS#1 (RSA), SEC1
    /// (ECDSA).
    ///
    /// # Errors
    /// [`KeyError::PrivateKey`] for anything else, or another kind of key.
    pub fn from_der(der: &[u8]) -> Result<Self, KeyError> {
        if let Ok(pair) = Self::from_pkcs8(der) {
            return Ok(pair);
        }
        if let Ok(pair) = EcdsaKeyPair::from_private_key_der(&ECDSA_P256_SHA256_ASN1_SIGNING, der) {
            return Ok(Self::EcdsaP256(pair));
        }
        rsa::KeyPair::from_der(der).map(Self::Rsa).map_err(|_| KeyError::PrivateKey)
    }

    /// The private key in the form that its kind had before PKCS#8: PKCS#1 for RSA, SEC1 for ECDSA.
    /// Ed25519 has none and stays PKCS#8.
    ///
    /// # Errors
    /// [`KeyError::Encode`] when the library fails.
    pub fn to_traditional_der(&self) -> Result<Vec<u8>, KeyError> {
        match self {
            Self::Ed25519(_) => self.to_pkcs8(),
            Self::EcdsaP256(pair) => {
                let key = pair.private_key();
                let der: EcPrivateKeyRfc5915Der<'_> = key.as_der().map_err(|_| KeyError::Encode)?;
                Ok(der.as_ref().to_vec())
            }
            Self::Rsa(_) => {
                let whole = self.to_pkcs8()?;
                let info = pkcs8::PrivateKeyInfoRef::try_from(&whole[..]);
                let info = info.map_err(|_| KeyError::Encode)?;
                Ok(info.private_key.as_bytes().to_vec())
            }
        }
    }

    /// The private key in PKCS#8 DER, as openssl reads it.
    ///
    /// # Errors
    /// [`KeyError::Encode`] when the library fails.
    pub fn to_pkcs8(&self) -> Result<Vec<u8>, KeyError> {
        let document = match self {
            Self::Ed25519(pair) => pair.to_pkcs8v1(),
            Self::EcdsaP256(pair) => pair.to_pkcs8v1(),
            Self::Rsa(pair) => {
                let der: Result<Pkcs8V1Der<'_>, _> = pair.as_der();
                return der.map(|der| der.as_ref().to_vec()).map_err(|_| KeyError::Encode);
            }
        };
        document.map(|document| document.as_ref().to_vec()).map_err(|_| KeyError::Encode)
    }

    /// The kind of key.
    pub fn algorithm(&self) -> Algorithm {
        match self {
            Self::Ed25519(_) => Algorithm::Ed25519,
            Self::EcdsaP256(_) => Algorithm::EcdsaP256,
            Self::Rsa(_) => Algorithm::Rsa,
        }
    }

    /// The public half.
    pub fn public_key(&self) -> PublicKey {
        let invariant = "the library gives the length of its key type";
        match self {
            Self::Ed25519(pair) => {
                PublicKey::Ed25519(pair.public_key().as_ref().try_into().expect(invariant))
            }
            Self::EcdsaP256(pair) => {
                PublicKey::EcdsaP256(pair.public_key().as_ref().try_into().expect(invariant))
            }
            Self::Rsa(pair) => {
                let der: Result<PublicKeyX509Der<'_>, _> = pair.public_key().as_der();
                PublicKey::Rsa(der.expect("a key pair has a public key").as_ref().to_vec())
            }
        }
    }

    /// The public half as SubjectPublicKeyInfo.
    pub fn public_key_der(&self) -> Vec<u8> {
        self.public_key().to_der()
    }

    /// The digest that names this key.
    pub fn key_id(&self) -> KeyId {
        self.public_key().key_id()
    }

    /// Signs the concatenated `parts` into `out` and returns the octets written.
    fn sign(&self, parts: &[&[u8]], out: &mut [u8]) -> Result<usize, SignError> {
        let message = contiguous(parts);
        let signature = match self {
            Self::Ed25519(pair) => pair.try_sign(&message),
            Self::EcdsaP256(pair) => pair.sign(&SystemRandom::new(), &message),
            Self::Rsa(pair) => {
                let len = pair.public_modulus_len();
                let out = out.get_mut(..len).ok_or(SignError::Failed)?;
                let signed = pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), &message, out);
                return signed.map(|()| len).map_err(|_| SignError::Failed);
            }
        };
        let signature = signature.map_err(|_| SignError::Failed)?;
        let signature = signature.as_ref();
        out.get_mut(..signature.len()).ok_or(SignError::Failed)?.copy_from_slice(signature);
        Ok(signature.len())
    }
}

/// A [`KeyPair`] and the certificate name that goes into each packet's KeyLocator.
#[derive(Debug, Clone)]
pub struct KeySigner {
    key: Arc<KeyPair>,
    locator: Name,
}

impl KeySigner {
    /// A signer that points to the certificate (or key) `locator`.
    pub fn new(key: Arc<KeyPair>, locator: Name) -> Self {
        Self { key, locator }
    }

    /// The key.
    pub fn key(&self) -> &Arc<KeyPair> {
        &self.key
    }
}

impl Signer for KeySigner {
    fn signature_type(&self) -> u64 {
        match *self.key {
            KeyPair::Ed25519(_) => signature_type::ED25519,
            KeyPair::EcdsaP256(_) => signature_type::ECDSA,
            KeyPair::Rsa(_) => signature_type::RSA,
        }
    }

    fn key_locator(&self) -> Option<NameRef<'_>> {
        Some(self.locator.view())
    }

    fn signature_len_max(&self) -> usize {
        match &*self.key {
            KeyPair::Ed25519(_) => 64,
            KeyPair::EcdsaP256(_) => ECDSA_P256_SIGNATURE_MAX,
            KeyPair::Rsa(pair) => pair.public_modulus_len(),
        }
    }

    fn sign(&self, parts: &[&[u8]], out: &mut [u8]) -> Result<usize, SignError> {
        self.key.sign(parts, out)
    }
}

/// Signs with a secret that both ends know (HMAC with SHA-256).
#[derive(Debug, Clone)]
pub struct HmacSigner {
    key: hmac::Key,
    locator: Name,
}

impl HmacSigner {
    /// A signer with `secret`, known to the other end as `locator`.
    pub fn new(secret: &[u8], locator: Name) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, secret), locator }
    }

    /// True if `value` is the whole code, in constant time, of the concatenated `parts`.
    pub fn verify(&self, parts: &[&[u8]], value: &[u8]) -> bool {
        hmac::verify(&self.key, &contiguous(parts), value).is_ok()
    }
}

impl Signer for HmacSigner {
    fn signature_type(&self) -> u64 {
        signature_type::HMAC
    }

    fn key_locator(&self) -> Option<NameRef<'_>> {
        Some(self.locator.view())
    }

    fn signature_len_max(&self) -> usize {
        32
    }

    fn sign(&self, parts: &[&[u8]], out: &mut [u8]) -> Result<usize, SignError> {
        let mut context = hmac::Context::with_key(&self.key);
        parts.iter().for_each(|part| context.update(part));
        let tag = context.sign();
        out.get_mut(..32).ok_or(SignError::Failed)?.copy_from_slice(tag.as_ref());
        Ok(32)
    }
}

/// The signed octets in one piece; a copy only if they are in several.
pub(crate) fn contiguous<'a>(parts: &[&'a [u8]]) -> Cow<'a, [u8]> {
    match parts {
        [part] => Cow::Borrowed(part),
        _ => Cow::Owned(parts.concat()),
    }
}
