//! Input that nobody means well with: cut, altered, nested, and announcing more than there is.

use byname_packet::lp::LpPacket;
use byname_packet::mgmt::{ControlParameters, ControlResponse, CsInfo};
use byname_packet::{Component, Data, DecodeError, Interest, NameRef, Packet, tlv};

use crate::shown::unhex;
use crate::vectors::{read, text};
use crate::wire;

type Target = fn(&[u8]);
type Decoder = fn(&[u8]) -> Option<DecodeError>;

/// Files of golden packets with the fuzz target that reads them.
const FILES: [(&str, Target); 15] = [
    ("packet/component.json", wire::name_uri),
    ("packet/name.json", wire::name_uri),
    ("packet/interest.json", wire::packet),
    ("packet/data.json", wire::packet),
    ("packet/forward.json", wire::packet),
    ("packet/signature-info.json", wire::signature_info),
    ("lp/packet.json", wire::lp),
    ("mgmt/control-parameters.json", wire::mgmt),
    ("mgmt/control-response.json", wire::mgmt),
    ("mgmt/general-status.json", wire::mgmt),
    ("mgmt/face-status.json", wire::mgmt),
    ("mgmt/rib.json", wire::mgmt),
    ("mgmt/fib.json", wire::mgmt),
    ("mgmt/cs-info.json", wire::mgmt),
    ("mgmt/strategy-choice.json", wire::mgmt),
];

fn golden() -> impl Iterator<Item = (Vec<u8>, Target)> {
    FILES.into_iter().flat_map(|(file, target)| {
        read(file).into_iter().map(move |vector| {
            let mut octets = unhex(text(&vector, "hex"));
            if file.ends_with("signature-info.json") {
                // The target reads the value; TYPE and LENGTH are one octet or three.
                let len = octets.len();
                octets.drain(..if len > 254 { 4 } else { 2 });
            }
            (octets, target)
        })
    })
}

#[test]
fn one_altered_octet_is_refused_or_read_consistently() {
    for (octets, target) in golden() {
        target(&octets);
        let mut altered = octets.clone();
        for (at, original) in octets.iter().enumerate() {
            let flipped = (0..8).map(|bit| original ^ 1 << bit);
            for octet in flipped.chain([0, 0xFC, 0xFD, 0xFE, 0xFF]) {
                altered[at] = octet;
                target(&altered);
            }
            altered[at] = *original;
        }
    }
}

#[test]
fn one_octet_more_or_less_is_refused_or_read_consistently() {
    for (octets, target) in golden() {
        for at in 0..octets.len() {
            let mut altered = octets.clone();
            let octet = altered.remove(at);
            target(&altered);
            altered.insert(at, octet);
            altered.insert(at, octet);
            target(&altered);
        }
    }
}

/// Decoders of exactly one element, to which a part of it is never acceptable.
fn whole_element_decoders() -> Vec<Decoder> {
    vec![
        |wire| Packet::decode(wire).err(),
        |wire| LpPacket::decode(wire).err(),
        |wire| NameRef::decode(wire).err(),
        |wire| Component::decode(wire).err(),
        |wire| ControlParameters::decode(wire).err(),
        |wire| ControlResponse::decode(wire).err(),
        |wire| CsInfo::decode(wire).err(),
    ]
}

#[test]
fn a_part_of_an_element_is_truncated() {
    for (octets, _) in golden() {
        for decode in whole_element_decoders() {
            if decode(&octets).is_some() {
                continue;
            }
            for len in 0..octets.len() {
                let error = decode(&octets[..len]);
                assert!(matches!(error, Some(DecodeError::Truncated { .. })), "{len}: {error:?}");
            }
        }
    }
}

#[test]
fn an_announced_length_costs_nothing() {
    for typ in [5u8, 6, 7, 8, 100, 101, 104, 128] {
        for announced in [1u64 << 32, 1 << 60, u64::MAX] {
            let mut wire = vec![typ, 0xFF];
            wire.extend_from_slice(&announced.to_be_bytes());
            for decode in whole_element_decoders() {
                let error = decode(&wire).expect("nothing of it is there");
                let is_other_type = matches!(error, DecodeError::Unexpected { .. });
                assert!(is_other_type || matches!(error, DecodeError::Truncated { .. }));
            }
            let len = tlv::first_element_len(&wire).unwrap();
            assert_eq!(len, Some(announced.saturating_add(10)));
            assert!(tlv::Reader::new(&wire).read().is_err());
        }
    }
    // 9 octets: the LENGTH itself is cut.
    let cut = [6, 0xFF, 0x10, 0, 0, 0, 0, 0, 0];
    assert!(matches!(Data::decode(&cut), Err(DecodeError::Truncated { .. })));
    assert_eq!(tlv::first_element_len(&cut), Ok(None));
}

/// `depth` elements of TYPE `typ`, each inside the other.
fn nested(typ: u32, depth: usize, core: &[u8]) -> Vec<u8> {
    let mut wire = core.to_vec();
    for _ in 0..depth {
        let mut outer = Vec::with_capacity(wire.len() + 10);
        tlv::write_element(&mut outer, typ, &wire);
        wire = outer;
    }
    wire
}

#[test]
fn nesting_uses_no_stack() {
    // Deeper than any thread's stack could follow, were decoding recursive in the input.
    const DEPTH: usize = 2_000;
    for typ in [5, 6, 7, 8, 20, 22, 28, 30, 31, 80, 100, 104, 128, 129] {
        let wire = nested(typ, DEPTH, &[8, 1, b'a']);
        wire::packet(&wire);
        wire::lp(&wire);
        wire::mgmt(&wire);
        wire::signature_info(&wire);
        assert!(Interest::decode(&wire).is_err() && Data::decode(&wire).is_err());
    }
    let inside = nested(100, DEPTH, &[5, 3, 7, 1, 8]);
    assert!(LpPacket::decode(&inside).is_err(), "an LpPacket is no field of an LpPacket");
}

#[test]
fn many_small_elements_are_read_once() {
    let name = nested(7, 1, &[8, 0].repeat(100_000));
    assert_eq!(NameRef::decode(&name).unwrap().count(), 100_000);
    let acks = nested(100, 1, &[0xFD, 0x03, 0x44, 8, 0, 0, 0, 0, 0, 0, 0, 1].repeat(10_000));
    assert_eq!(LpPacket::decode(&acks).unwrap().acks().count(), 10_000);
    let empty_faces = [0x80, 0].repeat(1_000_000);
    assert!(byname_packet::mgmt::FaceStatus::decode_all(&empty_faces).is_err());
}
