//! Who signed a packet, by the certificates that a site's key leads to.
//!
//! The namespace of the signer's certificate says who it is; the [`Validator`] says that the chain
//! of certificates ends at an anchor for that namespace. Disks and heads have one anchor, the
//! site's key for P, so another site's key, and a user's word in the place of a disk's, count for
//! nothing.

use byname_packet::{Data, Interest, KeyLocator, Name, NameRef};
use byname_security::cert::is_key_locator;
use byname_security::key::{KeyId, PublicKey};
use byname_security::trust::{Decision, Signed, TrustError, Trusted, Validator};
use thiserror::Error;

use crate::names::{Identity, SiteName};

/// Whose word a packet is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authentic {
    /// The signer.
    pub identity: Identity,
    /// The key it was signed with.
    pub key: PublicKey,
    /// Name of that key's certificate.
    pub certificate: Name,
}

impl Authentic {
    /// Digest of the key.
    pub fn key_id(&self) -> KeyId {
        self.key.key_id()
    }
}

/// Result of checking a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Check<T, E = Untrusted> {
    /// It counts.
    Accepted(T),
    /// Fetch this certificate, add it to the validator, and check again.
    NeedCertificate(Name),
    /// It does not count.
    Refused(E),
}

/// Reason for which a signature does not count.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Untrusted {
    /// There is no signature, or none with a certificate's name.
    #[error("the packet is not signed with a certificate")]
    Unsigned,
    /// The digest in the name is not that of the parameters.
    #[error("the parameters are not those that the name has the digest of")]
    ParametersDigest,
    /// The key is nobody's of this site.
    #[error("{namespace} is no user, disk or writer of the site")]
    ForeignIdentity {
        /// Its namespace.
        namespace: Name,
    },
    /// The chain of certificates does not count.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The policy of the validator trusts without proof, which is no ground to act on.
    #[error("no anchor proves the signature")]
    NoAnchor,
}

/// Checks a signed Interest: a command or an order.
pub fn check_interest(
    site: &SiteName,
    interest: &Interest<'_>,
    validator: &mut Validator,
    now_s: u64,
) -> Check<Authentic> {
    if !interest.check_parameters_digest() {
        return Check::Refused(Untrusted::ParametersDigest);
    }
    // The subject is put in when the signer's certificate is known.
    match Signed::from_interest(interest, NameRef::default()) {
        Some(signed) => check(site, signed, Subject::Signer, (validator, now_s)),
        None => Check::Refused(Untrusted::Unsigned),
    }
}

/// Checks a Data packet, whose name must lie in the signer's namespace.
pub fn check_data(
    site: &SiteName,
    data: &Data<'_>,
    validator: &mut Validator,
    now_s: u64,
) -> Check<Authentic> {
    check(site, Signed::from(data), Subject::Packet, (validator, now_s))
}

/// The name that must lie in the signer's namespace.
enum Subject {
    /// The packet's own.
    Packet,
    /// The namespace itself: a command is sent to somebody else's name.
    Signer,
}

fn check(
    site: &SiteName,
    signed: Signed<'_>,
    subject: Subject,
    (validator, now_s): (&mut Validator, u64),
) -> Check<Authentic> {
    let locator = match signed.key_locator {
        Some(KeyLocator::Name(locator)) if is_key_locator(locator) => locator,
        _ => return Check::Refused(Untrusted::Unsigned),
    };
    let Some(certificate) = validator.certificate(locator).cloned() else {
        return Check::NeedCertificate(locator.to_name());
    };
    let namespace = certificate.identity().to_name();
    let Some(identity) = site.identity(namespace.view()) else {
        return Check::Refused(Untrusted::ForeignIdentity { namespace });
    };
    let signed = match subject {
        Subject::Packet => signed,
        Subject::Signer => Signed { name: namespace.view(), ..signed },
    };
    match validator.check(&signed, now_s) {
        Decision::Trusted(Trusted::Anchored { .. }) => Check::Accepted(Authentic {
            identity,
            key: certificate.public_key().clone(),
            certificate: certificate.name().to_name(),
        }),
        Decision::Trusted(_) => Check::Refused(Untrusted::NoAnchor),
        Decision::NeedCertificate(name) => Check::NeedCertificate(name),
        Decision::Refused(error) => Check::Refused(error.into()),
    }
}
