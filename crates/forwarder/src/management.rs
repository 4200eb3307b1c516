//! NFD's management protocol: commands that change the tables, datasets that show them, events.
//!
//! A room of its own beside the pipeline. It reads the forwarder through a [`View`] and returns
//! [`Action`]s, which the forwarder carries out; it holds no table and sends nothing itself. So
//! neither side knows the other's inside.
//!
//! Interests below `/localhost/nfd` (and `/localhop/nfd` for routes) never reach the PIT: they are
//! answered at once on the face they came from, or kept here until what they wait for happens. Who
//! may command is decided by the face, see `authority`, and for other machines by key, see
//! `remote`; the signature that the protocol demands must be there but proves nothing on a local
//! socket. spec: NFD management wiki; answers are signed with DigestSha256, which clients accept.
//!
//! One module per module of the protocol (`rib`, `faces`, `fib`, `cs`, `strategy`, `status`), and:
//! `request` reads names and commands by the table in `fields`, `command` checks and carries them
//! out, `response` writes answers, `dataset` cuts and keeps segments, `listing` makes long datasets
//! in slices, `events` is the notification stream, `awaited` holds what the forwarder itself has
//! asked for: certificates (`remote`) and the routing daemon (`readvertise`). Everything that waits
//! is bounded in number and time.

mod action;
mod authority;
mod awaited;
mod command;
mod cs;
mod dataset;
mod events;
mod face_fields;
mod faces;
mod fib;
mod fields;
mod listing;
mod readvertise;
mod remote;
mod request;
mod response;
mod rib;
mod settings;
mod status;
mod strategy;
mod view;

use byname_packet::mgmt::{ControlResponse, status_code};
use byname_packet::{ContentType, Data, Interest, NameRef};

use crate::config::Config;
use crate::counters::DropReason;
use crate::face::{FaceFailure, FaceId, FaceRequest, RequestId};
use crate::rib::Route;
use crate::rng::Rng;
use crate::scope;
use awaited::{Awaited, Purpose};
use command::Commands;
use dataset::Published;
use events::Events;
use faces::DriverRequests;
use listing::Listings;
use readvertise::Readvertise;
use remote::Remote;
use request::{Call, CommandOutcome, module_and_verb};
use settings::Settings;

pub(crate) use action::{Action, Asker, Erasure, Turn};
pub(crate) use view::{FaceView, StoreView, Totals, View};

/// Makes the nonces of management others than those of the pipeline, from the same seed.
const SEED_OFFSET: u64 = 0x6D61_6E61_6765_6D65;

/// The state of management between requests.
pub(crate) struct Management {
    settings: Settings,
    rng: Rng,
    published: Published,
    listings: Listings,
    requests: DriverRequests,
    channels: Vec<String>,
    events: Events,
    awaited: Awaited,
    readvertise: Readvertise,
    remote: Remote,
}

