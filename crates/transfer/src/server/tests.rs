//! The engine without files: operations are answered by hand, time is given.

use std::sync::Arc;

use byname_packet::lp::{LpPacket, nack_reason};
use byname_packet::{DigestSigner, Interest, InterestBuilder, Packet};

use super::*;
use crate::attributes::Checksums;
use crate::metadata::{Absence, Answer, ContentRoot};

mod answers;
mod contents;
mod floods;
mod mirrors;
mod outcomes;
mod segments;

const MS: u64 = 1_000_000;
/// A wall clock long after the files of these tests were changed.
const UNIX_NS: u64 = 1_000_000 * MS;

fn server(config: ServerConfig) -> Server {
    let signer: SharedSigner = Arc::new(DigestSigner);
    Server::new(config, vec![Mount { prefix: "/t".parse().unwrap(), signer, contents: false }])
}

fn at(ms: u64) -> Now {
    Now { now_ns: ms * MS, unix_ns: UNIX_NS + ms * MS }
}

fn ask(server: &mut Server, uri: &str, lifetime_ms: u64, now: Now) {
    let name: Name = uri.parse().unwrap();
    let mut wire = Vec::new();
    InterestBuilder::new(name.view())
        .can_be_prefix(true)
        .lifetime_ms(lifetime_ms)
        .encode(&mut wire);
    let interest = Interest::decode(&wire).unwrap();
    let arrival = Arrival {
        interest: &interest,
        pit_token: Some(b"tok"),
        congestion_mark: Some(1),
        face: FaceId(7),
        incoming_face_id: None,
        path_trace: None,
    };
    server.handle_interest(&arrival, now);
}

/// The only state of this size.
fn state(size: u64) -> FileState {
    let mut of_size = [0; 24];
    of_size[..8].copy_from_slice(&size.to_be_bytes());
    FileState { fingerprint: Fingerprint::new([1; 16], of_size), size }
}

fn stat(size: u64) -> FileStat {
    FileStat { state: state(size), mode: 0o100_644, mtime_ns: 1234, ctime_ns: Some(1235) }
}

fn found(stat: FileStat, handle: u64) -> Completion {
    Completion::Located(Located::File { stat, handle: Handle(handle) })
}

/// Takes the only operation there is.
fn op(server: &mut Server) -> (OpId, Op) {
    let op = server.poll_op().expect("an operation");
    assert_eq!(server.poll_op(), None);
    op
}

#[derive(Debug, PartialEq)]
enum Sent {
    Answer(Answer),
    Segment,
    Nack(u64),
}

fn sent(server: &mut Server) -> Option<Sent> {
    let Outgoing { face: FaceId(7), wire: packet } = server.poll_transmit()? else {
        panic!("an answer for somebody else");
    };
    let link = LpPacket::decode(&packet).unwrap();
    assert_eq!(link.header.pit_token, Some(b"tok".as_slice()));
    assert_eq!(link.header.congestion_mark, Some(1));
    Some(match (Packet::decode(link.fragment.unwrap()).unwrap(), link.header.nack) {
        (_, Some(reason)) => Sent::Nack(reason),
        (Packet::Data(data), None) => match data.meta.freshness_ms {
            3_600_000 => Sent::Segment,
            _ => Sent::Answer(Answer::decode(&data).unwrap()),
        },
        other => panic!("{other:?}"),
    })
}

fn root_of(sent: Option<Sent>) -> ContentRoot {
    match sent {
        Some(Sent::Answer(Answer::Metadata(metadata))) => metadata.root,
        other => panic!("{other:?}"),
    }
}

/// Resolves, recalls nothing, announces: what a first discovery of a quiet file takes.
fn announce(server: &mut Server, size: u64, now: Now) -> u64 {
    let (id, located) = op(server);
    assert!(matches!(located, Op::Locate { .. }));
    server.handle_completion(id, found(stat(size), 7), now);
    let (id, recall) = op(server);
    assert!(matches!(recall, Op::Recall { .. }));
    server.handle_completion(id, Completion::Recalled(Recalled::default()), now);
    let (id, announce) = op(server);
    let Op::Announce { record, .. } = announce else { panic!("{announce:?}") };
    assert!(
        server.poll_transmit().is_none(),
        "nothing may be announced before the record is durable"
    );
    server.handle_completion(id, Completion::Announced(true), now);
    record.version
}

