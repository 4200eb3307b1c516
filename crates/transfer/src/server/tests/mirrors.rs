//! Mirrors: what was kept with a copy decides, as far as the copy agrees with it.

use byname_packet::{ContentType, DataBuilder};

use super::*;
use crate::manifest;
use crate::metadata::Metadata;
use crate::naming;
use crate::server::claims::{self, Claim};

const ROOT: [u8; 32] = [5; 32];
/// Half of what listings may take together.
const BYTES_MAX: usize = 1 << 20;

fn mirror() -> Server {
    let config = ServerConfig { listing_bytes_max: 2 * BYTES_MAX, ..ServerConfig::default() };
    let mut server = server(config);
    server.mirror(0, MirrorOptions::default());
    server
}

/// A packet of a publisher about the object at `path`.
fn packet(path: &Name, metadata: &Metadata) -> KeptObject {
    let name = naming::metadata_name(path.view()).with_version(UNIX_NS).with_segment(0);
    let (mut content, mut packet) = (Vec::new(), Vec::new());
    metadata.encode(&mut content);
    let builder = DataBuilder::new(name.view()).freshness_ms(1000);
    builder.encode(&content, &DigestSigner, &mut packet).unwrap();
    KeptObject { packet, certificates: Vec::new(), listing: None }
}

fn file(path: &str, version: u64, size: u64) -> KeptObject {
    let path: Name = path.parse().unwrap();
    let name = naming::versioned_name(path.view(), false, version);
    let metadata = Metadata {
        size: Some(size),
        segment_size: Some(8000),
        mtime_ns: Some(1234),
        mode: Some(0o100_644),
        root: ContentRoot::Known(ROOT),
        ..Metadata::new(name)
    };
    packet(&path, &metadata)
}

fn directory_stat() -> FileStat {
    FileStat { mode: 0o040_755, ..stat(0) }
}

/// A manifest of `/t/d` with these files of 10 octets in version 8, announced with this root and
/// so many octets more than it has.
fn manifest(files: &[&str], root: u8, more: u64) -> KeptObject {
    manifest_in_version(77, files, root, more)
}

fn manifest_in_version(number: u64, files: &[&str], root: u8, more: u64) -> KeptObject {
    let mut payload = Vec::new();
    manifest::write_header(&mut payload, files.len() as u64);
    for name in files {
        let version = manifest::Version { number: 8, segment_bytes: 8000, root: Some(ROOT) };
        let entry = manifest::Entry {
            name: name.as_bytes(),
            mode: 0o100_644,
            mtime_ns: Some(1234),
            size: Some(10),
            version: Some(version),
            attributes: Default::default(),
            content: None,
        };
        entry.encode(&mut payload);
    }
    let path: Name = "/t/d/32=manifest".parse().unwrap();
    let metadata = Metadata {
        mode: Some(0o040_755),
        listing_size: Some(payload.len() as u64 + more),
        listing_segment_size: Some(8000),
        root: ContentRoot::Known([root; 32]),
        ..Metadata::new(path.with_version(number))
    };
    let stat = directory_stat();
    let listing = Listing {
        stat,
        changes: None,
        payload,
        root: [9; 32],
        levels: Vec::new(),
        versioned: None,
    };
    KeptObject { listing: Some(listing), ..packet(&path, &metadata) }
}

fn complete(server: &mut Server, completion: Completion, now: Now) -> Op {
    let (id, op) = op(server);
    server.handle_completion(id, completion, now);
    op
}

fn locate(server: &mut Server, size: u64, handle: u64, now: Now) {
    let op = complete(server, found(stat(size), handle), now);
    assert!(matches!(op, Op::Locate { .. }), "{op:?}");
}

/// Answers the question for what was kept, which must be of this kind and path.
fn keep(server: &mut Server, (of, path): (KeptOf, &str), kept: Option<KeptObject>, now: Now) {
    let op = complete(server, Completion::Kept(kept), now);
    let path = path.as_bytes().to_vec();
    let bytes_max = if matches!(of, KeptOf::File(_)) { 64 << 10 } else { BYTES_MAX };
    assert_eq!(op, Op::ReadKept { mount: 0, path, of, bytes_max });
}

