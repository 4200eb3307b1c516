//! Outcomes of lookups that are rare, what is counted of all, and values that are only handed on.

use byname_packet::Signer;

use super::*;
use crate::metadata::{Extras, Metadata};
use crate::server::snapshots::{FoundDirectory, Snapshot};

fn located(server: &mut Server, located: Located, now: Now) {
    let (id, op) = op(server);
    assert!(matches!(op, Op::Locate { .. }), "{op:?}");
    server.handle_completion(id, Completion::Located(located), now);
}

fn recalled(server: &mut Server, now: Now) {
    let (id, op) = op(server);
    assert!(matches!(op, Op::Recall { .. }), "{op:?}");
    server.handle_completion(id, Completion::Recalled(Recalled::default()), now);
}

fn described(sent: Option<Sent>) -> Metadata {
    match sent {
        Some(Sent::Answer(Answer::Metadata(metadata))) => metadata,
        other => panic!("{other:?}"),
    }
}

fn absent(absence: Absence) -> Option<Sent> {
    Some(Sent::Answer(Answer::Absence(absence)))
}

/// A list, with a version if whoever reads it gives them out.
fn list(server: &mut Server, root: u8, version: Option<u64>, now: Now) {
    let stat = FileStat { mode: 0o040_755, ..stat(0) };
    located(server, Located::Directory { stat, changes: None }, now);
    let extras = Extras { binding: Some(3), ..Extras::default() };
    let listing = Listing {
        stat,
        changes: None,
        payload: vec![root; 9000],
        root: [root; 32],
        levels: vec![vec![11; 64], vec![12; 32]],
        versioned: version.map(|version| Box::new(VersionedListing { version, extras })),
    };
    let (id, op) = op(server);
    let (Op::List { bytes_max, .. } | Op::Manifest { bytes_max, .. }) = op else { panic!() };
    assert_eq!(2 * bytes_max, ServerConfig::default().listing_bytes_max);
    server.handle_completion(id, Completion::Listed(Ok(listing)), now);
}

#[test]
fn only_a_directory_has_a_manifest() {
    let link = Metadata::new("/t/f/v=5".parse().unwrap());
    for closes in [true, false] {
        let mut server = server(ServerConfig::default());
        ask(&mut server, "/t/f/32=manifest/32=metadata", 4000, at(0));
        let found = match closes {
            true => Located::File { stat: stat(10), handle: Handle(3) },
            false => Located::Described(Box::new(link.clone())),
        };
        located(&mut server, found, at(0));
        assert_eq!(sent(&mut server), absent(Absence::NotFound));
        let close = closes.then_some(Op::Close { handle: Handle(3) });
        assert_eq!(server.poll_op().map(|(_, op)| op), close);
    }
    let mut server = server(ServerConfig::default());
    ask(&mut server, "/t/f/32=metadata", 4000, at(0));
    located(&mut server, Located::Described(Box::new(link.clone())), at(0));
    assert_eq!(described(sent(&mut server)).name, link.name);
}

#[test]
fn a_list_whose_record_cannot_be_kept_is_not_announced() {
    let mut server = server(ServerConfig::default());
    ask(&mut server, "/t/d/32=metadata", 4000, at(0));
    for _ in 0..2 {
        list(&mut server, 3, None, at(0));
        recalled(&mut server, at(0));
        let (id, op) = op(&mut server);
        assert!(matches!(op, Op::Announce { .. }), "{op:?}");
        assert_eq!(sent(&mut server), None);
        server.handle_completion(id, Completion::Announced(false), at(0));
    }
    assert_eq!(sent(&mut server), absent(Absence::Unreadable { code: 4 }));
}

