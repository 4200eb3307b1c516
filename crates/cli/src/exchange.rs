//! One Interest at a time over a connection, for `ping`, `status` and what commands a forwarder:
//! Interests of these kinds, and failures in the words of the command line.

use crate::exit::{Code, Failure, Outcome, chain};
pub(crate) use byname_face::Reply;
use byname_face::{CommandClock, ControlCommand, random_u64};
use byname_io::Connection;
use byname_packet::mgmt::{ControlParameters, ControlResponse};
use byname_packet::{Data, DigestSigner, InterestBuilder, Name, NameRef};
use std::time::Duration;

/// A face on which one request is in flight at most.
pub(crate) struct Exchange {
    exchange: byname_face::Exchange,
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
        let exchange = byname_face::Exchange::new(connection)
            .map_err(|error| Failure::new(Code::Other, chain(&error)))?;
        Ok(Self { exchange, command_clock: CommandClock::new() })
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
        self.ask(&wire, ask.is_traced, ask.timeout)
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
        let time_ms = self.command_clock.next_ms(self.exchange.unix_ns());
        let wire = command
            .sign(&DigestSigner, time_ms, &mut random_u64)
            .map_err(|error| Failure::new(Code::Other, chain(&error)))?;
        match self.ask(&wire, false, timeout)? {
            Reply::Data { wire, .. } => Data::decode(&wire)
                .and_then(|data| ControlResponse::decode(data.content))
                .map_err(|error| Failure::new(Code::Other, format!("{path}: {}", chain(&error)))),
            Reply::Nack(_) | Reply::Silence => Err(no_status(path)),
        }
    }

    fn ask(&mut self, wire: &[u8], is_traced: bool, timeout: Duration) -> Outcome<Reply> {
        let reply = self.exchange.ask_one(wire, is_traced, timeout);
        reply.map_err(|error| Failure::new(Code::NoRoute, chain(&error)))
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
