//! Publishers for tests, with keys that are the same in every run.

use std::sync::Arc;

use byname_packet::{DataBuilder, Name, NameRef, Signer, ValidityPeriod};
use byname_security::cert::{Certificate, CertificateRequest, SELF_ISSUER};
use byname_security::key::{KeyId, KeyPair, KeySigner};

/// 2026-11-21 00:00 UTC.
pub(crate) const NOW_S: u64 = 1_795_219_200;
const DAY_S: u64 = 86_400;
/// A month around [`NOW_S`].
pub(crate) const MONTH: ValidityPeriod =
    ValidityPeriod { not_before_s: NOW_S - 15 * DAY_S, not_after_s: NOW_S + 15 * DAY_S };

pub(crate) fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

/// A key with a certificate.
pub(crate) struct Publisher {
    pub(crate) key: Arc<KeyPair>,
    pub(crate) certificate: Certificate,
}

impl Publisher {
    /// A self-signed publisher; `seed` tells keys apart.
    pub(crate) fn new(identity: &str, seed: u8) -> Self {
        Self::valid(identity, seed, MONTH)
    }

    pub(crate) fn valid(identity: &str, seed: u8, validity: ValidityPeriod) -> Self {
        let key = Arc::new(KeyPair::ed25519_from_seed(&[seed; 32]));
        let key_name = key_name(identity, seed);
        let public_key = key.public_key();
        let request = CertificateRequest {
            key_name: key_name.view(),
            public_key: &public_key,
            issuer_id: SELF_ISSUER,
            version: 1,
            validity,
        };
        let signer = KeySigner::new(key.clone(), request.certificate_name());
        let certificate = request.issue(&signer).unwrap();
        Self { key, certificate }
    }

    /// A publisher whose certificate `issuer` signed.
    pub(crate) fn issued_by(issuer: &Self, identity: &str, seed: u8) -> Self {
        Self::issued_for(issuer, identity, seed, MONTH)
    }

    pub(crate) fn issued_for(
        issuer: &Self,
        identity: &str,
        seed: u8,
        validity: ValidityPeriod,
    ) -> Self {
        let key = Arc::new(KeyPair::ed25519_from_seed(&[seed; 32]));
        let key_name = key_name(identity, seed);
        let public_key = key.public_key();
        let request = CertificateRequest {
            key_name: key_name.view(),
            public_key: &public_key,
            issuer_id: issuer.certificate.key_component().value,
            version: 1,
            validity,
        };
        let certificate = request.issue(&issuer.signer()).unwrap();
        Self { key, certificate }
    }

    pub(crate) fn signer(&self) -> KeySigner {
        KeySigner::new(self.key.clone(), self.certificate.name().to_name())
    }

    pub(crate) fn key_id(&self) -> KeyId {
        self.key.key_id()
    }

    pub(crate) fn certificate_name(&self) -> Name {
        self.certificate.name().to_name()
    }

    /// A Data packet under `uri`, signed by this publisher.
    pub(crate) fn data(&self, uri: &str) -> Vec<u8> {
        data(name(uri).view(), b"hello", &self.signer())
    }
}

pub(crate) fn data(name: NameRef<'_>, content: &[u8], signer: &dyn Signer) -> Vec<u8> {
    let mut wire = Vec::new();
    DataBuilder::new(name).freshness_ms(1000).encode(content, signer, &mut wire).unwrap();
    wire
}

pub(crate) fn key_name(identity: &str, seed: u8) -> Name {
    let mut name = name(identity);
    name.push_generic(b"KEY");
    name.push_generic(&[seed; 8]);
    name
}