#[test]
fn a_list_that_is_the_same_keeps_its_version_whoever_gives_them_out() {
    let mut server = server(ServerConfig::default());
    let uri = "/t/d/32=metadata";
    for (ms, root, version, expected) in [(0, 3, 9, 9), (5000, 3, 10, 9), (9000, 4, 11, 11)] {
        ask(&mut server, uri, 4000, at(ms));
        list(&mut server, root, Some(version), at(ms));
        let metadata = described(sent(&mut server));
        assert_eq!(
            (metadata.version(), metadata.root),
            (Some(expected), ContentRoot::Known([root; 32]))
        );
        assert_eq!((metadata.ctime_ns, metadata.mtime_ns), (Some(1235), Some(1234)));
        assert_eq!((metadata.mode, metadata.listing_size), (Some(0o040_755), Some(9000)));
        assert_eq!(metadata.listing_segment_size, Some(8192));
        assert_eq!(metadata.attributes().binding, Some(3));
    }
    assert_eq!((server.counters().listings, server.counters().versions), (3, 0));
}

#[test]
fn a_list_that_is_on_record_has_the_version_there_and_another_one_the_next() {
    for (root, version, is_announced) in [(3, 2000, false), (4, 2001, true)] {
        let mut server = server(ServerConfig::default());
        ask(&mut server, "/t/d/32=metadata", 4000, at(0));
        list(&mut server, root, None, at(0));
        let (id, _) = op(&mut server);
        let record = Some(Record { subject: Subject::Listing([3; 32]), version: 2000 });
        let recalled = Recalled { record, ..Recalled::default() };
        server.handle_completion(id, Completion::Recalled(recalled), at(0));
        assert_eq!(server.counters().versions, u64::from(is_announced));
        if let Some((id, _)) = server.poll_op() {
            server.handle_completion(id, Completion::Announced(true), at(0));
        }
        assert_eq!(described(sent(&mut server)).version(), Some(version));
    }
}

#[test]
fn what_directories_cost_is_counted() {
    let mut server = server(ServerConfig::default());
    for (round, uri) in ["/t/d/32=metadata", "/t/d/32=manifest/32=metadata"].iter().enumerate() {
        ask(&mut server, uri, 4000, at(0));
        list(&mut server, 3, None, at(0));
        recalled(&mut server, at(0));
        let (id, _) = op(&mut server);
        server.handle_completion(id, Completion::Announced(true), at(0));
        assert_eq!(described(sent(&mut server)).version(), Some(1234));
        assert_eq!(server.counters().versions, round as u64 + 1);
    }
    for segment in 0..2 {
        ask(&mut server, &format!("/t/d/32=ls/v=1234/seg={segment}"), 4000, at(1));
        assert_eq!(sent(&mut server), Some(Sent::Segment));
    }
    let counters = server.counters();
    assert_eq!((counters.listings, counters.manifests, counters.listing_segments), (1, 1, 2));
}

#[test]
fn results_of_other_operations_than_asked_for_are_counted() {
    let mut server = server(ServerConfig::default());
    ask(&mut server, "/t/f/32=metadata", 4000, at(0));
    let (id, _) = op(&mut server);
    server.handle_completion(id, Completion::Recalled(Recalled::default()), at(0));
    assert_eq!(server.counters().strays, 1);
    ask(&mut server, "/t/g/32=metadata", 4000, at(0));
    let (id, _) = op(&mut server);
    server.handle_completion(id, Completion::TreeOpened(None), at(0));
    assert_eq!(server.counters().strays, 2);
    ask(&mut server, "/other/32=metadata", 4000, at(0));
    assert_eq!(sent(&mut server), Some(Sent::Nack(nack_reason::NONE)));
    assert_eq!(server.counters().not_understood, 1);
}

