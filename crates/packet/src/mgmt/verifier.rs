//! Question of a forwarder to the owner of its trust anchors: may the sender of this command do it?
//!
//! The forwarder knows no keys. Somebody who does implements [`CommandVerifier`]; certificates that
//! are missing are asked for by name, fetched by the forwarder and handed over.

use std::fmt::Debug;

use crate::data::Data;
use crate::interest::Interest;
use crate::name::Name;

/// Verdict on a signed command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The signature is right and fresh.
    Allowed {
        /// Prefixes at or below which the signer may register routes.
        may_register: Vec<Name>,
        /// Until when it may, in seconds since 1970: what it registers ends then.
        until_s: u64,
    },
    /// It is not; the reason, for people.
    Refused(String),
    /// It depends on a certificate with this name, or with a name below it.
    NeedCertificate(Name),
}

/// Verifies commands that are allowed by key rather than by face.
pub trait CommandVerifier: Debug + Send + Sync {
    /// Verifies a command Interest; a verdict of [`Verdict::Allowed`] counts as its first and only
    /// use. Asked again, after [`CommandVerifier::add_certificate`], if a certificate was needed.
    fn verify(&self, interest: &Interest<'_>, unix_ns: u64) -> Verdict;

    /// Verifies a prefix announcement, which is signed itself.
    fn verify_announcement(&self, announcement: &Data<'_>, unix_ns: u64) -> Verdict;

    /// Takes what was found under the name that was asked for. Nothing about it is verified yet.
    fn add_certificate(&self, certificate: &Data<'_>, unix_ns: u64);
}
