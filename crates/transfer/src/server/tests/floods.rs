//! Floods of questions: what they cost whoever sends them, and what everybody else.

use super::*;

const READER: u64 = 300;
const FLOOD: u64 = 301;

/// Asks as one of those whom the forwarder at face 7 tells apart.
fn ask_as(server: &mut Server, who: u64, uri: &str, now: Now) {
    let name: Name = uri.parse().unwrap();
    let mut wire = Vec::new();
    InterestBuilder::new(name.view()).can_be_prefix(true).lifetime_ms(4000).encode(&mut wire);
    let interest = Interest::decode(&wire).unwrap();
    let token = who.to_be_bytes();
    let arrival = Arrival {
        interest: &interest,
        pit_token: Some(&token),
        congestion_mark: None,
        face: FaceId(7),
        incoming_face_id: Some(who),
        path_trace: None,
    };
    server.handle_interest(&arrival, now);
}

/// Says to whom it went and whether it was Data.
fn answers(server: &mut Server) -> Vec<(u64, bool)> {
    let answer = |packet: Outgoing| {
        let link = LpPacket::decode(&packet.wire).unwrap();
        let token = link.header.pit_token.unwrap().try_into().unwrap();
        let reason = link.header.nack;
        assert!(reason.is_none_or(|reason| reason == nack_reason::CONGESTION));
        (u64::from_be_bytes(token), reason.is_none())
    };
    std::iter::from_fn(|| server.poll_transmit()).map(answer).collect()
}

/// Answers all operations: nothing is found. Says how many there were.
fn find_nothing(server: &mut Server, now: Now) -> usize {
    let mut count = 0;
    while let Some((id, op)) = server.poll_op() {
        assert!(matches!(op, Op::Locate { .. }), "{op:?}");
        server.handle_completion(id, Completion::Located(Located::NotFound), now);
        count += 1;
    }
    count
}

fn flood(server: &mut Server, names: std::ops::Range<u32>, now: Now) {
    for number in names {
        ask_as(server, FLOOD, &format!("/t/{number}/32=metadata"), now);
    }
}

#[test]
fn a_flood_of_names_gets_its_share_and_a_single_question_its_turn() {
    const PER_S: usize = 100;
    let mut server = server(ServerConfig { signatures_per_s: 100, ..ServerConfig::default() });
    flood(&mut server, 0..10_000, at(0));
    // Half a second of signatures waits, a second's worth was left; the rest cost nothing.
    let mut located = find_nothing(&mut server, at(0));
    let refused = answers(&mut server).iter().filter(|(_, is_data)| !is_data).count();
    assert_eq!((located, refused), (PER_S, 10_000 - PER_S - PER_S / 2));
    assert_eq!(server.counters().signing_limited, refused as u64);
    assert_eq!(server.levels().pending, PER_S / 2);
    // A reader asks one thing after the other, and each is answered with the next signature or the
    // one after it.
    let (mut now, mut signed) = (at(0), 0);
    for number in 0..20 {
        ask_as(&mut server, READER, &format!("/t/read/{number}/32=metadata"), now);
        for turn in 0..2 {
            now.now_ns = server.poll_timeout().expect("signatures are waited for");
            flood(&mut server, 20_000 + 100 * number..20_100 + 100 * number, now);
            server.handle_timeout(now);
            located += find_nothing(&mut server, now);
            let answers: Vec<_> =
                answers(&mut server).into_iter().filter(|(_, is_data)| *is_data).collect();
            signed += answers.len();
            assert_eq!(answers.len(), 1, "one signature is one answer");
            if answers[0].0 == READER {
                break;
            }
            assert_eq!(turn, 0, "the reader waited for more than its turn");
        }
    }
    assert_eq!(located, PER_S + signed, "what is refused is not looked up");
}

#[test]
fn questions_that_were_answered_lately_need_no_signature() {
    let mut server = server(ServerConfig { signatures_per_s: 1, ..ServerConfig::default() });
    ask_as(&mut server, READER, "/t/gone/32=metadata", at(0));
    assert_eq!(find_nothing(&mut server, at(0)), 1);
    flood(&mut server, 0..10, at(1));
    ask_as(&mut server, READER, "/t/gone/32=metadata", at(2));
    assert_eq!(find_nothing(&mut server, at(2)), 1, "it is looked at, but not signed");
    assert_eq!(answers(&mut server), [(READER, true), (READER, true)]);
    assert_eq!(server.counters().signatures, 1);
}