/// A clock that was set back tells nothing; only watching does.
#[test]
fn a_file_from_the_future_is_announced_when_it_has_been_watched_in_one_state() {
    let mut server = server(ServerConfig::default());
    let future = |size| FileStat { ctime_ns: Some(2 * UNIX_NS + 1), ..stat(size) };
    let look = |server: &mut Server, size, ms| {
        located(server, Located::File { stat: future(size), handle: Handle(ms) }, at(ms));
        recalled(server, at(ms));
        let (_, op) = op(server);
        op
    };
    ask(&mut server, "/t/f/32=metadata", 4000, at(0));
    assert_eq!(look(&mut server, 10, 0), Op::Close { handle: Handle(0) });
    server.handle_timeout(at(100));
    assert_eq!(look(&mut server, 11, 100), Op::Close { handle: Handle(100) }, "it changed");
    server.handle_timeout(at(200));
    let announced = look(&mut server, 11, 200);
    assert!(matches!(announced, Op::Announce { .. }), "{announced:?}");
}

#[test]
fn a_short_name_gets_no_certificate_that_lies_deep_below() {
    let mut server = server(ServerConfig::default());
    let name: Name = "/t/a/b/KEY/1/self/v=1".parse().unwrap();
    let mut wire = Vec::new();
    let builder = byname_packet::DataBuilder::new(name.view()).freshness_ms(3_600_000);
    builder.encode(b"a certificate", &DigestSigner, &mut wire).unwrap();
    server.add_fixed(FixedData { wire }).unwrap();
    for uri in ["/t/a", "/t/a/b"] {
        ask(&mut server, uri, 4000, at(0));
        assert_eq!(sent(&mut server), Some(Sent::Nack(nack_reason::NONE)), "{uri}");
    }
    assert_eq!(server.counters().fixed, 0);
    ask(&mut server, "/t/a/b/KEY", 4000, at(0));
    assert_eq!(sent(&mut server), Some(Sent::Segment));
    assert_eq!(server.counters().fixed, 1);
}

#[test]
fn nobody_waits_with_more_than_is_free() {
    let mut server = server(ServerConfig { pending_max: 4, ..ServerConfig::default() });
    for n in 0..4 {
        ask(&mut server, &format!("/t/{n}/32=metadata"), 4000, at(0));
        let refused = (n == 3).then_some(Sent::Nack(nack_reason::CONGESTION));
        assert_eq!(sent(&mut server), refused, "{n}");
    }
    assert_eq!((server.levels().pending, server.counters().pending_full), (3, 1));
}

#[test]
fn what_somebody_has_waiting_is_counted_down_one_by_one() {
    let mut lookups = Lookups::default();
    let asker = Asker { face: FaceId(7), behind: None };
    (0..3).for_each(|_| lookups.note_waiting(asker));
    for left in [2, 1, 0, 0] {
        lookups.note_left(asker);
        assert_eq!(lookups.held_by(asker), left);
    }
}

/// Keys in the order opposite to that in which they came and were used.
#[test]
fn what_was_used_last_stays_whatever_its_key() {
    let mut cache = Cache::new(8);
    for key in (1..9).rev() {
        assert!(cache.insert(vec![key], key, 1).is_empty());
    }
    assert_eq!(cache.insert(vec![0], 0, 1), [8, 7]);
    let mut cache = Cache::new(8);
    for key in 1..9 {
        assert!(cache.insert(vec![key], key, 1).is_empty());
    }
    for key in [8, 7, 6, 5, 4, 3, 2, 1] {
        assert!(cache.get(&[key]).is_some());
    }
    assert_eq!(cache.insert(vec![0], 0, 1), [8, 7]);
}

