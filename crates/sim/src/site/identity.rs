//! Keys of a site, its users and disks, made from numbers.

use std::sync::Arc;

use byname_packet::{Name, ValidityPeriod};
use byname_security::cert::{Certificate, CertificateRequest, SELF_ISSUER};
use byname_security::key::{KeyPair, KeySigner};
use byname_transfer::server::SharedSigner;

/// A key with its certificate.
#[derive(Clone)]
pub(super) struct Identity {
    pub(super) key_signer: KeySigner,
    pub(super) issued: Certificate,
}

impl Identity {
    /// The key of this number, for a namespace; certified by the issuer, or by itself.
    pub(super) fn new(number: u8, namespace: &Name, issuer: Option<&Identity>) -> Self {
        let key = Arc::new(KeyPair::ed25519_from_seed(&[number; 32]));
        let key_name = namespace.with_generic(b"KEY").with_generic(&[number; 8]);
        let public_key = key.public_key();
        let request = CertificateRequest {
            key_name: key_name.view(),
            public_key: &public_key,
            issuer_id: if issuer.is_some() { b"site" } else { SELF_ISSUER },
            version: 1,
            validity: ValidityPeriod { not_before_s: 0, not_after_s: 4_000_000_000 },
        };
        let key_signer = KeySigner::new(key, request.certificate_name());
        let signer = issuer.map_or(&key_signer, |issuer| &issuer.key_signer);
        let issued = request.issue(signer).expect("a certificate");
        Self { key_signer, issued }
    }

    pub(super) fn signer(&self) -> SharedSigner {
        Arc::new(self.key_signer.clone())
    }

    pub(super) fn certificate(&self) -> &[u8] {
        self.issued.wire()
    }
}
