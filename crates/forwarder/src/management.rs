//! NFD's management protocol: commands that change the tables, datasets that show them, events.
//!
//! Interests below `/localhost/nfd` (and `/localhop/nfd` for routes) never reach the PIT: they are
//! answered at once on the face they came from, or kept here until what they wait for happens. Who
//! may command is decided by the face, see `authority`, and for other machines by key, see
//! `remote`; the signature that the protocol demands must be there but proves nothing on a local
//! socket. spec: NFD management wiki; answers are signed with DigestSha256, which clients accept.
//!
//! One module per module of the protocol (`rib`, `faces`, `fib`, `cs`, `strategy`, `status`), and:
//! `command` reads and checks commands by the table in `fields`, `dataset` cuts and keeps segments,
//! `listing` makes long datasets in slices, `events` is the notification stream, `internal` is the
//! face over which the forwarder itself asks: for certificates (`remote`) and the routing daemon
//! (`readvertise`). Everything that waits is bounded in number and time.

mod authority;
mod command;
mod cs;
mod dataset;
mod events;
mod faces;
mod fib;
mod fields;
mod internal;
mod listing;
mod readvertise;
mod remote;
mod rib;
mod status;
mod strategy;

use byname_packet::lp::LpHeader;
use byname_packet::mgmt::{ControlParameters, ControlResponse, status_code};
use byname_packet::{Component, ContentType, DataBuilder, DigestSigner, Interest, NameRef};

use crate::counters::DropReason;
use crate::face::FaceId;
use crate::forwarder::{Arrival, Forwarder, Tx};
use crate::pit::PitToken;
use crate::scope;
use command::{Call, Outcome};
use dataset::Published;
use events::Events;
use faces::Requests;
pub(crate) use internal::INBOX_MAX;
use internal::Internal;
use listing::Listings;
use readvertise::Readvertise;
use remote::Remote;

/// Answers stay fresh for this long, as NFD's do.
const FRESHNESS_MS: u64 = 1000;

/// Components before the module: `/localhost/nfd`.
const PREFIX_LEN: usize = 2;

/// Parameters that a refusal repeats have no more octets than this: the Data holds them in its name
/// as well.
const REPEATED_BYTES_MAX: usize = 2048;

/// What management remembers between requests.
#[derive(Debug, Default)]
pub(crate) struct Management {
    published: Published,
    listings: Listings,
    requests: Requests,
    channels: Vec<String>,
    events: Events,
    internal: Internal,
    readvertise: Readvertise,
    remote: Remote,
}

/// Where an answer goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Asker {
    face: FaceId,
    token: PitToken,
}

/// Whether an Interest of this name is answered by management.
pub(crate) fn is_for_us(name: NameRef<'_>) -> bool {
    (scope::is_localhost(name) || scope::is_localhop(name))
        && name.get(1) == Some(Component::generic(b"nfd"))
}

/// `rib`, `register` of `/localhost/nfd/rib/register/…`; other types of components match nothing.
fn module_and_verb(name: NameRef<'_>) -> (&[u8], &[u8]) {
    let generic = |index| {
        name.get(index).filter(|c| *c == Component::generic(c.value)).map_or(&b""[..], |c| c.value)
    };
    (generic(PREFIX_LEN), generic(PREFIX_LEN + 1))
}

/// What a refusal without a body of its own says: the parameters of the command. NFD says nothing,
/// and python-ndn and NDNd's tools cannot read that.
fn refused_parameters(name: NameRef<'_>, response: &ControlResponse) -> Option<Vec<u8>> {
    let is_bare = response.status_code >= status_code::BAD_REQUEST && response.body.is_empty();
    let component = name.get(PREFIX_LEN + 2).filter(|_| is_bare)?;
    if component.value.len() > REPEATED_BYTES_MAX {
        return None;
    }
    ControlParameters::decode(component.value).ok()?;
    Some(component.value.to_vec())
}

/// The Data that answers `name` with a response.
fn encode_response(
    name: NameRef<'_>,
    content_type: u64,
    response: &ControlResponse,
) -> Option<Vec<u8>> {
    let (mut content, mut packet) = (Vec::new(), Vec::new());
    match refused_parameters(name, response) {
        Some(body) => ControlResponse { body, ..response.clone() }.encode(&mut content),
        None => response.encode(&mut content),
    }
    let data = DataBuilder::new(name).content_type(content_type).freshness_ms(FRESHNESS_MS);
    data.encode(&content, &DigestSigner, &mut packet).ok()?;
    Some(packet)
}

