//! The walk from a packet up the chain of certificates to an anchor.

use byname_packet::{KeyLocator, Name, NameRef};

use super::{Anchor, CHAIN_MAX, Decision, Signed, TrustError, Trusted, UnknownKeys, Validator};
use crate::cert::{Certificate, ValidityError, is_key_locator};
use crate::key::KeyId;
use crate::verify::VerifyKey;

/// Position of a walk up the chain.
pub(super) struct Walk<'a> {
    /// Name of the packet whose trust is asked for, or of what it speaks about.
    packet_name: NameRef<'a>,
    now_s: u64,
    /// Certificates met so far, the packet's own first.
    pub(super) used: Vec<Name>,
    /// The packet's own key and identity, once its certificate is known.
    signer: Option<(KeyId, Name)>,
    /// The first anchor for the packet that was met, and its certificate.
    anchor: Option<(Anchor, Name)>,
    /// An anchor whose key was met but whose prefix does not cover the packet.
    outside: Option<Anchor>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(packet_name: NameRef<'a>, now_s: u64) -> Self {
        let (used, signer, anchor, outside) = (Vec::new(), None, None, None);
        Walk { packet_name, now_s, used, signer, anchor, outside }
    }

    /// The decision when an anchor's certificate has been verified.
    fn anchored(&self) -> Option<Decision> {
        let (anchor, _) = self.anchor.clone()?;
        let (key, _) = self.signer.as_ref()?;
        Some(Decision::Trusted(Trusted::Anchored { key: *key, anchor }))
    }
}

enum Step {
    Done(Decision),
    /// The certificate is sound and leads on to its issuer.
    Issuer,
}

impl Validator {
    pub(super) fn walk(&mut self, signed: &Signed<'_>, walk: &mut Walk<'_>) -> Decision {
        let Some(KeyLocator::Name(locator)) = signed.key_locator else {
            return Decision::Refused(TrustError::NoKeyLocator { name: signed.name.to_name() });
        };
        let mut locator = locator.to_name();
        while walk.used.len() < CHAIN_MAX {
            let Some(found) = self.find(locator.view()) else {
                return self.wanted(signed.name, locator);
            };
            let checked = match walk.used.last() {
                None => self.check_packet(signed, &found),
                Some(subject) => self.check_issued(&subject.clone(), &found),
            };
            walk.used.push(found.clone());
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

    /// A certificate that is not here: to be fetched, unless that was tried.
    fn wanted(&self, packet: NameRef<'_>, certificate: Name) -> Decision {
        if self.missing.contains(&certificate) {
            let name = packet.to_name();
            return Decision::Refused(TrustError::NoCertificate { name, certificate });
        }
        Decision::NeedCertificate(certificate)
    }

    /// Gives a walk that met an anchor and led nowhere from there its other chance: the anchor's
    /// key itself says until when it counts.
    pub(super) fn vouched_by_itself(
        &mut self,
        walk: &mut Walk<'_>,
        decision: Decision,
    ) -> Decision {
        let Decision::Refused(refusal) = decision else { return decision };
        let Some((Anchor { key: key_id, .. }, name)) = walk.anchor.clone() else {
            return Decision::Refused(refusal);
        };
        let own = self.certificates[&name].certificate.own_name();
        let Some(found) = self.find(own.view()) else {
            return match self.wanted(walk.packet_name, own) {
                Decision::Refused(_) if refusal.is_unknown_key() => {
                    Decision::Refused(TrustError::Unvouched { name, key_id })
                }
                Decision::Refused(_) => Decision::Refused(refusal),
                wanted => wanted,
            };
        };
        walk.used.push(found.clone());
        let certificate = &self.certificates[&found].certificate;
        if certificate.key_id() != key_id || !certificate.is_self_signed() {
            return Decision::Refused(refusal);
        }
        match self.step(walk, &found) {
            Step::Done(decided) => decided,
            Step::Issuer => Decision::Refused(refusal),
        }
    }

    fn check_packet(&self, signed: &Signed<'_>, signer: &Name) -> Result<(), TrustError> {
        let certificate = &self.certificates[signer].certificate;
        let key = certificate.public_key();
        if !self.together.has(key, signed) {
            signed.verify(VerifyKey::Public(key)).map_err(|_| TrustError::BadSignature {
                name: signed.name.to_name(),
                key_id: certificate.key_id(),
            })?;
        }
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
        let says_for_itself = self_signed || self.certificates[name].is_given;
        let identity = certificate.identity().to_name();
        walk.signer.get_or_insert((key_id, identity));
        let mut anchors = self.policy.anchors.iter().filter(|anchor| anchor.key == key_id);
        let covering = anchors.find(|anchor| anchor.prefix.view().is_prefix_of(walk.packet_name));
        if let Some(anchor) = covering {
            walk.anchor.get_or_insert_with(|| (anchor.clone(), name.clone()));
            // What somebody else issued has not been verified yet.
            return match walk.anchored().filter(|_| says_for_itself) {
                Some(decision) => Step::Done(decision),
                None => Step::Issuer,
            };
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

#[cfg(test)]
mod tests {
    use byname_packet::{Data, DataBuilder, ValidityPeriod};

    use super::*;
    use crate::cert::{CertificateRequest, KEY_COMPONENT, SELF_ISSUER};
    use crate::key::{KeyPair, KeySigner};

    /// Only speed depends on it, so that nothing else shows when it is wrong.
    #[test]
    fn a_link_that_was_verified_is_remembered() {
        let key = std::sync::Arc::new(KeyPair::ed25519_from_seed(&[1; 32]));
        let identity: Name = "/lab".parse().expect("a name");
        let key_name = identity.with_generic(KEY_COMPONENT).with_generic(b"1");
        let public_key = key.public_key();
        let request = CertificateRequest {
            key_name: key_name.view(),
            public_key: &public_key,
            issuer_id: SELF_ISSUER,
            version: 1,
            validity: ValidityPeriod { not_before_s: 0, not_after_s: 10 },
        };
        let name = request.certificate_name();
        let signer = KeySigner::new(key.clone(), name.clone());
        let certificate = request.issue(&signer).expect("a certificate");
        let mut wire = Vec::new();
        DataBuilder::new(identity.view()).encode(b"", &signer, &mut wire).expect("a packet");
        let data = Data::decode(&wire).expect("a packet");

        let mut validator = Validator::default();
        validator.policy_mut().add_anchor(identity.clone(), key.key_id());
        validator.add_certificate(certificate.wire()).expect("a certificate");
        assert_eq!(validator.certificates[&name].verified_by, None);
        let decision = validator.check(&Signed::from(&data), 5);
        assert!(matches!(decision, Decision::Trusted(_)), "{decision:?}");
        assert_eq!(validator.certificates[&name].verified_by, Some(key.key_id()));
    }
}