#[test]
fn a_version_is_announced_only_after_its_record_is_durable() {
    let mut server = server(ServerConfig::default());
    ask(&mut server, "/t/f/32=metadata", 4000, at(0));
    assert_eq!(announce(&mut server, 10, at(0)), 1234);
    let (id, hash) = op(&mut server);
    assert_eq!(hash, Op::Hash { file: Handle(7), state: state(10) });
    assert_eq!(sent(&mut server), None);
    server.handle_completion(id, Completion::Hashed(Hashed::Root([5; 32])), at(1));
    // After the wait it starts over.
    let (id, _) = op(&mut server);
    server.handle_completion(id, found(stat(10), 8), at(1));
    let (id, _) = op(&mut server);
    let record = Record { subject: Subject::File(state(10).fingerprint), version: 1234 };
    let recalled = Recalled { record: Some(record), root: Some([5; 32]), ..Recalled::default() };
    server.handle_completion(id, Completion::Recalled(recalled), at(1));
    assert_eq!(root_of(sent(&mut server)), ContentRoot::Known([5; 32]));
    let (_, close) = op(&mut server);
    assert_eq!(close, Op::Close { handle: Handle(8) }, "the version is open already");
    assert_eq!(server.levels().pending, 0);
}

#[test]
fn checksums_that_are_known_are_announced_with_the_root() {
    let mut server = server(ServerConfig::default());
    ask(&mut server, "/t/f/32=metadata", 4000, at(0));
    let (id, _) = op(&mut server);
    server.handle_completion(id, found(stat(10), 8), at(0));
    let (id, _) = op(&mut server);
    let record = Some(Record { subject: Subject::File(state(10).fingerprint), version: 1234 });
    let checksums = Checksums { adler32: Some([1, 2, 3, 4]), ..Checksums::default() };
    let recalled = Recalled { record, root: Some([5; 32]), checksums, ..Recalled::default() };
    server.handle_completion(id, Completion::Recalled(recalled), at(0));
    let Some(Sent::Answer(Answer::Metadata(metadata))) = sent(&mut server) else { panic!() };
    assert_eq!(metadata.attributes().checksums, checksums);
}

#[test]
fn a_record_that_cannot_be_kept_is_tried_once_more_and_then_an_error() {
    let mut server = server(ServerConfig::default());
    ask(&mut server, "/t/f/32=metadata", 4000, at(0));
    for attempt in 0..2 {
        let (id, _) = op(&mut server);
        server.handle_completion(id, found(stat(10), attempt), at(0));
        let (id, _) = op(&mut server);
        server.handle_completion(id, Completion::Recalled(Recalled::default()), at(0));
        let (id, _) = op(&mut server);
        server.handle_completion(id, Completion::Announced(false), at(0));
        assert_eq!(server.poll_op().unwrap().1, Op::Close { handle: Handle(attempt) });
    }
    let unreadable = Answer::Absence(Absence::Unreadable { code: 4 });
    assert_eq!(sent(&mut server), Some(Sent::Answer(unreadable)));
}

#[test]
fn a_slow_root_is_answered_pending_and_its_result_is_not_lost() {
    let mut server = server(ServerConfig::default());
    ask(&mut server, "/t/f/32=metadata", 4000, at(0));
    announce(&mut server, 10, at(0));
    let (hash, _) = op(&mut server);
    assert_eq!(server.poll_timeout(), Some(5 * MS));
    server.handle_timeout(at(4));
    assert_eq!(sent(&mut server), None);
    server.handle_timeout(at(5));
    assert_eq!(root_of(sent(&mut server)), ContentRoot::Pending);
    assert_eq!((server.poll_timeout(), server.levels().hashing), (None, 1));
    // Another reader joins the same computation.
    ask(&mut server, "/t/f/32=metadata", 4000, at(400));
    let (id, _) = op(&mut server);
    server.handle_completion(id, found(stat(10), 9), at(400));
    let (id, _) = op(&mut server);
    let record = Some(Record { subject: Subject::File(state(10).fingerprint), version: 1234 });
    let recalled = Recalled { record, ..Recalled::default() };
    server.handle_completion(id, Completion::Recalled(recalled), at(400));
    assert_eq!(op(&mut server).1, Op::Close { handle: Handle(9) });
    server.handle_completion(hash, Completion::Hashed(Hashed::Root([5; 32])), at(500));
    assert!(matches!(op(&mut server).1, Op::Locate { .. }));
    assert_eq!((server.counters().hashes, server.levels().hashing), (1, 0));
}