fn recall(server: &mut Server, root: [u8; 32], now: Now) {
    let recalled = Recalled { root: Some(root), ..Recalled::default() };
    let op = complete(server, Completion::Recalled(recalled), now);
    assert!(matches!(op, Op::Recall { .. }), "{op:?}");
}

/// The name of the packet that was sent, or the reason of a Nack.
fn reply(server: &mut Server) -> Result<Name, u64> {
    let Outgoing { wire, .. } = server.poll_transmit().expect("an answer");
    assert!(server.poll_transmit().is_none());
    let link = LpPacket::decode(&wire).unwrap();
    match (Packet::decode(link.fragment.unwrap()).unwrap(), link.header.nack) {
        (_, Some(reason)) => Err(reason),
        (Packet::Data(data), None) => Ok(data.name.to_name()),
        other => panic!("{other:?}"),
    }
}

const ELSEWHERE: Result<Name, u64> = Err(nack_reason::NO_ROUTE);

#[test]
fn a_copy_that_agrees_is_served_with_its_packet() {
    let mut server = mirror();
    ask(&mut server, "/t/d/f/32=metadata", 4000, at(0));
    locate(&mut server, 10, 3, at(0));
    keep(&mut server, (KeptOf::File(Handle(3)), "d/f"), Some(file("/t/d/f", 7, 10)), at(0));
    recall(&mut server, ROOT, at(0));
    let name: Name = "/t/d/f/32=metadata".parse().unwrap();
    assert_eq!(reply(&mut server), Ok(name.with_version(UNIX_NS).with_segment(0)));
    ask(&mut server, "/t/d/f/v=7/seg=0", 4000, at(0));
    assert_eq!(server.poll_segments().map(|burst| burst.len()), Some(1));
    let counters = server.counters();
    assert_eq!((counters.mirror_metadata, counters.mirror_changed), (1, 0));
}

#[test]
fn a_copy_with_another_root_is_hidden_and_counted() {
    let mut server = mirror();
    ask(&mut server, "/t/d/f/32=metadata", 4000, at(0));
    locate(&mut server, 10, 3, at(0));
    keep(&mut server, (KeptOf::File(Handle(3)), "d/f"), Some(file("/t/d/f", 7, 10)), at(0));
    recall(&mut server, [6; 32], at(0));
    assert_eq!(reply(&mut server), ELSEWHERE);
    assert_eq!(op(&mut server).1, Op::Close { handle: Handle(3) });
    assert_eq!((server.counters().mirror_changed, server.levels().open_files), (1, 0));
}

#[test]
fn a_copy_of_another_size_is_looked_for_in_the_manifest_hidden_and_counted() {
    let mut server = mirror();
    ask(&mut server, "/t/d/f/32=metadata", 4000, at(0));
    locate(&mut server, 11, 3, at(0));
    keep(&mut server, (KeptOf::File(Handle(3)), "d/f"), Some(file("/t/d/f", 7, 10)), at(0));
    keep(&mut server, (KeptOf::Manifest, "d"), None, at(0));
    assert_eq!(reply(&mut server), ELSEWHERE);
    assert_eq!(op(&mut server).1, Op::Close { handle: Handle(3) });
    assert_eq!(server.counters().mirror_changed, 1);
}

/// The manifest at hand is used again, for a while and for other files too.
#[test]
fn a_version_that_only_the_manifest_announces_is_served() {
    let mut server = mirror();
    let files = ["e", "f", "g"];
    for (file_name, ms, reads_manifest) in
        [("f", 0, true), ("g", 10, false), ("e", 990, false), ("f", 1000, true)]
    {
        let path = format!("d/{file_name}");
        let version = if ms == 1000 { 9 } else { 8 };
        ask(&mut server, &format!("/t/{path}/v={version}/seg=0"), 4000, at(ms));
        locate(&mut server, 10, ms, at(ms));
        let own = Some(file(&format!("/t/{path}"), 7, 10));
        keep(&mut server, (KeptOf::File(Handle(ms)), &path), own, at(ms));
        if reads_manifest {
            keep(&mut server, (KeptOf::Manifest, "d"), Some(manifest(&files, 9, 0)), at(ms));
        }
        if version == 9 {
            assert_eq!(reply(&mut server), ELSEWHERE, "nobody has announced it");
            continue;
        }
        recall(&mut server, ROOT, at(ms));
        assert_eq!(server.poll_segments().map(|burst| burst.len()), Some(1), "{path}");
    }
    assert_eq!(server.counters().mirror_changed, 0);
}

