//! Whose signature counts for which name.
//!
//! Trust starts at *anchors*: a key, trusted for the names under one prefix. From a signed packet
//! the [`Validator`] walks up the chain of certificates until it meets an anchor for the packet's
//! name. Along the chain every signature must match, every certificate must be valid now and not
//! revoked, and names must narrow: a key signs only under its own identity, an issuer only for
//! identities under its own. There is no trust on first use unless the policy says so.
//!
//! An anchor is a key, not a certificate. So for an anchor's certificate it does not matter who
//! issued it, and the walk ends there: whoever holds the key could also issue one itself.
//!
//! The validator does no input or output. [`Validator::check`] answers with a decision or with the
//! name of a certificate; the caller fetches it, hands it to [`Validator::add_certificate`] and
//! checks again. Certificates are kept (at most [`CERTIFICATES_MAX`]) and a link of the chain that
//! was verified once is not verified again; those of a chain that was refused are forgotten, so
//! that a forged certificate cannot keep the true one out.

mod error;
mod signed;

use std::collections::{BTreeMap, BTreeSet};

use byname_packet::{KeyLocator, Name, NameRef, signature_type};

use crate::cert::{Certificate, CertificateError, ValidityError, is_key_locator};
use crate::key::KeyId;
use crate::verify::{VerifyError, VerifyKey};

pub use error::{TrustError, UnsignedKind};
pub use signed::Signed;

/// Most certificates from a packet to its anchor.
pub const CHAIN_MAX: usize = 5;

/// Most certificates a validator keeps.
pub const CERTIFICATES_MAX: usize = 64;

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
    used: u64,
}

/// Decides whether signed packets count, by a policy and the certificates given to it.
#[derive(Debug, Default)]
pub struct Validator {
    policy: TrustPolicy,
    certificates: BTreeMap<Name, Known>,
    /// Advances with each use; the certificate with the smallest value was used longest ago.
    tick: u64,
}

/// Position of a walk up the chain.
struct Walk<'a> {
    /// Name of the packet whose trust is asked for, or of what it speaks about.
    packet_name: NameRef<'a>,
    now_s: u64,
    /// The packet's own key and identity, once its certificate is known.
    signer: Option<(KeyId, Name)>,
    /// An anchor whose key was met but whose prefix does not cover the packet.
    outside: Option<Anchor>,
}

