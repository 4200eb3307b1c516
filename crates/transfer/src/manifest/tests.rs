//! Round trip of manifests; everything else is refused, and nothing makes the reader panic.

use byname_packet::Name;
use proptest::prelude::*;

use super::entry::{DIRECTORY, REGULAR};
use super::*;
use crate::attributes::{Attributes, ObjectKind};
use crate::naming::ContentName;

fn file(name: &[u8]) -> Entry<'_> {
    let version = Version { number: 5, segment_bytes: 8192, root: Some([7; 32]) };
    let (mtime_ns, size) = (Some(4), Some(300));
    Entry { mtime_ns, size, version: Some(version), ..Entry::new(name, 0o100_644) }
}

fn directory(name: &[u8]) -> Entry<'_> {
    Entry { mtime_ns: Some(9), ..Entry::new(name, 0o040_755) }
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
    // The shortest entries there are: two fit, a third one does not.
    let shortest = [Entry::new(b"a", 0o040_755), Entry::new(b"b", 0o040_755)];
    assert_eq!(read(&payload(&shortest)).expect("both fit"), shortest);
    let mut out = Vec::new();
    write_header(&mut out, 3);
    shortest.iter().for_each(|entry| entry.encode(&mut out));
    assert_eq!(check(&out), Err(ManifestError::Count { announced: 3, found: 0 }));
}

#[test]
fn a_header_that_counts_twice_is_refused() {
    let mut header = Vec::new();
    tlv::write_nni(&mut header, ENTRY_COUNT, 1);
    tlv::write_nni(&mut header, ENTRY_COUNT, 0);
    let mut out = Vec::new();
    tlv::write_element(&mut out, MANIFEST_HEADER, &header);
    let repeated = DecodeError::OutOfOrder { typ: ENTRY_COUNT, within: "manifest header" };
    assert_eq!(check(&out), Err(repeated.into()));
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

fn link(name: &[u8]) -> Entry<'_> {
    let attributes = Attributes { link_target: Some(b"../a"), ..Attributes::default() };
    Entry { attributes, ..Entry::new(name, 0o100_444) }
}

/// A file whose content lies elsewhere.
fn bound<'a>(name: &'a [u8], prefix: &'a Name) -> Entry<'a> {
    let name_of_content = ContentName { prefix: prefix.view(), id: 9 };
    let version = Version { number: 5, segment_bytes: 4096, root: Some([7; 32]) };
    let content = Some(Content { name: name_of_content, version });
    let attributes = Attributes { binding: Some(77), ..Attributes::default() };
    Entry { size: Some(300), content, attributes, ..Entry::new(name, 0o100_644) }
}

#[test]
fn links_and_contents_elsewhere_are_read_back_as_such() {
    let prefix: Name = "/site".parse().unwrap();
    let entries = [bound(b"a", &prefix), directory(b"b"), file(b"c"), link(b"d")];
    let payload = payload(&entries);
    assert_eq!(read(&payload).unwrap(), entries);
    let kinds = entries.map(|entry| entry.kind());
    use ObjectKind::{Directory, File, Link};
    assert_eq!(kinds, [File, Directory, File, Link]);
    assert!(entries[0].version.is_none(), "not under its own name");
}

#[test]
fn links_and_contents_elsewhere_that_contradict_themselves_are_refused() {
    let prefix: Name = "/site".parse().unwrap();
    let (link, bound) = (link(b"a"), bound(b"a", &prefix));
    for wrong in [
        Entry { mode: 0o040_755, ..link },
        Entry { mode: 0o120_777, ..link },
        Entry { size: Some(4), ..link },
        Entry { size: Some(4), version: file(b"a").version, ..link },
        Entry { size: None, ..bound },
        Entry { attributes: Attributes::default(), ..bound },
        Entry { mode: 0o040_755, size: None, ..bound },
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
        mtime_ns: *mtime_ns,
        size: (!is_directory).then_some(*size),
        version: version.filter(|_| !is_directory),
        ..Entry::new(name, kind | bits)
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