#[test]
fn short_interests_are_answered_within_half_their_lifetime() {
    let mut server = server(ServerConfig::default());
    ask(&mut server, "/t/f/32=metadata", 4, at(0));
    announce(&mut server, 10, at(0));
    assert_eq!(server.poll_timeout(), Some(2 * MS));
}

#[test]
fn too_many_roots_are_answered_pending_at_once() {
    let mut server = server(ServerConfig { hashes_max: 0, ..ServerConfig::default() });
    ask(&mut server, "/t/f/32=metadata", 4000, at(0));
    announce(&mut server, 10, at(0));
    assert_eq!(root_of(sent(&mut server)), ContentRoot::Pending);
    assert_eq!(server.counters().hashes_full, 1);
}

#[test]
fn interests_that_the_disk_outlives_are_counted_and_the_table_empties() {
    let mut server = server(ServerConfig::default());
    ask(&mut server, "/t/f/32=metadata", 1000, at(0));
    let (id, _) = op(&mut server);
    assert_eq!(server.levels().pending, 1);
    server.handle_timeout(at(1000));
    assert_eq!((server.levels().pending, server.counters().expired), (0, 1));
    server.handle_completion(id, Completion::Located(Located::NotFound), at(2000));
    assert_eq!((sent(&mut server), server.poll_timeout()), (None, None));
    // Nothing of it is left: the path can be asked about again.
    ask(&mut server, "/t/f/32=metadata", 1000, at(3000));
    assert!(matches!(op(&mut server).1, Op::Locate { .. }));
}

#[test]
fn a_changed_file_is_nacked_and_closed() {
    let mut server = server(ServerConfig::default());
    ask(&mut server, "/t/f/32=metadata", 4000, at(0));
    let version = announce(&mut server, 10, at(0));
    op(&mut server);
    ask(&mut server, &format!("/t/f/v={version}/seg=0"), 4000, at(1));
    let burst = server.poll_segments().unwrap();
    let segment = burst.segment(0);
    assert_eq!((burst.source(), burst.len()), (Handle(7), 1));
    assert_eq!((segment.offset, segment.len), (0, 10));
    server.handle_segments(burst, SegmentSent::Changed);
    assert_eq!(sent(&mut server), Some(Sent::Nack(0)));
    assert_eq!(op(&mut server).1, Op::Close { handle: Handle(7) });
    assert_eq!(server.counters().changed, 1);
}

#[test]
fn no_operation_has_the_number_of_an_earlier_one() {
    let mut server = server(ServerConfig::default());
    ask(&mut server, "/t/f/32=metadata", 4000, at(0));
    let version = announce(&mut server, 10, at(0));
    let (hash, _) = op(&mut server);
    ask(&mut server, &format!("/t/f/v={version}/seg=0"), 4000, at(1));
    let burst = server.poll_segments().unwrap();
    server.handle_segments(burst, SegmentSent::Changed);
    let (close, closed) = op(&mut server);
    assert_eq!(closed, Op::Close { handle: Handle(7) });
    ask(&mut server, "/t/g/32=metadata", 4000, at(1));
    let (locate, _) = op(&mut server);
    assert!(hash < close && close < locate, "{hash:?} {close:?} {locate:?}");
}

