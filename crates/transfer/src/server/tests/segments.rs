//! Segments and nodes: where they lie, what stands around them, and how those end that cannot be
//! had.

use super::*;

/// Opens `/t/f` in version 7, whose root is known.
fn open(server: &mut Server, size: u64) {
    ask(server, "/t/f/32=metadata", 4000, at(0));
    let (id, _) = op(server);
    server.handle_completion(id, found(stat(size), 7), at(0));
    let record = Some(Record { subject: Subject::File(state(size).fingerprint), version: 7 });
    let recalled = Recalled { record, root: Some([5; 32]), ..Recalled::default() };
    let (id, _) = op(server);
    server.handle_completion(id, Completion::Recalled(recalled), at(0));
    assert_eq!(root_of(sent(server)), ContentRoot::Known([5; 32]));
}

fn ask_of_version(server: &mut Server, rest: &str) {
    ask(server, &format!("/t/f/v=7/{rest}"), 4000, at(1));
}

/// Asks for something of the tree and opens it, or does not.
fn ask_of_tree(server: &mut Server, rest: &str, size: u64, tree: Option<Handle>) {
    ask_of_version(server, rest);
    let (id, op) = op(server);
    assert_eq!(op, Op::OpenTree { file: Handle(7), state: state(size) });
    server.handle_completion(id, Completion::TreeOpened(tree), at(1));
}

const CONGESTION: Option<Sent> = Some(Sent::Nack(nack_reason::CONGESTION));

/// What stands around one segment is used for the next, if that is possible.
#[test]
fn each_segment_has_its_own_name_and_length() {
    const SIZE: u64 = 300 * 8192 + 5;
    let mut server = server(ServerConfig::default());
    open(&mut server, SIZE);
    let asked = [0, 1, 255, 256, 299, 300, 256, 0];
    for segment in asked {
        ask_of_version(&mut server, &format!("seg={segment}"));
    }
    let burst = server.poll_segments().expect("all in one");
    assert_eq!(burst.len(), asked.len());
    for (plan, segment) in burst.segments().zip(asked) {
        let len = if segment == 300 { 5 } else { 8192 };
        assert_eq!((plan.offset, plan.len), (segment * 8192, len));
        let wire = [plan.header, &vec![3; len], plan.trailer].concat();
        let link = LpPacket::decode(&wire).unwrap();
        let Packet::Data(data) = Packet::decode(link.fragment.unwrap()).unwrap() else { panic!() };
        let name: Name = format!("/t/f/v=7/seg={segment}").parse().unwrap();
        assert_eq!((data.name.to_name(), data.content), (name, &vec![3; len][..]));
        let last = data.meta.final_block_id.and_then(|last| last.segment());
        assert_eq!(last, Some(300));
    }
    server.handle_segments(burst, SegmentSent::Failed);
    let nacks: Vec<_> = std::iter::from_fn(|| sent(&mut server)).collect();
    assert_eq!(nacks, asked.map(|_| Sent::Nack(nack_reason::NONE)));
    assert_eq!((server.counters().segments, server.counters().failed), (8, 8));
}

/// 600 MiB have three levels; the second has 300 values, of which a packet holds 256.
const LARGE: u64 = 600 << 20;
const LEVEL_1_BYTES: u64 = (600 << 20) / 8192 * 32;

#[test]
fn levels_of_a_tree_follow_one_another_in_its_file() {
    let mut server = server(ServerConfig::default());
    open(&mut server, LARGE);
    ask_of_tree(&mut server, "32=tree-2/seg=1", LARGE, Some(Handle(8)));
    ask_of_version(&mut server, "32=tree-1/seg=1");
    let burst = server.poll_segments().expect("both");
    let places: Vec<_> = burst.segments().map(|plan| plan.offset).collect();
    assert_eq!((burst.source(), places), (Handle(8), vec![LEVEL_1_BYTES + 8192, 8192]));
    server.on_tree_opened(&name_value("/t/f/v=7"), state(LARGE), Some(Handle(9)));
    assert_eq!(op(&mut server).1, Op::Close { handle: Handle(9) }, "one is open");
}

