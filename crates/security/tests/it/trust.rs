//! Trust decisions: what is accepted, and one test for each refusal.

use byname_packet::{Data, DigestSigner, Name, NullSigner, ValidityPeriod};
use byname_security::cert::CertificateError;
use byname_security::key::{HmacSigner, KeyPair, KeySigner};
use byname_security::trust::{
    Anchor, CERTIFICATES_MAX, Decision, Signed, TrustError, TrustPolicy, Trusted, UnknownKeys,
    UnsignedKind, Validator,
};

use crate::identity::{MONTH, NOW_S, Publisher, data, name};

/// A validator that trusts `publisher` for `prefix`.
pub(crate) fn trusting(prefix: &str, publisher: &Publisher) -> Validator {
    let mut policy = TrustPolicy::default();
    policy.add_anchor(name(prefix), publisher.key_id());
    Validator::new(policy)
}

/// Checks a Data as a client does, fetching certificates from what `publishers` serve.
pub(crate) fn check(validator: &mut Validator, wire: &[u8], publishers: &[&Publisher]) -> Decision {
    check_at(validator, wire, publishers, NOW_S)
}

fn check_at(
    validator: &mut Validator,
    wire: &[u8],
    publishers: &[&Publisher],
    now_s: u64,
) -> Decision {
    let data = Data::decode(wire).unwrap();
    for _ in 0..10 {
        match validator.check(&Signed::from(&data), now_s) {
            Decision::NeedCertificate(wanted) => {
                let mut served = publishers.iter().map(|publisher| &publisher.certificate);
                let found = served.find(|cert| wanted.view().is_prefix_of(cert.name()));
                let Some(found) = found else { return Decision::NeedCertificate(wanted) };
                validator.add_certificate(found.wire()).unwrap();
            }
            decision => return decision,
        }
    }
    panic!("the same certificate is asked for again and again");
}

pub(crate) fn refusal(decision: Decision) -> TrustError {
    match decision {
        Decision::Refused(error) => error,
        other => panic!("not refused: {other:?}"),
    }
}

pub(crate) fn anchored(prefix: &str, signer: &Publisher, anchor: &Publisher) -> Decision {
    let anchor = Anchor { prefix: name(prefix), key: anchor.key_id() };
    Decision::Trusted(Trusted::Anchored { key: signer.key_id(), anchor })
}

#[test]
fn an_anchored_key_counts_for_its_prefix() {
    let lab = Publisher::new("/lab", 1);
    let mut validator = trusting("/lab", &lab);
    let wire = lab.data("/lab/file/v=1");
    let first = validator.check(&Signed::from(&Data::decode(&wire).unwrap()), NOW_S);
    assert_eq!(first, Decision::NeedCertificate(lab.certificate_name()));
    assert_eq!(check(&mut validator, &wire, &[&lab]), anchored("/lab", &lab, &lab));
    assert_eq!(check(&mut validator, &lab.data("/lab"), &[]), anchored("/lab", &lab, &lab));
}

#[test]
fn an_anchor_may_be_narrower_than_the_identity() {
    let lab = Publisher::new("/lab", 1);
    let mut validator = trusting("/lab/run7", &lab);
    let inside = check(&mut validator, &lab.data("/lab/run7/x"), &[&lab]);
    assert_eq!(inside, anchored("/lab/run7", &lab, &lab));
    let outside = refusal(check(&mut validator, &lab.data("/lab/run8/x"), &[&lab]));
    let (name, prefix) = (name("/lab/run8/x"), name("/lab/run7"));
    assert_eq!(outside, TrustError::OutsideAnchor { name, prefix, key_id: lab.key_id() });
    assert!(outside.to_string().contains("trusted for /lab/run7 only"), "{outside}");
}

#[test]
fn a_rotated_key_and_a_delegate_count_through_the_anchor() {
    let old = Publisher::new("/lab", 1);
    let new = Publisher::issued_by(&old, "/lab", 2);
    let alice = Publisher::issued_by(&new, "/lab/alice", 3);
    let all = [&old, &new, &alice];
    let mut validator = trusting("/lab", &old);
    let rotated = check(&mut validator, &new.data("/lab/x"), &all);
    assert_eq!(rotated, anchored("/lab", &new, &old));
    let delegate = check(&mut validator, &alice.data("/lab/alice/x"), &all);
    assert_eq!(delegate, anchored("/lab", &alice, &old));
    // Now all certificates are known, so nothing has to be fetched.
    let again = check(&mut validator, &alice.data("/lab/alice/y"), &[]);
    assert_eq!(again, anchored("/lab", &alice, &old));
    // An anchor in the middle of the chain ends it there, if its key says itself until when.
    let mut middle = trusting("/lab", &new);
    let own = Publisher::new("/lab", 2);
    let shorter = check(&mut middle, &alice.data("/lab/alice/x"), &[&alice, &new, &old, &own]);
    assert_eq!(shorter, anchored("/lab", &alice, &new));
}