enum Step {
    Done(Decision),
    /// The certificate is sound and leads on to its issuer.
    Issuer,
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
        if self.certificates.get(&name).is_some_and(|known| known.certificate == certificate) {
            return Ok(name);
        }
        if self.certificates.len() >= CERTIFICATES_MAX && !self.certificates.contains_key(&name) {
            let oldest = self.certificates.iter().min_by_key(|(_, known)| known.used);
            if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                self.certificates.remove(&oldest);
            }
        }
        self.tick += 1;
        let known = Known { certificate, verified_by: None, used: self.tick };
        self.certificates.insert(name.clone(), known);
        Ok(name)
    }

    /// The certificate that a KeyLocator means, if it was added. Nothing is verified by that.
    pub fn certificate(&mut self, locator: NameRef<'_>) -> Option<&Certificate> {
        let name = self.find(locator)?;
        self.certificates.get(&name).map(|known| &known.certificate)
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
        let mut used = Vec::new();
        let mut walk = Walk { packet_name: about, now_s, signer: None, outside: None };
        let decision = self.walk(signed, &mut walk, &mut used);
        if matches!(decision, Decision::Refused(_)) {
            used.iter().for_each(|name| {
                self.certificates.remove(name);
            });
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

    fn walk(&mut self, signed: &Signed<'_>, walk: &mut Walk<'_>, used: &mut Vec<Name>) -> Decision {
        let Some(KeyLocator::Name(locator)) = signed.key_locator else {
            return Decision::Refused(TrustError::NoKeyLocator { name: signed.name.to_name() });
        };
        let mut locator = locator.to_name();
        while used.len() < CHAIN_MAX {
            let Some(found) = self.find(locator.view()) else {
                return Decision::NeedCertificate(locator);
            };
            let checked = match used.last() {
                None => self.check_packet(signed, &found),
                Some(subject) => self.check_issued(&subject.clone(), &found),
            };
            used.push(found.clone());
            if let Err(error) = checked {
                return Decision::Refused(error);
            }
            match self.step(walk, &found) {
                Step::Done(decision) => return decision,
                Step::Issuer => {}
            }
            let issuer = self.certificates[&found].certificate.issuer().map(|name| name.to_name());
            match issuer {
                Some(issuer) if is_key_locator(issuer.view()) => locator = issuer,
                _ => return Decision::Refused(TrustError::NoKeyLocator { name: found }),
            }
        }
        Decision::Refused(TrustError::ChainTooLong { name: signed.name.to_name() })
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

    fn check_packet(&self, signed: &Signed<'_>, signer: &Name) -> Result<(), TrustError> {
        let certificate = &self.certificates[signer].certificate;
        signed.verify(VerifyKey::Public(certificate.public_key())).map_err(|_| {
            TrustError::BadSignature { name: signed.name.to_name(), key_id: certificate.key_id() }
        })?;
        check_under(signed.name, certificate)
    }

    /// Checks that `issuer` signed `subject` and may do so.
    fn check_issued(&mut self, subject: &Name, issuer: &Name) -> Result<(), TrustError> {
        let issuer = &self.certificates[issuer].certificate;
        let key_id = issuer.key_id();
        let known = &self.certificates[subject];
        if known.verified_by != Some(key_id) {
            let verified = known.certificate.verify_signed_by(issuer.public_key());
            verified.map_err(|_| TrustError::BadSignature { name: subject.clone(), key_id })?;
        }
        check_under(known.certificate.identity(), issuer)?;
        self.note_verified(subject, key_id);
        Ok(())
    }

    fn note_verified(&mut self, name: &Name, by: KeyId) {
        if let Some(known) = self.certificates.get_mut(name) {
            known.verified_by = Some(by);
        }
    }

    /// Judges one certificate of the chain, whose key has been found to have signed what is below.
    fn step(&mut self, walk: &mut Walk<'_>, name: &Name) -> Step {
        let known = &self.certificates[name];
        let certificate = &known.certificate;
        let key_id = certificate.key_id();
        let self_signed = certificate.is_self_signed();
        if self_signed && known.verified_by != Some(key_id) {
            if certificate.verify_signed_by(certificate.public_key()).is_err() {
                let name = name.clone();
                return refuse(TrustError::BadSignature { name, key_id });
            }
            self.note_verified(name, key_id);
        }
        let certificate = &self.certificates[name].certificate;
        if self.policy.revoked.contains(&key_id) {
            let (name, packet) = (certificate.key_name().to_name(), walk.packet_name.to_name());
            return refuse(TrustError::Revoked { key_id, name, packet });
        }
        if let Err(error) = certificate.check_validity(walk.now_s) {
            let (name, now_s) = (name.clone(), walk.now_s);
            return refuse(match error {
                ValidityError::Expired(at_s) => TrustError::Expired { name, key_id, at_s, now_s },
                ValidityError::NotYetValid(at_s) => {
                    TrustError::NotYetValid { name, key_id, at_s, now_s }
                }
            });
        }
        let identity = certificate.identity().to_name();
        let (signer, _) = walk.signer.get_or_insert((key_id, identity));
        let mut anchors = self.policy.anchors.iter().filter(|anchor| anchor.key == key_id);
        let covering = anchors.find(|anchor| anchor.prefix.view().is_prefix_of(walk.packet_name));
        if let Some(anchor) = covering {
            let (key, anchor) = (*signer, anchor.clone());
            return Step::Done(Decision::Trusted(Trusted::Anchored { key, anchor }));
        }
        if let Some(anchor) = self.policy.anchors.iter().find(|anchor| anchor.key == key_id) {
            walk.outside.get_or_insert_with(|| anchor.clone());
        }
        if self_signed { Step::Done(self.end_unanchored(walk)) } else { Step::Issuer }
    }

    /// The chain is sound and ends at a key that is no anchor for the packet.
    fn end_unanchored(&self, walk: &Walk<'_>) -> Decision {
        let (key, identity) = walk.signer.clone().expect("the walk has judged a certificate");
        let name = walk.packet_name.to_name();
        if let Some(Anchor { prefix, key }) = walk.outside.clone() {
            return Decision::Refused(TrustError::OutsideAnchor { name, prefix, key_id: key });
        }
        let anchor =
            self.policy.anchors_of(walk.packet_name).max_by_key(|a| a.prefix.view().count());
        if let Some(Anchor { prefix, key: expected }) = anchor.cloned() {
            return Decision::Refused(TrustError::KeyMismatch {
                name,
                prefix,
                expected,
                found: key,
            });
        }
        match self.policy.unknown_keys {
            UnknownKeys::Refuse => {
                Decision::Refused(TrustError::UnknownKey { name, key_id: key, identity })
            }
            UnknownKeys::TrustOnFirstUse => Decision::Trusted(Trusted::FirstUse { key, identity }),
            UnknownKeys::Insecure => Decision::Trusted(Trusted::Insecure),
        }
    }
}

fn refuse(error: TrustError) -> Step {
    Step::Done(Decision::Refused(error))
}

/// True if the owner of `certificate` may sign `name`.
fn check_under(name: NameRef<'_>, certificate: &Certificate) -> Result<(), TrustError> {
    if certificate.identity().is_prefix_of(name) {
        return Ok(());
    }
    let (name, namespace) = (name.to_name(), certificate.identity().to_name());
    Err(TrustError::NotUnder { name, namespace, key_id: certificate.key_id() })
}
