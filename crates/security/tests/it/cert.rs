//! Certificates.

use byname_packet::{Component, Data, DataBuilder, DecodeError, DigestSigner, ValidityPeriod};
use byname_security::cert::{
    Certificate, CertificateError, CertificateRequest, IssueError, ValidityError, format_time,
    is_key_locator,
};
use byname_security::key::KeyError;
use byname_security::verify::VerifyError;
use proptest::prelude::*;

use crate::identity::{MONTH, NOW_S, Publisher, name};

#[test]
fn a_certificate_is_the_data_packet_that_other_software_expects() {
    let publisher = Publisher::new("/lab", 1);
    let certificate = &publisher.certificate;
    let data = Data::decode(certificate.wire()).unwrap();
    assert_eq!(data.name.count(), 5);
    assert_eq!(data.name.get(1), Some(Component::generic(b"KEY")));
    assert_eq!(data.name.get(3), Some(Component::generic(b"self")));
    assert_eq!(data.name.get(4).unwrap().version(), Some(1));
    assert_eq!(data.meta.content_type, 2);
    assert_eq!(data.meta.freshness_ms, 3_600_000);
    assert_eq!(data.content, publisher.key.public_key_der());
    assert_eq!(data.signature_info.validity, Some(MONTH));
    assert_eq!(data.signature_info.key_name(), Some(data.name));
    assert_eq!(certificate.identity(), name("/lab").view());
    assert_eq!(certificate.key_id(), publisher.key_id());
    assert!(certificate.is_self_signed());
    certificate.verify_signed_by(&publisher.key.public_key()).unwrap();
}

#[test]
fn an_issued_certificate_points_to_its_issuer() {
    let old = Publisher::new("/lab", 1);
    let new = Publisher::issued_by(&old, "/lab", 2);
    let certificate = &new.certificate;
    assert!(!certificate.is_self_signed());
    assert_eq!(certificate.issuer(), Some(old.certificate.name()));
    assert_eq!(certificate.name().get(3), Some(old.certificate.key_component()));
    certificate.verify_signed_by(&old.key.public_key()).unwrap();
    let by_itself = certificate.verify_signed_by(&new.key.public_key());
    assert_eq!(by_itself, Err(VerifyError::Mismatch));
}

#[test]
fn validity_is_inclusive_at_both_ends() {
    let certificate = Publisher::new("/lab", 1).certificate;
    let ValidityPeriod { not_before_s, not_after_s } = MONTH;
    assert_eq!(certificate.check_validity(not_before_s), Ok(()));
    assert_eq!(certificate.check_validity(not_after_s), Ok(()));
    let early = certificate.check_validity(not_before_s - 1);
    assert_eq!(early, Err(ValidityError::NotYetValid(not_before_s)));
    let late = certificate.check_validity(not_after_s + 1);
    assert_eq!(late, Err(ValidityError::Expired(not_after_s)));
    assert_eq!(format_time(NOW_S), "2026-11-21 00:00 UTC");
}

#[test]
fn a_period_of_one_second_is_a_period() {
    let once = ValidityPeriod { not_before_s: NOW_S, not_after_s: NOW_S };
    let certificate = Publisher::valid("/lab", 1, once).certificate;
    assert_eq!(Certificate::decode(certificate.wire()).unwrap(), certificate);
    assert_eq!(certificate.check_validity(NOW_S), Ok(()));
    assert!(certificate.check_validity(NOW_S - 1).is_err());
    assert!(certificate.check_validity(NOW_S + 1).is_err());
}

/// A Data that differs from a certificate in one respect.
fn packet(uri: &str, content_type: u64, validity: Option<ValidityPeriod>, key: &[u8]) -> Vec<u8> {
    let name = name(uri);
    let mut builder = DataBuilder::new(name.view()).content_type(content_type).freshness_ms(1);
    if let Some(validity) = validity {
        builder = builder.validity(validity);
    }
    let mut wire = Vec::new();
    builder.encode(key, &DigestSigner, &mut wire).unwrap();
    wire
}

#[test]
fn what_is_no_certificate_is_refused_with_the_reason() {
    let key = Publisher::new("/lab", 1).key.public_key_der();
    let good = "/lab/KEY/k/self/v=1";
    let backwards = ValidityPeriod { not_before_s: 2, not_after_s: 1 };
    let cases = [
        (packet(good, 0, Some(MONTH), &key), CertificateError::ContentType { content_type: 0 }),
        (
            packet("/lab/KEY/k/self", 2, Some(MONTH), &key),
            CertificateError::Name { name: name("/lab/KEY/k/self") },
        ),
        (packet("/v=1", 2, Some(MONTH), &key), CertificateError::Name { name: name("/v=1") }),
        (packet(good, 2, None, &key), CertificateError::NoValidity),
        (packet(good, 2, Some(backwards), &key), CertificateError::EmptyValidity),
        (
            packet(good, 2, Some(MONTH), b"no key"),
            CertificateError::Key(KeyError::PublicKey { length: 6 }),
        ),
    ];
    for (wire, expected) in cases {
        assert_eq!(Certificate::decode(&wire).unwrap_err(), expected);
    }
    let truncated = Certificate::decode(&packet(good, 2, Some(MONTH), &key)[..40]).unwrap_err();
    assert!(matches!(truncated, CertificateError::Packet(DecodeError::Truncated { .. })));
    let digest = Certificate::decode(&packet(good, 2, Some(MONTH), &key)).unwrap();
    let unsigned = digest.verify_signed_by(&Publisher::new("/lab", 1).key.public_key());
    assert_eq!(unsigned, Err(VerifyError::Unsigned));
}

#[test]
fn impossible_requests_are_not_signed() {
    let publisher = Publisher::new("/lab", 1);
    let public_key = publisher.key.public_key();
    let no_key_name = name("/lab/files");
    let mut request = CertificateRequest {
        key_name: no_key_name.view(),
        public_key: &public_key,
        issuer_id: b"self",
        version: 1,
        validity: MONTH,
    };
    let refused = request.issue(&publisher.signer()).unwrap_err();
    assert_eq!(refused, IssueError::KeyName { name: no_key_name.clone() });
    let key_name = name("/lab/KEY/k");
    request.key_name = key_name.view();
    request.validity = ValidityPeriod { not_before_s: 2, not_after_s: 1 };
    assert_eq!(request.issue(&publisher.signer()).unwrap_err(), IssueError::EmptyValidity);
}

#[test]
fn key_and_certificate_names_are_told_from_other_names() {
    for uri in ["/KEY/k", "/lab/KEY/k", "/lab/KEY/k/self", "/lab/KEY/k/self/v=1"] {
        assert!(is_key_locator(name(uri).view()), "{uri}");
    }
    for uri in ["/", "/KEY", "/lab", "/lab/key/k", "/lab/KEY/k/self/v=1/seg=0", "/lab/8=KEY2/k"] {
        assert!(!is_key_locator(name(uri).view()), "{uri}");
    }
}

proptest! {
    /// A certificate cut or changed anywhere either does not decode or does not verify, and
    /// decoding never panics.
    #[test]
    fn a_changed_certificate_never_verifies(position in 0usize..1000, bit in 0u8..8, cut: bool) {
        let publisher = Publisher::new("/lab", 1);
        let mut wire = publisher.certificate.wire().to_vec();
        let position = position % wire.len();
        if cut {
            wire.truncate(position);
        } else {
            wire[position] ^= 1 << bit;
        }
        if let Ok(certificate) = Certificate::decode(&wire) {
            let key = publisher.key.public_key();
            prop_assert!(certificate.verify_signed_by(&key).is_err());
        }
    }
}