#[test]
fn a_fixed_packet_is_served_under_its_name_and_no_other() {
    let mut server = server(ServerConfig::default());
    assert_eq!(server.mounts()[0].prefix, "/t".parse().unwrap());
    let name: Name = "/t/KEY/1/self/v=1".parse().unwrap();
    let mut wire = Vec::new();
    let builder = byname_packet::DataBuilder::new(name.view()).freshness_ms(3_600_000);
    builder.encode(b"a certificate", &DigestSigner, &mut wire).unwrap();
    assert!(server.add_fixed(FixedData { wire: wire[1..].to_vec() }).is_err(), "no packet");
    server.add_fixed(FixedData { wire }).unwrap();
    ask(&mut server, "/t/KEY/1", 4000, at(0));
    assert_eq!(sent(&mut server), Some(Sent::Segment));
    ask(&mut server, "/t/KEY/2", 4000, at(0));
    assert_ne!(sent(&mut server), Some(Sent::Segment));
}

#[test]
fn contents_are_no_files_of_a_mount() {
    let mut server = server(ServerConfig::default());
    for uri in ["/t/32=file/seq=9/v=7/seg=0", "/t/f/32=file/seq=9/v=7/32=tree-1/seg=0"] {
        ask(&mut server, uri, 4000, at(0));
        assert_eq!(server.poll_op(), None, "nothing is looked up: {uri}");
        assert_eq!(sent(&mut server), Some(Sent::Nack(nack_reason::NONE)), "{uri}");
    }
}

#[test]
fn segments_of_one_source_are_handed_out_as_a_burst() {
    let mut server = server(ServerConfig::default());
    let mut versions = Vec::new();
    for (path, handle) in [("f", 7), ("g", 8)] {
        ask(&mut server, &format!("/t/{path}/32=metadata"), 4000, at(0));
        let (id, _) = op(&mut server);
        server.handle_completion(id, found(stat(100_000), handle), at(0));
        let (id, _) = op(&mut server);
        let record = Record { subject: Subject::File(state(100_000).fingerprint), version: handle };
        let root = Some([1; 32]);
        let recalled = Recalled { record: Some(record), root, ..Recalled::default() };
        server.handle_completion(id, Completion::Recalled(recalled), at(0));
        assert!(matches!(sent(&mut server), Some(Sent::Answer(_))));
        versions.push(format!("/t/{path}/v={handle}"));
    }
    for (version, segment) in [(0, 0), (0, 1), (0, 2), (1, 0), (0, 3)] {
        ask(&mut server, &format!("{}/seg={segment}", versions[version]), 4000, at(1));
    }
    ask(&mut server, "/t/h/32=metadata", 4000, at(1));
    let bursts: Vec<SegmentBurst> = std::iter::from_fn(|| server.poll_segments()).collect();
    let places = |burst: &SegmentBurst| -> Vec<(u64, u64)> {
        let source = burst.source().0;
        burst.segments().map(|segment| (source, segment.offset / 8192)).collect()
    };
    let expected = [&[(7, 0), (7, 1), (7, 2), (7, 3)][..], &[(8, 0)]];
    assert!(bursts.iter().map(places).eq(expected.map(<[_]>::to_vec)));
    assert!(matches!(op(&mut server).1, Op::Locate { .. }));

    // The file changed: everything read of it is refused, and it is closed once.
    for burst in bursts {
        let is_changed = burst.source() == Handle(7);
        let sent = if is_changed { SegmentSent::Changed } else { SegmentSent::Sent };
        server.handle_segments(burst, sent);
    }
    for _ in 0..4 {
        assert_eq!(sent(&mut server), Some(Sent::Nack(0)));
    }
    assert_eq!(sent(&mut server), None);
    assert_eq!(op(&mut server).1, Op::Close { handle: Handle(7) });
    assert_eq!((server.counters().changed, server.levels().open_files), (4, 1));
}