#[test]
fn segments_do_not_wait_for_signatures() {
    let mut server = server(ServerConfig { signatures_per_s: 1, ..ServerConfig::default() });
    flood(&mut server, 0..10, at(0));
    assert_eq!(find_nothing(&mut server, at(0)), 1);
    ask_as(&mut server, FLOOD, "/t/f/v=5/seg=0", at(1));
    assert_eq!(find_nothing(&mut server, at(1)), 1);
}

#[test]
fn lookups_of_a_slow_disk_take_turns_too() {
    let mut server = server(ServerConfig { lookups_max: 4, ..ServerConfig::default() });
    flood(&mut server, 0..1000, at(0));
    let ops: Vec<_> = std::iter::from_fn(|| server.poll_op()).collect();
    assert_eq!(ops.len(), 4);
    ask_as(&mut server, READER, "/t/read/32=metadata", at(1));
    ask_as(&mut server, READER, "/t/f/v=5/seg=0", at(1));
    assert!(server.poll_op().is_none());
    for (id, _) in ops {
        server.handle_completion(id, Completion::Located(Located::NotFound), at(2));
    }
    let paths: Vec<_> = std::iter::from_fn(|| server.poll_op())
        .map(|(_, op)| match op {
            Op::Locate { path, .. } => path,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(paths.len(), 4);
    assert!(paths.contains(&b"read".to_vec()) && paths.contains(&b"f".to_vec()), "{paths:?}");
}

#[test]
fn nobody_has_more_waiting_than_is_free() {
    let mut server = server(ServerConfig { pending_max: 99, ..ServerConfig::default() });
    // All wait for one lookup, so only the share in the table counts.
    (0..200).for_each(|_| ask_as(&mut server, FLOOD, "/t/f/32=metadata", at(0)));
    assert_eq!(server.levels().pending, 50);
    assert_eq!(server.counters().pending_full, 150);
    (0..10).for_each(|_| ask_as(&mut server, READER, "/t/f/32=metadata", at(0)));
    assert_eq!(server.levels().pending, 60);
    find_nothing(&mut server, at(1));
    assert_eq!(server.levels().pending, 0);
    assert_eq!(answers(&mut server).iter().filter(|(who, is)| *who == READER && *is).count(), 10);
}

#[test]
fn what_expires_before_its_turn_costs_nothing_and_leaves_nothing() {
    let mut server = server(ServerConfig { signatures_per_s: 2, ..ServerConfig::default() });
    flood(&mut server, 0..10, at(0));
    assert_eq!(find_nothing(&mut server, at(0)), 2);
    assert_eq!(server.levels().pending, 8);
    server.handle_timeout(at(4000));
    assert_eq!(find_nothing(&mut server, at(4000)), 0);
    assert_eq!((server.levels().pending, server.counters().expired), (0, 8));
    // The signatures that were not made are there for others.
    (0..2).for_each(|it| ask_as(&mut server, READER, &format!("/t/{it}/32=metadata"), at(4000)));
    assert_eq!(find_nothing(&mut server, at(4000)), 2);
}

/// A second one who floods halves the queue of each.
#[test]
fn queues_are_shorter_the_more_wait() {
    let mut server = server(ServerConfig { signatures_per_s: 100, ..ServerConfig::default() });
    flood(&mut server, 0..1000, at(0));
    assert_eq!(find_nothing(&mut server, at(0)), 100);
    let waiting = server.levels().pending;
    for number in 0..1000 {
        ask_as(&mut server, READER, &format!("/t/other/{number}/32=metadata"), at(0));
    }
    assert_eq!((waiting, server.levels().pending), (50, 75));
}

/// To be called again at once and in vain would keep a processor busy.
#[test]
fn who_waits_for_the_disk_wants_no_call_for_signatures() {
    let mut server = server(ServerConfig { lookups_max: 4, ..ServerConfig::default() });
    flood(&mut server, 0..10, at(0));
    assert_eq!(std::iter::from_fn(|| server.poll_op()).count(), 4);
    assert_eq!(server.poll_timeout(), Some(at(4000).now_ns));
}
