//! Replays `vectors/metadata`, `vectors/manifest` and `vectors/copies`, written by an encoder that
//! shares nothing with this one.
#![allow(clippy::unwrap_used, reason = "helpers of tests may panic like tests")]

use byname_packet::DecodeError;
use byname_transfer::attributes::{Attributes, ObjectKind};
use byname_transfer::copies::Kept;
use byname_transfer::delegations;
use byname_transfer::manifest::{self, Entry, ManifestError};
use byname_transfer::metadata::{Absence, ContentRoot, Metadata};
use serde_json::{Value, json};

const CONTENT: &str = include_str!("../../../vectors/metadata/content.json");
const ABSENCE: &str = include_str!("../../../vectors/metadata/absence.json");
const DELEGATION: &str = include_str!("../../../vectors/metadata/delegation.json");
const MANIFEST: &str = include_str!("../../../vectors/manifest/payload.json");
const KEPT: &str = include_str!("../../../vectors/copies/kept.json");

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2);
    digits.map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap()).collect()
}

fn reason(error: &ManifestError) -> &'static str {
    match error {
        ManifestError::Malformed(error) => error.reason(),
        ManifestError::BadName { .. } => "name",
        ManifestError::OutOfOrder { .. } => "order",
        ManifestError::Count { .. } => "count",
    }
}

/// Compares what is decoded, and what is written again, with each vector.
fn replay<T, E: Into<ManifestError>>(
    text: &str,
    decode: impl Fn(&[u8]) -> Result<(T, Value), E>,
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
            assert_eq!(vector["reason"], reason(&error.into()), "{name}");
            continue;
        }
        let (found, shown) = found.unwrap_or_else(|error| panic!("{name}: {}", error.into()));
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
        "content_id": metadata.content_name().map(|content| content.id),
        "attributes": shown_attributes(&metadata.attributes()),
        "forwarding_hint": metadata
            .forwarding_hint()
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>(),
    })
}

/// The attributes that are there.
fn shown_attributes(attributes: &Attributes<'_>) -> Value {
    let checksums = attributes.checksums;
    let all = json!({
        "link_target": attributes.link_target.map(hex),
        "owner": attributes.owner,
        "group": attributes.group,
        "adler32": checksums.adler32.map(|octets| hex(&octets)),
        "crc32": checksums.crc32.map(|octets| hex(&octets)),
        "crc32c": checksums.crc32c.map(|octets| hex(&octets)),
        "md5": checksums.md5.map(|octets| hex(&octets)),
        "sha256": checksums.sha256.map(|octets| hex(&octets)),
        "binding": attributes.binding,
        "media_type": attributes.media_type,
    });
    let all = all.as_object().unwrap().clone();
    all.into_iter().filter(|(_, value)| !value.is_null()).collect()
}

fn shown_entry(entry: &Entry<'_>) -> Value {
    let version = entry.version.or(entry.content.map(|content| content.version));
    json!({
        "name": hex(entry.name),
        "mode": entry.mode,
        "mtime_ns": entry.mtime_ns,
        "size": entry.size,
        "version": version.map(|version| version.number),
        "segment_bytes": version.map(|version| version.segment_bytes),
        "root": version.and_then(|version| version.root).map(|root| hex(&root)),
        "content_name": entry.content.map(|content| content.name.to_name().to_string()),
        "attributes": shown_attributes(&entry.attributes),
    })
}

fn entries(payload: &[u8]) -> Result<Vec<Entry<'_>>, ManifestError> {
    let (_, mut at) = manifest::check(payload)?;
    let mut entries = Vec::new();
    while let Some((entry, next)) = manifest::entry_at(payload, at) {
        entries.push(entry);
        at = next;
    }
    Ok(entries)
}

fn payload(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    manifest::write_header(&mut out, entries.len() as u64);
    entries.iter().for_each(|entry| entry.encode(&mut out));
    out
}

#[test]
fn manifests_of_directories() {
    let decode = |octets: &[u8]| {
        let found = entries(octets)?;
        let shown = found.iter().map(shown_entry).collect();
        Ok::<_, ManifestError>((payload(&found), shown))
    };
    replay(MANIFEST, decode, Vec::clone);
}

/// Readers that know none of the new elements see the same as in a description without them.
#[test]
fn attributes_leave_everything_else_as_it_is() {
    let vectors: Vec<Value> = serde_json::from_str(CONTENT).unwrap();
    let named = |name: &str| {
        let vector = vectors.iter().find(|vector| vector["name"] == name).unwrap();
        Metadata::decode(&unhex(vector["hex"].as_str().unwrap())).unwrap()
    };
    let (plain, full) = (named("a file"), named("a file with all attributes"));
    assert_eq!(full.kind(), ObjectKind::File);
    assert_eq!(Metadata { extras: None, ..full.clone() }, plain);
    let attributes = full.attributes();
    assert!(attributes.owner.is_some() && attributes.binding.is_some());
    assert_eq!(full.forwarding_hint().len(), 2);
}

#[test]
fn readers_choose_the_same_delegation() {
    let vectors: Vec<Value> = serde_json::from_str(DELEGATION).unwrap();
    assert!(vectors.len() > 8);
    for vector in &vectors {
        let number = |key: &str| vector[key].as_u64().unwrap();
        let count = usize::try_from(number("count")).unwrap();
        let index = delegations::preferred(number("id"), number("segment"), count);
        assert_eq!(vector["index"], json!(index), "{}", vector["name"]);
    }
}

#[test]
fn descriptions_of_versions() {
    let decode = |octets: &[u8]| {
        let found = Metadata::decode(octets)?;
        let shown = shown(&found);
        Ok::<_, DecodeError>((found, shown))
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
            Absence::BeingListed { retry_ms } => format!("being-listed {retry_ms}"),
            Absence::NoPermission => "no-permission".to_owned(),
            Absence::ListingTooLarge => "listing-too-large".to_owned(),
            Absence::NameTooLong => "name-too-long".to_owned(),
            Absence::Unreadable { code } => format!("unreadable {code}"),
        };
        Ok::<_, DecodeError>((found, Value::String(shown)))
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
        Ok::<_, DecodeError>(((), shown))
    };
    replay(KEPT, decode, |()| Vec::new());
}
