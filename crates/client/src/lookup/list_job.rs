//! Reads one directory: its manifest, or its plain listing if the publisher has no manifests.
//!
//! At first nobody knows which, so both are asked for at the same time. An answer about the
//! listing without a root comes from a server that is none of ours: then the listing is read at
//! once. Otherwise the manifest is waited for, and the listing is what is left when it cannot be
//! had. Either is complete or refused, so nobody on the way can hide an entry by withholding one
//! of them.

use byname_packet::{Data, Name, NameRef};
use byname_security::trust::Trusted;
use byname_transfer::discovery::{Discovered, Discovery, DiscoveryConfig, Waiting};
use byname_transfer::error::{ProtocolProblem, ReadError};
use byname_transfer::fetch::NackKind;
use byname_transfer::flow::Flow;
use byname_transfer::metadata::ContentRoot;
use byname_transfer::naming::manifest_name;
use byname_transfer::reader::{ObjectPlan, Reader, Selection};
use byname_transfer::request::{Context, Request};

use crate::engine::job::Job;
use crate::error::ClientError;
use crate::lookup::listing::{LISTING_BYTES_MAX, Listing};
use crate::lookup::stage::{HasReader, Stage};

/// Versions begun before a file or directory counts as "keeps changing".
pub(crate) const VERSIONS_MAX: u32 = 5;

/// Form of the listing requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Names are enough, or the publisher has no manifests.
    Plain,
    /// The publisher has manifests; the listing will do if this one cannot be had.
    Manifest,
    /// The publisher is not known yet.
    Either,
}

struct Reading {
    reader: Reader,
    discovered: Discovered,
    payload: Vec<u8>,
    reported_bytes: u64,
    is_too_large: bool,
}

impl HasReader for Reading {
    fn reader(&mut self) -> &mut Reader {
        &mut self.reader
    }
}

type ListStage = Stage<Discovery, Reading>;

/// The plain listing's description, asked for beside the manifest's.
enum Beside {
    Nothing,
    Asking(Box<Discovery>),
    Known(Box<Discovered>),
    Failed(ReadError),
}

/// The job; done when it has an outcome.
pub(crate) struct ListJob {
    name: Name,
    config: DiscoveryConfig,
    /// True if the manifest is what `state` is about.
    is_manifest: bool,
    state: ListStage,
    beside: Beside,
    /// The only entry whose description counts.
    about: Option<Name>,
    versions: u32,
    outcome: Option<Result<Listing, ClientError>>,
}

impl ListJob {
    pub(crate) fn new(name: Name, wanted: Wanted, config: DiscoveryConfig, now_ns: u64) -> Self {
        let is_manifest = wanted != Wanted::Plain;
        let beside = match wanted {
            Wanted::Either => {
                let plain = Discovery::new(name.clone(), config, now_ns);
                Beside::Asking(Box::new(plain))
            }
            Wanted::Plain | Wanted::Manifest => Beside::Nothing,
        };
        let (versions, outcome) = (0, None);
        let mut job = ListJob {
            name,
            config,
            is_manifest,
            state: ListStage::Done,
            beside,
            about: None,
            versions,
            outcome,
        };
        job.discover(now_ns);
        job
    }

    /// Reads the manifest of `directory` for what it says of `entry`, and for nothing else.
    pub(crate) fn manifest_for(
        entry: &Name,
        directory: Name,
        config: DiscoveryConfig,
        now_ns: u64,
    ) -> Self {
        let mut job = ListJob::new(directory, Wanted::Manifest, config, now_ns);
        job.about = Some(entry.clone());
        job.discover(now_ns);
        job
    }

    /// Bytes of the listing that came since the last call.
    pub(crate) fn poll_fetched(&mut self) -> u64 {
        let ListStage::Reading(reading) = &mut self.state else { return 0 };
        let bytes = reading.payload.len() as u64;
        bytes - std::mem::replace(&mut reading.reported_bytes, bytes)
    }

