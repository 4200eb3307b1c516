//! NFD's management protocol: commands that change routes, datasets that show the tables.
//!
//! Interests below `/localhost/nfd` (and `/localhop/nfd` for routes) never reach the PIT: they are
//! answered at once on the face they came from. Who may command is decided by the face, see
//! `authority`; the signature that the protocol demands must be there but proves nothing on a local
//! socket. spec: NFD management wiki; answers are signed with DigestSha256, which clients accept.

mod authority;
mod command;
mod dataset;
mod faces;

use byname_packet::lp::LpHeader;
use byname_packet::mgmt::{ControlResponse, status_code};
use byname_packet::{Component, ContentType, DataBuilder, DigestSigner, Interest, NameRef};

use crate::counters::DropReason;
use crate::forwarder::{Arrival, Forwarder, Tx};
use crate::scope;
use dataset::Published;
use faces::Requests;

/// Answers stay fresh for this long, as NFD's do.
const FRESHNESS_MS: u64 = 1000;

/// Components before the module: `/localhost/nfd`.
const PREFIX_LEN: usize = 2;

/// What management remembers between requests.
#[derive(Debug, Default)]
pub(crate) struct Management {
    published: Published,
    requests: Requests,
    channels: Vec<String>,
}

/// The Data that answers the command `name`.
fn encode_response(name: NameRef<'_>, response: &ControlResponse) -> Option<Vec<u8>> {
    let (mut content, mut packet) = (Vec::new(), Vec::new());
    response.encode(&mut content);
    let data = DataBuilder::new(name).freshness_ms(FRESHNESS_MS);
    data.encode(&content, &DigestSigner, &mut packet).ok()?;
    Some(packet)
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
        if let Some(packet) = self.management.published.segment(name) {
            self.reply(arrival, &packet, tx);
            return Ok(());
        }
        let (module, verb) = module_and_verb(name);
        if command::is_command(module, verb) {
            let response = self.on_command(arrival, interest);
            return self.respond(arrival, name, &response, tx);
        }
        if scope::is_localhop(name) {
            let response = ControlResponse::new(status_code::NOT_FOUND, "no such command here");
            return self.respond(arrival, name, &response, tx);
        }
        if let Some(payload) = self.dataset_payload(module, verb, arrival.now_ns) {
            return self.publish(arrival, interest, payload, tx);
        }
        let response = command::unknown(module);
        let mut content = Vec::new();
        response.encode(&mut content);
        let nack = DataBuilder::new(name).content_type(ContentType::NACK);
        self.reply_built(arrival, nack, &content, tx)
    }

    fn publish(
        &mut self,
        arrival: &Arrival<'_>,
        interest: &Interest<'_>,
        payload: Vec<u8>,
        tx: &mut dyn Tx,
    ) -> Result<(), DropReason> {
        // The answer's name is longer. A name that ends in a segment asks for what is gone.
        let is_answerable = interest.can_be_prefix
            && interest.name.last().is_some_and(|c| c.segment().is_none() && c.version().is_none());
        if !is_answerable {
            return Err(DropReason::UnansweredManagement);
        }
        let now_ms = self.unix_ms(arrival.now_ns);
        let first = self.management.published.publish(interest.name, payload, now_ms);
        let packet = first.ok_or(DropReason::UnansweredManagement)?;
        self.reply(arrival, &packet, tx);
        Ok(())
    }

    fn respond(
        &mut self,
        arrival: &Arrival<'_>,
        name: NameRef<'_>,
        response: &ControlResponse,
        tx: &mut dyn Tx,
    ) -> Result<(), DropReason> {
        let mut content = Vec::new();
        response.encode(&mut content);
        self.reply_built(arrival, DataBuilder::new(name), &content, tx)
    }

    fn reply_built(
        &mut self,
        arrival: &Arrival<'_>,
        data: DataBuilder<'_>,
        content: &[u8],
        tx: &mut dyn Tx,
    ) -> Result<(), DropReason> {
        let mut packet = Vec::new();
        data.freshness_ms(FRESHNESS_MS)
            .encode(content, &DigestSigner, &mut packet)
            .map_err(|_| DropReason::UnansweredManagement)?;
        self.reply(arrival, &packet, tx);
        Ok(())
    }

    fn reply(&mut self, arrival: &Arrival<'_>, packet: &[u8], tx: &mut dyn Tx) {
        let header = LpHeader { pit_token: arrival.header.pit_token, ..LpHeader::default() };
        self.send_data(arrival.face, &header, packet, tx);
    }

    fn unix_ms(&self, now_ns: u64) -> u64 {
        let age_ns = now_ns.saturating_sub(self.config.start_now_ns);
        self.config.start_unix_ns.saturating_add(age_ns) / 1_000_000
    }
}

#[cfg(test)]
mod tests;
