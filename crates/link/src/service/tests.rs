//! Packets through frames and back, and what hostile frames can(not) do.

use super::*;
use byname_packet::lp::{self, FragmentFields, LpPacket};
use byname_packet::{MAX_PACKET_BYTES, tlv, types};
use proptest::prelude::*;

fn packet(len: usize) -> Vec<u8> {
    let body: Vec<u8> = (0..len).map(|i| (i * 7 % 251) as u8).collect();
    let mut out = Vec::new();
    tlv::write_element(&mut out, types::DATA, &body);
    out
}

fn frames(service: &mut LinkService, header: &LpHeader<'_>, packet: &[u8]) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    service.send(header, packet, 0, |head, body| frames.push([head, body].concat())).unwrap();
    frames
}

fn datagram(mtu: usize) -> LinkService {
    LinkService::datagram(mtu, u64::MAX - 3, ReassemblyLimits::default())
}

fn fragment(sequence: u64, index: u64, count: u64, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    let fields = FragmentFields { sequence, index, count };
    lp::encode_header(&LpHeader::default(), Some(fields), payload.len(), &mut frame);
    frame.extend_from_slice(payload);
    frame
}

#[test]
fn a_packet_that_says_nothing_more_is_sent_bare() {
    let packet = packet(100);
    assert_eq!(frames(&mut LinkService::stream(), &LpHeader::default(), &packet), [packet]);
}

#[test]
fn streams_never_fragment_and_take_no_fragments() {
    let packet = packet(8000);
    let header = LpHeader { pit_token: Some(b"t"), ..LpHeader::default() };
    assert_eq!(frames(&mut LinkService::stream(), &header, &packet).len(), 1);
    let refused = LinkService::stream().receive(&fragment(0, 0, 2, b"x"), 0).unwrap_err();
    assert_eq!(refused, DropReason::FragmentOnStream);
}

#[test]
fn frames_of_a_split_packet_are_equally_long() {
    let header = LpHeader { pit_token: Some(b"12345678"), ..LpHeader::default() };
    // What the file server sends: all packets of a file are of one size, so all frames are.
    for len in 8192..8320 {
        let frames = frames(&mut datagram(1420), &header, &packet(len));
        assert_eq!(frames.len(), 6);
        assert!(frames.iter().all(|frame| frame.len() == frames[0].len()), "{len}");
    }
}

#[test]
fn a_token_is_returned_before_the_next_packet_and_once() {
    let (mut here, mut there) = (datagram(1420), datagram(1420));
    let mut ask = Vec::new();
    lp::encode_address_token(7, &mut ask);
    assert_eq!(here.receive(&ask, 0).unwrap_err(), DropReason::Idle);
    let packet = packet(100);
    let sent = frames(&mut here, &LpHeader::default(), &packet);
    assert_eq!(sent.len(), 2);
    assert_eq!(LpPacket::decode(&sent[0]).unwrap().returned_token, Some(7));
    assert_eq!(sent[1], packet);
    assert_eq!(frames(&mut here, &LpHeader::default(), &packet).len(), 1);
    assert_eq!(there.take_returned_token(), None);
    assert_eq!(there.receive(&sent[0], 0).unwrap_err(), DropReason::Idle);
    assert_eq!((there.take_returned_token(), there.take_returned_token()), (Some(7), None));
    // Nobody forges the address of a stream.
    let mut stream = LinkService::stream();
    assert_eq!(stream.receive(&ask, 0).unwrap_err(), DropReason::Idle);
    assert_eq!(frames(&mut stream, &LpHeader::default(), &packet).len(), 1);
}

#[test]
fn padding_is_not_part_of_the_packet_and_costs_little() {
    let sent = packet(8192);
    let frames = frames(&mut datagram(1420), &LpHeader::default(), &sent);
    let payload: Vec<u8> = frames
        .iter()
        .flat_map(|f| LpPacket::decode(f).unwrap().fragment.unwrap().to_vec())
        .collect();
    assert_eq!(payload, sent);
    let total: usize = frames.iter().map(Vec::len).sum();
    assert!(total < sent.len() + 6 * (4 + 16 + 4) + 16, "{total}");
}

#[test]
fn hostile_fragments_are_refused_without_holding_anything() {
    let mut service = datagram(1420);
    let cases = [
        (fragment(9, 0, 1 << 32, b"x"), DropReason::TooManyFragments { count: 1 << 32 }),
        (fragment(9, 400, 401, b"x"), DropReason::TooManyFragments { count: 401 }),
        (fragment(9, 0, u64::MAX, b"x"), DropReason::TooManyFragments { count: u64::MAX }),
    ];
    for (frame, reason) in cases {
        assert_eq!(service.receive(&frame, 0).unwrap_err(), reason);
    }
    assert!(matches!(
        service.receive(&fragment(9, 5, 3, b"x"), 0).unwrap_err(),
        DropReason::Malformed(_)
    ));
    assert_eq!(service.receiver().held_bytes(), 0);
}

#[test]
fn fragments_that_disagree_or_repeat_or_overflow_are_refused() {
    let mut service = datagram(1420);
    assert!(service.receive(&fragment(10, 0, 3, b"abc"), 0).unwrap().is_none());
    let duplicate = service.receive(&fragment(10, 0, 3, b"abc"), 0).unwrap_err();
    assert_eq!(duplicate, DropReason::DuplicateFragment);
    let other_count = service.receive(&fragment(11, 1, 4, b"abc"), 0).unwrap_err();
    assert_eq!(other_count, DropReason::Inconsistent);
    let big = vec![0; MAX_PACKET_BYTES];
    assert_eq!(service.receive(&fragment(11, 1, 3, &big), 0).unwrap_err(), DropReason::TooLarge);
    assert_eq!(service.receiver().held_bytes(), 0, "what can never become a packet is forgotten");
}

