//! The certificates that a publisher answers with.

use std::sync::Arc;

use byname_packet::NameRef;
use byname_security::cert::{Certificate, CertificateRequest, IssueError, SELF_ISSUER};
use byname_security::key::{KeyPair, KeySigner};

use super::{Keychain, KeychainError, preferred};

impl Keychain {
    /// The certificates a publisher of `prefix` answers with: those of its current and earlier
    /// keys, so that readers who trust an earlier key can follow, and for each key one that it
    /// signed itself, for readers who trust that key and not its issuer.
    ///
    /// # Errors
    /// [`KeychainError`] if what is there cannot be read.
    pub fn certificates_to_serve(
        &self,
        prefix: NameRef<'_>,
    ) -> Result<Vec<Certificate>, KeychainError> {
        let Some(folder) = self.folder(prefix)? else { return Ok(Vec::new()) };
        let mut served = folder.certificates()?;
        for stored in folder.keys()? {
            let of_key = |it: &&Certificate| it.key_id() == stored.key.key_id();
            let own: Vec<Certificate> = served.iter().filter(of_key).cloned().collect();
            if let Some(issued) = preferred(&own)
                && !stored.is_revoked
                && !own.iter().any(Certificate::is_self_signed)
            {
                served.push(own_certificate(issued, &stored.key)?);
            }
        }
        Ok(served)
    }
}

/// The facts of `issued`, signed by the key itself. It is not stored: the same again each time.
fn own_certificate(issued: &Certificate, key: &Arc<KeyPair>) -> Result<Certificate, IssueError> {
    let version = issued.name().last().and_then(|component| component.version());
    let request = CertificateRequest {
        key_name: issued.key_name(),
        public_key: issued.public_key(),
        issuer_id: SELF_ISSUER,
        version: version.unwrap_or(0),
        validity: issued.validity(),
    };
    request.issue(&KeySigner::new(key.clone(), request.certificate_name()))
}