#[test]
fn a_version_of_the_own_packet_needs_no_manifest() {
    let mut server = mirror();
    ask(&mut server, "/t/d/f/v=7/seg=0", 4000, at(0));
    locate(&mut server, 10, 3, at(0));
    keep(&mut server, (KeptOf::File(Handle(3)), "d/f"), Some(file("/t/d/f", 7, 10)), at(0));
    recall(&mut server, ROOT, at(0));
    assert_eq!(server.poll_segments().map(|burst| burst.len()), Some(1));
}

fn locate_directory(server: &mut Server, stat: FileStat, now: Now) {
    let op = complete(server, Completion::Located(Located::Directory { stat, changes: None }), now);
    assert!(matches!(op, Op::Locate { .. }), "{op:?}");
}

#[test]
fn a_manifest_that_its_packet_does_not_describe_is_hidden_and_counted() {
    let others = [(manifest(&["f"], 8, 0), 1), (manifest(&["f"], 9, 1), 1)];
    let all = others.map(|(kept, count)| (Some(kept), count)).into_iter().chain([(None, 0)]);
    for (kept, count) in all {
        let mut server = mirror();
        ask(&mut server, "/t/d/32=manifest/32=metadata", 4000, at(0));
        locate_directory(&mut server, directory_stat(), at(0));
        keep(&mut server, (KeptOf::Manifest, "d"), kept, at(0));
        assert_eq!(reply(&mut server), ELSEWHERE);
        let counters = server.counters();
        assert_eq!((counters.mirror_changed, counters.mirror_elsewhere), (count, 1));
    }
}

#[test]
fn a_manifest_at_hand_is_served_until_the_directory_changes_or_a_second_has_passed() {
    let mut server = mirror();
    let changed = FileStat { mtime_ns: 1300, ..directory_stat() };
    let same = directory_stat();
    for (ms, stat, is_read) in
        [(0, same, true), (900, same, false), (950, changed, true), (2000, same, true)]
    {
        ask(&mut server, "/t/d/32=manifest/32=metadata", 4000, at(ms));
        locate_directory(&mut server, stat, at(ms));
        if is_read {
            let kept = Some(manifest(&["f"], 9, 0));
            keep(&mut server, (KeptOf::Manifest, "d"), kept, at(ms));
        }
        assert!(reply(&mut server).is_ok(), "{ms}");
    }
}

#[test]
fn what_was_kept_is_no_answer_to_another_question() {
    let mut server = mirror();
    ask(&mut server, "/t/d/f/32=metadata", 4000, at(0));
    complete(&mut server, Completion::Kept(None), at(0));
    assert_eq!(server.counters().strays, 1);
}

#[test]
fn a_manifest_of_another_version_is_looked_up_by_its_own_entries() {
    let mut server = mirror();
    for (ms, number, files) in [(0, 77, &["z"][..]), (1000, 78, &["a", "z"])] {
        ask(&mut server, "/t/d/z/v=8/seg=0", 4000, at(ms));
        locate(&mut server, 10, ms, at(ms));
        keep(&mut server, (KeptOf::File(Handle(ms)), "d/z"), None, at(ms));
        let kept = Some(manifest_in_version(number, files, 9, 0));
        keep(&mut server, (KeptOf::Manifest, "d"), kept, at(ms));
        recall(&mut server, ROOT, at(ms));
        let burst = server.poll_segments().expect("a segment");
        // So that it is looked for again.
        server.handle_segments(burst, SegmentSent::Changed);
        assert_eq!(reply(&mut server), Err(nack_reason::NONE));
        assert_eq!(op(&mut server).1, Op::Close { handle: Handle(ms) });
    }
}

