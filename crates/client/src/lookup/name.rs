//! Lookup of the current version of a name.
//!
//! Where nobody answers for the name itself (Nack NoRoute), manifests may speak for it: see
//! [`fallback`](super::fallback).

use byname_packet::{Data, Name, NameRef};
use byname_transfer::discovery::{Discovered, Discovery, DiscoveryConfig, Waiting};
use byname_transfer::error::ReadError;
use byname_transfer::fetch::{FetchConfig, NackKind};
use byname_transfer::flow::Flow;
use byname_transfer::reader::{ObjectPlan, Reader};
use byname_transfer::request::{Context, Request};

use crate::engine::job::Job;
use crate::error::ClientError;
use crate::lookup::fallback::Manifests;
use crate::lookup::stage::Lookup;

/// Finds one version.
pub(crate) struct NameLookup {
    config: DiscoveryConfig,
    name: Name,
    state: LookupState,
    /// Settings for reading, if the beginning may be asked for before it is verified.
    reads: Option<FetchConfig>,
    speculative: Option<Box<Reader>>,
    outcome: Option<Result<Discovered, ReadError>>,
}

enum LookupState {
    Asking(Box<Discovery>),
    Manifests(Box<Manifests>),
    Done,
}

impl NameLookup {
    pub(crate) fn new(name: Name, config: DiscoveryConfig, now_ns: u64) -> Self {
        let discovery = Discovery::new(name.clone(), config, now_ns);
        NameLookup {
            config,
            name,
            state: LookupState::Asking(Box::new(discovery)),
            reads: None,
            speculative: None,
            outcome: None,
        }
    }

    /// Asks for the beginning of the object as soon as its description has come, although that
    /// still has to be verified.
    pub(crate) fn allow_speculation(&mut self, config: FetchConfig) {
        self.reads = Some(config);
    }

    /// The speculative reader; to be used only for the version that was found.
    pub(crate) fn take_speculative(&mut self) -> Option<Box<Reader>> {
        self.speculative.take()
    }

    /// The version that was found, once.
    pub(crate) fn poll_outcome(&mut self) -> Option<Result<Discovered, ReadError>> {
        self.outcome.take()
    }

    /// Reason for waiting, if the publisher gave one.
    pub(crate) fn poll_waiting(&mut self, now_ns: u64) -> Option<Waiting> {
        match &mut self.state {
            LookupState::Asking(discovery) => discovery.poll_waiting(now_ns),
            LookupState::Manifests(_) | LookupState::Done => None,
        }
    }

    pub(crate) fn handle_data(&mut self, data: &Data<'_>, context: &mut Context<'_>) -> bool {
        let was_taken = match &mut self.state {
            LookupState::Asking(discovery) => {
                let speculative = self.speculative.as_mut();
                discovery.handle_data(data, context)
                    || speculative.is_some_and(|reader| {
                        reader.handle_data(data, false, context, &mut |_, _| {})
                    })
            }
            LookupState::Manifests(manifests) => manifests.handle_data(data, context),
            // Its owner is not ready to read yet.
            LookupState::Done => {
                let speculative = self.speculative.as_mut();
                speculative.is_some_and(|it| it.handle_data(data, false, context, &mut |_, _| {}))
            }
        };
        self.step(context);
        was_taken
    }

    fn finish(&mut self, outcome: Result<Discovered, ReadError>) {
        self.state = LookupState::Done;
        self.outcome = Some(outcome);
    }

    /// Begins to ask speculatively when there is a description to be verified, and ends when it is
    /// refused.
    fn speculate(&mut self, context: &mut Context<'_>) {
        let (LookupState::Asking(discovery), Some(config)) = (&self.state, self.reads) else {
            return;
        };
        let plan = discovery.unverified().and_then(|it| ObjectPlan::new(&it, false).ok());
        match plan.filter(|plan| plan.root().is_some()) {
            Some(plan) if self.speculative.is_none() => {
                self.speculative = Some(Box::new(Reader::speculative(plan, config)));
            }
            Some(_) => {}
            None => self.drop_speculative(context.flow),
        }
    }

    fn drop_speculative(&mut self, flow: &mut Flow) {
        if let Some(mut reader) = self.speculative.take() {
            reader.abandon(flow);
        }
    }

