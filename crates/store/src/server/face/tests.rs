//! A peer of a UDP socket that has not shown that it receives, and one that has.

use super::*;
use byname_io::{Endpoint, Limits, UnvalidatedRates};
use byname_packet::lp::{encode_address_token, encode_returned_token};
use byname_packet::{tlv, types};

const RATE: u64 = 100_000;
const SECOND_NS: u64 = 1_000_000_000;

struct Scene {
    face: Face,
    sockets: Vec<DatagramSocket>,
    limiter: AnswerLimiter,
    sent_bytes: usize,
}

impl Scene {
    fn new() -> Self {
        let limits = Limits { send_bytes_max: 1 << 30, ..Limits::default() };
        let endpoint: Endpoint = "udp://127.0.0.1:0".parse().unwrap();
        let rates = UnvalidatedRates { machine_bytes_s: RATE, all_bytes_s: 10 * RATE };
        let address = ([192, 0, 2, 1], 6363).into();
        Self {
            face: Face::of_peer(FaceId(7), 0, address).unwrap(),
            sockets: vec![DatagramSocket::bind_with(&endpoint, limits).unwrap()],
            limiter: AnswerLimiter::new(rates),
            sent_bytes: 0,
        }
    }

    /// The peer asks for 2000 packets in a second; `answer` is what it does with a token.
    fn ask(&mut self, mut answer: impl FnMut(u64) -> Option<Vec<u8>>) -> usize {
        let (mut request, mut packet) = (Vec::new(), Vec::new());
        tlv::write_element(&mut request, types::INTEREST, &[7; 27]);
        tlv::write_element(&mut packet, types::DATA, &[7; 8000]);
        for step in 0..2000 {
            let now_ns = SECOND_NS + step * SECOND_NS / 2000;
            let mut frame = Some(request.clone());
            while let Some(received) = frame.take() {
                let token = self.face.receive_datagram(&received, &mut self.limiter, now_ns);
                frame = token.and_then(&mut answer);
            }
            self.face.send(&packet, now_ns);
            let before = self.sockets[0].queued_bytes();
            let sockets = &mut self.sockets;
            self.limiter.release(now_ns, |_, peer, octets| {
                sockets[0].queue(peer, &[octets]).unwrap();
            });
            self.face.flush((&mut self.sockets, &mut self.limiter), now_ns).unwrap();
            self.sent_bytes += self.sockets[0].queued_bytes() - before;
            // As if the link had taken it.
            let endpoint = "udp://127.0.0.1:0".parse().unwrap();
            if self.sockets[0].queued_bytes() > 32 << 10 {
                self.sockets[0] = DatagramSocket::bind(&endpoint).unwrap();
            }
        }
        self.sent_bytes
    }
}

#[test]
fn who_never_returns_a_token_gets_a_bounded_rate() {
    let mut scene = Scene::new();
    let bytes = scene.ask(|_| None) as u64;
    assert!(bytes > RATE / 2 && bytes <= 3 * 2000 * 29 + 2 * RATE + 20_000, "{bytes}");
    assert!(scene.limiter.dropped() > 1000);
}

#[test]
fn who_returns_the_token_gets_everything() {
    let mut scene = Scene::new();
    let bytes = scene.ask(|token| {
        let mut asked = Vec::new();
        encode_address_token(token, &mut asked);
        let token = LpPacket::decode(&asked).unwrap().address_token.unwrap();
        let mut returned = Vec::new();
        encode_returned_token(token, &mut returned);
        Some(returned)
    });
    assert!(bytes > 2000 * 8000, "{bytes}");
    assert_eq!(scene.limiter.dropped(), 0);
}
