//! Whose signature counts for which name.
//!
//! Trust starts at *anchors*: a key, trusted for the names under one prefix. From a signed packet
//! the [`Validator`] walks up the chain of certificates until it meets an anchor for the packet's
//! name. Along the chain every signature must match, every certificate must be valid now and not
//! revoked, and names must narrow: a key signs only under its own identity, an issuer only for
//! identities under its own. There is no trust on first use unless the policy says so.
//!
//! An anchor is a key, not a certificate. When its certificate counts, though, only two can say:
//! the key itself, or an issuer that leads to an anchor. So the walk ends at an anchor whose
//! certificate is self-signed, and goes on from one that somebody else issued; where that leads
//! nowhere the anchor's self-signed certificate is asked for. No certificate counts unverified.
//!
//! The validator does no input or output. [`Validator::check`] answers with a decision or with the
//! name of a certificate; the caller fetches it, hands it to [`Validator::add_certificate`] and
//! checks again. Certificates are kept (at most [`CERTIFICATES_MAX`]) and a link of the chain that
//! was verified once is not verified again; those of a chain that was refused are forgotten, so
//! that a forged certificate cannot keep the true one out.

mod error;
mod signed;
mod together;
mod walk;

use std::collections::{BTreeMap, BTreeSet};

use byname_packet::{KeyLocator, Name, NameRef, signature_type};

use crate::cert::{Certificate, CertificateError, is_key_locator};
use crate::key::{KeyId, PublicKey};
use crate::verify::{VerifyError, VerifyKey};

pub use error::{TrustError, UnsignedKind};
pub use signed::Signed;
use together::Together;
use walk::Walk;

/// Most certificates from a packet to its anchor.
pub const CHAIN_MAX: usize = 5;

/// Most certificates a validator keeps.
pub const CERTIFICATES_MAX: usize = 64;

/// Most names of certificates that are remembered as missing.
const MISSING_MAX: usize = 16;

/// A key that is trusted for the names under a prefix.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Anchor {
    /// Names that begin with this.
    pub prefix: Name,
    /// The key.
    pub key: KeyId,
}

/// Treatment of keys that lead to no anchor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UnknownKeys {
    /// Refuse them, saying how to add them.
    #[default]
    Refuse,
    /// Accept a sound chain for a name that no anchor covers; the caller stores the key
    /// (`--trust-on-first-use`). Where there is an anchor, another key is still refused.
    TrustOnFirstUse,
    /// Accept everything except a digest that does not match (`--insecure`): whoever answers
    /// decides what is read.
    Insecure,
}

/// Anchors, revoked keys, and what happens to the rest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustPolicy {
    /// Trusted keys, each for a prefix.
    pub anchors: BTreeSet<Anchor>,
    /// Keys that never count.
    pub revoked: BTreeSet<KeyId>,
    /// Treatment of keys that lead to no anchor.
    pub unknown_keys: UnknownKeys,
}

impl TrustPolicy {
    /// Trusts `key` for the names under `prefix`.
    pub fn add_anchor(&mut self, prefix: Name, key: KeyId) {
        self.anchors.insert(Anchor { prefix, key });
    }

    /// Keys that are anchors for `name`.
    pub fn anchors_of<'a>(&'a self, name: NameRef<'a>) -> impl Iterator<Item = &'a Anchor> {
        self.anchors.iter().filter(move |anchor| anchor.prefix.view().is_prefix_of(name))
    }
}

/// Why a packet is accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trusted {
    /// Its chain ends at an anchor for its name.
    Anchored {
        /// The key that signed the packet.
        key: KeyId,
        /// The anchor the chain ends at (the same key, or one that vouches for it).
        anchor: Anchor,
    },
    /// No anchor covers its name and the policy trusts on first use: store this key.
    FirstUse {
        /// The key that signed the packet.
        key: KeyId,
        /// The key's namespace.
        identity: Name,
    },
    /// Nothing was checked that could tell a forger from the publisher.
    Insecure,
}