impl Forwarder {
    pub(crate) fn on_management(
        &mut self,
        arrival: &Arrival<'_>,
        interest: &Interest<'_>,
        tx: &mut dyn Tx,
    ) -> Result<(), DropReason> {
        let name = interest.name;
        if !interest.check_parameters_digest() {
            return Err(DropReason::Malformed);
        }
        let token = PitToken::new(arrival.header.pit_token).ok_or(DropReason::ForbiddenHeader)?;
        let call =
            Call { asker: Asker { face: arrival.face, token }, interest, now_ns: arrival.now_ns };
        if let Some(packet) = self.management.published.segment(name) {
            self.reply(call.asker, &packet, tx);
            return Ok(());
        }
        let (module, verb) = module_and_verb(name);
        if command::is_command(module, verb) {
            return match self.on_command(&call) {
                Outcome::Now(response) => self.respond(call.asker, name, &response, tx),
                Outcome::Later => Ok(()),
            };
        }
        if scope::is_localhop(name) {
            let response = ControlResponse::new(status_code::NOT_FOUND, "no such command here");
            return self.respond(call.asker, name, &response, tx);
        }
        if (module, verb) == (b"faces", b"events") {
            return self.on_event_request(&call, tx);
        }
        self.on_dataset_request(&call, tx)
    }

    fn on_dataset_request(&mut self, call: &Call<'_>, tx: &mut dyn Tx) -> Result<(), DropReason> {
        let name = call.interest.name;
        let (module, verb) = module_and_verb(name);
        let dataset = match status::Dataset::find(module, verb, name) {
            Ok(dataset) => dataset,
            Err(response) => return self.refuse(call.asker, name, &response, tx),
        };
        // The answer's name is longer. A name that ends in a segment asks for what is gone.
        let is_answerable = call.interest.can_be_prefix
            && name.last().is_some_and(|c| c.segment().is_none() && c.version().is_none());
        if !is_answerable {
            return Err(DropReason::UnansweredManagement);
        }
        if dataset.is_listing() && self.is_long_listing() {
            return self.join_listing(call, dataset, tx);
        }
        let payload = self.dataset_payload(&dataset, call.now_ns);
        let packet = self.publish(name, payload, call.now_ns);
        self.reply(call.asker, &packet.ok_or(DropReason::UnansweredManagement)?, tx);
        Ok(())
    }

    /// Keeps a dataset as the next version below `name`; its first segment.
    fn publish(&mut self, name: NameRef<'_>, payload: Vec<u8>, now_ns: u64) -> Option<Vec<u8>> {
        let now_ms = self.unix_ns(now_ns) / 1_000_000;
        self.management.published.publish(name, payload, now_ms)
    }

    fn respond(
        &mut self,
        asker: Asker,
        name: NameRef<'_>,
        response: &ControlResponse,
        tx: &mut dyn Tx,
    ) -> Result<(), DropReason> {
        let packet = encode_response(name, ContentType::BLOB, response);
        self.reply(asker, &packet.ok_or(DropReason::UnansweredManagement)?, tx);
        Ok(())
    }

    /// Answers a dataset request that has no dataset.
    fn refuse(
        &mut self,
        asker: Asker,
        name: NameRef<'_>,
        response: &ControlResponse,
        tx: &mut dyn Tx,
    ) -> Result<(), DropReason> {
        let packet = encode_response(name, ContentType::NACK, response);
        self.reply(asker, &packet.ok_or(DropReason::UnansweredManagement)?, tx);
        Ok(())
    }

    fn reply(&mut self, asker: Asker, packet: &[u8], tx: &mut dyn Tx) {
        let header = LpHeader { pit_token: asker.token.get(), ..LpHeader::default() };
        self.send_data(asker.face, &header, packet, tx);
    }

    /// Time of day.
    fn unix_ns(&self, now_ns: u64) -> u64 {
        let age_ns = now_ns.saturating_sub(self.config.start_now_ns);
        self.config.start_unix_ns.saturating_add(age_ns)
    }

    /// When [`Forwarder::maintain_management`] has something to do.
    pub(crate) fn management_due_ns(&self) -> Option<u64> {
        let Management { listings, events, readvertise, remote, .. } = &self.management;
        [
            listings.due_ns(),
            events.due_ns(),
            readvertise.due_ns(),
            remote.due_ns(),
            self.internal_due_ns(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Does what management has to do because time passed or tables changed.
    pub(crate) fn maintain_management(&mut self, now_ns: u64, tx: &mut dyn Tx) {
        self.send_events(now_ns, tx);
        self.continue_listing(now_ns, tx);
        self.take_internal_answers(now_ns, tx);
        self.maintain_remote(now_ns, tx);
        self.maintain_readvertise(now_ns, tx);
    }
}

#[cfg(test)]
mod tests;
