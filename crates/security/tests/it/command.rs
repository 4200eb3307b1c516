//! Commands by key: who may register what, in both forms, once, and with certificates fetched.

use byname_packet::mgmt::{CommandVerifier, ControlParameters, Verdict};
use byname_packet::{
    ContentType, Data, DataBuilder, DigestSigner, Interest, InterestBuilder, Name, SignatureExtra,
    Signer, tlv, types,
};
use byname_security::command::AnchorVerifier;
use byname_security::trust::Anchor;

use crate::identity::{MONTH, NOW_S, Publisher, name};

pub(crate) const NOW_NS: u64 = NOW_S * 1_000_000_000;
pub(crate) const NOW_MS: u64 = NOW_S * 1000;

fn command_name(prefix: &str) -> Name {
    let mut parameters = Vec::new();
    ControlParameters { name: Some(name(prefix)), ..Default::default() }.encode(&mut parameters);
    name("/localhop/nfd/rib/register").with_generic(&parameters)
}

pub(crate) fn v03(prefix: &str, time_ms: u64, signer: &dyn Signer) -> Vec<u8> {
    let extra = SignatureExtra { time_ms: Some(time_ms), ..Default::default() };
    let mut wire = Vec::new();
    let name = command_name(prefix);
    InterestBuilder::new(name.view())
        .nonce([1, 2, 3, 4])
        .encode_signed(signer, extra, &mut wire)
        .unwrap();
    wire
}

/// As ndn-cxx and python-ndn write commands of the older form.
fn v02(prefix: &str, time_ms: u64, signer: &dyn Signer) -> Vec<u8> {
    v02_named(command_name(prefix), time_ms, signer)
}

fn v02_named(mut name: Name, time_ms: u64, signer: &dyn Signer) -> Vec<u8> {
    let mut info = Vec::new();
    tlv::write_nni(&mut info, types::SIGNATURE_TYPE, signer.signature_type());
    let mut locator = Vec::new();
    signer.key_locator().unwrap().encode(&mut locator);
    tlv::write_element(&mut info, types::KEY_LOCATOR, &locator);
    let mut info_element = Vec::new();
    tlv::write_element(&mut info_element, types::SIGNATURE_INFO, &info);
    name.push_generic(&time_ms.to_be_bytes());
    name.push_generic(&[9; 8]);
    name.push_generic(&info_element);
    let mut value = vec![0; signer.signature_len_max()];
    let len = signer.sign(&[name.view().value()], &mut value).unwrap();
    let mut value_element = Vec::new();
    tlv::write_element(&mut value_element, types::SIGNATURE_VALUE, &value[..len]);
    name.push_generic(&value_element);
    let mut wire = Vec::new();
    InterestBuilder::new(name.view()).nonce([1, 2, 3, 4]).encode(&mut wire);
    wire
}

pub(crate) fn allowing(anchors: &[(&str, &Publisher)]) -> AnchorVerifier {
    AnchorVerifier::new(
        anchors.iter().map(|(prefix, of)| Anchor { prefix: name(prefix), key: of.key_id() }),
    )
}

/// Verifies as the forwarder does, with what `publishers` serve.
pub(crate) fn verify(verifier: &AnchorVerifier, wire: &[u8], publishers: &[&Publisher]) -> Verdict {
    let interest = Interest::decode(wire).unwrap();
    for _ in 0..10 {
        match verifier.verify(&interest, NOW_NS) {
            Verdict::NeedCertificate(wanted) => {
                let mut served = publishers.iter().map(|publisher| &publisher.certificate);
                let found = served.find(|cert| wanted.view().is_prefix_of(cert.name()));
                let Some(found) = found else { return Verdict::NeedCertificate(wanted) };
                verifier.add_certificate(&Data::decode(found.wire()).unwrap(), NOW_NS);
            }
            verdict => return verdict,
        }
    }
    panic!("the same certificate is asked for again and again");
}

pub(crate) fn allowed(prefixes: &[&str]) -> Verdict {
    let may_register = prefixes.iter().map(|prefix| name(prefix)).collect();
    Verdict::Allowed { may_register, until_s: MONTH.not_after_s }
}