#[test]
fn a_server_without_records_serves_the_version_that_another_one_announced() {
    let mut server = server(ServerConfig::default());
    // What this server would announce for the file as it is, and two that it would not.
    for uri in ["/t/f/v=1234/seg=1", "/t/f/v=1233/seg=1", "/t/f/v=1235/seg=1"] {
        ask(&mut server, uri, 4000, at(0));
    }
    assert_eq!(announce_refusing(&mut server, 2), 1234);
    let burst = server.poll_segments().expect("the first one is served");
    assert_eq!((burst.len(), burst.segment(0).offset), (1, 8192));
    server.handle_segments(burst, SegmentSent::Sent);
    assert_eq!(sent(&mut server), None);
    assert_eq!(server.levels().pending, 0);

    // Its tree is not here. Level 1 is computed when asked, the next one with the root.
    ask(&mut server, "/t/f/v=1234/32=tree-2/seg=0", 4000, at(1));
    let (id, open) = op(&mut server);
    assert!(matches!(open, Op::OpenTree { .. }));
    server.handle_completion(id, Completion::TreeOpened(None), at(1));
    assert!(matches!(op(&mut server).1, Op::Hash { .. }));
    assert_eq!(sent(&mut server), Some(Sent::Nack(nack_reason::CONGESTION)), "ask again");
    assert_eq!(server.levels().pending, 0);
}

#[test]
fn a_segment_of_a_file_that_is_being_written_waits_for_no_version() {
    let config = ServerConfig { quiet_ns: 5000 * MS, ..ServerConfig::default() };
    let mut server = server(config);
    let changed_ns = UNIX_NS - MS;
    ask(&mut server, &format!("/t/f/v={changed_ns}/seg=0"), 4000, at(0));
    let (id, _) = op(&mut server);
    let fresh = FileStat { mtime_ns: changed_ns, ctime_ns: Some(changed_ns + 1), ..stat(10) };
    server.handle_completion(id, found(fresh, 7), at(0));
    let (id, _) = op(&mut server);
    server.handle_completion(id, Completion::Recalled(Recalled::default()), at(0));
    assert_eq!(op(&mut server).1, Op::Close { handle: Handle(7) });
    assert_eq!(sent(&mut server), None, "held as long as the publisher's description would be");
    server.handle_timeout(at(3000));
    assert_eq!(sent(&mut server), Some(Sent::Nack(0)));
    assert_eq!(server.levels().pending, 0);
}

#[test]
fn a_list_that_takes_long_is_announced_as_being_made_and_then_fresh() {
    let mut server = server(ServerConfig::default());
    ask(&mut server, "/t/d/32=manifest/32=metadata", 4000, at(0));
    let (id, _) = op(&mut server);
    let stat = FileStat { mode: 0o040_755, ..stat(4096) };
    let located = Located::Directory { stat, changes: None };
    server.handle_completion(id, Completion::Located(located), at(0));
    let (listing_op, list) = op(&mut server);
    assert!(matches!(list, Op::Manifest { .. }), "{list:?}");
    server.handle_timeout(at(499));
    assert_eq!(sent(&mut server), None);
    for ms in [500, 1500] {
        server.handle_timeout(at(ms));
        let busy = Answer::Absence(Absence::BeingListed { retry_ms: 500 });
        assert_eq!(sent(&mut server), Some(Sent::Answer(busy)), "after {ms} ms");
        assert_eq!(server.poll_op(), None, "the list goes on being made, once");
        ask(&mut server, "/t/d/32=manifest/32=metadata", 4000, at(ms + 500));
    }
    let payload = vec![1; 10];
    let listing = Listing {
        stat,
        changes: None,
        payload,
        root: [7; 32],
        levels: Vec::new(),
        versioned: None,
    };
    server.handle_completion(listing_op, Completion::Listed(Ok(listing)), at(2100));
    let (id, _) = op(&mut server);
    server.handle_completion(id, Completion::Recalled(Recalled::default()), at(2100));
    let (id, _) = op(&mut server);
    server.handle_completion(id, Completion::Announced(true), at(2100));
    assert_eq!(root_of(sent(&mut server)), ContentRoot::Known([7; 32]));
    assert_eq!((server.counters().being_listed, server.counters().expired), (2, 0));
}