    fn step(&mut self, context: &mut Context<'_>) {
        match &mut self.state {
            LookupState::Asking(discovery) => match discovery.poll_outcome() {
                None => self.speculate(context),
                Some(Err(error @ ReadError::NoRoute { .. })) => {
                    let manifests = Manifests::new(&self.name, self.config, error, context.now_ns);
                    self.state = LookupState::Manifests(Box::new(manifests));
                }
                Some(outcome) => {
                    if outcome.is_err() {
                        self.drop_speculative(context.flow);
                    }
                    self.finish(outcome);
                }
            },
            LookupState::Manifests(manifests) => {
                if let Some(outcome) = manifests.step(&self.name) {
                    manifests.abandon(context.flow);
                    self.finish(outcome);
                }
            }
            LookupState::Done => {}
        }
    }
}

impl Lookup for NameLookup {
    fn handle_nack(&mut self, name: NameRef<'_>, kind: NackKind, context: &mut Context<'_>) {
        if let Some(reader) = &mut self.speculative {
            reader.handle_nack(name, kind, context);
        }
        match &mut self.state {
            LookupState::Asking(discovery) => discovery.handle_nack(name, kind, context),
            LookupState::Manifests(manifests) => manifests.handle_nack(name, kind, context),
            LookupState::Done => {}
        }
        self.step(context);
    }

    fn handle_timeout(&mut self, context: &mut Context<'_>) {
        if let Some(reader) = &mut self.speculative {
            reader.handle_timeout(context);
        }
        match &mut self.state {
            LookupState::Asking(discovery) => discovery.handle_timeout(context),
            LookupState::Manifests(manifests) => manifests.handle_timeout(context),
            LookupState::Done => {}
        }
        self.step(context);
    }

    fn poll_request(&mut self, context: &mut Context<'_>) -> Option<Request> {
        match &mut self.state {
            LookupState::Asking(discovery) => {
                let request = discovery.poll_request(context);
                request.or_else(|| self.speculative.as_mut()?.poll_request(context))
            }
            LookupState::Manifests(manifests) => manifests.poll_request(context),
            LookupState::Done => None,
        }
    }

    fn poll_deadline(&mut self, flow: &Flow) -> Option<u64> {
        match &mut self.state {
            LookupState::Asking(discovery) => {
                let speculative =
                    self.speculative.as_mut().and_then(|reader| reader.poll_deadline(flow));
                discovery.poll_deadline(flow).into_iter().chain(speculative).min()
            }
            LookupState::Manifests(manifests) => manifests.poll_deadline(flow),
            LookupState::Done => None,
        }
    }

    fn abandon(&mut self, flow: &mut Flow) {
        self.drop_speculative(flow);
        match &mut self.state {
            LookupState::Asking(discovery) => discovery.abandon(flow),
            LookupState::Manifests(manifests) => manifests.abandon(flow),
            LookupState::Done => {}
        }
    }
}

/// Lookup of one name, as a job.
pub(crate) struct LookupJob {
    lookup: NameLookup,
    outcome: Option<Result<Discovered, ReadError>>,
}

impl LookupJob {
    pub(crate) fn new(name: Name, config: DiscoveryConfig, now_ns: u64) -> Self {
        LookupJob { lookup: NameLookup::new(name, config, now_ns), outcome: None }
    }

    pub(crate) fn into_outcome(self) -> Result<Discovered, ClientError> {
        let outcome = self.outcome.expect("the driver hands out jobs that are done");
        outcome.map_err(ClientError::from)
    }
}

impl Job for LookupJob {
    fn handle_data(&mut self, data: &Data<'_>, _: bool, context: &mut Context<'_>) -> bool {
        let was_taken = self.lookup.handle_data(data, context);
        self.outcome = self.outcome.take().or_else(|| self.lookup.poll_outcome());
        was_taken
    }

    fn handle_nack(&mut self, name: NameRef<'_>, kind: NackKind, context: &mut Context<'_>) {
        self.lookup.handle_nack(name, kind, context);
        self.outcome = self.outcome.take().or_else(|| self.lookup.poll_outcome());
    }

    fn handle_timeout(&mut self, context: &mut Context<'_>) {
        self.lookup.handle_timeout(context);
        self.outcome = self.outcome.take().or_else(|| self.lookup.poll_outcome());
    }

    fn poll_request(&mut self, context: &mut Context<'_>) -> Option<Request> {
        self.lookup.poll_request(context)
    }

    fn poll_deadline(&mut self, flow: &Flow) -> Option<u64> {
        self.lookup.poll_deadline(flow)
    }

    fn is_done(&self) -> bool {
        self.outcome.is_some()
    }

    fn abandon(&mut self, flow: &mut Flow) {
        self.lookup.abandon(flow);
    }
}