/// The answer to "does this packet count?".
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It counts.
    Trusted(Trusted),
    /// Fetch this certificate (any Data under the name), add it, and ask again.
    NeedCertificate(Name),
    /// It does not count.
    Refused(TrustError),
}

#[derive(Debug)]
struct Known {
    certificate: Certificate,
    /// The key whose signature on this certificate was found good.
    verified_by: Option<KeyId>,
    /// It came from whoever made the policy, not from a peer: it stays, and needs no issuer.
    is_given: bool,
    used: u64,
}

/// Decides whether signed packets count, by a policy and the certificates given to it.
#[derive(Debug, Default)]
pub struct Validator {
    policy: TrustPolicy,
    certificates: BTreeMap<Name, Known>,
    /// Certificates that nobody answers with.
    missing: BTreeSet<Name>,
    /// Signatures of the packets that came together last.
    together: Together,
    /// Advances with each use; the certificate with the smallest value was used longest ago.
    tick: u64,
}

impl Validator {
    /// A validator that knows no certificate yet.
    pub fn new(policy: TrustPolicy) -> Self {
        Self { policy, ..Self::default() }
    }

    /// The policy.
    pub fn policy(&self) -> &TrustPolicy {
        &self.policy
    }

    /// The policy, to be changed; the next check follows it.
    pub fn policy_mut(&mut self) -> &mut TrustPolicy {
        &mut self.policy
    }

    /// Takes a certificate that was fetched or came along. It is not trusted by that.
    ///
    /// # Errors
    /// [`CertificateError`] if the packet is no certificate; nothing is kept then.
    pub fn add_certificate(&mut self, wire: &[u8]) -> Result<Name, CertificateError> {
        let certificate = Certificate::decode(wire)?;
        let name = certificate.name().to_name();
        self.missing.retain(|missing| !missing.view().is_prefix_of(name.view()));
        if self.certificates.get(&name).is_some_and(|known| known.certificate == certificate) {
            return Ok(name);
        }
        if self.certificates.get(&name).is_some_and(|known| known.is_given) {
            return Ok(name);
        }
        self.make_room(&name);
        self.insert(certificate, false);
        Ok(name)
    }

    /// Takes a certificate from whoever made the policy: for its key it says, bit for bit, until
    /// when it counts, whoever issued it.
    pub fn give_certificate(&mut self, certificate: Certificate) {
        self.insert(certificate, true);
    }

    fn insert(&mut self, certificate: Certificate, is_given: bool) {
        self.tick += 1;
        let name = certificate.name().to_name();
        let known = Known { certificate, verified_by: None, is_given, used: self.tick };
        self.certificates.insert(name, known);
    }

