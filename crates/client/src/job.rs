//! What the driver runs: anything that sends requests and takes answers.

use byname_packet::{Data, Name, NameRef};
use byname_transfer::discovery::{Discovered, DiscoveryConfig};
use byname_transfer::error::ReadError;
use byname_transfer::fetch::NackKind;
use byname_transfer::flow::Flow;
use byname_transfer::reader::Reader;
use byname_transfer::request::{Context, Request};

use crate::error::ClientError;
use crate::finding::Finding;

/// One task; see [`byname_transfer::request`] for the order of calls.
pub(crate) trait Job {
    /// True if the packet was meant for this job.
    fn handle_data(&mut self, data: &Data<'_>, is_marked: bool, context: &mut Context<'_>) -> bool;
    fn handle_nack(&mut self, name: NameRef<'_>, kind: NackKind, context: &mut Context<'_>);
    fn handle_timeout(&mut self, context: &mut Context<'_>);
    fn poll_request(&mut self, context: &mut Context<'_>) -> Option<Request>;
    fn poll_deadline(&mut self, flow: &Flow) -> Option<u64>;
    fn is_done(&self) -> bool;
    /// Pieces that came and were not genuine.
    fn refused_count(&mut self) -> u64 {
        0
    }
    /// Gives back to the flow what is under way; the job is not used afterwards.
    fn abandon(&mut self, flow: &mut Flow);
}

/// What a job that discovers and then reads is at; `R` is what it needs for reading.
pub(crate) enum Stage<R> {
    Discovering(Box<Finding>),
    Reading(Box<R>),
    Done,
}

/// Something that has a reader.
pub(crate) trait HasReader {
    fn reader(&mut self) -> &mut Reader;
}

impl<R: HasReader> Stage<R> {
    pub(crate) fn handle_nack(
        &mut self,
        name: NameRef<'_>,
        kind: NackKind,
        context: &mut Context<'_>,
    ) {
        match self {
            Stage::Discovering(discovery) => discovery.handle_nack(name, kind, context),
            Stage::Reading(reading) => reading.reader().handle_nack(name, kind, context),
            Stage::Done => {}
        }
    }

    pub(crate) fn handle_timeout(&mut self, context: &mut Context<'_>) {
        match self {
            Stage::Discovering(discovery) => discovery.handle_timeout(context),
            Stage::Reading(reading) => reading.reader().handle_timeout(context),
            Stage::Done => {}
        }
    }

    pub(crate) fn poll_request(&mut self, context: &mut Context<'_>) -> Option<Request> {
        match self {
            Stage::Discovering(discovery) => discovery.poll_request(context),
            Stage::Reading(reading) => reading.reader().poll_request(context),
            Stage::Done => None,
        }
    }

    pub(crate) fn poll_deadline(&mut self, flow: &Flow) -> Option<u64> {
        match self {
            Stage::Discovering(discovery) => discovery.poll_deadline(flow),
            Stage::Reading(reading) => reading.reader().poll_deadline(flow),
            Stage::Done => None,
        }
    }

    pub(crate) fn refused_count(&mut self) -> u64 {
        match self {
            Stage::Reading(reading) => reading.reader().refused_count(),
            Stage::Discovering(_) | Stage::Done => 0,
        }
    }

    pub(crate) fn abandon(&mut self, flow: &mut Flow) {
        match self {
            Stage::Discovering(discovery) => discovery.abandon(flow),
            Stage::Reading(reading) => reading.reader().abandon(flow),
            Stage::Done => {}
        }
    }
}

/// Where jobs come from and go to.
pub(crate) trait JobSource {
    type Job: Job;
    /// The next job to start, if there is one now.
    fn next_job(&mut self, now_ns: u64) -> Option<Self::Job>;
    /// A job is done.
    fn take_done(&mut self, job: Self::Job);
}

impl<S: JobSource + ?Sized> JobSource for &mut S {
    type Job = S::Job;

    fn next_job(&mut self, now_ns: u64) -> Option<S::Job> {
        (**self).next_job(now_ns)
    }

    fn take_done(&mut self, job: S::Job) {
        (**self).take_done(job);
    }
}

/// A single job as a source.
pub(crate) struct Single<J> {
    waiting: Option<J>,
    done: Option<J>,
}

impl<J: Job> Single<J> {
    pub(crate) fn new(job: J) -> Self {
        Single { waiting: Some(job), done: None }
    }

    pub(crate) fn into_done(self) -> Option<J> {
        self.done
    }
}

impl<J: Job> JobSource for Single<J> {
    type Job = J;

    fn next_job(&mut self, _now_ns: u64) -> Option<J> {
        self.waiting.take()
    }

    fn take_done(&mut self, job: J) {
        self.done = Some(job);
    }
}

/// Finds the current version of one name.
pub(crate) struct DiscoveryJob {
    discovery: Finding,
    outcome: Option<Result<Discovered, ReadError>>,
}

impl DiscoveryJob {
    pub(crate) fn new(name: Name, config: DiscoveryConfig, now_ns: u64) -> Self {
        DiscoveryJob { discovery: Finding::new(name, config, now_ns), outcome: None }
    }

    pub(crate) fn into_outcome(self) -> Result<Discovered, ClientError> {
        let outcome = self.outcome.expect("the driver hands out jobs that are done");
        outcome.map_err(ClientError::from)
    }
}

impl Job for DiscoveryJob {
    fn handle_data(&mut self, data: &Data<'_>, _: bool, context: &mut Context<'_>) -> bool {
        let was_taken = self.discovery.handle_data(data, context);
        self.outcome = self.outcome.take().or_else(|| self.discovery.poll_outcome());
        was_taken
    }

    fn handle_nack(&mut self, name: NameRef<'_>, kind: NackKind, context: &mut Context<'_>) {
        self.discovery.handle_nack(name, kind, context);
        self.outcome = self.outcome.take().or_else(|| self.discovery.poll_outcome());
    }

    fn handle_timeout(&mut self, context: &mut Context<'_>) {
        self.discovery.handle_timeout(context);
        self.outcome = self.outcome.take().or_else(|| self.discovery.poll_outcome());
    }

    fn poll_request(&mut self, context: &mut Context<'_>) -> Option<Request> {
        self.discovery.poll_request(context)
    }

    fn poll_deadline(&mut self, flow: &Flow) -> Option<u64> {
        self.discovery.poll_deadline(flow)
    }

    fn is_done(&self) -> bool {
        self.outcome.is_some()
    }

    fn abandon(&mut self, flow: &mut Flow) {
        self.discovery.abandon(flow);
    }
}
