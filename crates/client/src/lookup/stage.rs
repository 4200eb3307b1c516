//! Stages of a job that looks up a version and then reads it.

use byname_packet::NameRef;
use byname_transfer::discovery::Discovery;
use byname_transfer::fetch::NackKind;
use byname_transfer::flow::Flow;
use byname_transfer::reader::Reader;
use byname_transfer::request::{Context, Request};

/// A lookup in progress.
pub(crate) trait Lookup {
    fn handle_nack(&mut self, name: NameRef<'_>, kind: NackKind, context: &mut Context<'_>);
    fn handle_timeout(&mut self, context: &mut Context<'_>);
    fn poll_request(&mut self, context: &mut Context<'_>) -> Option<Request>;
    fn poll_deadline(&mut self, flow: &Flow) -> Option<u64>;
    fn abandon(&mut self, flow: &mut Flow);
}

impl Lookup for Discovery {
    fn handle_nack(&mut self, name: NameRef<'_>, kind: NackKind, context: &mut Context<'_>) {
        Discovery::handle_nack(self, name, kind, context);
    }

    fn handle_timeout(&mut self, context: &mut Context<'_>) {
        Discovery::handle_timeout(self, context);
    }

    fn poll_request(&mut self, context: &mut Context<'_>) -> Option<Request> {
        Discovery::poll_request(self, context)
    }

    fn poll_deadline(&mut self, flow: &Flow) -> Option<u64> {
        Discovery::poll_deadline(self, flow)
    }

    fn abandon(&mut self, flow: &mut Flow) {
        Discovery::abandon(self, flow);
    }
}

/// Stage of a job: `L` is its lookup, `R` what it needs for reading.
pub(crate) enum Stage<L, R> {
    LookingUp(Box<L>),
    Reading(Box<R>),
    Done,
}

/// Something that has a reader.
pub(crate) trait HasReader {
    fn reader(&mut self) -> &mut Reader;
}

impl<L: Lookup, R: HasReader> Stage<L, R> {
    pub(crate) fn handle_nack(
        &mut self,
        name: NameRef<'_>,
        kind: NackKind,
        context: &mut Context<'_>,
    ) {
        match self {
            Stage::LookingUp(lookup) => lookup.handle_nack(name, kind, context),
            Stage::Reading(reading) => reading.reader().handle_nack(name, kind, context),
            Stage::Done => {}
        }
    }

    pub(crate) fn handle_timeout(&mut self, context: &mut Context<'_>) {
        match self {
            Stage::LookingUp(lookup) => lookup.handle_timeout(context),
            Stage::Reading(reading) => reading.reader().handle_timeout(context),
            Stage::Done => {}
        }
    }

    pub(crate) fn poll_request(&mut self, context: &mut Context<'_>) -> Option<Request> {
        match self {
            Stage::LookingUp(lookup) => lookup.poll_request(context),
            Stage::Reading(reading) => reading.reader().poll_request(context),
            Stage::Done => None,
        }
    }

    pub(crate) fn poll_deadline(&mut self, flow: &Flow) -> Option<u64> {
        match self {
            Stage::LookingUp(lookup) => lookup.poll_deadline(flow),
            Stage::Reading(reading) => reading.reader().poll_deadline(flow),
            Stage::Done => None,
        }
    }

    pub(crate) fn refused_by(&mut self, source: usize) -> u64 {
        match self {
            Stage::Reading(reading) => reading.reader().refused_by(source),
            Stage::LookingUp(_) | Stage::Done => 0,
        }
    }

    pub(crate) fn abandon(&mut self, flow: &mut Flow) {
        match self {
            Stage::LookingUp(lookup) => lookup.abandon(flow),
            Stage::Reading(reading) => reading.reader().abandon(flow),
            Stage::Done => {}
        }
    }
}