    fn make_room(&mut self, name: &Name) {
        let fetched = || self.certificates.iter().filter(|(_, known)| !known.is_given);
        if fetched().count() < CERTIFICATES_MAX || self.certificates.contains_key(name) {
            return;
        }
        let oldest = fetched().min_by_key(|(_, known)| known.used);
        if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
            self.certificates.remove(&oldest);
        }
    }

    /// Forgets a fetched certificate, so that a forged one does not keep the true one out.
    pub(crate) fn forget(&mut self, name: &Name) {
        if self.certificates.get(name).is_some_and(|known| !known.is_given) {
            self.certificates.remove(name);
        }
    }

    /// True if a certificate says by itself until when its key counts: it was given, or the key
    /// has signed it.
    pub(crate) fn says_for_itself(&self, name: &Name) -> bool {
        self.certificates.get(name).is_some_and(|known| {
            let certificate = &known.certificate;
            let own = || certificate.verify_signed_by(certificate.public_key()).is_ok();
            known.is_given || (certificate.is_self_signed() && own())
        })
    }

    /// Notes that nobody answers with a certificate that was asked for, so that the decision is
    /// sought without it. Forgotten when a packet is refused.
    pub fn note_missing(&mut self, locator: Name) {
        if self.missing.len() >= MISSING_MAX {
            self.missing.clear();
        }
        self.missing.insert(locator);
    }

    /// The certificate that a KeyLocator means, if it was added. Nothing is verified by that.
    pub fn certificate(&mut self, locator: NameRef<'_>) -> Option<&Certificate> {
        let name = self.find(locator)?;
        self.certificates.get(&name).map(|known| &known.certificate)
    }

    /// Verifies the signatures of packets that came together for less than one by one, as far as
    /// their certificates are here. [`Validator::check`] decides about each as ever, and does not
    /// verify again what was good.
    pub fn verify_together(&mut self, packets: &[Signed<'_>]) {
        let mut together = std::mem::take(&mut self.together);
        together.verify(packets, &mut |locator| match *self.certificate(locator)?.public_key() {
            PublicKey::Ed25519(point) => Some(point),
            PublicKey::EcdsaP256(_) | PublicKey::Rsa(_) => None,
        });
        self.together = together;
    }

    /// Decides about a packet at the Unix time `now_s`.
    pub fn check(&mut self, signed: &Signed<'_>, now_s: u64) -> Decision {
        self.check_about(signed, signed.name, now_s)
    }

    /// The same for what a packet says of another name, `about`: anchors have to cover that one.
    /// Nothing else in the packet counts by this decision.
    pub fn check_about(&mut self, signed: &Signed<'_>, about: NameRef<'_>, now_s: u64) -> Decision {
        if let Some(decision) = self.check_without_keys(signed) {
            return decision;
        }
        let mut walk = Walk::new(about, now_s);
        let decision = self.walk(signed, &mut walk);
        let decision = self.vouched_by_itself(&mut walk, decision);
        if matches!(decision, Decision::Refused(_)) {
            walk.used.iter().for_each(|name| self.forget(name));
            self.missing.clear();
        }
        decision
    }

    /// Verdict that needs no key.
    fn check_without_keys(&self, signed: &Signed<'_>) -> Option<Decision> {
        let name = || signed.name.to_name();
        let digest = signed.signature_type == signature_type::SHA256;
        let insecure = self.policy.unknown_keys == UnknownKeys::Insecure;
        let refused = match signed.signature_type {
            signature_type::SHA256 | signature_type::NULL => {
                let matches = signed.verify(VerifyKey::None);
                if digest && matches == Err(VerifyError::Mismatch) {
                    TrustError::BadDigest { name: name() }
                } else if insecure {
                    return Some(Decision::Trusted(Trusted::Insecure));
                } else if digest {
                    TrustError::Unsigned { name: name(), kind: UnsignedKind::Digest }
                } else {
                    TrustError::Unsigned { name: name(), kind: UnsignedKind::Null }
                }
            }
            _ if insecure => return Some(Decision::Trusted(Trusted::Insecure)),
            signature_type::ED25519 | signature_type::ECDSA | signature_type::RSA => {
                return match signed.key_locator {
                    Some(KeyLocator::Name(locator)) if is_key_locator(locator) => None,
                    _ => Some(Decision::Refused(TrustError::NoKeyLocator { name: name() })),
                };
            }
            signature_type => TrustError::UnsupportedSignature { name: name(), signature_type },
        };
        Some(Decision::Refused(refused))
    }

    /// The certificate named `locator`, else the newest of the key named `locator`.
    fn find(&mut self, locator: NameRef<'_>) -> Option<Name> {
        let start = locator.to_name();
        let under = self.certificates.range_mut(start..);
        let mut under = under.take_while(|(name, _)| locator.is_prefix_of(name.view()));
        let (mut name, mut known) = under.next()?;
        if name.view() != locator {
            for (later_name, later) in under {
                (name, known) = (later_name, later);
            }
        }
        self.tick += 1;
        known.used = self.tick;
        Some(name.clone())
    }
}
