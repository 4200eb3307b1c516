//! One Interest at a time over a face, for `ping`, `status` and what commands a
//! forwarder.

use crate::exit::{Code, Failure, Outcome, chain};
use byname_face::{CommandClock, ControlCommand, Face, random_u64};
use byname_io::{Clock, Connection, Interest as Watch, Poller, Token};
use byname_link::ReassemblyLimits;
use byname_packet::lp::LpHeader;
use byname_packet::mgmt::{ControlParameters, ControlResponse};
use byname_packet::{Data, DigestSigner, InterestBuilder, Name, NameRef, Packet};
use std::time::Duration;

/// The answer to a request.
pub(crate) enum Reply {
    /// A whole Data packet, and the trace that came with it.
    Data { wire: Vec<u8>, trace: Vec<u8> },
    /// A network Nack with its reason.
    Nack(u64),
    /// Nothing in time.
    Silence,
}

/// A face on which one request is in flight at most.
pub(crate) struct Exchange {
    face: Face,
    poller: Poller,
    clock: Clock,
    command_clock: CommandClock,
}

/// The kind of answer that will do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The packet of this very name.
    Exact,
    /// A description that is fresh.
    Fresh,
    /// A description, whatever its age.
    Older,
}

/// Which Interest to send.
pub(crate) struct Ask<'a> {
    pub(crate) name: NameRef<'a>,
    pub(crate) wanted: Wanted,
    pub(crate) timeout: Duration,
    /// True if everybody on the path is asked where the answer came from.
    pub(crate) is_traced: bool,
}

impl<'a> Ask<'a> {
    /// Without a trace.
    pub(crate) fn new(name: NameRef<'a>, wanted: Wanted, timeout: Duration) -> Self {
        Self { name, wanted, timeout, is_traced: false }
    }
}

impl Exchange {
    /// Takes over a connection.
    pub(crate) fn new(connection: Connection) -> Outcome<Self> {
        let failed = |error: byname_io::IoError| Failure::new(Code::Other, chain(&error));
        let poller = Poller::new().map_err(failed)?;
        poller.add(&connection, Token(0), Watch::READ).map_err(failed)?;
        let face = Face::new(connection, ReassemblyLimits::default());
        Ok(Self { face, poller, clock: Clock::new(), command_clock: CommandClock::new() })
    }

    /// Sends an Interest and waits for its answer.
    pub(crate) fn request(&mut self, ask: &Ask<'_>) -> Outcome<Reply> {
        let mut wire = Vec::new();
        InterestBuilder::new(ask.name)
            .can_be_prefix(ask.wanted != Wanted::Exact)
            .must_be_fresh(ask.wanted == Wanted::Fresh)
            .nonce((random_u64() as u32).to_be_bytes())
            .lifetime_ms(u64::try_from(ask.timeout.as_millis()).unwrap_or(u64::MAX))
            .encode(&mut wire);
        // Whoever does not know the field ignores it.
        let path_trace = ask.is_traced.then_some(&[][..]);
        self.send(&LpHeader { path_trace, ..LpHeader::default() }, &wire)?;
        self.wait(ask)
    }

    /// Sends a command below `/localhost/nfd`, signed with a digest: the forwarder looks at who is
    /// at the other end of the socket, not at a key.
    pub(crate) fn command(
        &mut self,
        path: &str,
        parameters: &ControlParameters,
        timeout: Duration,
    ) -> Outcome<ControlResponse> {
        let lifetime_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        let command = ControlCommand { is_local: true, path, parameters, lifetime_ms };
        let time_ms = self.command_clock.next_ms(self.clock.unix_ns());
        let wire = command
            .sign(&DigestSigner, time_ms, &mut random_u64)
            .map_err(|error| Failure::new(Code::Other, chain(&error)))?;
        let signed = byname_packet::Interest::decode(&wire)
            .map_err(|error| Failure::new(Code::Other, chain(&error)))?;
        self.send(&LpHeader::default(), &wire)?;
        match self.wait(&Ask::new(signed.name, Wanted::Exact, timeout))? {
            Reply::Data { wire, .. } => Data::decode(&wire)
                .and_then(|data| ControlResponse::decode(data.content))
                .map_err(|error| Failure::new(Code::Other, format!("{path}: {}", chain(&error)))),
            Reply::Nack(_) | Reply::Silence => Err(no_status(path)),
        }
    }

