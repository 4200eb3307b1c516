//! Reads one directory: its description, then its listing.

use byname_packet::{Data, Name, NameRef};
use byname_security::trust::Trusted;
use byname_transfer::discovery::{Discovered, Discovery, DiscoveryConfig};
use byname_transfer::error::{ProtocolProblem, ReadError};
use byname_transfer::fetch::NackKind;
use byname_transfer::flow::Flow;
use byname_transfer::reader::{ObjectPlan, Reader, Selection};
use byname_transfer::request::{Context, Request};

use crate::error::ClientError;
use crate::file_job::VERSIONS_MAX;
use crate::job::{HasReader, Job, Stage};
use crate::listing::{LISTING_BYTES_MAX, Listing};

struct Reading {
    reader: Reader,
    discovered: Discovered,
    payload: Vec<u8>,
    is_too_large: bool,
}

impl HasReader for Reading {
    fn reader(&mut self) -> &mut Reader {
        &mut self.reader
    }
}

type State = Stage<Reading>;

/// The job; done when it has an outcome.
pub(crate) struct ListJob {
    name: Name,
    config: DiscoveryConfig,
    state: State,
    versions: u32,
    outcome: Option<Result<Listing, ClientError>>,
}

impl ListJob {
    pub(crate) fn new(name: Name, config: DiscoveryConfig, now_ns: u64) -> Self {
        let discovery = Box::new(Discovery::new(name.clone(), config, now_ns));
        let state = State::Discovering(discovery);
        ListJob { name, config, state, versions: 0, outcome: None }
    }

    pub(crate) fn into_outcome(self) -> Result<Listing, ClientError> {
        self.outcome.expect("the driver hands out jobs that are done")
    }

    fn finish(&mut self, outcome: Result<Listing, ClientError>) {
        self.state = State::Done;
        self.outcome.get_or_insert(outcome);
    }

    fn step(&mut self, context: &mut Context<'_>) {
        match &mut self.state {
            State::Done => {}
            State::Discovering(discovery) => match discovery.poll_outcome() {
                None => {}
                Some(Err(error)) => self.finish(Err(error.into())),
                Some(Ok(discovered)) => {
                    if let Err(error) = self.begin(discovered) {
                        self.finish(Err(error));
                    }
                }
            },
            State::Reading(_) => self.step_reading(context),
        }
    }

    fn begin(&mut self, discovered: Discovered) -> Result<(), ClientError> {
        let name = self.name.clone();
        if !discovered.metadata.is_directory() {
            let problem = ProtocolProblem::Kind { is_directory: false };
            return Err(ReadError::Protocol { name, problem }.into());
        }
        let plan = ObjectPlan::new(&discovered.metadata, discovered.trust == Trusted::Insecure)?;
        if let Some(bytes) = plan.size.filter(|size| *size > LISTING_BYTES_MAX) {
            return Err(ClientError::ListingTooLarge { name, bytes, max: LISTING_BYTES_MAX });
        }
        self.versions += 1;
        let reader = Reader::new(plan, Selection::All, self.config.fetch);
        let reading = Reading { reader, discovered, payload: Vec::new(), is_too_large: false };
        self.state = State::Reading(Box::new(reading));
        Ok(())
    }

    fn step_reading(&mut self, context: &mut Context<'_>) {
        let State::Reading(reading) = &mut self.state else { return };
        let is_finished = reading.reader.is_finished();
        let is_gone = matches!(reading.reader.failure(), Some(ReadError::VersionGone { .. }));
        let failure = if reading.is_too_large {
            let (name, bytes) = (self.name.clone(), reading.payload.len() as u64);
            Some(ClientError::ListingTooLarge { name, bytes, max: LISTING_BYTES_MAX })
        } else {
            reading.reader.failure().cloned().map(ClientError::from)
        };
        if !is_finished && failure.is_none() {
            return;
        }
        reading.reader.abandon(context.flow);
        if is_gone && self.versions < VERSIONS_MAX {
            let discovery = Discovery::new(self.name.clone(), self.config, context.now_ns);
            let discovery = Box::new(discovery);
            self.state = State::Discovering(discovery);
            return;
        }
        let state = std::mem::replace(&mut self.state, State::Done);
        let State::Reading(reading) = state else { return };
        let (name, versions) = (self.name.clone(), self.versions);
        self.finish(match failure {
            Some(_) if is_gone => Err(ClientError::KeepsChanging { name, versions }),
            Some(error) => Err(error),
            None => Listing::new(name, reading.discovered, reading.payload),
        });
    }
}

/// Puts bytes at their offset; the payload grows with what has come and not by announcements.
fn place(payload: &mut Vec<u8>, offset: u64, bytes: &[u8]) -> bool {
    let end = offset.saturating_add(bytes.len() as u64);
    if end > LISTING_BYTES_MAX {
        return false;
    }
    let (start, end) = (offset as usize, end as usize);
    if payload.len() < end {
        payload.resize(end, 0);
    }
    payload[start..end].copy_from_slice(bytes);
    true
}

impl Job for ListJob {
    fn handle_data(&mut self, data: &Data<'_>, is_marked: bool, context: &mut Context<'_>) -> bool {
        let was_taken = match &mut self.state {
            State::Discovering(discovery) => discovery.handle_data(data, context),
            State::Reading(reading) => {
                let Reading { reader, payload, is_too_large, .. } = &mut **reading;
                reader.handle_data(data, is_marked, context, &mut |offset, bytes| {
                    *is_too_large |= !place(payload, offset, bytes);
                })
            }
            State::Done => false,
        };
        self.step(context);
        was_taken
    }

    fn handle_nack(&mut self, name: NameRef<'_>, kind: NackKind, context: &mut Context<'_>) {
        self.state.handle_nack(name, kind, context);
        self.step(context);
    }

    fn handle_timeout(&mut self, context: &mut Context<'_>) {
        self.state.handle_timeout(context);
        self.step(context);
    }

    fn poll_request(&mut self, context: &mut Context<'_>) -> Option<Request> {
        self.state.poll_request(context)
    }

    fn poll_deadline(&mut self, flow: &Flow) -> Option<u64> {
        self.state.poll_deadline(flow)
    }

    fn is_done(&self) -> bool {
        self.outcome.is_some()
    }

    fn abandon(&mut self, flow: &mut Flow) {
        self.state.abandon(flow);
    }
}
