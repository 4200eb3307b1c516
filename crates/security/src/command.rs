//! Authorisation of commands from other machines: a signature by a key that the
//! operator allowed, made now and not seen before.
//!
//! The operator allows *keys for prefixes* ([`Anchor`]). The signer's key may be one of them: then
//! it registers under its prefixes, whatever its certificate is called, for that is what the
//! operator said. Or it leads to one through certificates: then the rules of [`crate::trust`]
//! hold, so it registers only inside its own identity.
//!
//! A command counts once: no key signs twice at one time, which must be close to now.
//!
//! spec: NDN Packet Format "Signed Interest"; NFD "ControlCommand" (v0.2 form).

mod form;
mod replay;

use std::sync::{Mutex, MutexGuard, PoisonError};

use byname_packet::mgmt::{CommandVerifier, PrefixAnnouncement, Verdict};
use byname_packet::{Data, Interest, KeyLocator, Name};

use crate::cert::{Certificate, is_key_locator};
use crate::key::KeyId;
use crate::trust::{
    Anchor, CHAIN_MAX, Decision, Signed, TrustError, TrustPolicy, Trusted, Validator,
};
use crate::verify::VerifyKey;
use form::Form;

pub use replay::{GRACE_MS, KEYS_MAX, Replay, ReplayError, SIGNERS_MAX};

const SECOND_NS: u64 = 1_000_000_000;
const MILLISECOND_NS: u64 = 1_000_000;

/// Verifies commands against anchors. See the module.
#[derive(Debug)]
pub struct AnchorVerifier {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    validator: Validator,
    replay: Replay,
}

/// Who signed, where that key may register, and until when.
struct Signer {
    key: KeyId,
    /// The key that the operator allowed, if it is that, or else the one that it has certified.
    below_anchor: KeyId,
    may_register: Vec<Name>,
    until_s: u64,
}

impl AnchorVerifier {
    /// Allows each anchor's key to register under its prefix.
    pub fn new(anchors: impl IntoIterator<Item = Anchor>) -> Self {
        let policy = TrustPolicy { anchors: anchors.into_iter().collect(), ..Default::default() };
        let (validator, replay) = (Validator::new(policy), Replay::default());
        Self { state: Mutex::new(State { validator, replay }) }
    }

    /// Allows the key of `certificate` to register under `prefix`; it need not serve that
    /// certificate then, which counts whoever issued it.
    pub fn allow_certificate(&self, prefix: Name, certificate: Certificate) {
        let mut state = self.state();
        state.validator.policy_mut().add_anchor(prefix, certificate.key_id());
        state.validator.give_certificate(certificate);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // What a panicking thread left behind is still sound: every change is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CommandVerifier for AnchorVerifier {
    fn verify(&self, interest: &Interest<'_>, unix_ns: u64) -> Verdict {
        let Some(form) = Form::of(interest) else {
            return refused("the command has no signature with a time, or a malformed one");
        };
        let Some(prefix) = form::prefix(interest) else {
            return refused("the command names no prefix");
        };
        let signed = form.signed(prefix.view());
        let mut state = self.state();
        let signer = match state.judge(&signed, unix_ns) {
            Ok(signer) => signer,
            Err(verdict) => return verdict,
        };
        let Signer { key, below_anchor, may_register, until_s } = signer;
        match state.replay.admit((below_anchor, key), form.time_ms, unix_ns / MILLISECOND_NS) {
            Ok(()) => Verdict::Allowed { may_register, until_s },
            Err(error) => refused(error),
        }
    }

    fn verify_announcement(&self, announcement: &Data<'_>, unix_ns: u64) -> Verdict {
        let prefix = match PrefixAnnouncement::from_data(announcement) {
            Ok(found) => found.prefix,
            Err(error) => return refused(format!("malformed prefix announcement: {error}")),
        };
        let signed = Signed { name: prefix.view(), ..Signed::from(announcement) };
        match self.state().judge(&signed, unix_ns) {
            Ok(Signer { may_register, until_s, .. }) => Verdict::Allowed { may_register, until_s },
            Err(verdict) => verdict,
        }
    }

    fn add_certificate(&self, certificate: &Data<'_>, _unix_ns: u64) {
        // What is no certificate changes nothing: the command then is refused for the lack of one.
        let _ = self.state().validator.add_certificate(certificate.wire());
    }
}

impl State {
    fn judge(&mut self, signed: &Signed<'_>, unix_ns: u64) -> Result<Signer, Verdict> {
        let now_s = unix_ns / SECOND_NS;
        if let Some(result) = self.judge_allowed_key(signed, now_s) {
            return result;
        }
        match self.validator.check(signed, now_s) {
            Decision::Trusted(Trusted::Anchored { key, anchor }) => {
                let (below_anchor, until_s) = self.chain(signed, anchor.key);
                let may_register = vec![signed.name.to_name()];
                Ok(Signer { key, below_anchor, may_register, until_s })
            }
            // Only policies that this verifier never has lead here.
            Decision::Trusted(_) => Err(refused("the signer is not known")),
            Decision::Refused(error) => Err(refused(explain(&error))),
            Decision::NeedCertificate(name) => Err(Verdict::NeedCertificate(name)),
        }
    }