#[test]
fn each_table_has_a_bound_that_it_may_reach_and_not_pass() {
    let config = ServerConfig::default();
    let nodes_bytes = config.nodes_bytes_max;
    let pending = config.pending_max;
    type Place = fn(&mut Levels) -> &mut usize;
    let tables: [(&str, Place, usize); 10] = [
        ("waiting Interests", |it| &mut it.pending, pending),
        ("open files", |it| &mut it.open_files, config.open_max),
        ("octets of listings", |it| &mut it.listing_bytes, config.listing_bytes_max),
        ("roots being computed", |it| &mut it.hashing, config.hashes_max),
        ("nodes being computed", |it| &mut it.nodes, config.nodes_max),
        ("octets of nodes", |it| &mut it.node_bytes, nodes_bytes),
        ("paths being looked at", |it| &mut it.paths, pending),
        ("operations", |it| &mut it.operations, 2 * pending + config.hashes_max),
        ("signed packets", |it| &mut it.answers, config.answers_max),
        ("queues of clients", |it| &mut it.queues, pending),
    ];
    for (name, place, max) in tables {
        let mut levels = Levels::default();
        *place(&mut levels) = max;
        assert_eq!(levels.overfull(&config), None, "{name}");
        *place(&mut levels) = max + 1;
        assert_eq!(levels.overfull(&config), Some((name, max + 1, max)));
    }
}

#[test]
fn nothing_is_kept_for_longer_than_it_is_fresh() {
    let mut config = ServerConfig::default();
    config.set_freshness_ms(400);
    assert_eq!((config.metadata_freshness_ms, config.reuse_ns), (400, 400 * MS));
    assert_eq!(config.relist_ns, 400 * MS);
    config.set_freshness_ms(60_000);
    assert_eq!((config.metadata_freshness_ms, config.relist_ns), (60_000, 400 * MS));
}

#[test]
fn a_fingerprint_is_its_object_and_its_state() {
    let fingerprint = Fingerprint::new([3; 16], [2; 24]);
    assert_eq!((fingerprint.object(), fingerprint.state()), (&[3; 16], &[2; 24]));
    assert_eq!(fingerprint.as_bytes()[15..17], [3, 2]);
    assert_eq!(Fingerprint::from_bytes(*fingerprint.as_bytes()), fingerprint);
    let text = format!("{fingerprint:?}");
    assert_eq!(text, format!("Fingerprint({}{})", "03".repeat(16), "02".repeat(24)));
}

#[test]
fn two_signers_are_the_same_if_they_are_one() {
    let (one, other): (SharedSigner, SharedSigner) =
        (Arc::new(DigestSigner), Arc::new(DigestSigner));
    assert_eq!(SegmentSigner(one.clone()), SegmentSigner(one.clone()));
    assert_ne!(SegmentSigner(one.clone()), SegmentSigner(other));
    assert_eq!(format!("{:?}", SegmentSigner(one)), "SegmentSigner(0)");
}

#[test]
fn an_answer_is_signed_anew_when_it_has_been_used_for_so_long() {
    let mut server = server(ServerConfig::default());
    let name: Name = "/t/f/32=metadata".parse().unwrap();
    let mut interest = Vec::new();
    InterestBuilder::new(name.view()).can_be_prefix(true).encode(&mut interest);
    for (ms, signatures, reused) in [(0, 1, 0), (999, 1, 1), (1000, 2, 1)] {
        assert_eq!(server.answers.is_at_hand(&interest, at(ms).now_ns), ms == 999, "{ms}");
        ask(&mut server, "/t/f/32=metadata", 4000, at(ms));
        located(&mut server, Located::NotFound, at(ms));
        assert_eq!(sent(&mut server), absent(Absence::NotFound));
        let counters = server.counters();
        assert_eq!((counters.signatures, counters.signatures_reused), (signatures, reused));
    }
    assert_eq!((server.counters().absences, server.levels().answers), (3, 1));
    ask(&mut server, "/t/g/32=metadata", 4000, at(1000));
    located(&mut server, Located::Failed, at(1000));
    assert_eq!(sent(&mut server), absent(Absence::Unreadable { code: 4 }));
    assert_eq!((server.counters().failed, server.levels().answers), (1, 2));
}

