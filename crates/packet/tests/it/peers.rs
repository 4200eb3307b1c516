//! Packets captured from other software decode, and their digests are what we compute.

use byname_packet::lp::LpPacket;
use byname_packet::{Data, Interest, Packet, sha256, signature_type};

use crate::shown::unhex;
use crate::vectors::folder;

/// The captured packets as (file name, octets). A file holds comment lines and one line of hex.
fn captures() -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(folder().join("peers")).expect("vectors/peers is there");
    let mut found = Vec::new();
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.extension().is_some_and(|extension| extension == "hex") {
            let text = std::fs::read_to_string(&path).unwrap();
            let octets: String = text.lines().filter(|line| !line.starts_with('#')).collect();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            found.push((name, unhex(octets.trim())));
        }
    }
    found.sort();
    found
}

#[test]
fn packets_of_other_software_decode() {
    let captures = captures();
    assert!(captures.len() >= 10, "only {} captures", captures.len());
    for (file, wire) in captures {
        let packet = LpPacket::decode(&wire).unwrap_or_else(|e| panic!("{file}: {e}"));
        let fragment = packet.fragment.unwrap_or_else(|| panic!("{file} is idle"));
        if packet.frag_count > 1 {
            continue;
        }
        match Packet::decode(fragment).unwrap_or_else(|e| panic!("{file}: {e}")) {
            Packet::Interest(interest) => check_interest(&file, &interest),
            Packet::Data(data) => check_data(&file, &data),
        }
    }
}

fn check_interest(file: &str, interest: &Interest<'_>) {
    assert!(interest.check_parameters_digest(), "{file}");
    let signed = interest.signature_info.zip(interest.signed_portion());
    if let Some((info, parts)) = signed
        && info.signature_type == signature_type::SHA256
    {
        assert_eq!(interest.signature_value, Some(&sha256(&parts)[..]), "{file}");
    }
}

fn check_data(file: &str, data: &Data<'_>) {
    match data.signature_info.signature_type {
        signature_type::SHA256 => {
            assert_eq!(data.signature_value, sha256(&[data.signed_portion()]), "{file}");
        }
        signature_type::NULL => assert!(data.signature_value.is_empty(), "{file}"),
        _ => assert!(!data.signature_value.is_empty(), "{file}"),
    }
}

#[test]
fn fragments_of_other_software_make_one_packet() {
    let mut fragments: Vec<Vec<u8>> = captures()
        .into_iter()
        .filter(|(file, _)| file.starts_with("ndnd-fw-udp-fragment-"))
        .map(|(_, wire)| wire)
        .collect();
    assert!(fragments.len() > 1);
    fragments.sort_by_key(|wire| LpPacket::decode(wire).unwrap().sequence);
    let mut whole = Vec::new();
    for (index, wire) in fragments.iter().enumerate() {
        let packet = LpPacket::decode(wire).unwrap();
        assert_eq!((packet.frag_index, packet.frag_count), (index as u64, fragments.len() as u64));
        whole.extend_from_slice(packet.fragment.unwrap());
    }
    check_data("fragments", &Data::decode(&whole).unwrap());
}
