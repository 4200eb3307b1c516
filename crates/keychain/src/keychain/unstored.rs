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

    /// A new key of the same name, whose certificate this one signs. Nothing here keeps it.
    ///
    /// # Errors
    /// [`KeychainError`] if the key cannot be made.
    pub fn issue(
        &self,
        algorithm: Algorithm,
        validity: ValidityPeriod,
        now_unix_ns: u64,
    ) -> Result<Self, KeychainError> {
        let prefix = self.prefix.view();
        let (_, key, certificate) = new_key(prefix, algorithm, Some(self), validity, now_unix_ns)?;
        let mut issued = Self::unchecked(key, certificate);
        issued.chain.extend(self.chain.iter().cloned());
        Ok(issued)
    }

    /// A key that was handed over with its certificate. What somebody else issued is not verified:
    /// whoever is shown it does that.
    ///
    /// # Errors
    /// [`KeychainError::Import`] if they do not belong together.
    pub fn of_key(key: KeyPair, certificate: Certificate) -> Result<Self, KeychainError> {
        let is_forged = certificate.is_self_signed()
            && certificate.verify_signed_by(certificate.public_key()).is_err();
        if key.key_id() != certificate.key_id() || is_forged {
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
