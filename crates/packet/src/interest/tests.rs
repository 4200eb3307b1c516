//! Behaviour of Interests that users and forwarders rely on.
use super::*;
use crate::{DataBuilder, DigestSigner, NullSigner};

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

#[test]
fn round_trip_with_every_field() {
    let n = name("/a/b%20c/v=3");
    let hint = [name("/site/1"), name("/site/2")];
    let mut wire = Vec::new();
    InterestBuilder::new(n.view())
        .can_be_prefix(true)
        .must_be_fresh(true)
        .forwarding_hint(&hint)
        .nonce([1, 2, 3, 4])
        .lifetime_ms(1500)
        .hop_limit(9)
        .application_parameters(b"hello")
        .encode(&mut wire);
    let interest = Interest::decode(&wire).unwrap();
    assert!(interest.can_be_prefix && interest.must_be_fresh);
    assert!(n.view().is_prefix_of(interest.name));
    assert_eq!(interest.forwarding_hint.unwrap().names().count(), 2);
    assert_eq!(interest.nonce, Some([1, 2, 3, 4]));
    assert_eq!(interest.lifetime_ms_or_default(), 1500);
    assert_eq!(interest.hop_limit, Some(9));
    assert_eq!(interest.application_parameters, Some(&b"hello"[..]));
    assert!(interest.check_parameters_digest());
    for end in 0..wire.len() {
        assert!(Interest::decode(&wire[..end]).is_err());
    }
    let at = wire.len() - 1;
    wire[at] ^= 1;
    assert!(!Interest::decode(&wire).unwrap().check_parameters_digest());
}

#[test]
fn signed_portion_is_what_the_signer_saw() {
    let n = name("/localhost/nfd/rib/register/x");
    let mut wire = Vec::new();
    let extra = SignatureExtra { nonce: Some(&[7; 8]), time_ms: Some(1), seq_num: None };
    InterestBuilder::new(n.view()).encode_signed(&DigestSigner, extra, &mut wire).unwrap();
    let interest = Interest::decode(&wire).unwrap();
    assert!(interest.check_parameters_digest());
    let parts = interest.signed_portion().unwrap();
    assert_eq!(interest.signature_value.unwrap(), crate::sha256(&parts));
    assert_eq!(interest.signature_info.unwrap().time_ms, Some(1));
}

#[test]
fn forwarding_adds_a_nonce_and_changes_hops() {
    let n = name("/a");
    let mut wire = Vec::new();
    InterestBuilder::new(n.view())
        .can_be_prefix(true)
        .lifetime_ms(10)
        .hop_limit(5)
        .encode(&mut wire);
    let mut out = vec![0xEE];
    Interest::decode(&wire).unwrap().encode_forwarded([9; 4], Some(4), &mut out);
    let sent = Interest::decode(&out[1..]).unwrap();
    assert_eq!((sent.nonce, sent.hop_limit, sent.lifetime_ms), (Some([9; 4]), Some(4), Some(10)));
    assert!(sent.can_be_prefix);
    let mut again = Vec::new();
    sent.encode_forwarded([1; 4], Some(3), &mut again);
    let again = Interest::decode(&again).unwrap();
    assert_eq!((again.nonce, again.hop_limit), (Some([9; 4]), Some(3)));
}

#[test]
fn matching() {
    let mut data = Vec::new();
    DataBuilder::new(name("/a/b").view()).encode(b"x", &NullSigner, &mut data).unwrap();
    let data = Data::decode(&data).unwrap();
    let digest = data.implicit_digest();
    let full = data.name.with(crate::Component { typ: 1, value: &digest });
    let ask = |n: &Name, prefix: bool| {
        let mut wire = Vec::new();
        InterestBuilder::new(n.view()).can_be_prefix(prefix).encode(&mut wire);
        Interest::decode(&wire).unwrap().matches(&data)
    };
    assert!(ask(&name("/a/b"), false));
    assert!(ask(&full, false));
    assert!(ask(&name("/a"), true));
    assert!(!ask(&name("/a"), false));
    assert!(!ask(&name("/a/b/c"), true));
}