/// A head whose database is gone says nothing of paths: a signed failure would end a reader that
/// waits for it to come back, or for another head.
#[test]
fn nothing_is_said_while_what_would_say_it_cannot_be_asked() {
    let mut server = server(ServerConfig::default());
    ask(&mut server, "/t/f/32=metadata", 4000, at(0));
    located(&mut server, Located::Unavailable, at(0));
    assert!(server.poll_transmit().is_none());
    assert_eq!((server.counters().unavailable, server.counters().failed), (1, 0));
    ask(&mut server, "/t/f/32=metadata", 4000, at(1));
    located(&mut server, Located::NotFound, at(1));
    assert_eq!(sent(&mut server), absent(Absence::NotFound), "the next one asks anew");
}

#[test]
fn all_that_is_known_of_a_file_is_announced() {
    let mut server = server(ServerConfig::default());
    ask(&mut server, "/t/f/32=metadata", 4000, at(0));
    announce(&mut server, 3 << 20, at(0));
    let metadata = described(sent(&mut server));
    assert_eq!((metadata.size, metadata.mode), (Some(3 << 20), Some(0o100_644)));
    assert_eq!((metadata.ctime_ns, metadata.mtime_ns), (Some(1235), Some(1234)));
    let segment_size = metadata.segment_size.expect("a size");
    assert_eq!(metadata.last_segment, Some(((3 << 20) - 1) / segment_size));
    assert_eq!((metadata.root, server.counters().root_pending), (ContentRoot::Pending, 1));
    assert_eq!(server.counters().versions, 1);
}

#[test]
fn a_file_being_written_is_counted_for_each_who_waited() {
    let mut server = server(ServerConfig::default());
    let young = FileStat { ctime_ns: Some(UNIX_NS + 1), mtime_ns: UNIX_NS + 1, ..stat(10) };
    for _ in 0..2 {
        ask(&mut server, "/t/f/32=metadata", 100, at(0));
    }
    located(&mut server, Located::File { stat: young, handle: Handle(1) }, at(0));
    recalled(&mut server, at(0));
    assert_eq!(op(&mut server).1, Op::Close { handle: Handle(1) });
    server.handle_timeout(at(50));
    for _ in 0..2 {
        assert_eq!(sent(&mut server), absent(Absence::BeingWritten { retry_ms: 50 }));
    }
    assert_eq!(server.counters().being_written, 2);
}

/// As a directory of 300 KiB is asked about whose reading took a second.
#[test]
fn a_large_list_stands_for_twice_the_time_that_it_took_and_others_while_nothing_changed() {
    let config = ServerConfig { relist_ns: 1000 * MS, ..ServerConfig::default() };
    let settled =
        FileStat { mtime_ns: UNIX_NS - 60 * MS, ctime_ns: Some(UNIX_NS - 50 * MS), ..stat(0) };
    let snapshot = |bytes: usize, stat: FileStat| {
        let payload = vec![0; bytes];
        let listing = Listing {
            stat,
            changes: None,
            payload,
            root: [0; 32],
            levels: vec![vec![0; 32]],
            versioned: None,
        };
        Snapshot { version: 1, listing, segment_size: 8000, read: at(0), took_ns: 1000 * MS }
    };
    let is_current = |snapshot: &Snapshot, found: &FileStat, ms: u64| {
        snapshot.is_current(&FoundDirectory { stat: *found, changes: None }, at(ms), &config)
    };
    let (large, small) = (snapshot((256 << 10) + 1, settled), snapshot(256 << 10, settled));
    let changed = FileStat { mtime_ns: UNIX_NS, ..settled };
    assert!(is_current(&large, &changed, 1999) && !is_current(&large, &changed, 2000));
    assert!(is_current(&small, &settled, 999) && !is_current(&small, &settled, 1000));
    assert!(!is_current(&small, &changed, 0));
    let fresh = FileStat { ctime_ns: Some(UNIX_NS - 50 * MS + 1), ..settled };
    assert!(!is_current(&snapshot(10, fresh), &fresh, 0), "it may change within the same tick");
    let unknown = FileStat { ctime_ns: None, ..settled };
    assert!(is_current(&snapshot(10, unknown), &unknown, 0));
    assert_eq!(small.weight(), (256 << 10) + 32 + 512);
}

