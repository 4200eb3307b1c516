//! Round trip of manifests; everything else is refused, and nothing makes the reader panic.

use proptest::prelude::*;

use super::*;

fn file(name: &[u8]) -> Entry<'_> {
    let version = Version { number: 5, segment_bytes: 8192, root: Some([7; 32]) };
    let (mtime_ns, size) = (Some(4), Some(300));
    Entry { name, mode: 0o100_644, mtime_ns, size, version: Some(version) }
}

fn directory(name: &[u8]) -> Entry<'_> {
    Entry { name, mode: 0o040_755, mtime_ns: Some(9), size: None, version: None }
}

fn payload(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    write_header(&mut out, entries.len() as u64);
    entries.iter().for_each(|entry| entry.encode(&mut out));
    out
}

fn read(payload: &[u8]) -> Result<Vec<Entry<'_>>, ManifestError> {
    let (_, mut at) = check(payload)?;
    let mut entries = Vec::new();
    while let Some((entry, next)) = entry_at(payload, at) {
        entries.push(entry);
        at = next;
    }
    Ok(entries)
}

#[test]
fn entries_have_the_octets_of_the_specification() {
    let mut out = payload(&[file(b"a")]);
    let root = out.split_off(out.len() - 32);
    assert_eq!(root, [7; 32]);
    let expected = [
        &[0xFD, 0xF5, 0x52, 5, 0xFD, 0xF5, 0x54, 1, 1][..],
        &[0xFD, 0xF5, 0x50, 61, 8, 1, b'a'],
        &[0xFD, 0xF5, 0x04, 2, 0x81, 0xA4],
        &[0xFD, 0xF5, 0x0C, 1, 4],
        &[0xFD, 0xF5, 0x02, 2, 1, 44],
        &[0xFD, 0xF5, 0x56, 1, 5],
        &[0xFD, 0xF5, 0x40, 32],
    ];
    assert_eq!(out, expected.concat());
}

#[test]
fn an_empty_directory_has_a_manifest() {
    assert_eq!(read(&payload(&[])), Ok(vec![]));
    assert!(check(&[]).is_err(), "nothing at all is no manifest");
}

#[test]
fn entries_must_be_in_order_unique_and_counted() {
    for wrong in [[b"b", b"a"], [b"a", b"a"]] {
        let payload = payload(&wrong.map(|name| file(name)));
        assert_eq!(check(&payload), Err(ManifestError::OutOfOrder { index: 1 }));
    }
    let mut hidden = payload(&[file(b"a"), file(b"b")]);
    let one = payload(&[file(b"a")]).len();
    hidden.truncate(one);
    assert_eq!(check(&hidden), Err(ManifestError::Count { announced: 2, found: 1 }));
    let mut more = payload(&[file(b"a")]);
    file(b"b").encode(&mut more);
    assert_eq!(check(&more), Err(ManifestError::Count { announced: 1, found: 2 }));
}

#[test]
fn a_count_that_cannot_be_is_refused_before_anything_is_done_for_it() {
    let mut out = Vec::new();
    write_header(&mut out, u64::MAX);
    assert_eq!(check(&out), Err(ManifestError::Count { announced: u64::MAX, found: 0 }));
}

#[test]
fn names_that_make_no_path_are_refused() {
    let long = [b'x'; 256];
    for name in [&b""[..], b".", b"..", b"a/b", b"a\0", b"/", &long] {
        assert_eq!(check(&payload(&[file(name)])), Err(ManifestError::BadName { index: 0 }));
    }
}

#[test]
fn contradictions_are_refused() {
    let fine = file(b"a");
    for wrong in [
        Entry { mode: 0o120_777, ..fine },
        Entry { mode: 0o644, ..fine },
        Entry { mode: 0o040_755, ..fine },
        Entry { size: None, ..fine },
        Entry { version: fine.version.map(|it| Version { segment_bytes: 512, ..it }), ..fine },
        Entry { version: fine.version.map(|it| Version { segment_bytes: 9000, ..it }), ..fine },
    ] {
        assert!(check(&payload(&[wrong])).is_err(), "{wrong:?}");
    }
}

#[test]
fn what_is_unknown_is_ignored_if_it_may_be() {
    let with = |typ: u32| {
        let mut value = Vec::new();
        tlv::write_element(&mut value, types::GENERIC.into(), b"a");
        tlv::write_element(&mut value, MODE, &0o100_644u16.to_be_bytes());
        tlv::write_element(&mut value, typ, b"?");
        let mut out = payload(&[file(b"A")]);
        out[8] = 2;
        tlv::write_element(&mut out, typ, b"?");
        tlv::write_element(&mut out, MANIFEST_ENTRY, &value);
        out
    };
    let payload = with(0xF5FE);
    let names: Vec<_> = read(&payload).unwrap().iter().map(|entry| entry.name).collect();
    assert_eq!(names, [b"A", b"a"]);
    for typ in [0xF5FF, 9, MODE, MANIFEST_HEADER] {
        assert!(check(&with(typ)).is_err(), "{typ:#x}");
    }
}