#[test]
fn a_fragment_that_comes_twice_does_not_end_a_message_of_the_largest_size() {
    let (mut sender, mut receiver) = (datagram(1420), datagram(1420));
    let sent = packet(MAX_PACKET_BYTES - 4);
    assert_eq!(sent.len(), MAX_PACKET_BYTES);
    let frames = frames(&mut sender, &LpHeader::default(), &sent);
    let (last, others) = frames.split_last().unwrap();
    for frame in others {
        assert!(receiver.receive(frame, 0).unwrap().is_none());
    }
    for frame in others {
        assert_eq!(receiver.receive(frame, 0).unwrap_err(), DropReason::DuplicateFragment);
    }
    let received = receiver.receive(last, 0).unwrap().expect("the last one is there");
    assert_eq!(received.packet, sent);
}

#[test]
fn an_unfinished_message_is_given_up_in_time() {
    let mut service = datagram(1420);
    let lifetime = ReassemblyLimits::default().lifetime_ns;
    assert!(service.receive(&fragment(10, 0, 2, b"a"), 1000).unwrap().is_none());
    assert!(service.receive(&fragment(11, 1, 2, b"b"), 1000 + lifetime).unwrap().is_none());
    assert_eq!(service.receiver().evicted_count(), 1);
}

#[test]
fn the_oldest_unfinished_message_makes_room() {
    let limits = ReassemblyLimits { messages_max: 2, ..ReassemblyLimits::default() };
    let mut service = LinkService::datagram(1420, 0, limits);
    for id in [10, 20, 30] {
        assert!(service.receive(&fragment(id, 0, 2, b"a"), id).unwrap().is_none());
    }
    assert!(service.receive(&fragment(31, 1, 2, b"b"), 40).unwrap().is_some());
    assert!(service.receive(&fragment(21, 1, 2, b"b"), 40).unwrap().is_some());
    assert!(service.receive(&fragment(11, 1, 2, b"b"), 40).unwrap().is_none(), "10 was given up");
}

#[test]
fn octets_held_stay_bounded_whatever_arrives() {
    let limits = ReassemblyLimits::default();
    let mut service = LinkService::datagram(1420, 0, limits);
    for message in 0..100u64 {
        for index in 0..5 {
            let frame = fragment(message * 1000 + index, index, 400, &[0; 1300]);
            let _ = service.receive(&frame, 0);
            assert!(service.receiver().held_bytes() <= limits.bytes_max);
        }
    }
}

#[test]
fn a_packet_needing_too_many_fragments_is_not_sent() {
    let limits = ReassemblyLimits { fragments_max: 3, ..ReassemblyLimits::default() };
    let mut service = LinkService::datagram(500, 0, limits);
    let result = service.send(&LpHeader::default(), &packet(4000), 0, |_, _| panic!("emitted"));
    assert!(matches!(result, Err(SendError::TooLarge { mtu_bytes: 500, .. })));
}

proptest! {
    #[test]
    fn any_packet_comes_back_from_fragments_in_any_order_with_duplicates(
        len in 1usize..8700,
        mtu in 200usize..9000,
        token in proptest::collection::vec(any::<u8>(), 0..=32),
        order in any::<u64>(),
        repeats in proptest::collection::vec(any::<prop::sample::Index>(), 0..4),
    ) {
        let packet = packet(len);
        let header = LpHeader {
            pit_token: (!token.is_empty()).then_some(&token[..]),
            congestion_mark: Some(1),
            ..LpHeader::default()
        };
        let mut arriving = frames(&mut datagram(mtu), &header, &packet);
        prop_assert!(arriving.iter().all(|frame| frame.len() <= mtu));
        let (last, others) = arriving.split_last().unwrap();
        // Below, LENGTHs change their own length within a frame.
        let is_even = mtu >= 400;
        prop_assert!(!is_even || others.iter().all(|frame| last.len() <= frame.len()));
        prop_assert!(others.iter().all(|frame| last.len() <= frame.len() + 4));
        if mtu >= 700 && others.len() < 250 {
            prop_assert!(others.iter().all(|frame| frame.len() == others[0].len()));
            // Only where the MTU leaves no room for padding.
            let is_full = others.iter().any(|frame| frame.len() + 5 > mtu);
            prop_assert!(is_full || others.iter().all(|frame| frame.len() == last.len()));
        }
        let count = arriving.len();
        for repeat in repeats {
            let copy = arriving[repeat.index(count)].clone();
            arriving.push(copy);
        }
        let mut state = order;
        for i in (1..arriving.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            arriving.swap(i, (state >> 33) as usize % (i + 1));
        }
        let mut receiver = datagram(mtu);
        let mut whole = 0;
        for frame in &arriving {
            if let Ok(Some(received)) = receiver.receive(frame, 0) {
                prop_assert_eq!(received.packet, &packet[..]);
                prop_assert_eq!(received.header, header);
                whole += 1;
            }
        }
        prop_assert!(whole >= 1);
    }

    #[test]
    fn any_octets_are_taken_calmly(
        inputs in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..60), 0..20)
    ) {
        let mut service = datagram(1420);
        for mut input in inputs {
            let _ = service.receive(&input, 0);
            if let Some(first) = input.first_mut() {
                *first = 0x64;
            }
            let _ = service.receive(&input, 0);
        }
    }
}