impl Management {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            settings: Settings::of(config),
            rng: Rng::new(config.seed[2] ^ SEED_OFFSET),
            published: Published::default(),
            listings: Listings::default(),
            requests: DriverRequests::default(),
            channels: Vec::new(),
            events: Events::default(),
            awaited: Awaited::default(),
            readvertise: Readvertise::default(),
            remote: Remote::default(),
        }
    }

    /// Takes over who may command.
    pub(crate) fn reconfigure(&mut self, config: &Config) {
        self.settings.reconfigure(config);
    }

    /// Sets the FaceUris on which the driver accepts peers, for `faces/channels`.
    pub(crate) fn set_channels(&mut self, local_uris: Vec<String>) {
        self.channels = local_uris;
    }

    /// Handles an Interest below a management prefix.
    pub(crate) fn handle_interest(
        &mut self,
        turn: &mut Turn<'_>,
        asker: Asker,
        interest: &Interest<'_>,
    ) -> Result<(), DropReason> {
        let name = interest.name;
        if !interest.check_parameters_digest() {
            return Err(DropReason::Malformed);
        }
        let call = Call { asker, interest };
        if let Some(packet) = self.published.segment(name) {
            turn.reply(asker, packet);
            return Ok(());
        }
        let (module, verb) = module_and_verb(name);
        if command::is_command(module, verb) {
            let Self { settings, requests, remote, .. } = self;
            return match (Commands { settings, requests, remote }).handle(turn, &call) {
                CommandOutcome::Now(response) => answer(turn, &call, ContentType::BLOB, &response),
                CommandOutcome::Later => Ok(()),
            };
        }
        if scope::is_localhop(name) {
            let response = ControlResponse::new(status_code::NOT_FOUND, "no such command here");
            return answer(turn, &call, ContentType::BLOB, &response);
        }
        if (module, verb) == (b"faces", b"events") {
            return self.events.handle_request(turn, &call);
        }
        self.handle_dataset_request(turn, &call)
    }

    fn handle_dataset_request(
        &mut self,
        turn: &mut Turn<'_>,
        call: &Call<'_>,
    ) -> Result<(), DropReason> {
        let name = call.interest.name;
        let (module, verb) = module_and_verb(name);
        let dataset = match status::Dataset::find(module, verb, name) {
            Ok(dataset) => dataset,
            Err(response) => return answer(turn, call, ContentType::NACK, &response),
        };
        // The answer's name is longer. A name that ends in a segment asks for what is gone.
        let is_answerable = call.interest.can_be_prefix
            && name.last().is_some_and(|c| c.segment().is_none() && c.version().is_none());
        if !is_answerable {
            return Err(DropReason::UnansweredManagement);
        }
        if dataset.is_listing() && listing::is_long(turn.view) {
            return self.listings.join(turn, call, dataset, &self.published);
        }
        let payload = status::payload(turn, &dataset, &self.settings, &self.channels);
        let packet = self.published.publish(name, payload, turn.unix_ms());
        turn.reply(call.asker, packet.ok_or(DropReason::UnansweredManagement)?);
        Ok(())
    }

    /// Takes Data that has come for an [`Action::Express`].
    pub(crate) fn handle_answer(&mut self, turn: &mut Turn<'_>, packet: &[u8]) {
        let Ok(data) = Data::decode(packet) else { return };
        let exact = data.name.to_name();
        if self.awaited.purpose(&exact) == Some(Purpose::Readvertise) {
            self.awaited.remove(&exact);
            self.readvertise.handle_answer(&exact, &data, turn.now_ns, &mut self.rng);
        } else {
            self.remote.handle_certificate(turn, &self.settings, &mut self.awaited, &data);
        }
    }

    /// Goes on with one command whose certificate has come; false if there is none.
    pub(crate) fn handle_next_command(&mut self, turn: &mut Turn<'_>) -> bool {
        self.remote.judge_next(turn, &self.settings)
    }

    /// Answers an erasure that has removed `count` packets and left more, or not.
    pub(crate) fn handle_erased(
        turn: &mut Turn<'_>,
        erasure: Erasure,
        count: usize,
        has_more: bool,
    ) {
        cs::erased(turn, erasure, count, has_more);
    }

    /// Does what is due because time passed or tables changed.
    pub(crate) fn handle_timeout(&mut self, turn: &mut Turn<'_>) {
        self.events.handle_timeout(turn);
        self.listings.handle_timeout(turn, &mut self.published);
        self.awaited.expire(turn.now_ns);
        self.remote.handle_timeout(turn, &mut self.awaited, &mut self.rng);
        self.readvertise.handle_timeout(turn, &mut self.awaited, &mut self.rng);
    }

    /// Time at which [`Management::handle_timeout`] has something to do.
    pub(crate) fn poll_timeout(&self) -> Option<u64> {
        let Self { listings, events, readvertise, remote, .. } = self;
        [listings.due_ns(), events.due_ns(), readvertise.due_ns(), remote.due_ns()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Returns whether Data is awaited that was asked for with [`Action::Express`].
    pub(crate) fn awaits_answers(&self) -> bool {
        !self.awaited.is_empty()
    }

    /// The next request to the driver.
    pub(crate) fn poll_request(&mut self) -> Option<(RequestId, FaceRequest)> {
        self.requests.poll()
    }

    /// Takes the driver's report on a request.
    pub(crate) fn complete_request(
        &mut self,
        turn: &mut Turn<'_>,
        id: RequestId,
        outcome: Result<FaceId, FaceFailure>,
    ) {
        self.requests.complete(turn, id, outcome);
    }

    /// Notes that something has happened to a face: a kind of `face_event`.
    pub(crate) fn on_face_event(&mut self, kind: u64, face: FaceView<'_>) {
        self.events.note(kind, face);
    }

    pub(crate) fn on_route_added(&mut self, prefix: NameRef<'_>, route: &Route) {
        self.readvertise.on_route_added(prefix, route);
    }

    /// Notes that a route is gone; `left` are the routes that its prefix still has.
    pub(crate) fn on_route_removed(&mut self, prefix: NameRef<'_>, route: &Route, left: &[Route]) {
        self.readvertise.on_route_removed(prefix, route, left);
    }
}

/// Answers `call` with a response.
fn answer(
    turn: &mut Turn<'_>,
    call: &Call<'_>,
    content_type: u64,
    response: &ControlResponse,
) -> Result<(), DropReason> {
    let packet = response::encode(call.interest.name, content_type, response);
    turn.reply(call.asker, packet.ok_or(DropReason::UnansweredManagement)?);
    Ok(())
}

#[cfg(test)]
mod tests;
