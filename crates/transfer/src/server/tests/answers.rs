//! Signed answers: who gets which, with whose key, how long they are fresh, and what is refused.

use byname_packet::{NameRef, SignError, Signer};

use super::*;
use crate::metadata::Metadata;
use crate::numbers::{ABSENCE_FRESHNESS_MS, LINK_RESERVE_BYTES, PENDING_FRESHNESS_MS};
use crate::server::reply::{Answers, SignRefused, Statement};

fn located(server: &mut Server, located: Located, now: Now) {
    let (id, op) = op(server);
    assert!(matches!(op, Op::Locate { .. }), "{op:?}");
    server.handle_completion(id, Completion::Located(located), now);
}

/// What is told apart in the packet of an answer.
#[derive(Debug, PartialEq)]
struct Facts {
    /// Nanoseconds since the Unix epoch when it was signed.
    version: u64,
    freshness_ms: u64,
    signature_type: u64,
}

fn facts(server: &mut Server) -> Facts {
    let Outgoing { wire, .. } = server.poll_transmit().expect("an answer");
    let link = LpPacket::decode(&wire).unwrap();
    let Packet::Data(data) = Packet::decode(link.fragment.unwrap()).unwrap() else { panic!() };
    Facts {
        version: data.name.without_last(1).last().unwrap().version().unwrap(),
        freshness_ms: data.meta.freshness_ms,
        signature_type: data.signature_info.signature_type,
    }
}

fn recalled_with_root(server: &mut Server, size: u64, now: Now) {
    let record = Some(Record { subject: Subject::File(state(size).fingerprint), version: 7 });
    let recalled = Recalled { record, root: Some([5; 32]), ..Recalled::default() };
    let (id, op) = op(server);
    assert!(matches!(op, Op::Recall { .. }), "{op:?}");
    server.handle_completion(id, Completion::Recalled(recalled), now);
}

#[test]
fn a_description_is_fresh_for_longer_than_what_will_soon_be_another() {
    let mut server = server(ServerConfig::default());
    ask(&mut server, "/t/f/32=metadata", 4000, at(0));
    located(&mut server, Located::File { stat: stat(10), handle: Handle(1) }, at(0));
    recalled_with_root(&mut server, 10, at(0));
    let known_ms = facts(&mut server).freshness_ms;
    ask(&mut server, "/t/g/32=metadata", 4000, at(1));
    announce(&mut server, 3 << 20, at(1));
    let pending_ms = facts(&mut server).freshness_ms;
    assert!(matches!(op(&mut server).1, Op::Hash { .. }));
    ask(&mut server, "/t/h/32=metadata", 4000, at(2));
    located(&mut server, Located::NotFound, at(2));
    let absent_ms = facts(&mut server).freshness_ms;
    let expected = ServerConfig::default().metadata_freshness_ms;
    assert!([PENDING_FRESHNESS_MS, ABSENCE_FRESHNESS_MS].iter().all(|less| *less < expected));
    let found = (known_ms, pending_ms, absent_ms);
    assert_eq!(found, (expected, PENDING_FRESHNESS_MS, ABSENCE_FRESHNESS_MS));
    assert_eq!((server.counters().interests, server.counters().metadata), (3, 2));
}

#[test]
fn an_answer_that_says_something_else_is_not_the_one_before() {
    let mut server = server(ServerConfig::default());
    for (ms, found, absence) in [
        (0, Located::NotFound, Absence::NotFound),
        (1, Located::NoPermission, Absence::NoPermission),
    ] {
        ask(&mut server, "/t/f/32=metadata", 4000, at(ms));
        located(&mut server, found, at(ms));
        assert_eq!(sent(&mut server), Some(Sent::Answer(Answer::Absence(absence))));
    }
    assert_eq!(server.counters().signatures, 2);
}

/// Caches know two packets apart by their names alone.
#[test]
fn no_two_answers_have_one_version_though_the_clock_stands_or_goes_back() {
    let mut server = server(ServerConfig::default());
    let mut last = 0;
    for unix_ns in [UNIX_NS, UNIX_NS, UNIX_NS - MS, UNIX_NS] {
        let now = Now { now_ns: 0, unix_ns };
        ask(&mut server, &format!("/t/{last}/32=metadata"), 4000, now);
        located(&mut server, Located::NotFound, now);
        let Facts { version, .. } = facts(&mut server);
        assert!(version > last, "{version} after {last}");
        last = version;
    }
}

#[test]
fn an_answer_has_the_key_of_its_mount() {
    let key = Arc::new(byname_security::key::KeyPair::ed25519_from_seed(&[1; 32]));
    let locator: Name = "/u/KEY/1/self/v=1".parse().unwrap();
    let other: SharedSigner = Arc::new(byname_security::key::KeySigner::new(key, locator));
    let types = [DigestSigner.signature_type(), other.signature_type()];
    let signers: [SharedSigner; 2] = [Arc::new(DigestSigner), other];
    let mounts = ["/t", "/u"].into_iter().zip(signers);
    let mounts = mounts.map(|(prefix, signer)| {
        let prefix = prefix.parse().unwrap();
        Mount { prefix, signer, contents: false }
    });
    let mut server = Server::new(ServerConfig::default(), mounts.collect());
    for (prefix, signature_type) in ["/t", "/u"].into_iter().zip(types) {
        ask(&mut server, &format!("{prefix}/f/32=metadata"), 4000, at(0));
        located(&mut server, Located::NotFound, at(0));
        assert_eq!(facts(&mut server).signature_type, signature_type, "{prefix}");
    }
}

/// A key that cannot sign.
struct Broken;

impl Signer for Broken {
    fn signature_type(&self) -> u64 {
        DigestSigner.signature_type()
    }