/// Name, permission bits, mtime, size, version and root.
type Raw = (Vec<u8>, u16, Option<u64>, u64, Option<(u64, Option<[u8; 32]>)>);

fn entry() -> impl Strategy<Value = Raw> {
    let name = proptest::collection::vec(1u8..=255, 1..20);
    let name = name.prop_filter("a path", |name| is_safe_entry(name));
    let version = proptest::option::of((any::<u64>(), proptest::option::of(any::<[u8; 32]>())));
    (name, 0u16..0o10000, proptest::option::of(any::<u64>()), any::<u64>(), version)
}

fn made((raw, is_directory, shift): &(Raw, bool, u32)) -> Entry<'_> {
    let (name, bits, mtime_ns, size, version) = raw;
    let kind = if *is_directory { DIRECTORY } else { REGULAR };
    let version =
        version.map(|(number, root)| Version { number, segment_bytes: 8192 >> shift, root });
    Entry {
        name,
        mode: kind | bits,
        mtime_ns: *mtime_ns,
        size: (!is_directory).then_some(*size),
        version: version.filter(|_| !is_directory),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn what_is_written_is_read_back(
        raw in proptest::collection::vec((entry(), any::<bool>(), 0..4u32), 0..40),
    ) {
        let mut raw = raw;
        raw.sort_by(|a, b| a.0.0.cmp(&b.0.0));
        raw.dedup_by(|a, b| a.0.0 == b.0.0);
        let entries: Vec<Entry<'_>> = raw.iter().map(made).collect();
        let payload = payload(&entries);
        prop_assert_eq!(read(&payload), Ok(entries));
    }

    #[test]
    fn no_octets_make_the_reader_panic(
        at in 0usize..200, octet in any::<u8>(), cut in 0usize..220,
    ) {
        let mut payload = payload(&[file(b"a"), directory(b"b"), file(b"c")]);
        let at = at % payload.len();
        payload[at] ^= octet;
        payload.truncate(cut);
        if let Ok(entries) = read(&payload) {
            prop_assert!(entries.is_sorted_by(|a, b| a.name < b.name));
            prop_assert!(entries.iter().all(|entry| is_safe_entry(entry.name)));
        }
    }

    #[test]
    fn neither_does_noise(noise in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = read(&noise);
    }
}

fn unhex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2);
    digits.map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap()).collect()
}

/// An entry as the vectors show it.
fn shown(entry: &Entry<'_>) -> serde_json::Value {
    let hex = |octets: &[u8]| octets.iter().map(|octet| format!("{octet:02x}")).collect::<String>();
    let root = entry.version.and_then(|version| version.root);
    serde_json::json!({
        "name": hex(entry.name),
        "mode": entry.mode,
        "mtime_ns": entry.mtime_ns,
        "size": entry.size,
        "version": entry.version.map(|version| version.number),
        "segment_bytes": entry.version.map(|version| version.segment_bytes),
        "root": root.map(|root| hex(&root)),
    })
}

#[test]
fn golden_vectors() {
    let text = include_str!("../../../../vectors/manifest/payload.json");
    let vectors: Vec<serde_json::Value> = serde_json::from_str(text).unwrap();
    assert!(vectors.len() > 30);
    for vector in &vectors {
        let name = vector["name"].as_str().unwrap();
        let octets = unhex(vector["hex"].as_str().unwrap());
        let found = read(&octets);
        if vector["accept"] == false {
            let refusal = match found.expect_err(name) {
                ManifestError::Count { .. } => "count",
                ManifestError::OutOfOrder { .. } => "order",
                ManifestError::BadName { .. } => "name",
                ManifestError::Malformed(error) => match error {
                    DecodeError::Missing { .. } => "missing",
                    DecodeError::OutOfOrder { .. } => "out-of-order",
                    DecodeError::UnknownCritical { .. } => "unknown-critical",
                    DecodeError::BadLength { .. } => "bad-length",
                    DecodeError::BadValue { .. } => "bad-value",
                    DecodeError::Truncated { .. } => "truncated",
                    other => panic!("{name}: {other}"),
                },
            };
            assert_eq!(vector["reason"], refusal, "{name}");
            continue;
        }
        let entries = found.unwrap_or_else(|error| panic!("{name}: {error}"));
        let listed: Vec<_> = entries.iter().map(shown).collect();
        assert_eq!(vector["expect"], serde_json::Value::Array(listed), "{name}");
        if vector["canonical"] == true {
            assert_eq!(payload(&entries), octets, "{name}");
        }
    }
}