    /// The key that an anchor has certified, of a chain that was found to lead there, and when the
    /// first of its certificates ends.
    fn chain(&mut self, signed: &Signed<'_>, anchor: KeyId) -> (KeyId, u64) {
        let (mut below, mut until_s) = (anchor, u64::MAX);
        let Some(KeyLocator::Name(locator)) = signed.key_locator else { return (below, until_s) };
        let mut locator = locator.to_name();
        for _ in 0..CHAIN_MAX {
            let Some(certificate) = self.validator.certificate(locator.view()) else { break };
            until_s = until_s.min(certificate.validity().not_after_s);
            if certificate.key_id() == anchor {
                let own = certificate.own_name();
                let own = self.validator.certificate(own.view());
                until_s = until_s.min(own.map_or(until_s, |own| own.validity().not_after_s));
                break;
            }
            below = certificate.key_id();
            let Some(issuer) = certificate.issuer() else { break };
            locator = issuer.to_name();
        }
        (below, until_s)
    }

    /// The answer if the signer's own key is an anchor; `None` if not, or not known yet.
    fn judge_allowed_key(
        &mut self,
        signed: &Signed<'_>,
        now_s: u64,
    ) -> Option<Result<Signer, Verdict>> {
        let Some(KeyLocator::Name(locator)) = signed.key_locator else { return None };
        if !is_key_locator(locator) {
            return None;
        }
        let certificate = self.validator.certificate(locator)?.clone();
        let key = certificate.key_id();
        let anchors = self.validator.policy().anchors.iter().filter(|anchor| anchor.key == key);
        let may_register: Vec<Name> = anchors.map(|anchor| anchor.prefix.clone()).collect();
        if may_register.is_empty() {
            return None;
        }
        if signed.verify(VerifyKey::Public(certificate.public_key())).is_err() {
            self.validator.forget(&certificate.name().to_name());
            return Some(Err(refused(format!("the signature is not of {key}"))));
        }
        let certificate = match self.own_certificate(certificate) {
            Ok(certificate) => certificate,
            Err(verdict) => return Some(Err(verdict)),
        };
        if certificate.check_validity(now_s).is_err() {
            let name = certificate.name().to_name();
            return Some(Err(refused(format!("the certificate {name} is not valid now"))));
        }
        let until_s = certificate.validity().not_after_s;
        Some(Ok(Signer { key, below_anchor: key, may_register, until_s }))
    }

    /// The certificate that says until when an allowed key counts: this one if the operator gave
    /// it or the key itself signed it, otherwise the one that the key signed.
    fn own_certificate(&mut self, certificate: Certificate) -> Result<Certificate, Verdict> {
        let (name, key) = (certificate.name().to_name(), certificate.key_id());
        if self.validator.says_for_itself(&name) {
            return Ok(certificate);
        }
        let own = certificate.own_name();
        let Some(found) = self.validator.certificate(own.view()).cloned() else {
            return Err(Verdict::NeedCertificate(own));
        };
        let found_name = found.name().to_name();
        if found.key_id() == key && self.validator.says_for_itself(&found_name) {
            return Ok(found);
        }
        self.validator.forget(&found_name);
        Err(refused(format!("the certificate {found_name} is not signed by {key}")))
    }
}

/// The errors of trust tell a reader whom to trust; here somebody else decides.
fn explain(error: &TrustError) -> String {
    match error {
        TrustError::UnknownKey { key_id, .. }
        | TrustError::KeyMismatch { found: key_id, .. }
        | TrustError::OutsideAnchor { key_id, .. } => {
            format!("key {key_id} is not allowed to do this")
        }
        _ => error.to_string(),
    }
}

fn refused(reason: impl ToString) -> Verdict {
    Verdict::Refused(reason.to_string())
}