#[test]
fn a_watched_directory_is_current_while_its_number_is_the_same_and_not_for_ever() {
    let config = ServerConfig::default();
    let fresh = FileStat { ctime_ns: Some(UNIX_NS), mtime_ns: UNIX_NS, ..stat(0) };
    let snapshot = |changes: Option<u64>| {
        let (payload, levels) = (vec![0; 100], Vec::new());
        let listing =
            Listing { stat: fresh, changes, payload, root: [0; 32], levels, versioned: None };
        Snapshot { version: 1, listing, segment_size: 8000, read: at(0), took_ns: 5 * MS }
    };
    let is_current = |kept: Option<u64>, found: Option<u64>, ms: u64| {
        let found = FoundDirectory { stat: fresh, changes: found };
        snapshot(kept).is_current(&found, at(ms), &config)
    };
    assert!(is_current(Some(7), Some(7), 9999) && !is_current(Some(7), Some(7), 10_000));
    // A change counts at once, but for the time that one reading takes.
    assert!(is_current(Some(7), Some(8), 9) && !is_current(Some(7), Some(8), 10));
    // Without a number on either side the times of the directory decide: it is too young.
    assert!(!is_current(None, Some(8), 10) && !is_current(Some(7), None, 0));
    let mut watched = ServerConfig::default();
    watched.set_watched();
    assert_eq!((watched.metadata_freshness_ms, watched.relist_ns), (250, config.relist_ns));
}

#[test]
fn two_versions_of_a_list_are_kept_and_counted() {
    let mut snapshots = Snapshots::new(1 << 20);
    let snapshot = |version: u64| {
        let payload = vec![0; 100];
        let listing = Listing {
            stat: stat(0),
            changes: None,
            payload,
            root: [0; 32],
            levels: Vec::new(),
            versioned: None,
        };
        Snapshot { version, listing, segment_size: 8000, read: at(0), took_ns: 0 }
    };
    for (version, kept) in [
        (1, [true, false, false]),
        (2, [true, true, false]),
        (2, [true, true, false]),
        (3, [false, true, true]),
    ] {
        snapshots.keep(b"d", snapshot(version));
        assert_eq!([1, 2, 3].map(|version| snapshots.version(b"d", version).is_some()), kept);
        assert_eq!(snapshots.current(b"d").map(|it| it.version), Some(version));
        assert_eq!(snapshots.bytes(), kept.iter().filter(|is_kept| **is_kept).count() * 612);
    }
}

#[test]
fn segments_are_signed_with_the_key_that_was_given_and_leave_room_for_it() {
    let key = Arc::new(byname_security::key::KeyPair::ed25519_from_seed(&[1; 32]));
    let locator: Name = "/t/KEY/1/self/v=1".parse().unwrap();
    let signer: SharedSigner = Arc::new(byname_security::key::KeySigner::new(key, locator.clone()));
    let mut server = server(ServerConfig::default());
    assert_eq!((server.segment_signature_bytes(0), server.segment_signature_bytes(1)), (47, 0));
    server.sign_segments(0, signer.clone());
    let room = 15 + locator.view().wire_len() + signer.signature_len_max();
    assert_eq!(server.segment_signature_bytes(0), room);
    ask(&mut server, "/t/f/32=metadata", 4000, at(0));
    announce(&mut server, 10, at(0));
    assert!(matches!(op(&mut server).1, Op::Hash { .. }));
    ask(&mut server, "/t/f/v=1234/seg=0", 4000, at(0));
    let (_, order) = op(&mut server);
    let Op::SignSegment(order) = order else { panic!("{order:?}") };
    assert_eq!(order.signer, SegmentSigner(signer));
    assert!(server.poll_segments().is_none(), "nothing leaves unsigned");
}

