//! Nobody but the key itself or a trusted issuer says until when an anchor counts.
//!
//! An anchor's certificate was once believed unverified when somebody else was named as its issuer:
//! whoever answered could prolong a key that had expired, and replay what it had signed.

use byname_packet::mgmt::Verdict;
use byname_packet::{Name, ValidityPeriod};
use byname_security::cert::Certificate;
use byname_security::command::AnchorVerifier;
use byname_security::trust::{Decision, TrustError, TrustPolicy, Validator};

use crate::command::{NOW_MS, allowed, allowing, v03, verify};
use crate::identity::{MONTH, NOW_S, Publisher, name};
use crate::trust::{anchored, check, refusal, trusting};

/// Ended a second ago.
const OVER: ValidityPeriod = ValidityPeriod { not_before_s: 0, not_after_s: NOW_S - 1 };

/// The last 64 octets of a certificate signed with Ed25519 are its signature.
fn with_zeros_for_a_signature(publisher: &Publisher) -> Publisher {
    let mut wire = publisher.certificate.wire().to_vec();
    let at = wire.len() - 64;
    wire[at..].fill(0);
    let certificate = Certificate::decode(&wire).unwrap();
    Publisher { key: publisher.key.clone(), certificate }
}

/// The anchor's key with a later period, as its owner never said, issued by a made-up key.
fn forgeries() -> [(Publisher, Publisher); 3] {
    let mallory = Publisher::new("/lab", 66);
    let stranger = Publisher::new("/mallory", 67);
    [
        (with_zeros_for_a_signature(&Publisher::issued_by(&mallory, "/lab", 1)), mallory),
        // Rightly signed, but who is the issuer?
        (Publisher::issued_by(&Publisher::new("/lab", 66), "/lab", 1), Publisher::new("/lab", 66)),
        (Publisher::issued_by(&stranger, "/lab", 1), stranger),
    ]
}

#[test]
fn a_forged_certificate_does_not_prolong_an_anchor() {
    let lab = Publisher::valid("/lab", 1, OVER);
    for (forged, issuer) in forgeries() {
        let wire = forged.data("/lab/x");
        // The true certificate has to be asked for, and has expired.
        let mut validator = trusting("/lab", &lab);
        let error = refusal(check(&mut validator, &wire, &[&forged, &issuer, &lab]));
        assert!(matches!(error, TrustError::Expired { .. }), "{error}");
        // Without the true one nothing is decided.
        let mut validator = trusting("/lab", &lab);
        let decision = check(&mut validator, &wire, &[&forged, &issuer]);
        let own = forged.certificate.own_name();
        assert_eq!(decision, Decision::NeedCertificate(own.clone()));
        validator.note_missing(own);
        let error = refusal(check(&mut validator, &wire, &[&forged, &issuer]));
        let said = matches!(
            error,
            TrustError::BadSignature { .. }
                | TrustError::Unvouched { .. }
                | TrustError::NotUnder { .. }
        );
        assert!(said, "{error}");
        // And the issuer may be withheld too.
        let mut validator = trusting("/lab", &lab);
        let decision = check(&mut validator, &wire, &[&forged]);
        assert_eq!(decision, Decision::NeedCertificate(issuer.certificate_name()));
        validator.note_missing(issuer.certificate_name());
        let error = refusal(check(&mut validator, &wire, &[&forged, &lab]));
        assert!(matches!(error, TrustError::Expired { .. }), "{error}");
    }
}

#[test]
fn a_trusted_issuer_says_until_when_an_anchor_counts() {
    let root = Publisher::new("/", 9);
    let lab = Publisher::issued_by(&root, "/lab", 1);
    let mut validator = trusting("/lab", &lab);
    validator.policy_mut().add_anchor(Name::new(), root.key_id());
    let wire = lab.data("/lab/x");
    assert_eq!(check(&mut validator, &wire, &[&lab, &root]), anchored("/lab", &lab, &lab));
    // Its word is verified.
    let forged = with_zeros_for_a_signature(&lab);
    let mut validator = trusting("/lab", &lab);
    validator.policy_mut().add_anchor(Name::new(), root.key_id());
    let decision = check(&mut validator, &wire, &[&forged, &root]);
    assert_eq!(decision, Decision::NeedCertificate(lab.certificate.own_name()));
    // It may let it end before the key itself does.
    let ended = Publisher::issued_for(&root, "/lab", 1, OVER);
    let error = refusal(check(&mut trusting("/lab", &lab), &wire, &[&ended, &root]));
    assert!(matches!(error, TrustError::Expired { .. }), "{error}");
}