fn name_value(uri: &str) -> Vec<u8> {
    uri.parse::<Name>().unwrap().view().value().to_vec()
}

#[test]
fn segments_to_be_signed_lie_where_others_do_and_are_counted() {
    let mut server = server(ServerConfig { pending_max: 3, ..ServerConfig::default() });
    server.sign_segments(0, Arc::new(DigestSigner));
    open(&mut server, LARGE);
    ask_of_tree(&mut server, "32=tree-2/seg=1", LARGE, Some(Handle(8)));
    let (_, node) = order(&mut server);
    let octets = |offset, len| Octets::Stored { offset, len };
    assert_eq!((node.source, node.octets), (Handle(8), octets(LEVEL_1_BYTES + 8192, 1408)));
    for _ in 0..2 {
        ask_of_version(&mut server, "seg=1");
    }
    let (id, content) = order(&mut server);
    assert_eq!((content.source, &content.octets), (Handle(7), &octets(8192, 8192)));
    ask_of_version(&mut server, "seg=2");
    assert_eq!((sent(&mut server), server.counters().pending_full), (CONGESTION, 1));
    let packet = sign_segment(&content, &[3; 8192]).unwrap();
    server.handle_completion(id, Completion::Signed(SignedSegment::Packet(packet)), at(2));
    assert_eq!([sent(&mut server), sent(&mut server)], [Some(Sent::Segment), Some(Sent::Segment)]);
    assert_eq!((server.counters().segments, server.levels().node_bytes), (2, 0));
}

#[test]
fn without_the_tree_level_1_is_signed_and_others_wait_for_the_root() {
    let mut server = server(ServerConfig::default());
    open(&mut server, LARGE);
    ask_of_tree(&mut server, "32=tree-1/seg=0", LARGE, None);
    assert!(matches!(server.poll_op(), Some((_, Op::Hash { .. }))));
    let (id, node) = order(&mut server);
    assert_eq!(node.octets, Octets::Values { offset: 0, len: 8192 });
    assert_eq!((sent(&mut server), server.counters().root_pending), (None, 0));
    let packet = sign_segment(&node, &[3; 8192]).unwrap();
    let packet_len = packet.len();
    server.handle_completion(id, Completion::Signed(SignedSegment::Packet(packet)), at(1));
    assert_eq!(sent(&mut server), Some(Sent::Segment));
    assert_eq!(server.levels().node_bytes, packet_len);
    // Meanwhile the tree may be on record.
    ask_of_tree(&mut server, "32=tree-2/seg=0", LARGE, None);
    assert_eq!((sent(&mut server), server.counters().root_pending), (CONGESTION, 1));
    assert_eq!((server.poll_op(), server.levels().pending), (None, 0), "it is computed already");
}

#[test]
fn without_the_tree_and_with_too_many_roots_nodes_are_refused() {
    let mut server = server(ServerConfig { hashes_max: 0, ..ServerConfig::default() });
    open(&mut server, LARGE);
    for level in [1, 2] {
        ask_of_tree(&mut server, &format!("32=tree-{level}/seg=0"), LARGE, None);
        assert_eq!(sent(&mut server), Some(Sent::Nack(nack_reason::NONE)), "{level}");
    }
    assert_eq!((server.counters().stale, server.counters().root_pending), (2, 0));
}

#[test]
fn those_who_wait_for_a_tree_are_bounded() {
    let mut server = server(ServerConfig { pending_max: 2, ..ServerConfig::default() });
    open(&mut server, LARGE);
    for _ in 0..3 {
        ask_of_version(&mut server, "32=tree-1/seg=0");
    }
    assert_eq!((sent(&mut server), sent(&mut server)), (CONGESTION, None));
    assert_eq!((server.levels().pending, server.counters().pending_full), (2, 1));
}
