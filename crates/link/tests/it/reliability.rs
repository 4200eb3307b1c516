//! Every packet once, whatever the network does; and what reliability puts on the wire.

use std::collections::HashMap;

use byname_link::{
    DropReason, IDLE_ACK_NS, LinkOptions, LinkService, RETRIES_MAX, ReassemblyLimits,
};
use byname_packet::lp::{LpHeader, LpPacket};
use proptest::prelude::*;

use crate::network::{Fate, MS, Network, packet};

fn link(first_sequence: u64) -> LinkService {
    let mut link = LinkService::datagram(1420, first_sequence, ReassemblyLimits::default());
    link.set_options(&LinkOptions { reliability: true, mtu_bytes: None });
    link
}

fn frames(link: &mut LinkService, packet: &[u8], now_ns: u64) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    let emit = |head: &[u8], body: &[u8]| frames.push([head, body].concat());
    link.send(&LpHeader::default(), packet, now_ns, emit).unwrap();
    frames
}

fn due(link: &mut LinkService, now_ns: u64) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    link.handle_timeout(now_ns, |head, body| frames.push([head, body].concat()));
    frames
}

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let fate = prop_oneof![
        4 => Just(Fate::Deliver),
        3 => Just(Fate::Lose),
        1 => (1..250u64).prop_map(Fate::Delay),
        1 => (0..1000u64).prop_map(Fate::Copy),
    ];
    proptest::collection::vec(fate, 0..600)
}

proptest! {
    #[test]
    fn every_packet_arrives_exactly_once(
        mtu in 400usize..2000,
        // Sender, octets, ms since the last.
        packets in proptest::collection::vec((0usize..2, 10usize..8700, 0u64..40), 1..40),
        fates in fates(),
    ) {
        let mut network = Network::new(mtu, fates);
        let mut expected = [HashMap::new(), HashMap::new()];
        for ((from, len, gap), number) in packets.into_iter().zip(0u64..) {
            network.run(network.now_ns + gap * MS);
            let wire = packet(number, len);
            network.send(from, &wire);
            expected[1 - from].insert(wire, 1);
        }
        network.run(network.now_ns + 60_000 * MS);
        prop_assert!(network.is_quiet());
        for (end, expected) in expected.into_iter().enumerate() {
            let mut counts = HashMap::new();
            for packet in &network.delivered[end] {
                *counts.entry(packet.clone()).or_insert(0) += 1;
            }
            prop_assert_eq!(counts, expected);
            let counters = network.ends[end].sender().reliability_counters();
            prop_assert_eq!(counters.unprotected, 0);
        }
    }

    #[test]
    fn any_acknowledgements_are_taken_calmly(
        acks in proptest::collection::vec(any::<u64>(), 0..50),
        near in proptest::collection::vec(0u64..40, 0..50),
    ) {
        let mut sender = link(5);
        for number in 0..20 {
            frames(&mut sender, &packet(number, 100), 0);
        }
        let mut idle = Vec::new();
        let acks: Vec<u64> = acks.into_iter().chain(near).collect();
        let fields = byname_packet::lp::LinkFields { acks: &acks, ..Default::default() };
        byname_packet::lp::encode_link_header(&LpHeader::default(), &fields, 0, &mut idle);
        let _ = sender.receive(&idle, MS);
        let mut now_ns = MS;
        while let Some(due_ns) = sender.poll_timeout() {
            now_ns = now_ns.max(due_ns);
            due(&mut sender, now_ns);
        }
        prop_assert!(now_ns <= 8000 * MS, "nothing is kept for ever");
    }
}

#[test]
fn frames_look_as_nfd_expects() {
    let (mut a, mut b) = (link(0x0102), link(0x0A));
    let first = frames(&mut a, &[0x06, 0x01, 0xEE], 0);
    // Sequence, TxSequence, Fragment: ascending TYPE, but Fragment last; numbers of eight octets.
    let mut expected = vec![0x64, 27, 0x51, 8, 0, 0, 0, 0, 0, 0, 1, 2];
    expected.extend([0xFD, 0x03, 0x48, 8, 0, 0, 0, 0, 0, 0, 1, 2, 0x50, 3, 6, 1, 0xEE]);
    assert_eq!(first, [expected]);
    b.receive(&first[0], 0).unwrap().unwrap();
    let answer = frames(&mut b, &[0x06, 0x00], MS);
    let mut expected = vec![0x64, 38, 0x51, 8, 0, 0, 0, 0, 0, 0, 0, 0x0A];
    expected.extend([0xFD, 0x03, 0x44, 8, 0, 0, 0, 0, 0, 0, 1, 2]);
    expected.extend([0xFD, 0x03, 0x48, 8, 0, 0, 0, 0, 0, 0, 0, 0x0A, 0x50, 2, 6, 0]);
    assert_eq!(answer, [expected], "the acknowledgement travels with the answer");
    assert_eq!(b.poll_timeout(), Some(MS + 1000 * MS), "and not alone as well");
}