#[test]
fn a_locator_may_name_the_key_instead_of_the_certificate() {
    let lab = Publisher::new("/lab", 1);
    let signer = KeySigner::new(lab.key.clone(), lab.certificate.key_name().to_name());
    let wire = data(name("/lab/x").view(), b"", &signer);
    let mut validator = trusting("/lab", &lab);
    assert_eq!(check(&mut validator, &wire, &[&lab]), anchored("/lab", &lab, &lab));
}

#[test]
fn an_unknown_key_is_refused_with_key_and_identity() {
    let lab = Publisher::new("/lab", 1);
    let mut validator = Validator::new(TrustPolicy::default());
    let error = refusal(check(&mut validator, &lab.data("/lab/x"), &[&lab]));
    let (key_id, identity) = (lab.key_id(), name("/lab"));
    assert_eq!(error, TrustError::UnknownKey { name: name("/lab/x"), key_id, identity });
    assert!(error.is_unknown_key());
    let message = error.to_string();
    assert!(message.contains("/lab/x") && message.contains(&key_id.to_string()), "{message}");
}

#[test]
fn another_key_than_the_anchored_one_is_a_mismatch_even_on_first_use() {
    let lab = Publisher::new("/lab", 1);
    let thief = Publisher::new("/lab", 2);
    let mut validator = trusting("/lab", &lab);
    for unknown_keys in [UnknownKeys::Refuse, UnknownKeys::TrustOnFirstUse] {
        validator.policy_mut().unknown_keys = unknown_keys;
        let error = refusal(check(&mut validator, &thief.data("/lab/x"), &[&thief]));
        let (expected, found) = (lab.key_id(), thief.key_id());
        let (packet, prefix) = (name("/lab/x"), name("/lab"));
        assert_eq!(error, TrustError::KeyMismatch { name: packet, prefix, expected, found });
        assert!(error.is_unknown_key());
        assert!(error.to_string().contains(&format!("only {expected} is trusted")), "{error}");
    }
}

#[test]
fn a_certificate_that_borrows_the_name_of_a_trusted_key_is_refused() {
    let lab = Publisher::new("/lab", 1);
    // The thief's certificate has the trusted key's name but holds the thief's public key.
    let thief = KeyPair::ed25519_from_seed(&[66; 32]);
    let public_key = thief.public_key();
    let signer = KeySigner::new(thief.into(), lab.certificate_name());
    let request = byname_security::cert::CertificateRequest {
        key_name: lab.certificate.key_name(),
        public_key: &public_key,
        issuer_id: b"self",
        version: 1,
        validity: MONTH,
    };
    let forged = request.issue(&signer).unwrap();
    let wire = data(name("/lab/x").view(), b"forged", &signer);
    let mut validator = trusting("/lab", &lab);
    validator.add_certificate(forged.wire()).unwrap();
    let error = refusal(check(&mut validator, &wire, &[]));
    assert!(matches!(error, TrustError::KeyMismatch { .. }), "{error}");
    // Genuine data under the forged certificate: refused once, then the true one is fetched.
    validator.add_certificate(forged.wire()).unwrap();
    let error = refusal(check(&mut validator, &lab.data("/lab/x"), &[]));
    assert_eq!(
        error,
        TrustError::BadSignature { name: name("/lab/x"), key_id: public_key.key_id() }
    );
    let decision = check(&mut validator, &lab.data("/lab/x"), &[&lab]);
    assert_eq!(decision, anchored("/lab", &lab, &lab));
}

