//! A few Interests at a time over a face of one's own: sent together, waited for together.
//!
//! For programs that now and then ask a handful of others something small. Who has much in flight
//! has an event loop of its own.

use std::collections::BTreeMap;
use std::time::Duration;

use byname_io::{Clock, Connection, Interest as Watch, Poller, Token};
use byname_link::ReassemblyLimits;
use byname_packet::lp::LpHeader;
use byname_packet::{Interest, Name, Packet};

use crate::error::FaceError;
use crate::face::Face;
use crate::random_u64;

/// What came of an Interest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// The Data of its very name.
    Data(Vec<u8>),
    /// A network Nack with its reason.
    Nack(u64),
    /// Nothing in time.
    Silence,
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
        let mut replies = vec![Reply::Silence; wires.len()];
        let mut waiting = BTreeMap::new();
        let deadline_ns = self.clock.now_ns().saturating_add(nanoseconds(timeout));
        for (index, wire) in wires.iter().enumerate() {
            if let Some(name) = self.send(wire)? {
                waiting.insert(name, index);
            }
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
                if let Some((name, reply)) = reply(received.header.nack, received.packet)
                    && let Some(index) = waiting.remove(&name)
                {
                    replies[index] = reply;
                }
            })?;
            if status.closed {
                return Err(FaceError::Closed);
            }
        }
        Ok(replies)
    }

    /// Sends an Interest; its name, if it could be.
    fn send(&mut self, wire: &[u8]) -> Result<Option<Name>, FaceError> {
        let Ok(interest) = Interest::decode(wire) else { return Ok(None) };
        let mut out = Vec::with_capacity(wire.len() + 8);
        let nonce = (random_u64() as u32).to_be_bytes();
        interest.encode_forwarded(nonce, interest.hop_limit, &mut out);
        match self.face.send(&LpHeader::default(), &out, self.clock.now_ns()) {
            Ok(()) => Ok(Some(interest.name.to_name())),
            Err(FaceError::Full(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn reply(nack: Option<u64>, packet: &[u8]) -> Option<(Name, Reply)> {
    match (nack, Packet::decode(packet).ok()?) {
        (Some(reason), Packet::Interest(interest)) => {
            Some((interest.name.to_name(), Reply::Nack(reason)))
        }
        (None, Packet::Data(data)) => Some((data.name.to_name(), Reply::Data(packet.to_vec()))),
        _ => None,
    }
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
        assert_eq!(replies, [nack, Reply::Data(data("/b")), Reply::Silence, Reply::Silence]);
    }

    #[test]
    fn a_connection_that_is_closed_ends_the_wait() {
        let (here, there) = Connection::pair().unwrap();
        drop(there);
        let mut exchange = Exchange::new(here).unwrap();
        assert!(exchange.ask(&[interest("/a")], Duration::from_secs(60)).is_err());
    }
}