/// Until its root is computed a copy may be anything. Nobody here can sign that it is pending.
#[test]
fn who_asks_for_a_copy_that_is_being_hashed_is_asked_to_come_again() {
    let mut server = mirror();
    for lifetime_ms in [4, 4, 4000] {
        ask(&mut server, "/t/d/f/32=metadata", lifetime_ms, at(0));
    }
    locate(&mut server, 10, 3, at(0));
    keep(&mut server, (KeptOf::File(Handle(3)), "d/f"), Some(file("/t/d/f", 7, 10)), at(0));
    complete(&mut server, Completion::Recalled(Recalled::default()), at(0));
    let ops: Vec<Op> = std::iter::from_fn(|| server.poll_op()).map(|(_, op)| op).collect();
    let close = Op::Close { handle: Handle(3) };
    assert_eq!(ops, [Op::Hash { file: Handle(3), state: state(10) }, close]);
    for (due_ms, count) in [(2, 2), (5, 1)] {
        assert_eq!(server.poll_timeout(), Some(due_ms * MS));
        server.handle_timeout(at(due_ms));
        let nacks: Vec<_> = std::iter::from_fn(|| sent(&mut server)).collect();
        let expected = (0..count).map(|_| Sent::Nack(nack_reason::CONGESTION));
        assert_eq!(nacks, expected.collect::<Vec<_>>());
    }
    assert_eq!((server.counters().root_pending, server.poll_timeout()), (3, None));
}

#[test]
fn nodes_of_a_copy_without_its_tree_wait_for_the_root() {
    let mut server = mirror();
    ask(&mut server, "/t/d/f/v=7/seg=0", 4000, at(0));
    locate(&mut server, 3 << 20, 3, at(0));
    let kept = Some(file("/t/d/f", 7, 3 << 20));
    keep(&mut server, (KeptOf::File(Handle(3)), "d/f"), kept, at(0));
    recall(&mut server, ROOT, at(0));
    ask(&mut server, "/t/d/f/v=7/32=tree-1/seg=0", 4000, at(0));
    let open = complete(&mut server, Completion::TreeOpened(None), at(0));
    assert!(matches!(open, Op::OpenTree { .. }), "{open:?}");
    assert_eq!(reply(&mut server), Err(nack_reason::CONGESTION));
    assert!(matches!(op(&mut server).1, Op::Hash { .. }));
    assert_eq!((server.counters().root_pending, server.levels().pending), (1, 1));
}

/// Asks with what is usual between forwarders, for the publisher's word of this moment or for any.
fn ask_for(server: &mut Server, must_be_fresh: bool, now: Now) {
    let name: Name = "/t/d/f/32=metadata".parse().unwrap();
    let mut wire = Vec::new();
    let builder = InterestBuilder::new(name.view()).can_be_prefix(true).lifetime_ms(4000);
    builder.must_be_fresh(must_be_fresh).encode(&mut wire);
    let interest = Interest::decode(&wire).unwrap();
    let arrival = Arrival {
        interest: &interest,
        pit_token: None,
        congestion_mark: None,
        face: FaceId(7),
        incoming_face_id: None,
        path_trace: Some(b"a trace"),
    };
    server.handle_interest(&arrival, now);
    locate(server, 10, 3, now);
    keep(server, (KeptOf::File(Handle(3)), "d/f"), Some(file("/t/d/f", 7, 10)), now);
    recall(server, ROOT, now);
}

/// A cache would take it for fresh from the moment it comes.
#[test]
fn an_old_word_of_the_publisher_is_no_fresh_one_and_not_to_be_kept() {
    for (ms, must_be_fresh, is_answered, is_kept) in [
        (0, true, true, true),
        (1000, true, true, true),
        (1001, true, false, true),
        (1001, false, true, false),
    ] {
        let mut server = mirror();
        ask_for(&mut server, must_be_fresh, at(ms));
        let Outgoing { wire, .. } = server.poll_transmit().expect("an answer");
        let header = LpPacket::decode(&wire).unwrap().header;
        let nack = (!is_answered).then_some(nack_reason::NO_ROUTE);
        assert_eq!((header.nack, header.cache_policy.is_none()), (nack, is_kept), "{ms}");
        assert_eq!(header.not_fresh, !is_kept, "nor for those who wait for the publisher");
        assert_eq!(header.path_trace, is_answered.then_some(&b"a trace"[..]));
        let counters = server.counters();
        let counted = (u64::from(is_answered), u64::from(!is_answered));
        assert_eq!((counters.mirror_metadata, counters.mirror_unfresh), counted);
    }
}