#[test]
fn expired_not_yet_valid_and_revoked_are_three_different_messages() {
    let lab = Publisher::new("/lab", 1);
    let key_id = lab.key_id();
    let (wire, certificate) = (lab.data("/lab/x"), lab.certificate_name());
    let mut validator = trusting("/lab", &lab);

    let (at_s, now_s) = (MONTH.not_after_s, MONTH.not_after_s + 1);
    let expired = refusal(check_at(&mut validator, &wire, &[&lab], now_s));
    let name_ = certificate.clone();
    assert_eq!(expired, TrustError::Expired { name: name_, key_id, at_s, now_s });
    assert!(expired.to_string().contains("expired on 2026-12-06 00:00 UTC"), "{expired}");

    let (at_s, now_s) = (MONTH.not_before_s, MONTH.not_before_s - 1);
    let early = refusal(check_at(&mut validator, &wire, &[&lab], now_s));
    assert_eq!(early, TrustError::NotYetValid { name: certificate, key_id, at_s, now_s });
    assert!(early.to_string().contains("is this machine's clock right?"), "{early}");

    validator.policy_mut().revoked.insert(key_id);
    let revoked = refusal(check(&mut validator, &wire, &[&lab]));
    let (key_name, packet) = (lab.certificate.key_name().to_name(), name("/lab/x"));
    assert_eq!(revoked, TrustError::Revoked { key_id, name: key_name, packet });
    assert!(revoked.to_string().contains("was revoked"), "{revoked}");
}

#[test]
fn an_expired_or_revoked_issuer_breaks_the_chain() {
    let past = ValidityPeriod { not_before_s: 0, not_after_s: NOW_S - 1 };
    let old = Publisher::valid("/lab", 1, past);
    let new = Publisher::issued_by(&old, "/lab", 2);
    let mut validator = trusting("/lab", &old);
    let error = refusal(check(&mut validator, &new.data("/lab/x"), &[&old, &new]));
    assert!(matches!(&error, TrustError::Expired { key_id, .. } if *key_id == old.key_id()));

    let old = Publisher::new("/lab", 1);
    let new = Publisher::issued_by(&old, "/lab", 2);
    let mut validator = trusting("/lab", &old);
    validator.policy_mut().revoked.insert(old.key_id());
    let error = refusal(check(&mut validator, &new.data("/lab/x"), &[&old, &new]));
    assert!(matches!(&error, TrustError::Revoked { key_id, .. } if *key_id == old.key_id()));
    // The new key can be trusted by itself, by the certificate that it signed itself.
    validator.policy_mut().add_anchor(name("/lab"), new.key_id());
    let own = Publisher::new("/lab", 2);
    let decision = check(&mut validator, &new.data("/lab/x"), &[&new, &old, &own]);
    assert_eq!(decision, anchored("/lab", &new, &new));
}

#[test]
fn a_key_used_outside_its_namespace_is_refused() {
    let lab = Publisher::new("/lab", 1);
    let mut validator = trusting("/", &lab);
    let error = refusal(check(&mut validator, &lab.data("/labor/x"), &[&lab]));
    let (packet, namespace, key_id) = (name("/labor/x"), name("/lab"), lab.key_id());
    assert_eq!(error, TrustError::NotUnder { name: packet, namespace, key_id });
    assert!(error.to_string().contains("may only sign names under /lab"), "{error}");
    // An issuer outside its namespace: alice may not vouch for a key of the whole lab.
    let alice = Publisher::issued_by(&lab, "/lab/alice", 2);
    let usurper = Publisher::issued_by(&alice, "/lab", 3);
    let all = [&lab, &alice, &usurper];
    let error = refusal(check(&mut validator, &usurper.data("/lab/x"), &all));
    let (subject, namespace, key_id) = (name("/lab"), name("/lab/alice"), alice.key_id());
    assert_eq!(error, TrustError::NotUnder { name: subject, namespace, key_id });
}

#[test]
fn a_changed_packet_or_certificate_is_a_bad_signature() {
    let lab = Publisher::new("/lab", 1);
    let mut validator = trusting("/lab", &lab);
    let mut wire = lab.data("/lab/x");
    let place = wire.windows(5).position(|window| window == b"hello").unwrap();
    wire[place] ^= 1;
    let error = refusal(check(&mut validator, &wire, &[&lab]));
    assert_eq!(error, TrustError::BadSignature { name: name("/lab/x"), key_id: lab.key_id() });
    assert!(error.to_string().contains("altered or forged"), "{error}");
    assert!(!error.is_unknown_key());

    // Somebody extends the validity of a certificate: its own signature no longer matches.
    let mut certificate = lab.certificate.wire().to_vec();
    let year = certificate.windows(4).rposition(|window| window == b"2026").unwrap();
    certificate[year + 3] = b'7';
    let mut validator = trusting("/lab", &lab);
    validator.add_certificate(&certificate).unwrap();
    let error = refusal(check(&mut validator, &lab.data("/lab/x"), &[]));
    let name = lab.certificate_name();
    assert_eq!(error, TrustError::BadSignature { name, key_id: lab.key_id() });
}

