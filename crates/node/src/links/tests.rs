//! Shared sockets and peers that have not shown that they receive.

use super::*;
use byname_forwarder::Tx;
use byname_io::{Endpoint, UnvalidatedRates};
use byname_link::ReassemblyLimits;
use byname_packet::lp::{LpHeader, LpPacket, encode_returned_token};
use byname_packet::{tlv, types};

const FACE: FaceId = FaceId(300);
const RATE: u64 = 100_000;
const REQUEST_BYTES: usize = 29;
const SECOND_NS: u64 = 1_000_000_000;

/// Links with one peer on a shared socket. Nothing is flushed, so what is sent can be counted.
fn links_with(peer: UdpPeer) -> Links {
    let mut links = Links::new(1 << 30);
    let limits = byname_io::Limits { send_bytes_max: 1 << 30, ..Default::default() };
    let endpoint: Endpoint = "udp://127.0.0.1:0".parse().unwrap();
    let socket = byname_io::DatagramSocket::bind_with(&endpoint, limits).unwrap();
    links.shared.sockets.push(Shared::new(socket, 1));
    let rates = UnvalidatedRates { machine_bytes_s: RATE, all_bytes_s: 10 * RATE };
    links.shared.limiter.set_rates(rates);
    let service = LinkService::datagram(8800, 7, ReassemblyLimits::default());
    links.faces.insert(FACE, Link::new(Carrier::Peer { socket: 0, peer }, service, 0));
    links
}

fn queued_bytes(links: &Links) -> usize {
    links.shared.sockets[0].socket.as_ref().map_or(0, |socket| socket.queued_bytes())
}

/// The peer asks for so many packets in a second, each of which is answered.
fn ask(links: &mut Links, count: u64) {
    let mut packet = Vec::new();
    tlv::write_element(&mut packet, types::DATA, &[7; 8000]);
    let start_ns = links.now_ns;
    for step in 0..count {
        links.now_ns = start_ns + step * SECOND_NS / count;
        links.handle_timeout();
        links.on_datagram(FACE, REQUEST_BYTES);
        links.send(FACE, &LpHeader::default(), &packet);
    }
}

#[test]
fn who_never_returns_a_token_gets_a_bounded_rate() {
    let mut links = links_with(UdpPeer::unknown(([192, 0, 2, 1], 6363).into()));
    ask(&mut links, 2000);
    let bytes = queued_bytes(&links) as u64;
    assert!(
        bytes > RATE && bytes <= 3 * 2000 * REQUEST_BYTES as u64 + 2 * RATE + 10_000,
        "{bytes}"
    );
    assert!(links.shared.limiter.dropped() > 1000);
}

/// What is queued counts, tokens included; nothing else may leave.
#[test]
fn with_rates_of_zero_who_never_returns_a_token_gets_three_times_what_it_sent() {
    let mut links = links_with(UdpPeer::unknown(([192, 0, 2, 1], 6363).into()));
    links.shared.limiter.set_rates(UnvalidatedRates { machine_bytes_s: 0, all_bytes_s: 0 });
    ask(&mut links, 2000);
    let (bytes, asked) = (queued_bytes(&links), 2000 * REQUEST_BYTES);
    assert!(bytes <= 3 * asked && bytes > asked, "{bytes} for {asked}");
}

#[test]
fn who_returns_the_token_and_who_was_named_gets_everything() {
    let address = ([192, 0, 2, 1], 6363).into();
    let mut links = links_with(UdpPeer::named(address));
    ask(&mut links, 2000);
    assert!(queued_bytes(&links) > 2000 * 8000);

    let mut peer = UdpPeer::unknown(address);
    let limiter = byname_io::AnswerLimiter::default();
    let token = limiter.on_received(&mut peer, REQUEST_BYTES, SECOND_NS).unwrap();
    let mut links = links_with(UdpPeer::unknown(address));
    links.shared.limiter = limiter;
    links.now_ns = SECOND_NS;
    let mut frame = Vec::new();
    encode_returned_token(token, &mut frame);
    assert_eq!(LpPacket::decode(&frame).unwrap().returned_token, Some(token));
    let mut receiver = links.faces.get_mut(&FACE).unwrap().receiver.take().unwrap();
    assert!(receiver.receive(&frame, SECOND_NS, &mut links.feedback).is_err(), "nothing else");
    links.settle(FACE);
    ask(&mut links, 2000);
    assert!(queued_bytes(&links) > 2000 * 8000);
    assert_eq!(links.shared.limiter.dropped(), 0);
}
