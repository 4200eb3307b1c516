//! Rules of the attributes, and round trips.

use proptest::prelude::*;

use super::*;
use crate::numbers::{ADLER32, CRC32, SHA256};

fn decoded(wire: &[u8]) -> Result<Attributes<'_>, DecodeError> {
    let mut found = Attributes::default();
    let mut reader = tlv::Reader::new(wire);
    while let Some(element) = reader.read()? {
        assert!(found.take(element)?, "an attribute");
    }
    Ok(found)
}

fn element(typ: u32, value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    tlv::write_element(&mut out, typ, value);
    out
}

#[test]
fn values_have_bounds() {
    for (typ, longest) in [(LINK_TARGET, 4095), (OWNER, 255), (GROUP, 255)] {
        assert!(decoded(&element(typ, &vec![b'a'; longest])).is_ok());
        for len in [0, longest + 1] {
            let wire = element(typ, &vec![b'a'; len]);
            assert!(matches!(decoded(&wire), Err(DecodeError::BadLength { .. })), "{typ:#x} {len}");
        }
    }
    assert!(matches!(decoded(&element(BINDING, &[1; 3])), Err(DecodeError::BadLength { .. })));
}

#[test]
fn values_that_would_deceive_are_refused() {
    for (typ, value) in [
        (LINK_TARGET, &b"a\0b"[..]),
        (OWNER, b"\xFF"),
        (OWNER, b"a\nb"),
        (GROUP, "\u{85}".as_bytes()),
        (BINDING, &[0]),
        (BINDING, &[0; 8]),
    ] {
        let wire = element(typ, value);
        assert!(matches!(decoded(&wire), Err(DecodeError::BadValue { .. })), "{value:?}");
    }
    assert!(decoded(&element(LINK_TARGET, b"../\xFF\n")).is_ok(), "any path of Linux");
    assert!(decoded(&element(OWNER, "Zo\u{eb} O'Hara".as_bytes())).is_ok());
}

#[test]
fn the_first_of_a_kind_counts() {
    let wire = [
        element(OWNER, b"a"),
        element(OWNER, b"b"),
        element(CHECKSUMS, &element(ADLER32, &[1; 4])),
        element(CHECKSUMS, &element(CRC32, &[2; 4])),
        element(BINDING, &[1]),
        element(BINDING, &[2]),
    ];
    let wire = wire.concat();
    let found = decoded(&wire).unwrap();
    let checksums = Checksums { adler32: Some([1; 4]), ..Checksums::default() };
    let expected =
        Attributes { owner: Some("a"), checksums, binding: Some(1), ..Attributes::default() };
    assert_eq!(found, expected);
}

#[test]
fn checksums_stand_in_order_once_each_in_their_length() {
    let (adler, crc) = (element(ADLER32, &[1; 4]), element(CRC32, &[2; 4]));
    assert!(Checksums::decode(&[&adler[..], &crc[..]].concat()).is_ok());
    for wrong in [[&crc, &adler], [&adler, &adler]] {
        let error = Checksums::decode(&wrong.map(|it| &it[..]).concat());
        assert!(matches!(error, Err(DecodeError::OutOfOrder { .. })));
    }
    for (typ, len) in [(ADLER32, 3), (CRC32, 5), (SHA256, 20)] {
        let error = Checksums::decode(&element(typ, &vec![0; len]));
        assert_eq!(error.map_err(|error| error.reason()), Err("bad-length"), "{typ:#x}");
    }
    let later = [element(0xF5FE, b"?"), adler].concat();
    assert_eq!(Checksums::decode(&later).unwrap().adler32, Some([1; 4]));
    let critical = Checksums::decode(&element(0xF5FF, b"?"));
    assert!(matches!(critical, Err(DecodeError::UnknownCritical { .. })));
}

fn checksums() -> impl Strategy<Value = Checksums> {
    let short = || proptest::option::of(any::<[u8; 4]>());
    let md5 = proptest::option::of(any::<[u8; 16]>());
    let sha256 = proptest::option::of(any::<[u8; 32]>());
    (short(), short(), short(), md5, sha256).prop_map(|(adler32, crc32, crc32c, md5, sha256)| {
        Checksums { adler32, crc32, crc32c, md5, sha256 }
    })
}

proptest! {
    #[test]
    fn attributes_are_read_back_as_written(
        target in proptest::option::of(proptest::collection::vec(1u8.., 1..300)),
        owner in proptest::option::of("[^\\p{Cc}]{1,60}"),
        group in proptest::option::of("[^\\p{Cc}]{1,60}"),
        checksums in checksums(),
        binding in proptest::option::of(1u64..),
        media_type in proptest::option::of("[!-.0-~]{1,20}/[ -~]{1,40}"),
    ) {
        let attributes = Attributes {
            link_target: target.as_deref(),
            owner: owner.as_deref(),
            group: group.as_deref(),
            checksums,
            binding,
            media_type: media_type.as_deref(),
        };
        let mut wire = Vec::new();
        attributes.encode(&mut wire);
        prop_assert_eq!(decoded(&wire), Ok(attributes));
    }

    #[test]
    fn no_octets_make_the_reader_panic(
        typ in (LINK_TARGET / 2..=BINDING / 2).prop_map(|half| 2 * half),
        value in proptest::collection::vec(any::<u8>(), 0..80),
    ) {
        let _ = decoded(&element(typ, &value));
    }
}