#[test]
fn an_issuer_that_did_not_sign_is_a_bad_signature() {
    let lab = Publisher::new("/lab", 1);
    // Claims to be issued by the lab's key, but is signed by another key.
    let liar = KeyPair::ed25519_from_seed(&[66; 32]);
    let impostor = Publisher { key: liar.into(), certificate: lab.certificate.clone() };
    let forged = Publisher::issued_by(&impostor, "/lab/alice", 3);
    let mut validator = trusting("/lab", &lab);
    let error = refusal(check(&mut validator, &forged.data("/lab/alice/x"), &[&lab, &forged]));
    let name = forged.certificate_name();
    assert_eq!(error, TrustError::BadSignature { name, key_id: lab.key_id() });
}

#[test]
fn unsigned_and_digest_only_packets_are_refused() {
    let lab = Publisher::new("/lab", 1);
    let mut validator = trusting("/lab", &lab);
    let null = data(name("/lab/x").view(), b"x", &NullSigner);
    let error = refusal(check(&mut validator, &null, &[]));
    assert_eq!(error, TrustError::Unsigned { name: name("/lab/x"), kind: UnsignedKind::Null });
    assert!(error.to_string().contains("has no signature"), "{error}");
    let mut digest = data(name("/lab/x").view(), b"x", &DigestSigner);
    let error = refusal(check(&mut validator, &digest, &[]));
    assert_eq!(error, TrustError::Unsigned { name: name("/lab/x"), kind: UnsignedKind::Digest });
    assert!(error.to_string().contains("only a digest"), "{error}");
    *digest.last_mut().unwrap() ^= 1;
    let error = refusal(check(&mut validator, &digest, &[]));
    assert_eq!(error, TrustError::BadDigest { name: name("/lab/x") });
}

#[test]
fn signatures_that_no_certificate_can_check_are_refused() {
    let lab = Publisher::new("/lab", 1);
    let mut validator = trusting("/lab", &lab);
    let hmac = data(name("/lab/x").view(), b"", &HmacSigner::new(b"s", name("/lab/KEY/k")));
    let error = refusal(check(&mut validator, &hmac, &[]));
    let name_ = name("/lab/x");
    assert_eq!(error, TrustError::UnsupportedSignature { name: name_, signature_type: 4 });
    let nowhere = KeySigner::new(lab.key.clone(), name("/lab/somewhere"));
    let wire = data(name("/lab/x").view(), b"", &nowhere);
    let error = refusal(check(&mut validator, &wire, &[]));
    assert_eq!(error, TrustError::NoKeyLocator { name: name("/lab/x") });
}

#[test]
fn a_chain_longer_than_five_certificates_is_refused() {
    let mut chain = vec![Publisher::new("/lab", 1)];
    for seed in 2..=6 {
        let next = Publisher::issued_by(chain.last().unwrap(), "/lab", seed);
        chain.push(next);
    }
    let all: Vec<&Publisher> = chain.iter().collect();
    let mut validator = trusting("/lab", &chain[0]);
    let fits = check(&mut validator, &chain[4].data("/lab/x"), &all);
    assert_eq!(fits, anchored("/lab", &chain[4], &chain[0]));
    let error = refusal(check(&mut validator, &chain[5].data("/lab/x"), &all));
    assert_eq!(error, TrustError::ChainTooLong { name: name("/lab/x") });
    assert!(error.to_string().contains("within 5 certificates"), "{error}");
}

#[test]
fn certificates_that_vouch_for_each_other_end_as_too_long() {
    let first = Publisher::new("/lab", 1);
    let second = Publisher::issued_by(&first, "/lab", 2);
    // The first key's certificate again, now issued by the second.
    let first = Publisher::issued_by(&second, "/lab", 1);
    let second = Publisher::issued_by(&first, "/lab", 2);
    let first = Publisher::issued_by(&second, "/lab", 1);
    let mut validator = Validator::new(TrustPolicy::default());
    let error = refusal(check(&mut validator, &first.data("/lab/x"), &[&first, &second]));
    assert_eq!(error, TrustError::ChainTooLong { name: name("/lab/x") });
}

