//! Descriptions octet by octet, and what readers must put up with from other servers.

use super::*;

fn file() -> Metadata {
    Metadata {
        last_segment: Some(1),
        segment_size: Some(8192),
        size: Some(8193),
        mode: Some(0o100_644),
        ctime_ns: Some(6),
        mtime_ns: Some(5),
        root: ContentRoot::Known([0xAB; 32]),
        ..Metadata::new("/f/v=5".parse().unwrap())
    }
}

fn encoded(metadata: &Metadata) -> Vec<u8> {
    let mut content = Vec::new();
    metadata.encode(&mut content);
    content
}

#[test]
fn a_file_is_described_in_these_octets() {
    let mut expected = vec![0x07, 6, 0x08, 1, b'f', 0x36, 1, 5, 0x1A, 3, 0x32, 1, 1];
    expected.extend([0xFD, 0xF5, 0x00, 2, 0x20, 0x00]);
    expected.extend([0xFD, 0xF5, 0x02, 8, 0, 0, 0, 0, 0, 0, 0x20, 0x01]);
    expected.extend([0xFD, 0xF5, 0x04, 2, 0x81, 0xA4]);
    expected.extend([0xFD, 0xF5, 0x0A, 8, 0, 0, 0, 0, 0, 0, 0, 6]);
    expected.extend([0xFD, 0xF5, 0x0C, 8, 0, 0, 0, 0, 0, 0, 0, 5]);
    expected.extend([0xFD, 0xF5, 0x40, 32]);
    expected.extend([0xAB; 32]);
    assert_eq!(encoded(&file()), expected);
    assert_eq!(Metadata::decode(&expected).unwrap(), file());
}

#[test]
fn a_directory_is_described_in_these_octets() {
    let directory = Metadata {
        mode: Some(0o040_755),
        mtime_ns: Some(9),
        root: ContentRoot::Pending,
        listing_size: Some(300),
        listing_segment_size: Some(8192),
        ..Metadata::new("/d/32=ls/v=9".parse().unwrap())
    };
    let mut expected = vec![0x07, 10, 0x08, 1, b'd', 0x20, 2, b'l', b's', 0x36, 1, 9];
    expected.extend([0xFD, 0xF5, 0x04, 2, 0x41, 0xED]);
    expected.extend([0xFD, 0xF5, 0x0C, 8, 0, 0, 0, 0, 0, 0, 0, 9]);
    expected.extend([0xFD, 0xF5, 0x42, 0]);
    expected.extend([0xFD, 0xF5, 0x44, 2, 0x01, 0x2C]);
    expected.extend([0xFD, 0xF5, 0x46, 2, 0x20, 0x00]);
    assert_eq!(encoded(&directory), expected);
    assert_eq!(Metadata::decode(&expected).unwrap(), directory);
    assert!(directory.is_directory());
    assert_eq!(directory.version(), Some(9));
}

#[test]
fn a_directory_without_mode_is_known_by_its_name() {
    assert!(Metadata::new("/d/32=ls/v=9".parse().unwrap()).is_directory());
    assert!(!Metadata::new("/d/v=9".parse().unwrap()).is_directory());
}

#[test]
fn other_widths_orders_and_unknown_elements_are_read() {
    let mut content = Vec::new();
    tlv::write_element(&mut content, 0xF50E, b"object type of another server");
    tlv::write_element(&mut content, numbers::SIZE, &[3]);
    tlv::write_element(&mut content, numbers::MTIME, &[0, 0, 0, 2]);
    tlv::write_element(&mut content, numbers::SIZE, &[4]);
    file().name.view().encode(&mut content);
    let read = Metadata::decode(&content).unwrap();
    assert_eq!((read.size, read.mtime_ns, read.root), (Some(3), Some(2), ContentRoot::Absent));
}

#[test]
fn broken_descriptions_are_refused() {
    assert!(matches!(Metadata::decode(&[]), Err(DecodeError::Missing { .. })));
    let whole = encoded(&file());
    for len in 1..whole.len() {
        // Cut between two elements the rest is a shorter description; inside one it is an error.
        if let Ok(read) = Metadata::decode(&whole[..len]) {
            assert_ne!(read, file());
        }
    }
    let mut short_root = Vec::new();
    tlv::write_element(&mut short_root, numbers::CONTENT_ROOT, &[1; 31]);
    assert!(matches!(Metadata::decode(&short_root), Err(DecodeError::BadLength { .. })));
    let mut wide = Vec::new();
    tlv::write_element(&mut wide, numbers::SIZE, &[0; 3]);
    assert!(matches!(Metadata::decode(&wide), Err(DecodeError::BadLength { .. })));
}

#[test]
fn absences_are_read_back() {
    for absence in [
        Absence::NotFound,
        Absence::BeingWritten { retry_ms: 300 },
        Absence::BeingListed { retry_ms: 500 },
        Absence::NoPermission,
        Absence::ListingTooLarge,
        Absence::NameTooLong,
        Absence::Unreadable { code: numbers::ERROR_UNREADABLE },
        Absence::Unreadable { code: 77 },
    ] {
        let mut content = Vec::new();
        absence.encode(&mut content);
        assert_eq!(Absence::decode(&content).unwrap(), absence);
    }
}

#[test]
fn absences_are_these_octets() {
    let mut content = Vec::new();
    Absence::BeingWritten { retry_ms: 100 }.encode(&mut content);
    Absence::NoPermission.encode(&mut content);
    assert_eq!(content, [0xFD, 0xF5, 0x48, 1, 100, 0xFD, 0xF5, 0x4A, 1, 1]);
}