#[test]
fn an_anchor_whose_issuer_is_unknown_counts_by_its_own_certificate() {
    let stranger = Publisher::new("/lab", 9);
    let lab = Publisher::issued_by(&stranger, "/lab", 1);
    let own = Publisher::new("/lab", 1);
    let wire = lab.data("/lab/x");
    let mut validator = trusting("/lab", &lab);
    assert_eq!(
        check(&mut validator, &wire, &[&lab, &stranger, &own]),
        anchored("/lab", &lab, &lab)
    );
    assert_eq!(check(&mut validator, &wire, &[]), anchored("/lab", &lab, &lab));
    // Nobody has the issuer's certificate.
    let mut validator = trusting("/lab", &lab);
    let decision = check(&mut validator, &wire, &[&lab, &own]);
    assert_eq!(decision, Decision::NeedCertificate(stranger.certificate_name()));
    validator.note_missing(stranger.certificate_name());
    assert_eq!(check(&mut validator, &wire, &[&own]), anchored("/lab", &lab, &lab));
    // Nobody has the own one either: the error says which key it is about.
    let mut validator = trusting("/lab", &lab);
    validator.note_missing(lab.certificate.own_name());
    let error = refusal(check(&mut validator, &wire, &[&lab, &stranger]));
    let unvouched = TrustError::Unvouched { name: lab.certificate_name(), key_id: lab.key_id() };
    assert_eq!(error, unvouched);
    // Two that nobody has, and others that come meanwhile.
    let mut validator = trusting("/lab", &lab);
    validator.note_missing(stranger.certificate_name());
    validator.note_missing(lab.certificate.own_name());
    validator.add_certificate(Publisher::new("/other", 3).certificate.wire()).unwrap();
    let error = refusal(check(&mut validator, &wire, &[&lab]));
    let missing = stranger.certificate_name();
    assert_eq!(error, TrustError::NoCertificate { name: name("/lab/x"), certificate: missing });
    // One that comes after all is missing no more.
    let mut validator = trusting("/lab", &lab);
    validator.note_missing(lab.certificate.own_name());
    validator.add_certificate(own.certificate.wire()).unwrap();
    assert_eq!(check(&mut validator, &wire, &[&lab, &stranger]), anchored("/lab", &lab, &lab));
    // After a refusal it is asked for again.
    let mut validator = trusting("/lab", &lab);
    validator.note_missing(lab.certificate.own_name());
    refusal(check(&mut validator, &wire, &[&lab, &stranger]));
    let decision = check(&mut validator, &wire, &[&lab, &stranger]);
    assert_eq!(decision, Decision::NeedCertificate(lab.certificate.own_name()));
    // Another key's certificate under that name is not the anchor's word.
    let other = Publisher::new("/lab", 5);
    let mut request = own.certificate.own_name();
    request.push_version(1);
    let imposter = byname_security::cert::CertificateRequest {
        key_name: own.certificate.key_name(),
        public_key: &other.key.public_key(),
        issuer_id: b"self",
        version: 1,
        validity: OVER,
    };
    let signer = byname_security::key::KeySigner::new(other.key.clone(), request);
    let imposter =
        Publisher { key: other.key.clone(), certificate: imposter.issue(&signer).unwrap() };
    let decision = check(&mut validator, &wire, &[&lab, &stranger, &imposter]);
    assert!(matches!(decision, Decision::Refused(TrustError::KeyMismatch { .. })), "{decision:?}");
    // It was forgotten, so the true one is asked for and counts.
    assert_eq!(
        check(&mut validator, &wire, &[&lab, &stranger, &own]),
        anchored("/lab", &lab, &lab)
    );
}

#[test]
fn a_given_certificate_counts_bit_for_bit_and_is_not_replaced() {
    let stranger = Publisher::new("/lab", 9);
    let lab = Publisher::issued_by(&stranger, "/lab", 1);
    let mut policy = TrustPolicy::default();
    policy.add_anchor(name("/lab"), lab.key_id());
    let mut validator = Validator::new(policy);
    validator.give_certificate(lab.certificate.clone());
    let wire = lab.data("/lab/x");
    assert_eq!(check(&mut validator, &wire, &[]), anchored("/lab", &lab, &lab));
    // The same name with other content changes nothing, and a refusal takes nothing away.
    let later = ValidityPeriod { not_after_s: MONTH.not_after_s + 1, ..MONTH };
    let forged = Publisher::issued_for(&stranger, "/lab", 1, later);
    validator.add_certificate(forged.certificate.wire()).unwrap();
    let given = validator.certificate(lab.certificate.name()).unwrap();
    assert_eq!(given, &lab.certificate);
    let mut altered = wire.clone();
    *altered.last_mut().unwrap() ^= 1;
    refusal(check(&mut validator, &altered, &[]));
    assert_eq!(check(&mut validator, &wire, &[]), anchored("/lab", &lab, &lab));
}

#[test]
fn a_forged_certificate_does_not_prolong_a_key_that_may_command() {
    let site = Publisher::valid("/site", 1, OVER);
    let mallory = Publisher::new("/site", 66);
    let issued = Publisher::issued_by(&mallory, "/site", 1);
    // The owner's own certificate with a later period, which only the owner could sign.
    let prolonged = with_zeros_for_a_signature(&Publisher::new("/site", 1));
    for forged in [with_zeros_for_a_signature(&issued), issued, prolonged] {
        let verifier = allowing(&[("/site", &site)]);
        let command = v03("/site", NOW_MS, &forged.signer());
        let verdict = verify(&verifier, &command, &[&forged, &mallory, &site]);
        assert!(matches!(verdict, Verdict::Refused(_)), "{verdict:?}");
    }
    // Issued by a stranger, but the key vouches for itself, or the operator does.
    let site = Publisher::issued_by(&mallory, "/site", 1);
    let own = Publisher::new("/site", 1);
    let command = v03("/site", NOW_MS, &site.signer());
    let verifier = allowing(&[("/site", &site)]);
    assert_eq!(verify(&verifier, &command, &[&site, &own]), allowed(&["/site"]));
    let verifier = AnchorVerifier::new([]);
    verifier.allow_certificate(name("/site"), site.certificate.clone());
    assert_eq!(verify(&verifier, &command, &[]), allowed(&["/site"]));
}
