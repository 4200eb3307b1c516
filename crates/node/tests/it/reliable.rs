//! Links with reliability: what a peer that loses datagrams sees.

use std::net::UdpSocket;

use byname_forwarder::FaceOptions;
use byname_io::Endpoint;
use byname_link::{LinkOptions, LinkService, ReassemblyLimits};
use byname_node::NodeConfig;
use byname_packet::InterestBuilder;
use byname_packet::lp::{LpHeader, LpPacket, nack_reason};

use crate::harness::{PATIENCE, Running, name};

struct Peer {
    socket: UdpSocket,
    link: LinkService,
}

impl Peer {
    fn new(node: &Running) -> Self {
        let Endpoint::Udp { port, .. } = &node.listening[0] else { panic!("no UDP") };
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(("127.0.0.1", *port)).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut link = LinkService::datagram(1420, 1, ReassemblyLimits::default());
        link.set_options(&LinkOptions { reliability: true, mtu_bytes: None });
        Self { socket, link }
    }

    fn ask(&mut self, uri: &str) {
        let mut wire = Vec::new();
        InterestBuilder::new(name(uri).view()).nonce([1, 2, 3, 4]).encode(&mut wire);
        let socket = &self.socket;
        let emit = |head: &[u8], body: &[u8]| {
            socket.send(&[head, body].concat()).unwrap();
        };
        self.link.send(&LpHeader::default(), &wire, 0, emit).unwrap();
    }

    fn datagram(&self) -> Vec<u8> {
        let mut buffer = [0; 9000];
        let len = self.socket.recv(&mut buffer).unwrap();
        buffer[..len].to_vec()
    }
}

fn reliable() -> Running {
    let face_defaults = FaceOptions { reliability: true, ..FaceOptions::default() };
    let listen = vec!["udp://127.0.0.1:0".parse().unwrap()];
    Running::start(NodeConfig { listen, face_defaults, ..NodeConfig::default() })
}

#[test]
fn an_answer_acknowledges_and_is_sent_again_until_it_is_acknowledged() {
    let node = reliable();
    let mut peer = Peer::new(&node);
    peer.ask("/nobody/serves/this");
    let mut sequences = Vec::new();
    for round in 0..2 {
        let datagram = peer.datagram();
        let lp = LpPacket::decode(&datagram).unwrap();
        assert_eq!(lp.header.nack, Some(nack_reason::NO_ROUTE));
        // The acknowledgement of the Interest travels with the first answer only.
        assert_eq!(lp.acks().count(), usize::from(round == 0));
        sequences.push((lp.sequence.unwrap(), lp.tx_sequence.unwrap()));
    }
    assert_eq!(sequences[0].0, sequences[1].0, "the same frame");
    assert_eq!(sequences[0].1 + 1, sequences[1].1, "under a new TxSequence");
}

#[test]
fn a_frame_that_comes_twice_is_acknowledged_twice_and_handled_once() {
    let node = reliable();
    let mut peer = Peer::new(&node);
    let mut wire = Vec::new();
    InterestBuilder::new(name("/nobody").view()).nonce([9, 9, 9, 9]).encode(&mut wire);
    let mut frame = Vec::new();
    let emit = |head: &[u8], body: &[u8]| frame = [head, body].concat();
    peer.link.send(&LpHeader::default(), &wire, 0, emit).unwrap();
    peer.socket.send(&frame).unwrap();
    let answer = peer.datagram();
    assert_eq!(LpPacket::decode(&answer).unwrap().acks().count(), 1);
    peer.socket.send(&frame).unwrap();
    let idle = peer.datagram();
    let idle = LpPacket::decode(&idle).unwrap();
    assert!(idle.is_idle() && idle.acks().count() == 1, "no second answer");
}