/// As [`announce`], of a file of 600 MiB, with so many refused before the record is durable.
fn announce_refusing(server: &mut Server, count: usize) -> u64 {
    let (id, _) = op(server);
    server.handle_completion(id, found(stat(600 << 20), 7), at(0));
    let (id, _) = op(server);
    server.handle_completion(id, Completion::Recalled(Recalled::default()), at(0));
    let refused: Vec<Sent> = std::iter::from_fn(|| sent(server)).collect();
    let nacks = (0..count).map(|_| Sent::Nack(0));
    assert_eq!(refused, nacks.collect::<Vec<_>>());
    let (id, announce) = op(server);
    let Op::Announce { record, .. } = announce else { panic!("{announce:?}") };
    server.handle_completion(id, Completion::Announced(true), at(0));
    record.version
}

#[test]
fn least_recently_used_versions_are_closed() {
    let mut server = server(ServerConfig { open_max: 8, ..ServerConfig::default() });
    for n in 0..9 {
        ask(&mut server, &format!("/t/{n}/32=metadata"), 4000, at(0));
        let (id, _) = op(&mut server);
        server.handle_completion(id, found(stat(10 + n), n), at(0));
        let (id, _) = op(&mut server);
        let record = Some(Record { subject: Subject::File(state(10 + n).fingerprint), version: 1 });
        let recalled = Recalled { record, root: Some([1; 32]), ..Recalled::default() };
        server.handle_completion(id, Completion::Recalled(recalled), at(0));
        assert!(sent(&mut server).is_some());
    }
    let closed: Vec<Op> = std::iter::from_fn(|| server.poll_op()).map(|(_, op)| op).collect();
    assert_eq!(closed, [0, 1].map(|n| Op::Close { handle: Handle(n) }));
    assert_eq!(server.levels().open_files, 7);
}

#[test]
fn listing_segments_come_from_the_snapshot() {
    let mut server = server(ServerConfig::default());
    ask(&mut server, "/t/d/32=metadata", 4000, at(0));
    let (id, _) = op(&mut server);
    let stat = FileStat { mode: 0o040_755, ..stat(0) };
    server.handle_completion(
        id,
        Completion::Located(Located::Directory { stat, changes: None }),
        at(0),
    );
    let (id, list) = op(&mut server);
    assert!(matches!(list, Op::List { .. }));
    let payload = b"a\0b/\0".to_vec();
    let listing = Listing {
        stat,
        changes: None,
        payload,
        root: [3; 32],
        levels: Vec::new(),
        versioned: None,
    };
    server.handle_completion(id, Completion::Listed(Ok(listing)), at(1));
    let (id, _) = op(&mut server);
    server.handle_completion(id, Completion::Recalled(Recalled::default()), at(1));
    let (id, _) = op(&mut server);
    server.handle_completion(id, Completion::Announced(true), at(1));
    assert_eq!(root_of(sent(&mut server)), ContentRoot::Known([3; 32]));
    for (uri, expected) in [
        ("/t/d/32=ls/v=1234/seg=0", Sent::Segment),
        ("/t/d/32=ls/v=1234/seg=1", Sent::Nack(0)),
        ("/t/d/32=ls/v=1234/32=tree-1/seg=0", Sent::Nack(0)),
    ] {
        ask(&mut server, uri, 4000, at(2));
        assert_eq!(sent(&mut server), Some(expected), "{uri}");
    }
}

#[test]
fn stray_completions_are_counted_and_harmless() {
    let mut server = server(ServerConfig::default());
    server.handle_completion(OpId(77), Completion::Announced(true), at(0));
    ask(&mut server, "/t/f/32=metadata", 4000, at(0));
    let (id, _) = op(&mut server);
    server.handle_completion(id, Completion::Announced(true), at(0));
    assert_eq!(server.counters().strays, 1);
    assert!(matches!(op(&mut server).1, Op::Locate { .. }), "it starts over");
}

/// A version of a file that is being hashed, and the name of its level 1.
fn pending_version(server: &mut Server, size: u64) -> String {
    ask(server, "/t/f/32=metadata", 4000, at(0));
    let version = announce(server, size, at(0));
    assert!(matches!(op(server).1, Op::Hash { .. }));
    assert_eq!(root_of(sent(server)), ContentRoot::Pending, "at once");
    format!("/t/f/v={version}/32=tree-1")
}

fn order(server: &mut Server) -> (OpId, SignSegment) {
    match op(server) {
        (id, Op::SignSegment(order)) => (id, order),
        other => panic!("{other:?}"),
    }
}