    /// Reason of the publisher to wait, once it has lasted; reported once.
    pub(crate) fn poll_waiting(&mut self, now_ns: u64) -> Option<Waiting> {
        let ListStage::LookingUp(discovery) = &mut self.state else { return None };
        discovery.poll_waiting(now_ns)
    }

    pub(crate) fn into_outcome(self) -> Result<Listing, ClientError> {
        self.outcome.expect("the driver hands out jobs that are done")
    }

    /// The outcome once it is there, once.
    pub(crate) fn take_outcome(&mut self) -> Option<Result<Listing, ClientError>> {
        self.outcome.take()
    }

    fn discover(&mut self, now_ns: u64) {
        let name = match self.is_manifest {
            true => manifest_name(self.name.view()),
            false => self.name.clone(),
        };
        let mut discovery = Discovery::new(name, self.config, now_ns);
        if let Some(about) = self.about.clone() {
            discovery = discovery.vouching_for(about);
        }
        self.state = ListStage::LookingUp(Box::new(discovery));
    }

    fn finish(&mut self, outcome: Result<Listing, ClientError>) {
        self.state = ListStage::Done;
        self.outcome.get_or_insert(outcome);
    }

    fn step(&mut self, context: &mut Context<'_>) {
        self.step_beside(context);
        match &mut self.state {
            ListStage::Done => {}
            ListStage::LookingUp(discovery) => match discovery.poll_outcome() {
                None => {}
                Some(Err(error)) => self.fail(error.into(), context),
                Some(Ok(discovered)) => {
                    self.drop_beside(context.flow);
                    if let Err(error) = self.begin(discovered) {
                        self.fail(error, context);
                    }
                }
            },
            ListStage::Reading(_) => self.step_reading(context),
        }
    }

    fn step_beside(&mut self, context: &mut Context<'_>) {
        let Beside::Asking(discovery) = &mut self.beside else { return };
        let Some(outcome) = discovery.poll_outcome() else { return };
        self.beside = match outcome {
            Ok(found) if !found.metadata.is_directory() => {
                self.state.abandon(context.flow);
                return self.finish(Err(self.not_a_directory()));
            }
            // Servers with manifests announce roots.
            Ok(found) if found.metadata.root == ContentRoot::Absent => {
                self.beside = Beside::Known(Box::new(found));
                return self.use_listing(context);
            }
            Ok(found) => Beside::Known(Box::new(found)),
            Err(error) => Beside::Failed(error),
        };
    }

    fn drop_beside(&mut self, flow: &mut Flow) {
        if let Beside::Asking(discovery) = &mut self.beside {
            discovery.abandon(flow);
        }
        self.beside = Beside::Nothing;
    }

    /// Something is wrong with the manifest or the listing: with the manifest, the listing is read.
    /// Not if the manifest came as it was signed: then it is the publisher who has to mend it.
    fn fail(&mut self, error: ClientError, context: &mut Context<'_>) {
        let is_silence = matches!(
            error,
            ClientError::Read(ReadError::NoRoute { .. } | ReadError::TimeOut { .. })
        );
        // Whoever does not answer about the one will not about the other.
        let is_final = is_silence && matches!(self.beside, Beside::Nothing);
        let is_as_signed = matches!(error, ClientError::Read(ReadError::Manifest { .. }));
        if !self.is_manifest || is_final || is_as_signed {
            return self.finish(Err(error));
        }
        tracing::debug!(%error, name = %self.name, "no manifest; the listing will do");
        self.use_listing(context);
    }

    /// Goes over to the plain listing.
    fn use_listing(&mut self, context: &mut Context<'_>) {
        self.state.abandon(context.flow);
        self.is_manifest = false;
        self.versions = 0;
        match std::mem::replace(&mut self.beside, Beside::Nothing) {
            Beside::Nothing => self.discover(context.now_ns),
            Beside::Asking(discovery) => self.state = ListStage::LookingUp(discovery),
            Beside::Failed(error) => self.finish(Err(error.into())),
            Beside::Known(found) => {
                if let Err(error) = self.begin(*found) {
                    self.finish(Err(error));
                }
            }
        }
    }

