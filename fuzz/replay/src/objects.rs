//! Targets for links and for files as named objects.

use byname_link::{LinkService, ReassemblyLimits, stream_frame_len};
use byname_packet::lp::LpHeader;
use byname_packet::{Data, DataBuilder, MAX_PACKET_BYTES, Name, NameRef, NullSigner};
use byname_transfer::attributes::ObjectKind;
use byname_transfer::copies::Kept;
use byname_transfer::delegations::DELEGATIONS_MAX;
use byname_transfer::listing::{self, Entry};
use byname_transfer::manifest;
use byname_transfer::metadata::{Absence, Answer, Metadata};
use byname_transfer::naming::{self, Aspect, Request};

/// Takes `len` octets from the front, or what is there.
fn take<'a>(input: &mut &'a [u8], len: usize) -> &'a [u8] {
    let (head, tail) = input.split_at(len.min(input.len()));
    *input = tail;
    head
}

fn take_number(input: &mut &[u8], len: usize) -> u64 {
    take(input, len).iter().fold(0, |number, octet| number << 8 | u64::from(*octet))
}

/// Frames of a peer, each as: milliseconds since the one before (1 octet), length (2), octets.
pub(crate) fn link_reassembly(mut input: &[u8]) {
    let limits = ReassemblyLimits {
        messages_max: 4,
        bytes_max: 4096,
        fragments_max: 16,
        lifetime_ns: 100_000_000,
    };
    let mut datagrams = LinkService::datagram(1400, 0, limits);
    let mut stream = LinkService::stream();
    let mut now_ns = 0;
    while !input.is_empty() {
        now_ns += take_number(&mut input, 1) * 1_000_000;
        let len = take_number(&mut input, 2) as usize;
        let frame = take(&mut input, len);
        if let Ok(Some(len)) = stream_frame_len(frame) {
            assert!(len >= 2);
        }
        for link in [&mut datagrams, &mut stream] {
            if let Ok(Some(received)) = link.receive(frame, now_ns) {
                assert!(received.packet.len() <= MAX_PACKET_BYTES);
                assert!(received.header.pit_token.is_none_or(|token| token.len() <= 32));
            }
            assert!(link.receiver().held_bytes() <= limits.bytes_max);
        }
        assert_eq!(stream.receiver().held_bytes(), 0, "nothing is put together on a stream");
    }
}

/// Reassembly of a split packet: MTU (2 octets), length of a token (1), order (1), then the
/// content of the packet.
pub(crate) fn link_send(mut input: &[u8]) {
    let mtu_bytes = take_number(&mut input, 2) as usize;
    let token_len = take_number(&mut input, 1) as usize % 33;
    let is_reversed = take_number(&mut input, 1) % 2 == 1;
    let token = vec![7; token_len];
    let header =
        LpHeader { pit_token: (token_len > 0).then_some(&token[..]), ..LpHeader::default() };
    let mut packet = Vec::new();
    let name = Name::new().with_generic(b"f");
    DataBuilder::new(name.view())
        .encode(input, &NullSigner, &mut packet)
        .expect("the Null signature cannot fail");
    if packet.len() > MAX_PACKET_BYTES {
        return;
    }
    let mut sender = LinkService::datagram(mtu_bytes, u64::MAX - 1, ReassemblyLimits::default());
    let mut frames = Vec::new();
    let sent = sender.send(&header, &packet, 0, |head, body| frames.push([head, body].concat()));
    if sent.is_err() {
        assert!(frames.is_empty());
        return;
    }
    assert!(frames.iter().all(|frame| frame.len() <= mtu_bytes.max(128)));
    if is_reversed {
        frames.reverse();
    }
    let mut receiver = LinkService::datagram(1400, 0, ReassemblyLimits::default());
    let (last, others) = frames.split_last().expect("at least one frame");
    for frame in others {
        assert!(receiver.receive(frame, 0).expect("our own frame").is_none());
    }
    let received = receiver.receive(last, 0).expect("our own frame").expect("the last one");
    assert_eq!(received.packet, packet);
    assert_eq!(received.header, header);
}

/// The content of metadata packets, and the names of what they lead to.
pub(crate) fn metadata(input: &[u8]) {
    if let Ok(data) = Data::decode(input) {
        let _ = Answer::decode(&data);
        metadata_content(data.content);
    }
    metadata_content(input);
    if let Ok(name) = NameRef::from_value(input) {
        request_name(name);
    }
}

