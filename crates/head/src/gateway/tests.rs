//! Who is asked in whose place, how often, and how much of it there is.

use byname_catalog::id::{InodeId, Version};
use byname_packet::lp::LpPacket;
use byname_packet::{DataBuilder, NullSigner, Packet};
use byname_transfer::server::FaceId;

use super::*;

const CONTENT: ContentId = ContentId { inode: InodeId(7), version: Version(9) };

fn site() -> SiteName {
    SiteName::new("/lab".parse().unwrap()).unwrap()
}

fn segment(number: u64) -> Name {
    let content = site().content(CONTENT);
    naming::segment_name(content.view(), byname_transfer::naming::Part::Content, number)
}

fn disks(count: usize) -> Vec<Name> {
    (0..count).map(|disk| format!("/lab/32=disk/hall/seq={disk}").parse().unwrap()).collect()
}

fn ask(gateway: &mut Gateway, asker: u64, number: u64, now_ns: u64) {
    ask_with(gateway, asker, number, (now_ns, &[]));
}

fn ask_with(gateway: &mut Gateway, asker: u64, number: u64, (now_ns, hint): (u64, &[Name])) {
    let (name, mut wire) = (segment(number), Vec::new());
    InterestBuilder::new(name.view())
        .forwarding_hint(hint)
        .nonce([1; 4])
        .lifetime_ms(4000)
        .encode(&mut wire);
    give(gateway, &wire, (asker, number), now_ns);
}

fn give(gateway: &mut Gateway, wire: &[u8], (asker, number): (u64, u64), now_ns: u64) {
    let interest = Interest::decode(wire).unwrap();
    let arrival = Arrival {
        interest: &interest,
        pit_token: Some(&[asker as u8; 6]),
        congestion_mark: None,
        face: FaceId(1),
        incoming_face_id: Some(asker),
        path_trace: None,
    };
    gateway.handle_interest(&arrival, (CONTENT, number), disks(3), now_ns);
}

#[derive(Debug, PartialEq, Eq)]
enum Sent {
    /// An Interest by this hint.
    Interest(Name),
    Data(Option<u8>),
    Nack(u64, Option<u8>),
}

fn sent(gateway: &mut Gateway) -> Vec<Sent> {
    std::iter::from_fn(|| gateway.poll_transmit())
        .map(|outgoing| {
            let link = LpPacket::decode(&outgoing.wire).unwrap();
            let token = link.header.pit_token.map(|token| token[0]);
            match (Packet::decode(link.fragment.unwrap()).unwrap(), link.header.nack) {
                (Packet::Interest(_), Some(reason)) => Sent::Nack(reason, token),
                (Packet::Interest(interest), None) => {
                    assert_ne!(interest.nonce, Some([1; 4]), "it is no loop");
                    assert_eq!(token, None, "NDNd's forwarder ends at tokens it does not know");
                    let hints = interest.forwarding_hint.unwrap();
                    Sent::Interest(hints.names().next().unwrap().to_name())
                }
                (Packet::Data(_), _) => Sent::Data(token),
            }
        })
        .collect()
}

fn answer(gateway: &mut Gateway, number: u64) {
    let (name, mut wire) = (segment(number), Vec::new());
    DataBuilder::new(name.view()).encode(b"octets", &NullSigner, &mut wire).unwrap();
    gateway.handle_data(&Data::decode(&wire).unwrap());
}

fn first(number: u64) -> usize {
    preferred(CONTENT.inode.0, number, 3).unwrap()
}

#[test]
fn names_of_segments_and_of_tree_segments_are_known() {
    let content = site().content(CONTENT);
    let known = |text: &str| {
        let name: Name = format!("{content}{text}").parse().unwrap();
        segment_of(&site(), name.view())
    };
    assert_eq!(known("/seg=5"), Some((CONTENT, 5)));
    assert_eq!(known("/32=tree-1/seg=0"), Some((CONTENT, 0)));
    for other in ["", "/32=claim", "/32=tree-1", "/32=metadata/seg=0", "/seg=5/more"] {
        assert_eq!(known(other), None, "{other}");
    }
}

#[test]
fn one_question_answers_all_who_wait() {
    let mut gateway = Gateway::default();
    for asker in [4, 5, 4] {
        ask(&mut gateway, asker, 0, 0);
    }
    let hint = disks(3)[first(0)].clone();
    assert_eq!(sent(&mut gateway), [Sent::Interest(hint)], "readers choose alike");
    answer(&mut gateway, 1);
    assert_eq!(sent(&mut gateway), [], "nobody has asked for that");
    answer(&mut gateway, 0);
    assert_eq!(sent(&mut gateway), [Sent::Data(Some(4)), Sent::Data(Some(5))]);
    answer(&mut gateway, 0);
    assert_eq!(sent(&mut gateway), []);
    assert_eq!(gateway.poll_timeout(), None);
}