#[test]
fn levels_of_a_list_lie_each_in_packets_of_its_own() {
    let mut server = server(ServerConfig::default());
    ask(&mut server, "/t/d/32=metadata", 4000, at(0));
    list(&mut server, 3, Some(9), at(0));
    assert!(sent(&mut server).is_some());
    for (level, content) in [(1, vec![11; 64]), (2, vec![12; 32])] {
        ask(&mut server, &format!("/t/d/32=ls/v=9/32=tree-{level}/seg=0"), 4000, at(0));
        let Outgoing { wire, .. } = server.poll_transmit().expect("a level");
        let link = LpPacket::decode(&wire).unwrap();
        let Packet::Data(data) = Packet::decode(link.fragment.unwrap()).unwrap() else { panic!() };
        assert_eq!(data.content, content, "{level}");
    }
    ask(&mut server, "/t/d/32=ls/v=9/32=tree-3/seg=0", 4000, at(0));
    assert_eq!(sent(&mut server), Some(Sent::Nack(0)));
    assert_eq!((server.counters().listing_segments, server.counters().stale), (2, 1));
}

#[test]
fn so_many_segments_of_lists_are_signed_in_a_second() {
    let mut server = server(ServerConfig { nodes_per_s: 2, ..ServerConfig::default() });
    server.sign_segments(0, Arc::new(DigestSigner));
    ask(&mut server, "/t/d/32=metadata", 4000, at(0));
    list(&mut server, 3, Some(9), at(0));
    assert!(sent(&mut server).is_some());
    for (signed, limited) in [(1, 0), (2, 0), (2, 1)] {
        ask(&mut server, "/t/d/32=ls/v=9/seg=0", 4000, at(0));
        let refused = (limited == 1).then_some(Sent::Nack(nack_reason::CONGESTION));
        assert_eq!(sent(&mut server), Some(refused.unwrap_or(Sent::Segment)));
        let counters = server.counters();
        assert_eq!((counters.listing_segments, counters.signing_limited), (signed, limited));
    }
}

#[test]
fn lists_are_signed_with_that_key_too() {
    for is_signed in [true, false] {
        let mut server = server(ServerConfig::default());
        if is_signed {
            server.sign_segments(0, Arc::new(DigestSigner));
        }
        ask(&mut server, "/t/d/32=metadata", 4000, at(0));
        list(&mut server, 3, Some(9), at(0));
        assert!(sent(&mut server).is_some());
        ask(&mut server, "/t/d/32=ls/v=9/seg=0", 4000, at(0));
        let Outgoing { wire, .. } = server.poll_transmit().expect("a segment");
        let link = LpPacket::decode(&wire).unwrap();
        let Packet::Data(data) = Packet::decode(link.fragment.unwrap()).unwrap() else { panic!() };
        let is_digest = data.signature_info.signature_type == DigestSigner.signature_type();
        assert_eq!(is_digest, is_signed);
    }
}

#[test]
fn refused_segments_are_counted_by_their_reason() {
    let mut server = server(ServerConfig { pending_max: 2, ..ServerConfig::default() });
    ask(&mut server, "/t/f/32=metadata", 4000, at(0));
    announce(&mut server, 3 << 20, at(0));
    assert!(sent(&mut server).is_some());
    ask(&mut server, "/t/f/v=1234/seg=99999", 4000, at(0));
    assert_eq!(sent(&mut server), Some(Sent::Nack(0)));
    assert_eq!((server.counters().stale, server.counters().pending_full), (1, 0));
    for segment in 0..3 {
        ask(&mut server, &format!("/t/f/v=1234/seg={segment}"), 4000, at(0));
    }
    assert_eq!(sent(&mut server), Some(Sent::Nack(nack_reason::CONGESTION)));
    assert_eq!((server.counters().segments, server.counters().pending_full), (2, 1));
}
