//! Packets of one's own making, sent to a forwarder by who commands no program of byname's.

use byname_face::{Face, random_u64};
use byname_io::{Clock, Connection, Endpoint, Interest as Watch, Poller, Token};
use byname_link::ReassemblyLimits;
use byname_packet::lp::LpHeader;
use byname_packet::{Data, Interest, Packet};
use std::time::Duration;

/// Lifetime of a command or order, after which its answer finds no way back.
const LIFETIME: Duration = Duration::from_secs(4);
/// Times that it is sent: on a busy machine an answer may be late. A refusal that is silence takes
/// as many lifetimes.
const ATTEMPTS: usize = 3;

/// A connection to a forwarder.
pub(crate) struct Peer {
    face: Face,
    poller: Poller,
    clock: Clock,
}

impl Peer {
    pub(crate) fn new(socket: &str) -> Self {
        let endpoint: Endpoint = socket.parse().unwrap();
        let connection = Connection::connect(&endpoint, Duration::from_secs(5)).unwrap();
        let poller = Poller::new().unwrap();
        poller.add(&connection, Token(0), Watch::READ).unwrap();
        let face = Face::new(connection, ReassemblyLimits::default());
        Self { face, poller, clock: Clock::new() }
    }

    /// The Data that answers a signed Interest, which is sent with a new Nonce each time; `None`
    /// for a Nack or silence.
    pub(crate) fn ask(&mut self, wire: &[u8]) -> Option<Vec<u8>> {
        (0..ATTEMPTS).find_map(|_| self.ask_once(wire)).flatten()
    }

    /// The Data, or `Some(None)` for a Nack.
    fn ask_once(&mut self, wire: &[u8]) -> Option<Option<Vec<u8>>> {
        let interest = Interest::decode(wire).unwrap();
        let nonce = (random_u64() as u32).to_be_bytes();
        let mut sent = Vec::new();
        interest.encode_forwarded(nonce, interest.hop_limit, &mut sent);
        self.face.send(&LpHeader::default(), &sent, 0).unwrap();
        self.face.flush().unwrap();
        let deadline_ns = self.clock.now_ns() + LIFETIME.as_nanos() as u64;
        let mut events = Vec::new();
        loop {
            let now_ns = self.clock.now_ns();
            let left = Duration::from_nanos(deadline_ns.checked_sub(now_ns)?);
            self.poller.wait(&mut events, Some(left)).unwrap();
            let mut answer = None;
            self.face
                .receive(now_ns, |received| {
                    let of_data = |data: Data<'_>| data.name == interest.name;
                    let is_answer = match Packet::decode(received.packet) {
                        Ok(Packet::Data(data)) => of_data(data),
                        Ok(Packet::Interest(_)) => received.header.nack.is_some(),
                        _ => false,
                    };
                    if is_answer {
                        let is_data = received.header.nack.is_none();
                        answer = Some(is_data.then(|| received.packet.to_vec()));
                    }
                })
                .unwrap();
            if answer.is_some() {
                return answer;
            }
        }
    }
}
