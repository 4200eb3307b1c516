//! Targets for the `packet` crate: what must hold for any input at all.
//!
//! Shared with the tests of that crate. Each function decodes; for what is accepted it checks that
//! everything shown leads back to the same packet.

use byname_packet::lp::LpPacket;
use byname_packet::mgmt::{
    ControlParameters, ControlResponse, CsInfo, FaceStatus, FibEntry, GeneralStatus, RibEntry,
    StrategyChoice,
};
use byname_packet::signature::{descriptions, format_iso, parse_iso};
use byname_packet::{Component, Data, Interest, Name, NameRef, Packet, SignatureInfo, tlv};

use super::rebuild;

/// An Interest or a Data.
pub(crate) fn packet(input: &[u8]) {
    match Packet::decode(input) {
        Ok(Packet::Interest(found)) => interest(input, &found),
        Ok(Packet::Data(found)) => data(input, &found),
        Err(_) => {}
    }
}

fn interest(input: &[u8], found: &Interest<'_>) {
    assert_eq!(found.wire(), input);
    assert_eq!(tlv::first_element_len(input), Ok(Some(input.len() as u64)));
    name(found.name);
    assert_eq!(Interest::decode_checked(input).is_ok(), found.check_parameters_digest());
    assert_eq!(found.signed_portion().is_some(), found.signature_info.is_some());
    if let Some(hint) = found.forwarding_hint {
        assert!(hint.names().next().is_some());
        hint.names().for_each(name);
    }
    forwarded(found);
    if let Some(again) = rebuild::interest(found) {
        let again = Interest::decode_checked(&again).expect("what we write is an Interest");
        assert!(same_interest(found, &again), "{found:?} {again:?}");
    }
}

/// A forwarder changes the nonce and the hop limit and nothing else.
fn forwarded(found: &Interest<'_>) {
    let mut out = Vec::new();
    found.encode_forwarded([0xA5; 4], Some(7), &mut out);
    let sent = Interest::decode(&out).expect("a forwarded Interest is an Interest");
    assert_eq!(sent.nonce, found.nonce.or(Some([0xA5; 4])));
    assert_eq!(sent.hop_limit, found.hop_limit.map(|_| 7));
    assert_eq!(sent.name, found.name);
    assert_eq!(sent.check_parameters_digest(), found.check_parameters_digest());
    assert_eq!(sent.signed_portion(), found.signed_portion());
    let mut restored = sent.clone();
    (restored.nonce, restored.hop_limit) = (found.nonce, found.hop_limit);
    assert!(same_interest(found, &restored), "{found:?} {restored:?}");
}

fn same_interest(a: &Interest<'_>, b: &Interest<'_>) -> bool {
    let names = |i: &Interest<'_>| -> Vec<Name> {
        i.forwarding_hint.iter().flat_map(|hint| hint.names()).map(|name| name.to_name()).collect()
    };
    // The digest differs where unknown elements behind the parameters were left out.
    let digests = usize::from(a.application_parameters.is_some());
    a.name.without_last(digests) == b.name.without_last(digests)
        && (a.can_be_prefix, a.must_be_fresh) == (b.can_be_prefix, b.must_be_fresh)
        && names(a) == names(b)
        && (a.nonce, a.lifetime_ms, a.hop_limit) == (b.nonce, b.lifetime_ms, b.hop_limit)
        && a.application_parameters == b.application_parameters
        && a.signature_info == b.signature_info
        && a.signature_value == b.signature_value
}

fn data(input: &[u8], found: &Data<'_>) {
    assert_eq!(found.wire(), input);
    name(found.name);
    if let Some(last) = found.meta.final_block_id {
        component(last);
    }
    let signed = NameRef::decode(&found.signed_portion()[..found.name.wire_len()]);
    assert_eq!(signed, Ok(found.name));
    if let Some(again) = rebuild::data(found) {
        let again = Data::decode(&again).expect("what we write is a Data");
        assert_eq!((again.name, again.meta), (found.name, found.meta));
        assert_eq!(again.content, found.content);
        assert_eq!(again.signature_info, found.signature_info);
        assert_eq!(again.signature_value, found.signature_value);
    }
}

