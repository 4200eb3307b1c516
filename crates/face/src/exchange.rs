//! A few Interests at a time over a face of one's own: sent together, waited for together.
//!
//! For programs that now and then ask a handful of others something small. Who has much in flight
//! has an event loop of its own.

use std::time::Duration;

use byname_io::{Clock, Connection, Interest as Watch, Poller, Token};
use byname_link::{ReassemblyLimits, Received};
use byname_packet::lp::LpHeader;
use byname_packet::{Interest, Name, Packet};

use crate::error::FaceError;
use crate::face::Face;
use crate::random_u64;

/// What came of an Interest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// The Data that it asked for, and the path trace that came with it.
    Data {
        /// The whole packet.
        wire: Vec<u8>,
        /// Empty if nobody on the path reports.
        trace: Vec<u8>,
    },
    /// A network Nack with its reason.
    Nack(u64),
    /// Nothing in time.
    Silence,
}

/// An Interest that was sent.
struct Sent {
    name: Name,
    can_be_prefix: bool,
    /// Place among the questions.
    index: usize,
}

/// A face on which nothing is in flight between two calls.
#[derive(Debug)]
pub struct Exchange {
    face: Face,
    poller: Poller,
    clock: Clock,
}

impl Exchange {
    /// Takes over a connection.
    ///
    /// # Errors
    /// [`FaceError`] if it cannot be watched.
    pub fn new(connection: Connection) -> Result<Self, FaceError> {
        let poller = Poller::new()?;
        poller.add(&connection, Token(0), Watch::READ)?;
        let face = Face::new(connection, ReassemblyLimits::default());
        Ok(Self { face, poller, clock: Clock::new() })
    }

    /// Sends Interests, each with a Nonce of its own, and waits until all are answered or the time
    /// is over. Replies come in the order of the Interests. What is no Interest, or finds no room
    /// in the connection's queue, is not sent and gets none.
    ///
    /// # Errors
    /// [`FaceError`]; the face is of no further use.
    pub fn ask(&mut self, wires: &[Vec<u8>], timeout: Duration) -> Result<Vec<Reply>, FaceError> {
        let wires: Vec<&[u8]> = wires.iter().map(Vec::as_slice).collect();
        self.ask_all(&wires, false, timeout)
    }

    /// The same for one Interest; `is_traced` asks everybody on the path where the answer comes
    /// from. Whoever does not know that field ignores it.
    ///
    /// # Errors
    /// As [`Exchange::ask`].
    pub fn ask_one(
        &mut self,
        wire: &[u8],
        is_traced: bool,
        timeout: Duration,
    ) -> Result<Reply, FaceError> {
        let replies = self.ask_all(&[wire], is_traced, timeout)?;
        Ok(replies.into_iter().next().unwrap_or(Reply::Silence))
    }

    /// Sends an Interest that nobody waits for, as far as there is room for it at once.
    pub fn tell(&mut self, wire: &[u8]) {
        if matches!(self.send(wire, 0, false), Ok(Some(_))) {
            // Whoever is told by nobody finds out by himself.
            let _ = self.face.flush();
        }
    }

    /// Wall clock, nanoseconds since the Unix epoch.
    pub fn unix_ns(&self) -> u64 {
        self.clock.unix_ns()
    }

    fn ask_all(
        &mut self,
        wires: &[&[u8]],
        is_traced: bool,
        timeout: Duration,
    ) -> Result<Vec<Reply>, FaceError> {
        let mut replies = vec![Reply::Silence; wires.len()];
        let mut waiting = Vec::new();
        let deadline_ns = self.clock.now_ns().saturating_add(nanoseconds(timeout));
        for (index, wire) in wires.iter().enumerate() {
            waiting.extend(self.send(wire, index, is_traced)?);
        }
        let mut events = Vec::new();
        while !waiting.is_empty() {
            self.face.flush()?;
            let now_ns = self.clock.now_ns();
            if now_ns >= deadline_ns {
                break;
            }
            let write = self.face.connection().wants_write();
            self.poller.modify(self.face.connection(), Token(0), Watch { read: true, write })?;
            let left = Duration::from_nanos(deadline_ns - now_ns);
            self.poller.wait(&mut events, Some(left))?;
            let status = self.face.receive(now_ns, |received| {
                for (index, reply) in take_answered(&mut waiting, received) {
                    replies[index] = reply;
                }
            })?;
            if status.closed {
                return Err(FaceError::Closed);
            }
        }
        Ok(replies)
    }