#[test]
fn readers_of_one_pending_node_share_its_making_and_later_ones_its_packet() {
    let mut server = server(ServerConfig::default());
    let level = pending_version(&mut server, 64 << 20);
    for _ in 0..3 {
        ask(&mut server, &format!("{level}/seg=5"), 4000, at(1));
    }
    let (id, make) = order(&mut server);
    assert_eq!((make.source, make.last_segment), (Handle(7), 31));
    assert_eq!(make.octets, Octets::Values { offset: 5 * 8192, len: 8192 });
    assert_eq!((server.levels().nodes, server.levels().pending), (1, 3));
    let packet = sign_segment(&make, &[3; 8192]).unwrap();
    server.handle_completion(id, Completion::Signed(SignedSegment::Packet(packet)), at(2));
    for _ in 0..3 {
        assert_eq!(sent(&mut server), Some(Sent::Segment));
    }
    ask(&mut server, &format!("{level}/seg=5"), 4000, at(3));
    assert_eq!((sent(&mut server), server.poll_op()), (Some(Sent::Segment), None));
    assert_eq!((server.levels().nodes, server.levels().pending), (0, 0));
    assert_eq!((server.counters().nodes_signed, server.counters().nodes_reused), (1, 1));
}

#[test]
fn nodes_being_made_and_signed_are_bounded() {
    let config = ServerConfig { nodes_max: 4, nodes_per_s: 6, ..ServerConfig::default() };
    let mut server = server(config);
    let level = pending_version(&mut server, 1 << 30);
    let mut made = Vec::new();
    for node in 0..6 {
        ask(&mut server, &format!("{level}/seg={node}"), 4000, at(1));
        made.extend(server.poll_op());
    }
    assert_eq!((made.len(), server.counters().nodes_full), (4, 2));
    for (id, _) in made {
        server.handle_completion(id, Completion::Signed(SignedSegment::Failed), at(1));
    }
    for node in 10..14 {
        ask(&mut server, &format!("{level}/seg={node}"), 4000, at(1));
    }
    assert_eq!(server.counters().signing_limited, 2, "six in a second");
    assert_eq!(server.counters().failed, 4);
    let nacks: Vec<_> = std::iter::from_fn(|| sent(&mut server)).collect();
    let congestion = nacks.iter().filter(|nack| **nack == Sent::Nack(50)).count();
    assert_eq!((nacks.len(), congestion), (8, 4));
}

#[test]
fn a_node_of_a_file_that_changed_ends_its_version() {
    let mut server = server(ServerConfig::default());
    let level = pending_version(&mut server, 64 << 20);
    ask(&mut server, &format!("{level}/seg=5"), 4000, at(1));
    let (id, _) = order(&mut server);
    server.handle_completion(id, Completion::Signed(SignedSegment::Changed), at(2));
    assert_eq!(sent(&mut server), Some(Sent::Nack(0)));
    assert_eq!(op(&mut server).1, Op::Close { handle: Handle(7) });
    assert_eq!((server.counters().changed, server.levels().open_files), (1, 0));
}

/// Interests expire, but what they began is still with the disk: without a bound, a disk that hangs
/// and readers that ask for ever other files would fill the memory.
#[test]
fn a_disk_that_does_not_answer_is_asked_for_a_bounded_number_of_paths() {
    let config = ServerConfig { pending_max: 8, ..ServerConfig::default() };
    let mut server = server(config);
    for number in 0..100 {
        let now = at(number * 20);
        server.handle_timeout(now);
        ask(&mut server, &format!("/t/{number}/32=metadata"), 10, now);
        assert_eq!(server.levels().overfull(&config), None);
    }
    assert_eq!((server.levels().paths, server.levels().pending), (8, 0));
    assert_eq!(server.counters().pending_full, 92);
    let (id, _) = server.poll_op().expect("an operation");
    server.handle_completion(id, Completion::Located(Located::NotFound), at(3000));
    ask(&mut server, "/t/later/32=metadata", 4000, at(3000));
    assert_eq!(server.levels().pending, 1, "there is room again");
}