/// A link packet.
pub(crate) fn lp(input: &[u8]) {
    let Ok(found) = LpPacket::decode(input) else { return };
    let acks: Vec<u64> = found.acks().collect();
    // An Ack takes 3 octets of TYPE, one of LENGTH and 8 of value.
    assert!(acks.len() <= input.len() / 12);
    let out = rebuild::lp_packet(&found);
    if found.fragment == Some(&out[..]) {
        assert!(found.header.is_empty() && acks.is_empty() && found.tx_sequence.is_none());
        return;
    }
    if out.is_empty() {
        assert!(found.is_idle());
        return;
    }
    let again = LpPacket::decode(&out).expect("what we write is an LpPacket");
    assert_eq!(again.header, found.header);
    assert_eq!(again.acks().collect::<Vec<_>>(), acks);
    assert_eq!((again.fragment, again.sequence), (found.fragment, found.sequence));
    assert_eq!((again.frag_index, again.frag_count), (found.frag_index, found.frag_count));
    assert_eq!(again.tx_sequence, found.tx_sequence);
}

/// Names as octets and as text.
pub(crate) fn name_uri(input: &[u8]) {
    if let Ok(found) = NameRef::from_value(input) {
        name(found);
    }
    if let Ok(found) = Component::decode(input) {
        component(found);
    }
    let Ok(text) = std::str::from_utf8(input) else { return };
    let forms = [text.parse::<Name>(), Name::from_path(text), Name::from_user(text)];
    for found in forms.into_iter().flatten() {
        NameRef::from_value(found.view().value()).expect("a parsed name is well-formed");
        name(found.view());
    }
}

fn component(found: Component<'_>) {
    let mut wire = Vec::new();
    found.encode(&mut wire);
    assert_eq!(wire.len(), found.wire_len());
    assert_eq!(Component::decode(&wire), Ok(found));
}

fn name(found: NameRef<'_>) {
    let uri = found.to_string();
    assert_eq!(uri.parse::<Name>().as_ref().map(Name::view), Ok(found), "{uri}");
    let user = found.to_user();
    assert_eq!(Name::from_user(&user).as_ref().map(Name::view), Ok(found), "{user}");
    assert!(!user.contains(char::is_control));
    found.components().for_each(component);
    let count = found.count();
    for cut in 0..=count.min(8) {
        let (head, tail) = (found.prefix(cut), found.suffix(cut));
        assert!(head.is_prefix_of(found) && head <= found);
        assert_eq!((head.count(), tail.count()), (cut, count - cut));
        assert_eq!([head.value(), tail.value()].concat(), found.value());
    }
    let mut shorter = found.to_name();
    assert_eq!(shorter.pop(), count > 0);
    assert_eq!(shorter.view(), found.without_last(1));
}

/// Everything of NFD management.
pub(crate) fn mgmt(input: &[u8]) {
    one(input, ControlParameters::decode, ControlParameters::encode);
    one(input, ControlResponse::decode, ControlResponse::encode);
    one(input, GeneralStatus::decode, GeneralStatus::encode);
    one(input, CsInfo::decode, CsInfo::encode);
    many(input, FaceStatus::decode_all, FaceStatus::encode);
    many(input, RibEntry::decode_all, RibEntry::encode);
    many(input, FibEntry::decode_all, FibEntry::encode);
    many(input, StrategyChoice::decode_all, StrategyChoice::encode);
    if let Ok(response) = ControlResponse::decode(input) {
        let _ = response.parameters();
    }
}

fn one<T: PartialEq + std::fmt::Debug, E: std::fmt::Debug>(
    input: &[u8],
    decode: impl Fn(&[u8]) -> Result<T, E>,
    encode: impl Fn(&T, &mut Vec<u8>),
) {
    let Ok(found) = decode(input) else { return };
    let mut wire = Vec::new();
    encode(&found, &mut wire);
    assert_eq!(decode(&wire).expect("what we write decodes"), found);
}

fn many<T: PartialEq + std::fmt::Debug, E: std::fmt::Debug>(
    input: &[u8],
    decode: impl Fn(&[u8]) -> Result<Vec<T>, E>,
    encode: impl Fn(&T, &mut Vec<u8>),
) {
    one(input, decode, |entries, out| entries.iter().for_each(|entry| encode(entry, out)));
}

/// The value of a SignatureInfo, and the times of certificates.
pub(crate) fn signature_info(input: &[u8]) {
    if let Ok(found) = SignatureInfo::from_value(input)
        && let Some(value) = found.additional_description
    {
        assert!(descriptions(value).count() <= value.len());
    }
    if let Some(moment) = parse_iso(input) {
        assert_eq!(parse_iso(format_iso(moment).as_bytes()), Some(moment));
    }
}