fn refusal(verdict: Verdict) -> String {
    match verdict {
        Verdict::Refused(reason) => reason,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn an_allowed_key_registers_under_its_prefixes_in_both_forms() {
    // What the key is called does not matter: the operator allowed the key.
    let alice = Publisher::new("/alice", 1);
    let verifier = allowing(&[("/lab", &alice), ("/site/lab", &alice)]);
    let wire = v03("/lab/run7", NOW_MS, &alice.signer());
    let first = verifier.verify(&Interest::decode(&wire).unwrap(), NOW_NS);
    assert_eq!(first, Verdict::NeedCertificate(alice.certificate_name()));
    assert_eq!(verify(&verifier, &wire, &[&alice]), allowed(&["/lab", "/site/lab"]));
    let older = v02("/lab/run7", NOW_MS + 1, &alice.signer());
    assert_eq!(verify(&verifier, &older, &[]), allowed(&["/lab", "/site/lab"]));
}

#[test]
fn a_command_counts_once() {
    let alice = Publisher::new("/lab", 1);
    let verifier = allowing(&[("/lab", &alice)]);
    for form in [v03, v02] {
        let wire = form("/lab", NOW_MS + 5, &alice.signer());
        let _ = verify(&verifier, &wire, &[&alice]);
        assert!(refusal(verify(&verifier, &wire, &[&alice])).contains("came before"));
        let same_time = form("/lab/other", NOW_MS + 5, &alice.signer());
        assert!(refusal(verify(&verifier, &same_time, &[&alice])).contains("came before"));
    }
    let old = v03("/lab", NOW_MS - 200_000, &alice.signer());
    assert!(refusal(verify(&verifier, &old, &[&alice])).contains("clocks"));
}

/// Otherwise the timestamp of a short name would be taken for the parameters.
#[test]
fn a_command_of_the_older_form_without_parameters_is_malformed() {
    let lab = Publisher::new("/lab", 1);
    let verifier = allowing(&[("/lab", &lab)]);
    for name in [name("/localhop/nfd/rib/register"), name("/localhop/nfd/rib"), Name::new()] {
        let wire = v02_named(name, NOW_MS, &lab.signer());
        assert!(refusal(verify(&verifier, &wire, &[&lab])).contains("malformed"));
    }
}

/// A Data by which `publisher` announces `prefix` for an hour.
fn announcement(prefix: &str, publisher: &Publisher) -> Vec<u8> {
    let mut wire = Vec::new();
    let name = name(prefix).with_keyword(b"PA").with_version(1).with_segment(0);
    let mut content = Vec::new();
    tlv::write_nni(&mut content, 109, 3_600_000);
    DataBuilder::new(name.view())
        .content_type(ContentType::PREFIX_ANNOUNCEMENT)
        .encode(&content, &publisher.signer(), &mut wire)
        .unwrap();
    wire
}

#[test]
fn an_announcement_counts_for_its_prefix_as_a_command_does() {
    let lab = Publisher::new("/lab", 1);
    let bob = Publisher::issued_by(&lab, "/lab/bob", 2);
    let verifier = allowing(&[("/lab", &lab)]);
    let judge = |wire: &[u8]| verifier.verify_announcement(&Data::decode(wire).unwrap(), NOW_NS);
    let delegated = announcement("/lab/bob/x", &bob);
    assert_eq!(judge(&delegated), Verdict::NeedCertificate(bob.certificate_name()));
    for publisher in [&bob, &lab] {
        let certificate = Data::decode(publisher.certificate.wire()).unwrap();
        verifier.add_certificate(&certificate, NOW_NS);
    }
    assert_eq!(judge(&delegated), allowed(&["/lab/bob/x"]));
    assert_eq!(judge(&announcement("/lab/y", &lab)), allowed(&["/lab"]));
    assert!(refusal(judge(&announcement("/lab/alice", &bob))).contains("/lab/bob"));
    assert!(refusal(judge(&lab.data("/lab/y"))).contains("malformed"));
}

#[test]
fn a_delegate_registers_inside_its_identity_only() {
    let lab = Publisher::new("/lab", 1);
    let bob = Publisher::issued_by(&lab, "/lab/bob", 2);
    let verifier = allowing(&[("/lab", &lab)]);
    let inside = v03("/lab/bob/x", NOW_MS, &bob.signer());
    assert_eq!(verify(&verifier, &inside, &[&bob, &lab]), allowed(&["/lab/bob/x"]));
    let outside = v03("/lab/alice", NOW_MS + 1, &bob.signer());
    assert!(refusal(verify(&verifier, &outside, &[&bob, &lab])).contains("/lab/bob"));
}

#[test]
fn strangers_digests_and_altered_commands_are_refused() {
    let lab = Publisher::new("/lab", 1);
    let mallory = Publisher::new("/lab", 66);
    let verifier = allowing(&[("/lab", &lab)]);
    let strange = v03("/lab", NOW_MS, &mallory.signer());
    assert!(refusal(verify(&verifier, &strange, &[&mallory])).contains("not allowed"));
    let digest = v03("/lab", NOW_MS, &DigestSigner);
    assert!(refusal(verify(&verifier, &digest, &[])).contains("digest"));
    let mut altered = v02("/lab", NOW_MS, &lab.signer());
    let at = altered.windows(3).position(|octets| octets == b"lab").unwrap();
    altered[at] = b'L';
    assert!(refusal(verify(&verifier, &altered, &[&lab])).contains("signature"));
    let mut altered = v03("/lab", NOW_MS, &lab.signer());
    *altered.last_mut().unwrap() ^= 1;
    assert!(refusal(verify(&verifier, &altered, &[&lab])).contains("malformed"));
    // None of that used up the time.
    assert_eq!(verify(&verifier, &v03("/lab", NOW_MS, &lab.signer()), &[&lab]), allowed(&["/lab"]));
}

#[test]
fn a_certificate_that_was_given_is_not_asked_for() {
    let alice = Publisher::new("/alice", 1);
    let verifier = AnchorVerifier::new([]);
    verifier.allow_certificate(name("/lab"), alice.certificate.clone());
    let wire = v03("/lab", NOW_MS, &alice.signer());
    assert_eq!(verify(&verifier, &wire, &[]), allowed(&["/lab"]));
}

#[test]
fn commands_without_time_or_prefix_are_refused() {
    let lab = Publisher::new("/lab", 1);
    let verifier = allowing(&[("/lab", &lab)]);
    let extra = SignatureExtra::default();
    for uri in [command_name("/lab"), name("/localhop/nfd/rib/register/x")] {
        let mut wire = Vec::new();
        let builder = InterestBuilder::new(uri.view()).nonce([0; 4]);
        builder.encode_signed(&lab.signer(), extra, &mut wire).unwrap();
        refusal(verify(&verifier, &wire, &[&lab]));
    }
    let mut expired = Publisher::valid(
        "/lab",
        1,
        byname_packet::ValidityPeriod { not_before_s: NOW_S - 20, not_after_s: NOW_S - 10 },
    );
    expired.key = lab.key.clone();
    let wire = v03("/lab", NOW_MS, &expired.signer());
    assert!(refusal(verify(&verifier, &wire, &[&expired])).contains("not valid now"));
}

/// Whoever has a key certifies more below it, and dates their commands as late as he may.
#[test]
fn keys_that_one_has_certified_lock_out_nobody_else() {
    let site = Publisher::new("/lab", 1);
    let verifier = allowing(&[("/lab", &site)]);
    let thief = Publisher::issued_by(&site, "/lab/eve", 2);
    for seed in 10..=250 {
        let below = Publisher::issued_by(&thief, "/lab/eve", seed);
        let wire = v03("/lab/eve", NOW_MS + 119_000, &below.signer());
        let verdict = verify(&verifier, &wire, &[&site, &thief, &below]);
        assert!(matches!(verdict, Verdict::Allowed { .. } | Verdict::Refused(_)), "{verdict:?}");
    }
    for (user, seed) in [("/lab/anna", 3), ("/lab/bert", 4)] {
        let user_s = Publisher::issued_by(&site, user, seed);
        let wire = v03(user, NOW_MS, &user_s.signer());
        assert_eq!(verify(&verifier, &wire, &[&site, &user_s]), allowed(&[user]));
    }
    let wire = v03("/lab/eve", NOW_MS, &thief.signer());
    assert_eq!(verify(&verifier, &wire, &[&site, &thief]), allowed(&["/lab/eve"]), "his own too");
}

#[test]
fn a_verdict_lasts_as_long_as_the_shortest_certificate() {
    let site = Publisher::new("/lab", 1);
    let soon = byname_packet::ValidityPeriod { not_before_s: NOW_S - 20, not_after_s: NOW_S + 10 };
    let anna = Publisher::issued_for(&site, "/lab/anna", 2, soon);
    let lent = Publisher::issued_by(&anna, "/lab/anna", 3);
    // An allowed key says itself until when it counts.
    let herself = Publisher::valid("/lab/anna", 2, soon);
    for (anchor, signer) in [(&site, &lent), (&site, &anna), (&anna, &lent)] {
        let prefix = if anchor.key_id() == site.key_id() { "/lab" } else { "/lab/anna" };
        let verifier = allowing(&[(prefix, anchor)]);
        let wire = v03("/lab/anna", NOW_MS, &signer.signer());
        match verify(&verifier, &wire, &[&site, &anna, &lent, &herself]) {
            Verdict::Allowed { until_s, .. } => assert_eq!(until_s, NOW_S + 10),
            other => panic!("{other:?}"),
        }
    }
}

proptest::proptest! {
    #[test]
    fn any_name_is_taken_calmly(
        components in proptest::collection::vec(
            proptest::collection::vec(proptest::prelude::any::<u8>(), 0..20), 1..12),
    ) {
        let mut name = Name::new();
        components.iter().for_each(|value| name.push_generic(value));
        let mut wire = Vec::new();
        InterestBuilder::new(name.view()).nonce([0; 4]).encode(&mut wire);
        refusal(verify(&allowing(&[]), &wire, &[]));
    }
}
