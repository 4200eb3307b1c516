//! Replays `vectors/metadata` and `vectors/copies`, written by an encoder that shares nothing with
//! this one.
#![allow(clippy::unwrap_used, reason = "helpers of tests may panic like tests")]

use byname_packet::DecodeError;
use byname_transfer::copies::Kept;
use byname_transfer::metadata::{Absence, ContentRoot, Metadata};
use serde_json::{Value, json};

const CONTENT: &str = include_str!("../../../vectors/metadata/content.json");
const ABSENCE: &str = include_str!("../../../vectors/metadata/absence.json");
const KEPT: &str = include_str!("../../../vectors/copies/kept.json");

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2);
    digits.map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap()).collect()
}

fn reason(error: &DecodeError) -> &'static str {
    match error {
        DecodeError::Missing { .. } => "missing",
        DecodeError::BadLength { .. } => "bad-length",
        DecodeError::Truncated { .. } => "truncated",
        other => panic!("no reason of the vectors: {other}"),
    }
}

/// Compares what is decoded, and what is written again, with each vector.
fn replay<T>(
    text: &str,
    decode: impl Fn(&[u8]) -> Result<(T, Value), DecodeError>,
    encode: impl Fn(&T) -> Vec<u8>,
) {
    let vectors: Vec<Value> = serde_json::from_str(text).unwrap();
    assert!(vectors.iter().any(|vector| vector["accept"] == false));
    for vector in &vectors {
        let name = vector["name"].as_str().unwrap();
        let octets = unhex(vector["hex"].as_str().unwrap());
        let found = decode(&octets);
        if vector["accept"] == false {
            let error = found.err().unwrap_or_else(|| panic!("{name}: accepted"));
            assert_eq!(vector["reason"], reason(&error), "{name}");
            continue;
        }
        let (found, shown) = found.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(vector["expect"], shown, "{name}");
        if vector["canonical"] == true {
            assert_eq!(hex(&encode(&found)), hex(&octets), "{name}");
        }
    }
}

fn shown(metadata: &Metadata) -> Value {
    json!({
        "name": metadata.name.to_string(),
        "last_segment": metadata.last_segment,
        "segment_size": metadata.segment_size,
        "size": metadata.size,
        "mode": metadata.mode,
        "ctime_ns": metadata.ctime_ns,
        "mtime_ns": metadata.mtime_ns,
        "root": match &metadata.root {
            ContentRoot::Absent => "absent".to_owned(),
            ContentRoot::Pending => "pending".to_owned(),
            ContentRoot::Known(root) => hex(root),
        },
        "listing_size": metadata.listing_size,
        "listing_segment_size": metadata.listing_segment_size,
        "is_directory": metadata.is_directory(),
    })
}

#[test]
fn descriptions_of_versions() {
    let decode = |octets: &[u8]| {
        let found = Metadata::decode(octets)?;
        let shown = shown(&found);
        Ok((found, shown))
    };
    replay(CONTENT, decode, |found| {
        let mut out = Vec::new();
        found.encode(&mut out);
        out
    });
}

#[test]
fn reasons_why_there_is_none() {
    let decode = |octets: &[u8]| {
        let found = Absence::decode(octets)?;
        let shown = match found {
            Absence::NotFound => "not-found".to_owned(),
            Absence::BeingWritten { retry_ms } => format!("being-written {retry_ms}"),
            Absence::NoPermission => "no-permission".to_owned(),
            Absence::ListingTooLarge => "listing-too-large".to_owned(),
            Absence::NameTooLong => "name-too-long".to_owned(),
            Absence::Unreadable { code } => format!("unreadable {code}"),
        };
        Ok((found, Value::String(shown)))
    };
    replay(ABSENCE, decode, |found| {
        let mut out = Vec::new();
        found.encode(&mut out);
        out
    });
}

#[test]
fn what_is_kept_with_a_copy() {
    let decode = |octets: &[u8]| {
        let found = Kept::decode(octets)?;
        let shown = json!({
            "packet": hex(found.packet),
            "payload": found.payload.map(hex),
            "certificates": found.certificates().map(hex).collect::<Vec<_>>(),
        });
        Ok(((), shown))
    };
    replay(KEPT, decode, |()| Vec::new());
}