#[test]
fn so_many_certificates_are_learnt_each_once_and_nothing_else() {
    let packet = |number: u64, content_type: u64| {
        let name: Name = format!("/t/KEY/{number}/self/v=1").parse().unwrap();
        let mut wire = Vec::new();
        let builder = DataBuilder::new(name.view()).content_type(content_type);
        builder.encode(b"a certificate", &DigestSigner, &mut wire).unwrap();
        wire
    };
    let mut server = mirror();
    ask(&mut server, "/t/d/f/32=metadata", 4000, at(0));
    locate(&mut server, 10, 3, at(0));
    let others = [packet(1000, ContentType::BLOB), packet(0, ContentType::KEY)];
    let mut kept = file("/t/d/f", 7, 10);
    kept.certificates = (0..2).map(|number| packet(number, ContentType::KEY)).collect();
    kept.certificates.extend(others);
    kept.certificates.extend((2..80).map(|number| packet(number, ContentType::KEY)));
    keep(&mut server, (KeptOf::File(Handle(3)), "d/f"), Some(kept), at(0));
    assert_eq!(server.fixed.len(), 64);
    assert!(
        server
            .fixed
            .iter()
            .all(|(name, _)| name.view() != "/t/KEY/1000/self/v=1".parse::<Name>().unwrap().view())
    );
}

#[test]
fn a_copy_agrees_by_size_and_time_as_far_as_its_file_system_keeps_it() {
    const CLAIMED: u64 = 5_500_000_000;
    let claim = |mtime_ns| Claim {
        packet: None,
        version: 1,
        size: 10,
        mtime_ns,
        root: ROOT,
        segment_size: 8000,
    };
    let copy = |mtime_ns| FileStat { mtime_ns, ..stat(10) };
    for (mtime_ns, agrees) in [
        (CLAIMED, true),
        (5_000_000_000, true),
        (6_000_000_000, false),
        (4_000_000_000, false),
        (CLAIMED + 1, false),
        (5_400_000_000, false),
    ] {
        assert_eq!(claim(Some(CLAIMED)).agrees(&copy(mtime_ns)), agrees, "{mtime_ns}");
        assert!(claim(None).agrees(&copy(mtime_ns)));
    }
    assert!(!claim(Some(1234)).agrees(&stat(11)) && !claim(None).agrees(&stat(11)));
}

#[test]
fn segments_have_an_octet_at_least_and_no_more_than_fit_a_packet() {
    let largest = crate::numbers::SEGMENT_BYTES_MAX;
    let sizes = [0, 1, largest as u64, largest as u64 + 1];
    assert_eq!(sizes.map(claims::segment_size), [None, Some(1), Some(largest), None]);
}

#[test]
fn a_packet_speaks_for_the_object_that_it_is_named_after_only() {
    let name = |uri: &str| uri.parse::<Name>().unwrap();
    let about = |path: &str, described: &str| {
        let metadata = Metadata::new(naming::versioned_name(name(described).view(), false, 7));
        packet(&name(path), &metadata).packet
    };
    let own = about("/t/d/f", "/t/d/f");
    for (packet, path, is_about) in [
        (&own, "/t/d/f", true),
        (&own, "/t/d/g", false),
        (&own, "/t/d", false),
        (&own, "/t/d/f/g", false),
        (&about("/t/d/f", "/t/d/g"), "/t/d/f", false),
        (&about("/t/d/f", "/t/d/g"), "/t/d/g", false),
        (&about("/t/d/f", "/t/d/f/g"), "/t/d/f", false),
        (&b"no packet".to_vec(), "/t/d/f", false),
    ] {
        let found = claims::described_by(packet, name(path).view());
        assert_eq!(found.is_some(), is_about, "{path}");
    }
}