#[test]
fn other_replicas_are_asked_each_once() {
    let mut gateway = Gateway::default();
    ask(&mut gateway, 4, 0, 0);
    let hint = |turn: usize| Sent::Interest(disks(3)[(first(0) + turn) % 3].clone());
    assert_eq!(sent(&mut gateway), [hint(0)]);
    gateway.handle_nack(segment(0).view(), 10);
    assert_eq!(sent(&mut gateway), [hint(1)], "after a Nack at once");
    let due_ns = gateway.poll_timeout().unwrap();
    assert_eq!(due_ns, 10 + PATIENCE_NS);
    gateway.handle_timeout(due_ns - 1);
    assert_eq!(sent(&mut gateway), []);
    gateway.handle_timeout(due_ns);
    assert_eq!(sent(&mut gateway), [hint(2)], "after silence too");
    gateway.handle_nack(segment(0).view(), due_ns);
    assert_eq!(sent(&mut gateway), [Sent::Nack(nack_reason::NO_ROUTE, Some(4))]);
    assert!(gateway.pending.is_empty() && gateway.by_asker.is_empty());
}

#[test]
fn nobody_is_asked_for_who_does_not_wait_any_more() {
    let mut gateway = Gateway::default();
    ask(&mut gateway, 4, 0, 0);
    sent(&mut gateway);
    gateway.handle_timeout(5000 * MS_NS);
    assert_eq!(sent(&mut gateway), [Sent::Nack(nack_reason::NO_ROUTE, Some(4))]);
}

/// Padded in its name: a hint would have it refused for that.
#[test]
fn a_padded_interest_does_not_wait_here() {
    for (padding, is_taken) in [(INTEREST_BYTES_MAX / 2, true), (INTEREST_BYTES_MAX, false)] {
        let (mut gateway, mut wire) = (Gateway::default(), Vec::new());
        let name = segment(0).with_generic(&vec![b'a'; padding]);
        InterestBuilder::new(name.view()).nonce([1; 4]).encode(&mut wire);
        assert_eq!(wire.len() <= INTEREST_BYTES_MAX, is_taken);
        give(&mut gateway, &wire, (4, 0), 0);
        let sent = sent(&mut gateway);
        assert_eq!(matches!(sent[..], [Sent::Interest(_)]), is_taken, "{sent:?}");
        assert_eq!(sent == [Sent::Nack(nack_reason::NO_ROUTE, Some(4))], !is_taken);
        assert_eq!(gateway.pending.is_empty(), !is_taken);
    }
}

#[test]
fn what_a_hint_has_led_here_goes_no_further() {
    let mut gateway = Gateway::default();
    ask_with(&mut gateway, 4, 0, (0, &disks(1)));
    assert_eq!(sent(&mut gateway), [Sent::Nack(nack_reason::NO_ROUTE, Some(4))]);
}

/// Whoever floods has what nobody else wants, and the second has a bound.
#[test]
fn a_flood_has_its_share_and_the_second_its_bound() {
    let mut gateway = Gateway::default();
    let asked = |sent: &[Sent]| sent.iter().filter(|it| matches!(it, Sent::Interest(_))).count();
    (0..10_000).for_each(|number| ask(&mut gateway, 4, number, 0));
    let first = sent(&mut gateway);
    assert_eq!((asked(&first), first.len()), (PENDING_MAX / 2, 10_000));
    assert!(first.contains(&Sent::Nack(nack_reason::CONGESTION, Some(4))));
    ask(&mut gateway, 5, 20_000, 0);
    assert_eq!(asked(&sent(&mut gateway)), 1, "somebody else has room");
    // However fast the answers come, no more than the rate goes out in a second.
    let (mut count, second_ns) = (0, 1_000_000_000);
    for number in 0..100_000 {
        ask(&mut gateway, 6, 30_000 + number, number * second_ns / 100_000);
        count += asked(&sent(&mut gateway));
        answer(&mut gateway, 30_000 + number);
        sent(&mut gateway);
    }
    let rate = (second_ns / REFILL_NS) as usize;
    assert!((rate..=rate + BURST as usize).contains(&count), "{count}");
    assert!(gateway.pending.len() <= PENDING_MAX);
}