#[test]
fn acknowledgements_travel_alone_after_a_moment_and_together() {
    let (mut a, mut b) = (link(0), link(0));
    for number in 0..150 {
        for frame in frames(&mut a, &packet(number, 50), 0) {
            b.receive(&frame, 0).unwrap().unwrap();
        }
    }
    assert_eq!(b.poll_timeout(), Some(IDLE_ACK_NS));
    assert!(due(&mut b, IDLE_ACK_NS - 1).is_empty());
    let idle = due(&mut b, IDLE_ACK_NS);
    assert_eq!(idle.len(), 2);
    let mut acks = Vec::new();
    for frame in &idle {
        let lp = LpPacket::decode(frame).unwrap();
        assert!(lp.is_idle() && lp.tx_sequence.is_none() && frame.len() <= 1420);
        acks.extend(lp.acks());
        assert_eq!(a.receive(frame, IDLE_ACK_NS).unwrap_err(), DropReason::Idle);
    }
    assert_eq!(acks, (0..150).collect::<Vec<_>>());
    assert_eq!(a.poll_timeout(), None, "nothing is awaited any more");
    assert_eq!(a.sender().reliability_counters().acknowledged, 150);
}

#[test]
fn a_frame_passed_by_three_is_sent_again_at_once_and_others_are_not() {
    let (mut a, mut b) = (link(0), link(0));
    let sent: Vec<_> = (0..5).flat_map(|n| frames(&mut a, &packet(n, 50), 0)).collect();
    for frame in &sent[1..4] {
        assert_ne!(a.poll_timeout(), Some(0));
        b.receive(frame, MS).unwrap().unwrap();
        let idle = due(&mut b, MS + IDLE_ACK_NS);
        let _ = a.receive(&idle[0], 20 * MS);
    }
    assert_eq!(a.poll_timeout(), Some(0));
    let again = due(&mut a, 20 * MS);
    assert_eq!(again.len(), 1);
    let lp = LpPacket::decode(&again[0]).unwrap();
    assert_eq!((lp.sequence, lp.tx_sequence), (Some(0), Some(5)), "under a new TxSequence");
    assert!(b.receive(&again[0], 30 * MS).unwrap().is_some());
    assert_eq!(b.receive(&sent[0], 30 * MS).unwrap_err(), DropReason::DuplicateFrame);
}

#[test]
fn a_silent_peer_costs_four_transmissions_of_each_frame() {
    let mut a = link(0);
    let first = frames(&mut a, &packet(1, 4000), 0).len();
    let (mut now_ns, mut sent) = (0, 0);
    while let Some(due_ns) = a.poll_timeout() {
        now_ns = now_ns.max(due_ns);
        sent += due(&mut a, now_ns).len();
    }
    assert_eq!(sent, first * usize::from(RETRIES_MAX));
    assert_eq!(now_ns, 4000 * MS);
    assert_eq!(a.sender().reliability_counters().exhausted, 1, "one packet, not three");
}

#[test]
fn a_very_late_acknowledgement_does_not_make_retransmissions_outlast_reassembly() {
    // Found by the property above: an acknowledgement is lost, and a late copy of its frame
    // acknowledged again: a round trip of 0.8 s. Another fragment is then lost once more.
    use Fate::{Copy, Delay, Deliver, Lose};
    let mut fates = vec![Deliver, Deliver, Lose, Copy(809), Deliver, Deliver, Lose, Lose];
    fates.extend([Deliver, Deliver, Lose, Copy(173), Deliver, Deliver, Copy(466), Deliver]);
    fates.extend([Deliver, Delay(6), Deliver, Lose, Lose, Deliver, Deliver, Lose]);
    fates.extend([Deliver, Deliver, Deliver, Deliver, Lose]);
    fates.extend([Deliver; 10]);
    fates.push(Lose);
    fates.extend([Deliver; 14]);
    fates.extend([Copy(0), Deliver, Deliver, Deliver, Deliver, Deliver, Deliver, Deliver, Deliver]);
    fates.push(Lose);
    let mut network = Network::new(733, fates);
    let wires = [packet(0, 3475), packet(1, 5566)];
    network.send(0, &wires[0]);
    network.send(1, &wires[1]);
    network.run(network.now_ns + 60_000 * MS);
    let [first, second] = wires;
    assert_eq!(network.delivered, [vec![second], vec![first]]);
}

#[test]
fn what_finds_no_room_is_sent_without_a_promise() {
    let mut a = link(0);
    let sent: Vec<_> = (0..2000).flat_map(|n| frames(&mut a, &packet(n, 50), 0)).collect();
    assert_eq!(sent.len(), 2000);
    let promised = sent.iter().filter(|f| LpPacket::decode(f).unwrap().tx_sequence.is_some());
    let promised = promised.count();
    assert!((500..=1024).contains(&promised), "{promised}");
    let counters = a.sender().reliability_counters();
    assert_eq!(counters.unprotected as usize, 2000 - promised);
}

#[test]
fn without_reliability_there_are_no_timers_and_no_fields() {
    let mut a = LinkService::datagram(1420, 0, ReassemblyLimits::default());
    assert_eq!(frames(&mut a, &[0x06, 0x00], 0), [[0x06, 0x00]]);
    let from_reliable = frames(&mut link(0), &[0x06, 0x00], 0);
    assert!(a.receive(&from_reliable[0], 0).unwrap().is_some());
    assert!(a.receive(&from_reliable[0], 0).unwrap().is_some(), "no memory of it either");
    assert_eq!(a.poll_timeout(), None);
    a.set_options(&LinkOptions { reliability: true, mtu_bytes: Some(600) });
    assert_eq!(a.sender().mtu_bytes(), Some(600));
    assert!(frames(&mut a, &packet(1, 1000), 0).len() > 1);
    a.set_options(&LinkOptions::default());
    assert_eq!(a.poll_timeout(), None);
    assert_eq!(a.sender().mtu_bytes(), Some(1420));
}