    /// Sends an Interest, if it can be.
    fn send(
        &mut self,
        wire: &[u8],
        index: usize,
        is_traced: bool,
    ) -> Result<Option<Sent>, FaceError> {
        let Ok(interest) = Interest::decode(wire) else { return Ok(None) };
        let mut out = Vec::with_capacity(wire.len() + 8);
        let nonce = (random_u64() as u32).to_be_bytes();
        interest.encode_forwarded(nonce, interest.hop_limit, &mut out);
        let path_trace = is_traced.then_some(&[][..]);
        let header = LpHeader { path_trace, ..LpHeader::default() };
        let (name, can_be_prefix) = (interest.name.to_name(), interest.can_be_prefix);
        match self.face.send(&header, &out, self.clock.now_ns()) {
            Ok(()) => Ok(Some(Sent { name, can_be_prefix, index })),
            Err(FaceError::Full(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// The questions that a packet answers, which are not waited for any more, with the reply.
fn take_answered(waiting: &mut Vec<Sent>, received: &Received<'_>) -> Vec<(usize, Reply)> {
    let (nack, packet) = (received.header.nack, Packet::decode(received.packet));
    let reply = match (nack, &packet) {
        (Some(reason), Ok(Packet::Interest(_))) => Reply::Nack(reason),
        (None, Ok(Packet::Data(_))) => {
            let trace = received.header.path_trace.unwrap_or_default().to_vec();
            Reply::Data { wire: received.packet.to_vec(), trace }
        }
        _ => return Vec::new(),
    };
    let is_answered = |sent: &mut Sent| match &packet {
        Ok(Packet::Interest(interest)) => sent.name.view() == interest.name,
        Ok(Packet::Data(data)) if sent.can_be_prefix => sent.name.view().is_prefix_of(data.name),
        Ok(Packet::Data(data)) => sent.name.view() == data.name,
        Err(_) => false,
    };
    let answered = waiting.extract_if(.., is_answered);
    answered.map(|sent| (sent.index, reply.clone())).collect()
}

fn nanoseconds(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use byname_packet::lp::nack_reason;
    use byname_packet::{DataBuilder, DigestSigner, InterestBuilder};

    fn interest(name: &str) -> Vec<u8> {
        let name: Name = name.parse().unwrap();
        let mut wire = Vec::new();
        InterestBuilder::new(name.view()).encode(&mut wire);
        wire
    }

    fn data(name: &str) -> Vec<u8> {
        let name: Name = name.parse().unwrap();
        let mut wire = Vec::new();
        DataBuilder::new(name.view()).encode(b"x", &DigestSigner, &mut wire).unwrap();
        wire
    }

    #[test]
    fn replies_come_in_the_order_of_the_questions_whatever_comes_first() {
        let (here, there) = Connection::pair().unwrap();
        let mut peer = Face::new(there, ReassemblyLimits::default());
        let nack = LpHeader { nack: Some(nack_reason::NO_ROUTE), ..LpHeader::default() };
        peer.send(&LpHeader::default(), &data("/other"), 0).unwrap();
        peer.send(&LpHeader::default(), &data("/b"), 0).unwrap();
        peer.send(&nack, &interest("/a"), 0).unwrap();
        peer.flush().unwrap();
        let mut exchange = Exchange::new(here).unwrap();
        let questions = [interest("/a"), interest("/b"), interest("/c"), b"none".to_vec()];
        let replies = exchange.ask(&questions, Duration::from_millis(50)).unwrap();
        let nack = Reply::Nack(nack_reason::NO_ROUTE);
        let found = Reply::Data { wire: data("/b"), trace: Vec::new() };
        assert_eq!(replies, [nack, found, Reply::Silence, Reply::Silence]);
    }

    #[test]
    fn a_prefix_is_answered_by_what_is_below_it_and_by_its_trace() {
        let (here, there) = Connection::pair().unwrap();
        let mut peer = Face::new(there, ReassemblyLimits::default());
        let traced = LpHeader { path_trace: Some(b"\x81\x00"), ..LpHeader::default() };
        peer.send(&LpHeader::default(), &data("/other/x"), 0).unwrap();
        peer.send(&traced, &data("/a/b"), 0).unwrap();
        peer.flush().unwrap();
        let mut exchange = Exchange::new(here).unwrap();
        let name: Name = "/a".parse().unwrap();
        let mut wire = Vec::new();
        InterestBuilder::new(name.view()).can_be_prefix(true).encode(&mut wire);
        let reply = exchange.ask_one(&wire, true, Duration::from_secs(60)).unwrap();
        assert_eq!(reply, Reply::Data { wire: data("/a/b"), trace: b"\x81\x00".to_vec() });
        let mut asked = false;
        peer.receive(0, |received| asked = received.header.path_trace == Some(&[][..])).unwrap();
        assert!(asked);
    }

    #[test]
    fn a_connection_that_is_closed_ends_the_wait() {
        let (here, there) = Connection::pair().unwrap();
        drop(there);
        let mut exchange = Exchange::new(here).unwrap();
        assert!(exchange.ask(&[interest("/a")], Duration::from_secs(60)).is_err());
    }
}
