//! Why a packet does not count: one message for each cause, saying what to do about it.

use std::fmt;

use byname_packet::Name;
use thiserror::Error;

use crate::cert::{CertificateError, format_time};
use crate::key::KeyId;

use super::CHAIN_MAX;

/// Replacement of a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnsignedKind {
    /// Nothing at all.
    Null,
    /// A digest that anybody can compute.
    Digest,
}

impl fmt::Display for UnsignedKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Null => "has no signature",
            Self::Digest => "has only a digest, which anybody can compute, and no signature",
        })
    }
}

/// Why a signed packet does not count.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TrustError {
    /// The chain is sound, but no anchor covers the name.
    #[error("{name} is signed by {key_id}, a key that is not trusted here")]
    UnknownKey {
        /// The packet.
        name: Name,
        /// The key that signed it.
        key_id: KeyId,
        /// The key's namespace.
        identity: Name,
    },
    /// An anchor covers the name, but the packet leads to another key.
    #[error(
        "{name} is signed by {found}, but for {prefix} only {expected} is trusted. Either the \
         publisher has a new key that the old one did not sign, or somebody else answers"
    )]
    KeyMismatch {
        /// The packet.
        name: Name,
        /// The anchor's prefix.
        prefix: Name,
        /// The anchor's key.
        expected: KeyId,
        /// The key that signed the packet.
        found: KeyId,
    },
    /// The key is trusted, but for other names.
    #[error("{name} is signed by {key_id}, which is trusted for {prefix} only")]
    OutsideAnchor {
        /// The packet.
        name: Name,
        /// The prefix for which the key is trusted.
        prefix: Name,
        /// The key.
        key_id: KeyId,
    },
    /// The key's own namespace does not hold the name.
    #[error("{name} is signed by {key_id}, a key that may only sign names under {namespace}")]
    NotUnder {
        /// The packet, or the identity of the certificate that was signed.
        name: Name,
        /// The key's identity.
        namespace: Name,
        /// The key.
        key_id: KeyId,
    },
    /// The certificate's time is over.
    #[error(
        "the certificate {name} of key {key_id} expired on {}; the publisher must rotate the key \
         (this machine's clock says {})",
        format_time(*at_s), format_time(*now_s)
    )]
    Expired {
        /// The certificate.
        name: Name,
        /// Its key.
        key_id: KeyId,
        /// Last valid moment, Unix seconds.
        at_s: u64,
        /// The moment of the check, Unix seconds.
        now_s: u64,
    },
    /// The certificate's time has not come.
    #[error(
        "the certificate {name} of key {key_id} is valid only from {}, and this machine's clock \
         says {}: is this machine's clock right?",
        format_time(*at_s), format_time(*now_s)
    )]
    NotYetValid {
        /// The certificate.
        name: Name,
        /// Its key.
        key_id: KeyId,
        /// First valid moment, Unix seconds.
        at_s: u64,
        /// The moment of the check, Unix seconds.
        now_s: u64,
    },
    /// The key was revoked here.
    #[error("{packet} depends on {key_id} ({name}), a key that was revoked on this machine")]
    Revoked {
        /// The revoked key.
        key_id: KeyId,
        /// The revoked key's name.
        name: Name,
        /// The packet.
        packet: Name,
    },
    /// The signature is not of this packet and key.
    #[error(
        "the signature of {name} does not match key {key_id}: the packet was altered or forged"
    )]
    BadSignature {
        /// The packet or certificate.
        name: Name,
        /// The key it should be of.
        key_id: KeyId,
    },
    /// The digest is not of this packet.
    #[error("the digest of {name} does not match: the packet was damaged")]
    BadDigest {
        /// The packet.
        name: Name,
    },
    /// There is no signature.
    #[error("{name} {kind}; --insecure would read it without knowing who wrote it")]
    Unsigned {
        /// The packet.
        name: Name,
        /// The name that stands there instead.
        kind: UnsignedKind,
    },
    /// The signature names no certificate.
    #[error("the signature of {name} does not say which certificate it belongs to")]
    NoKeyLocator {
        /// The packet or certificate.
        name: Name,
    },
    /// The signature is of a type that certificates cannot check.
    #[error("{name} has a signature of type {signature_type}, which cannot be checked here")]
    UnsupportedSignature {
        /// The packet.
        name: Name,
        /// SignatureType.
        signature_type: u64,
    },
    /// The chain has too many certificates.
    #[error("{name} leads to no trusted key within {CHAIN_MAX} certificates")]
    ChainTooLong {
        /// The packet.
        name: Name,
    },
    /// The packet fetched under the certificate's name is no certificate. Made by the caller that
    /// fetched it.
    #[error("what was fetched as certificate {name} cannot be used: {source}")]
    MalformedCertificate {
        /// The name asked for.
        name: Name,
        /// The fault.
        source: CertificateError,
    },
    /// The certificate of a trusted key was issued by somebody who is not trusted, and the key's
    /// own is not to be had: nobody says until when the key counts.
    #[error(
        "the certificate {name} of the trusted key {key_id} was issued by somebody who is not \
         trusted here, and the key's self-signed certificate could not be fetched"
    )]
    Unvouched {
        /// The certificate.
        name: Name,
        /// The trusted key.
        key_id: KeyId,
    },
    /// Nobody answered with the certificate: the caller that tried to fetch it has said so.
    #[error("the certificate {certificate}, needed to check {name}, could not be fetched")]
    NoCertificate {
        /// The packet.
        name: Name,
        /// The certificate asked for.
        certificate: Name,
    },
}

impl TrustError {
    /// True if the cause is a missing decision of the user (whom to trust), not a bad packet.
    pub fn is_unknown_key(&self) -> bool {
        matches!(
            self,
            Self::UnknownKey { .. } | Self::KeyMismatch { .. } | Self::OutsideAnchor { .. }
        )
    }
}