#[test]
fn malformed_and_missing_certificates_have_their_own_messages() {
    let mut validator = Validator::new(TrustPolicy::default());
    let lab = Publisher::new("/lab", 1);
    let source = validator.add_certificate(&lab.data("/lab/KEY/k/self/v=1")).unwrap_err();
    assert_eq!(source, CertificateError::ContentType { content_type: 0 });
    let error = TrustError::MalformedCertificate { name: name("/lab/KEY/k/self/v=1"), source };
    assert_eq!(
        error.to_string(),
        "what was fetched as certificate /lab/KEY/k/self/v=1 cannot be used: \
         its content type is 0, not 2 (Key)"
    );
    let certificate = name("/lab/KEY/k");
    let error = TrustError::NoCertificate { name: name("/lab/x"), certificate };
    assert!(error.to_string().contains("/lab/KEY/k, needed to check /lab/x"), "{error}");
}

#[test]
fn trust_on_first_use_reports_the_key_to_store() {
    let lab = Publisher::new("/lab", 1);
    let policy =
        TrustPolicy { unknown_keys: UnknownKeys::TrustOnFirstUse, ..TrustPolicy::default() };
    let mut validator = Validator::new(policy);
    let decision = check(&mut validator, &lab.data("/lab/x"), &[&lab]);
    let (key, identity) = (lab.key_id(), name("/lab"));
    assert_eq!(decision, Decision::Trusted(Trusted::FirstUse { key, identity }));
    let mut altered = lab.data("/lab/x");
    *altered.last_mut().unwrap() ^= 1;
    let error = refusal(check(&mut validator, &altered, &[&lab]));
    assert!(matches!(error, TrustError::BadSignature { .. }));
}

#[test]
fn insecure_accepts_everything_but_a_damaged_digest() {
    let lab = Publisher::new("/lab", 1);
    let policy = TrustPolicy { unknown_keys: UnknownKeys::Insecure, ..TrustPolicy::default() };
    let mut validator = Validator::new(policy);
    let accepted = Decision::Trusted(Trusted::Insecure);
    let packet = name("/lab/x");
    let mut digest = data(packet.view(), b"x", &DigestSigner);
    let null = data(packet.view(), b"x", &NullSigner);
    let hmac = data(packet.view(), b"", &HmacSigner::new(b"s", Name::new()));
    for wire in [&lab.data("/elsewhere"), &digest, &null, &hmac] {
        assert_eq!(check(&mut validator, wire, &[]), accepted);
    }
    *digest.last_mut().unwrap() ^= 1;
    let error = refusal(check(&mut validator, &digest, &[]));
    assert_eq!(error, TrustError::BadDigest { name: packet });
}

#[test]
fn certificates_are_kept_up_to_a_limit_and_the_used_ones_longest() {
    let lab = Publisher::new("/lab", 1);
    let mut validator = trusting("/lab", &lab);
    validator.add_certificate(lab.certificate.wire()).unwrap();
    let wire = lab.data("/lab/x");
    for index in 0..2 * CERTIFICATES_MAX {
        let other = Publisher::new(&format!("/other/{index}"), 2);
        validator.add_certificate(other.certificate.wire()).unwrap();
        assert_eq!(check(&mut validator, &wire, &[]), anchored("/lab", &lab, &lab));
    }
    let first = Publisher::new("/other/0", 2);
    let decision = check(&mut validator, &first.data("/other/0/x"), &[]);
    assert_eq!(decision, Decision::NeedCertificate(first.certificate_name()));
}

#[test]
fn of_certificates_that_were_never_used_the_first_to_come_makes_room() {
    // Not the first in order of names.
    let nth = |index: usize| Publisher::new(&format!("/n/{:04}", 9999 - index), 2);
    let mut validator = Validator::new(TrustPolicy::default());
    for index in 0..=CERTIFICATES_MAX {
        validator.add_certificate(nth(index).certificate.wire()).unwrap();
    }
    let mut is_kept = |index| validator.certificate(nth(index).certificate_name().view()).is_some();
    assert!(!is_kept(0));
    assert!(is_kept(1) && is_kept(CERTIFICATES_MAX - 1) && is_kept(CERTIFICATES_MAX));
}

