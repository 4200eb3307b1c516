//! Identities that are in no directory: made for a while, or handed over by whoever has made them.

use std::sync::Arc;

use byname_packet::{NameRef, ValidityPeriod};
use byname_security::cert::Certificate;
use byname_security::key::{Algorithm, KeyPair, KeySigner};

use super::{Damage, Identity, KeychainError, new_key};

impl Identity {
    /// A new key with a self-signed certificate, which nothing here keeps.
    ///
    /// # Errors
    /// [`KeychainError`] if the key cannot be made.
    pub fn generate(
        prefix: NameRef<'_>,
        algorithm: Algorithm,
        validity: ValidityPeriod,
        now_unix_ns: u64,
    ) -> Result<Self, KeychainError> {
        let (_, key, certificate) = new_key(prefix, algorithm, None, validity, now_unix_ns)?;
        Ok(Self::unchecked(key, certificate))
    }

    /// A key that was handed over with its self-signed certificate.
    ///
    /// # Errors
    /// [`KeychainError::Import`] if they do not belong together.
    pub fn of_key(key: KeyPair, certificate: Certificate) -> Result<Self, KeychainError> {
        let is_own = key.key_id() == certificate.key_id() && certificate.is_self_signed();
        if !is_own || certificate.verify_signed_by(certificate.public_key()).is_err() {
            let name = certificate.name().to_name();
            return Err(KeychainError::Import(Damage::Forged { name }));
        }
        Ok(Self::unchecked(Arc::new(key), certificate))
    }

    fn unchecked(key: Arc<KeyPair>, certificate: Certificate) -> Self {
        Self {
            prefix: certificate.identity().to_name(),
            signer: KeySigner::new(key, certificate.name().to_name()),
            chain: vec![certificate.clone()],
            certificate,
        }
    }
}