fn metadata_content(content: &[u8]) {
    if let Ok(found) = Metadata::decode(content) {
        let _ = (found.version(), found.kind());
        assert!(found.content_name().is_none() || found.attributes().binding.is_some());
        assert!(found.forwarding_hint().len() <= DELEGATIONS_MAX);
        let mut again = Vec::new();
        found.encode(&mut again);
        let mut expected = found.clone();
        // The element has two octets.
        expected.segment_size = found.segment_size.map(|bytes| bytes.min(0xFFFF));
        assert_eq!(Metadata::decode(&again), Ok(expected));
    }
    if let Ok(found) = Absence::decode(content) {
        let mut again = Vec::new();
        found.encode(&mut again);
        assert_eq!(Absence::decode(&again), Ok(found));
    }
}

fn request_name(name: NameRef<'_>) {
    let Some(parsed) = naming::parse(name) else { return };
    assert!(parsed.path.is_prefix_of(name) && parsed.object.is_prefix_of(name));
    if let Request::Segment { aspect, version, part, segment } = parsed.request {
        let versioned = match aspect {
            Aspect::Manifest => {
                let manifest = naming::manifest_name(parsed.path);
                naming::versioned_name(manifest.view(), false, version)
            }
            _ => naming::versioned_name(parsed.path, aspect == Aspect::Listing, version),
        };
        assert_eq!(versioned.view(), parsed.object);
        assert_eq!(naming::segment_name(parsed.object, part, segment).view(), name);
    }
    if let Some(path) = naming::relative_path(parsed.path) {
        let is_safe = |part: &[u8]| naming::is_safe_entry(part);
        assert!(path.is_empty() || path.split(|octet| *octet == b'/').all(is_safe));
    }
}

/// The payload of a directory's listing.
pub(crate) fn listing(input: &[u8]) {
    let (mut again, mut is_whole) = (Vec::new(), true);
    for entry in listing::entries(input) {
        match entry {
            Ok(entry) => {
                assert!(is_whole, "nothing follows an error");
                listing::write_entry(&mut again, entry);
                check_entry(entry);
            }
            Err(_) => is_whole = false,
        }
    }
    assert!(input.starts_with(&again));
    assert_eq!(is_whole, again.len() == input.len());
}

fn check_entry(entry: Entry<'_>) {
    assert!(!entry.name.contains(&0));
    if naming::is_safe_entry(entry.name) {
        assert!(!entry.name.contains(&b'/') && entry.name != b"." && entry.name != b"..");
    }
}

/// The payload of a directory's manifest.
pub(crate) fn manifest(input: &[u8]) {
    let Ok((count, mut at)) = manifest::check(input) else { return };
    let (mut again, mut found) = (Vec::new(), 0);
    manifest::write_header(&mut again, count);
    let mut before: Option<&[u8]> = None;
    while let Some((entry, next)) = manifest::entry_at(input, at) {
        assert!(next > at && next <= input.len());
        assert!(naming::is_safe_entry(entry.name));
        assert!(before.is_none_or(|before| before < entry.name), "in order and unique");
        let has_version = entry.version.is_some() || entry.content.is_some();
        assert!(!has_version || entry.size.is_some());
        assert!(entry.kind() == ObjectKind::File || !has_version, "only files are fetched by it");
        assert!(entry.content.is_none() || entry.attributes.binding.is_some());
        entry.encode(&mut again);
        (before, at, found) = (Some(entry.name), next, found + 1);
    }
    assert_eq!(found, count);
    // What was written anew has no unknown elements; it says the same.
    let (again_count, start) = manifest::check(&again).expect("our own");
    assert_eq!(again_count, count);
    let entries = |payload, mut at| {
        std::iter::from_fn(move || {
            let (entry, next) = manifest::entry_at(payload, at)?;
            at = next;
            Some(entry)
        })
    };
    let (_, first) = manifest::check(input).expect("it was");
    assert!(entries(input, first).eq(entries(&again, start)));
}

/// Record kept with a copy.
pub(crate) fn kept_copy(input: &[u8]) {
    let Ok(kept) = Kept::decode(input) else { return };
    assert!(Data::decode(kept.packet).is_ok());
    let mut again = kept.packet.to_vec();
    for certificate in kept.certificates() {
        again.extend_from_slice(certificate);
    }
    if let Some(payload) = kept.payload {
        byname_packet::tlv::write_element(&mut again, byname_packet::types::CONTENT, payload);
    }
    assert!(again.len() <= input.len(), "nothing is there twice");
    assert_eq!(Kept::decode(&again).expect("our own"), kept);
}
