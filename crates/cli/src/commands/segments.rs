//! `--segment-signature`: how segments are signed for readers who know no roots.
//!
//! Our own readers prove content by the hash tree, so the default is not to sign at all. A key of
//! another kind than the publisher's is made on first use, kept beside the state, and certified by
//! the publisher's key, so that whoever trusts that one can follow.

use crate::exit::{Code, Failure, Outcome};
use byname_io::Clock;
use byname_keychain::{Identity, Keychain, default_validity};
use byname_packet::DigestSigner;
use byname_profile::Paths;
use byname_security::cert::CertificateRequest;
use byname_security::key::{Algorithm, HmacSigner, KeySigner};
use byname_transfer::server::SharedSigner;
use std::path::PathBuf;
use std::sync::Arc;

/// Octets that an HMAC secret must have at least.
const SECRET_BYTES_MIN: usize = 16;
/// Octets that are read of an HMAC secret.
const SECRET_BYTES_MAX: usize = 4096;

/// Signatures of segments.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct SegmentArgs {
    /// Signature of segments and listings, for readers other than byname's, which check the
    /// hash tree.
    #[arg(long, value_name = "KIND", value_enum, default_value = "null")]
    segment_signature: Kind,
    /// File with the secret for --segment-signature hmac.
    #[arg(long, value_name = "FILE", required_if_eq("segment_signature", "hmac"))]
    segment_secret: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    /// Not at all (SignatureType Null): what the hash tree is for.
    #[default]
    Null,
    /// SHA-256 digest: against accidents only.
    Digest,
    Ed25519,
    /// ECDSA over P-256.
    Ecdsa,
    /// RSA with 2048 bits: about a thousand segments a second.
    Rsa,
    /// HMAC-SHA256 with a secret that readers share.
    Hmac,
}

/// The signer of segments, and the certificate that readers need for it, if it is a new one.
pub(crate) struct Segments {
    pub(crate) signer: Option<SharedSigner>,
    pub(crate) certificate: Option<Vec<u8>>,
}

impl SegmentArgs {
    /// The key for the publisher's segments.
    pub(crate) fn signer(&self, paths: &Paths, identity: &Identity) -> Outcome<Segments> {
        let algorithm = match self.segment_signature {
            Kind::Null => return Ok(Segments { signer: None, certificate: None }),
            Kind::Digest => return Ok(plain(Arc::new(DigestSigner))),
            Kind::Hmac => return self.hmac(identity),
            Kind::Ed25519 => Algorithm::Ed25519,
            Kind::Ecdsa => Algorithm::EcdsaP256,
            Kind::Rsa => Algorithm::Rsa,
        };
        if identity.signer.key().algorithm() == algorithm {
            return Ok(plain(Arc::new(identity.signer.clone())));
        }
        certified(paths, identity, algorithm)
    }

    fn hmac(&self, identity: &Identity) -> Outcome<Segments> {
        let path = self.segment_secret.as_ref().ok_or_else(|| {
            Failure::usage("--segment-signature hmac needs --segment-secret FILE".to_owned())
        })?;
        let secret = std::fs::read(path).map_err(|error| Failure::disk(path, error))?;
        if !(SECRET_BYTES_MIN..=SECRET_BYTES_MAX).contains(&secret.len()) {
            return Err(Failure::usage(format!(
                "{}: a secret has {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} octets",
                path.display()
            )));
        }
        let locator = identity.prefix.with_generic(b"KEY").with_generic(b"hmac");
        Ok(plain(Arc::new(HmacSigner::new(&secret, locator))))
    }
}

fn plain(signer: SharedSigner) -> Segments {
    Segments { signer: Some(signer), certificate: None }
}

fn certified(paths: &Paths, identity: &Identity, algorithm: Algorithm) -> Outcome<Segments> {
    let keys = Keychain::open(&paths.state.join("segment-keys").join(match algorithm {
        Algorithm::Ed25519 => "ed25519",
        Algorithm::EcdsaP256 => "ecdsa",
        Algorithm::Rsa => "rsa",
    }))?;
    let now_ns = Clock::new().unix_ns();
    let prefix = identity.prefix.view();
    let own = match keys.identity(prefix)? {
        Some(own) => own,
        None => keys.create_identity(prefix, algorithm, now_ns)?,
    };
    let key = own.signer.key().clone();
    let public_key = key.public_key();
    let key_name = own.certificate.name().without_last(2).to_name();
    let request = CertificateRequest {
        key_name: key_name.view(),
        public_key: &public_key,
        issuer_id: b"publisher",
        version: now_ns,
        validity: default_validity(now_ns),
    };
    let certificate = request
        .issue(&identity.signer)
        .map_err(|error| Failure::new(Code::Other, format!("segment key: {error}")))?;
    let signer = KeySigner::new(key, request.certificate_name());
    let certificate = Some(certificate.wire().to_vec());
    Ok(Segments { signer: Some(Arc::new(signer)), certificate })
}