    fn not_a_directory(&self) -> ClientError {
        let problem = ProtocolProblem::Kind { is_directory: false };
        ReadError::Protocol { name: self.name.clone(), problem }.into()
    }

    fn begin(&mut self, discovered: Discovered) -> Result<(), ClientError> {
        if !discovered.metadata.is_directory() {
            return Err(self.not_a_directory());
        }
        let plan = ObjectPlan::new(&discovered.metadata, discovered.trust == Trusted::Insecure)?;
        if let Some(bytes) = plan.size.filter(|size| *size > LISTING_BYTES_MAX) {
            let name = self.name.clone();
            return Err(ClientError::ListingTooLarge { name, bytes, max: LISTING_BYTES_MAX });
        }
        self.versions += 1;
        let reader = Reader::new(plan, Selection::All, self.config.fetch.begun());
        let (payload, reported_bytes, is_too_large) = (Vec::new(), 0, false);
        let reading = Reading { reader, discovered, payload, reported_bytes, is_too_large };
        self.state = ListStage::Reading(Box::new(reading));
        Ok(())
    }

    fn step_reading(&mut self, context: &mut Context<'_>) {
        let ListStage::Reading(reading) = &mut self.state else { return };
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
            return self.discover(context.now_ns);
        }
        let state = std::mem::replace(&mut self.state, ListStage::Done);
        let ListStage::Reading(reading) = state else { return };
        let (name, versions) = (self.name.clone(), self.versions);
        let listing = match failure {
            Some(_) if is_gone => Err(ClientError::KeepsChanging { name, versions }),
            Some(error) => Err(error),
            None if self.is_manifest => {
                let Reading { discovered, payload, .. } = *reading;
                let (about, versions) = (self.about.as_ref(), &mut *context.versions);
                Listing::manifest(name, discovered, payload, about, versions)
            }
            None => Listing::plain(name, reading.discovered, reading.payload),
        };
        match listing {
            Ok(listing) => self.finish(Ok(listing)),
            Err(error) => self.fail(error, context),
        }
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
        let mut was_taken = match &mut self.state {
            ListStage::LookingUp(discovery) => discovery.handle_data(data, context),
            ListStage::Reading(reading) => {
                let Reading { reader, payload, is_too_large, .. } = &mut **reading;
                reader.handle_data(data, is_marked, context, &mut |offset, bytes| {
                    *is_too_large |= !place(payload, offset, bytes);
                })
            }
            ListStage::Done => false,
        };
        if let Beside::Asking(discovery) = &mut self.beside {
            was_taken |= discovery.handle_data(data, context);
        }
        self.step(context);
        was_taken
    }

    fn handle_nack(&mut self, name: NameRef<'_>, kind: NackKind, context: &mut Context<'_>) {
        self.state.handle_nack(name, kind, context);
        if let Beside::Asking(discovery) = &mut self.beside {
            discovery.handle_nack(name, kind, context);
        }
        self.step(context);
    }

    fn handle_timeout(&mut self, context: &mut Context<'_>) {
        self.state.handle_timeout(context);
        if let Beside::Asking(discovery) = &mut self.beside {
            discovery.handle_timeout(context);
        }
        self.step(context);
    }

    fn poll_request(&mut self, context: &mut Context<'_>) -> Option<Request> {
        if let Beside::Asking(discovery) = &mut self.beside
            && let Some(request) = discovery.poll_request(context)
        {
            return Some(request);
        }
        self.state.poll_request(context)
    }

    fn poll_deadline(&mut self, flow: &Flow) -> Option<u64> {
        let beside = match &mut self.beside {
            Beside::Asking(discovery) => discovery.poll_deadline(flow),
            _ => None,
        };
        [beside, self.state.poll_deadline(flow)].into_iter().flatten().min()
    }

    fn is_done(&self) -> bool {
        self.outcome.is_some()
    }

    fn refused_by(&mut self, source: usize) -> u64 {
        self.state.refused_by(source)
    }

    fn abandon(&mut self, flow: &mut Flow) {
        self.state.abandon(flow);
        self.drop_beside(flow);
    }
}