    fn key_locator(&self) -> Option<NameRef<'_>> {
        None
    }

    fn signature_len_max(&self) -> usize {
        32
    }

    fn sign(&self, _parts: &[&[u8]], _out: &mut [u8]) -> Result<usize, SignError> {
        Err(SignError::Failed)
    }
}

#[test]
fn who_cannot_be_answered_for_want_of_a_key_is_told_so_and_counted() {
    let mount = Mount { prefix: "/t".parse().unwrap(), signer: Arc::new(Broken), contents: false };
    let mut server = Server::new(ServerConfig::default(), vec![mount]);
    ask(&mut server, "/t/f/32=metadata", 4000, at(0));
    located(&mut server, Located::NotFound, at(0));
    assert_eq!(sent(&mut server), Some(Sent::Nack(nack_reason::NONE)));
    let counters = server.counters();
    assert_eq!((counters.failed, counters.absences, counters.signatures), (1, 0, 0));
}

#[test]
fn the_largest_answer_fills_a_packet_and_leaves_room_for_the_link() {
    let name: Name = "/t/f/32=metadata".parse().unwrap();
    let signer: SharedSigner = Arc::new(DigestSigner);
    let mut answers = Answers::new(&ServerConfig::default());
    let mut packet_len = |content_len: usize| {
        let content = vec![1; content_len];
        let statement = Statement { content: &content, is_absence: false, is_pending: false };
        let answered = answers.get(name.view(), statement, &signer, at(0));
        answered.map(|answered| answered.wire.len())
    };
    let around = packet_len(8000).unwrap() - 8000;
    let largest = byname_packet::MAX_PACKET_BYTES - LINK_RESERVE_BYTES;
    assert_eq!(packet_len(largest - around), Ok(largest));
    assert_eq!(packet_len(largest - around + 1), Err(SignRefused::TooLarge));
}

#[test]
fn only_a_directory_has_a_listing() {
    let link = Metadata::new("/t/f/v=5".parse().unwrap());
    let mut server = server(ServerConfig::default());
    ask(&mut server, "/t/f/32=ls/32=metadata", 4000, at(0));
    located(&mut server, Located::Described(Box::new(link)), at(0));
    let absent = Answer::Absence(Absence::NotFound);
    assert_eq!(sent(&mut server), Some(Sent::Answer(absent)));
}

#[test]
fn a_description_is_asked_for_by_a_prefix_since_its_version_is_not_known() {
    let mut server = server(ServerConfig::default());
    let name: Name = "/t/f/32=metadata".parse().unwrap();
    let mut wire = Vec::new();
    InterestBuilder::new(name.view()).encode(&mut wire);
    let interest = Interest::decode(&wire).unwrap();
    let arrival = Arrival {
        interest: &interest,
        pit_token: Some(b"tok"),
        congestion_mark: Some(1),
        face: FaceId(7),
        incoming_face_id: None,
        path_trace: None,
    };
    server.handle_interest(&arrival, at(0));
    assert_eq!((sent(&mut server), server.poll_op()), (Some(Sent::Nack(nack_reason::NONE)), None));
    assert_eq!(server.counters().not_understood, 1);
}

/// Each has an own time; who waits for a segment has all of its Interest's.
#[test]
fn who_came_later_waits_longer_for_a_list() {
    let mut server = server(ServerConfig::default());
    ask(&mut server, "/t/d/32=metadata", 4000, at(0));
    let directory = FileStat { mode: 0o040_755, ..stat(0) };
    located(&mut server, Located::Directory { stat: directory, changes: None }, at(0));
    ask(&mut server, "/t/d/32=metadata", 4000, at(300));
    ask(&mut server, "/t/d/32=ls/v=1/seg=0", 600, at(300));
    let busy = || Sent::Answer(Answer::Absence(Absence::BeingListed { retry_ms: 500 }));
    for (ms, answered, expired) in [(500, 1, 0), (799, 0, 0), (800, 1, 0), (900, 0, 1)] {
        server.handle_timeout(at(ms));
        let answers: Vec<Sent> = std::iter::from_fn(|| sent(&mut server)).collect();
        assert_eq!(answers, (0..answered).map(|_| busy()).collect::<Vec<_>>(), "{ms}");
        assert_eq!(server.counters().expired, expired, "{ms}");
    }
    assert_eq!(server.levels().pending, 0);
}

#[test]
fn who_can_wait_longer_for_a_root_does() {
    let mut server = server(ServerConfig::default());
    ask(&mut server, "/t/f/32=metadata", 4, at(0));
    ask(&mut server, "/t/f/32=metadata", 4000, at(0));
    announce(&mut server, 10, at(0));
    for (due_ms, then) in [(2, Some(5 * MS)), (5, None)] {
        assert_eq!(server.poll_timeout(), Some(due_ms * MS));
        server.handle_timeout(at(due_ms));
        assert_eq!(root_of(sent(&mut server)), ContentRoot::Pending);
        assert_eq!((sent(&mut server), server.poll_timeout()), (None, then));
    }
    assert_eq!(server.counters().root_pending, 2);
}

#[test]
fn a_root_that_nobody_waits_for_any_more_is_refused_to_nobody() {
    for hashed in [Hashed::Failed, Hashed::Busy] {
        for waits in [true, false] {
            let mut server = server(ServerConfig::default());
            ask(&mut server, "/t/f/32=metadata", if waits { 4000 } else { 4 }, at(0));
            announce(&mut server, 10, at(0));
            let (id, _) = op(&mut server);
            server.handle_timeout(at(2));
            assert_eq!(server.poll_transmit().is_some(), !waits);
            server.handle_completion(id, Completion::Hashed(hashed), at(3));
            let counters = server.counters();
            assert_eq!(counters.failed + counters.hashes_full, u64::from(waits), "{hashed:?}");
        }
    }
}