/// A certificate of the lab's first key whose issuer is named `locator`.
fn certificate_with_locator(locator: &str) -> Publisher {
    let lab = Publisher::new("/lab", 1);
    let public_key = lab.key.public_key();
    let request = byname_security::cert::CertificateRequest {
        key_name: lab.certificate.key_name(),
        public_key: &public_key,
        issuer_id: b"self",
        version: 1,
        validity: MONTH,
    };
    let certificate = request.issue(&KeySigner::new(lab.key.clone(), name(locator))).unwrap();
    Publisher { key: lab.key.clone(), certificate }
}

#[test]
fn an_issuer_that_can_be_no_certificate_is_not_asked_for() {
    let lab = certificate_with_locator("/lab/somewhere");
    let mut validator = Validator::new(TrustPolicy::default());
    let error = refusal(check(&mut validator, &lab.data("/lab/x"), &[&lab]));
    assert_eq!(error, TrustError::NoKeyLocator { name: lab.certificate_name() });
}

#[test]
fn an_exact_locator_means_that_certificate_and_a_key_its_newest() {
    let ended = ValidityPeriod { not_before_s: 0, not_after_s: NOW_S - 1 };
    let [first, second] = [Publisher::valid("/lab", 1, ended), Publisher::new("/lab", 1)];
    // The same key, certified again later: version 2.
    let public_key = second.key.public_key();
    let request = byname_security::cert::CertificateRequest {
        key_name: second.certificate.key_name(),
        public_key: &public_key,
        issuer_id: b"self",
        version: 2,
        validity: MONTH,
    };
    let signer = KeySigner::new(second.key.clone(), request.certificate_name());
    let renewed = request.issue(&signer).unwrap();
    let mut validator = trusting("/lab", &first);
    validator.add_certificate(first.certificate.wire()).unwrap();
    validator.add_certificate(renewed.wire()).unwrap();
    let exact = validator.certificate(first.certificate.name());
    assert_eq!(exact, Some(&first.certificate));
    assert_eq!(validator.certificate(renewed.key_name()), Some(&renewed));
    let by_key = KeySigner::new(first.key.clone(), renewed.key_name().to_name());
    let wire = data(name("/lab/x").view(), b"", &by_key);
    assert_eq!(check(&mut validator, &wire, &[]), anchored("/lab", &first, &first));
    let error = refusal(check(&mut validator, &first.data("/lab/x"), &[]));
    assert!(matches!(error, TrustError::Expired { .. }), "{error}");
}

#[test]
fn a_certificate_replaces_another_of_the_same_name() {
    let lab = Publisher::new("/lab", 1);
    let other = certificate_with_locator("/lab/somewhere");
    let mut validator = trusting("/lab", &lab);
    assert_eq!(validator.policy().anchors.len(), 1);
    validator.add_certificate(other.certificate.wire()).unwrap();
    validator.add_certificate(lab.certificate.wire()).unwrap();
    assert_eq!(validator.certificate(lab.certificate.name()), Some(&lab.certificate));
    assert_eq!(check(&mut validator, &lab.data("/lab/x"), &[]), anchored("/lab", &lab, &lab));
}

#[test]
fn the_certificate_used_longest_ago_makes_room_and_only_for_another() {
    let nth = |index: usize| Publisher::new(&format!("/n/{:04}", 9999 - index), 2);
    let names = |index: usize| nth(index).certificate_name();
    let mut validator = Validator::new(TrustPolicy::default());
    for index in 0..CERTIFICATES_MAX {
        validator.add_certificate(nth(index).certificate.wire()).unwrap();
    }
    // Again, and with other content under the same name: no room is needed.
    validator.add_certificate(nth(5).certificate.wire()).unwrap();
    let changed = Publisher::valid("/n/9993", 2, ValidityPeriod { not_before_s: 0, ..MONTH });
    assert_eq!(changed.certificate_name(), names(6));
    validator.add_certificate(changed.certificate.wire()).unwrap();
    for index in 0..CERTIFICATES_MAX {
        // The last in order of names is used last but for the first.
        let index = (index + 1) % CERTIFICATES_MAX;
        assert!(validator.certificate(names(index).view()).is_some(), "{index}");
    }
    // 1 to 63 and then 0 were used, so 1 goes first, then 2.
    for (added, gone) in [(100, 1), (101, 2), (102, 3)] {
        validator.add_certificate(nth(added).certificate.wire()).unwrap();
        assert!(validator.certificate(names(gone).view()).is_none(), "{gone}");
    }
    assert!(validator.certificate(names(4).view()).is_some());
}