    /// Sends an Interest that is signed already, and waits for the Data of its very name.
    pub(crate) fn signed(&mut self, wire: &[u8], timeout: Duration) -> Outcome<Reply> {
        let interest = byname_packet::Interest::decode(wire)
            .map_err(|error| Failure::new(Code::Other, chain(&error)))?;
        self.send(&LpHeader::default(), wire)?;
        self.wait(&Ask::new(interest.name, Wanted::Exact, timeout))
    }

    fn send(&mut self, header: &LpHeader<'_>, wire: &[u8]) -> Outcome {
        let lost = |error: &dyn std::error::Error| Failure::new(Code::NoRoute, chain(error));
        self.face.send(header, wire, 0).map_err(|error| lost(&error))?;
        self.face.flush().map_err(|error| lost(&error))
    }

    fn wait(&mut self, ask: &Ask<'_>) -> Outcome<Reply> {
        let deadline_ns = self.clock.now_ns() + ask.timeout.as_nanos() as u64;
        let lost = |error: byname_io::IoError| Failure::new(Code::NoRoute, chain(&error));
        let mut events = Vec::new();
        loop {
            let now_ns = self.clock.now_ns();
            if now_ns >= deadline_ns {
                return Ok(Reply::Silence);
            }
            let left = Duration::from_nanos(deadline_ns - now_ns);
            self.poller.wait(&mut events, Some(left)).map_err(lost)?;
            let mut reply = None;
            let received = self.face.receive(now_ns, |received| {
                let answer = answer(&received.header, received.packet, ask.name);
                reply = answer.or(reply.take());
            });
            let status = received.map_err(lost)?;
            if let Some(reply) = reply {
                return Ok(reply);
            }
            if status.closed {
                return Err(Failure::new(Code::NoRoute, "the forwarder closed the connection"));
            }
        }
    }

    /// Fetches all segments of a status dataset of the forwarder.
    pub(crate) fn dataset(&mut self, path: &str, timeout: Duration) -> Outcome<Vec<u8>> {
        let name: Name = format!("/localhost/nfd/{path}").parse().map_err(Failure::usage)?;
        let mut payload = Vec::new();
        let mut ask = Ask::new(name.view(), Wanted::Fresh, timeout);
        let mut next: Name;
        for segment in 0.. {
            let wire = match self.request(&ask)? {
                Reply::Data { wire, .. } => wire,
                Reply::Nack(_) | Reply::Silence => return Err(no_status(path)),
            };
            let data = Data::decode(&wire)
                .map_err(|error| Failure::new(Code::Other, format!("{path}: {}", chain(&error))))?;
            if data.meta.content_type == byname_packet::ContentType::NACK {
                return Err(no_status(path));
            }
            payload.extend_from_slice(data.content);
            let last = data.meta.final_block_id.and_then(|component| component.segment());
            let at = data.name.last().and_then(|component| component.segment());
            if at != Some(segment) || last.is_none_or(|last| last <= segment) {
                break;
            }
            next = data.name.without_last(1).to_name().with_segment(segment + 1);
            ask = Ask::new(next.view(), Wanted::Exact, timeout);
        }
        Ok(payload)
    }
}

fn no_status(path: &str) -> Failure {
    Failure::new(Code::NoRoute, format!("the forwarder does not answer about {path}"))
        .hint("forwarders report their state only on their own machine")
}

fn answer(header: &LpHeader<'_>, packet: &[u8], name: NameRef<'_>) -> Option<Reply> {
    match (header.nack, Packet::decode(packet).ok()?) {
        (Some(reason), Packet::Interest(interest)) if interest.name == name => {
            Some(Reply::Nack(reason))
        }
        (None, Packet::Data(data)) if name.is_prefix_of(data.name) => {
            let trace = header.path_trace.unwrap_or_default().to_vec();
            Some(Reply::Data { wire: packet.to_vec(), trace })
        }
        _ => None,
    }
}
