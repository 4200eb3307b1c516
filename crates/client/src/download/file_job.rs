//! Fetches one file to its place on disk.
//!
//! Discover the version; leave if the target is the same; otherwise fill the part file, what is
//! left of an earlier run first, and rename it. When the version disappears meanwhile, everything
//! starts over with the new one: what is equal in both is found again in the part file.

use std::rc::Rc;

use byname_packet::{Data, Name, NameRef};
use byname_retry::BackOff;
use byname_security::trust::Trusted;
use byname_transfer::discovery::Discovered;
use byname_transfer::error::{ProtocolProblem, ReadError};
use byname_transfer::fetch::NackKind;
use byname_transfer::flow::Flow;
use byname_transfer::metadata::ContentRoot;
use byname_transfer::reader::{ObjectPlan, Reader};
use byname_transfer::request::{Context, Request};

use crate::config::nanoseconds;
use crate::download::context::{FileContext, attributes};
use crate::download::identical::{self, AtTarget, Comparison};
use crate::download::part_file::{PartFile, Placement, Target};
use crate::download::progress::{Event, FileOutcome, FileReport};
use crate::download::reading::Reading;
use crate::engine::job::Job;
use crate::error::ClientError;
use crate::lookup::list_job::VERSIONS_MAX;
use crate::lookup::name::NameLookup;
use crate::lookup::stage::Stage;

/// After a silence, a newer version is looked for during this part of the time-out.
const SUSPICION_DIVISOR: u64 = 4;

/// Pauses before the description is asked for again when it was of a version that is gone: a cache
/// may tell of it as long as it is fresh.
const GONE_PAUSES: BackOff = BackOff { min_ns: 50_000_000, max_ns: 800_000_000 };
/// Times one version may be announced and be gone, with nothing gained.
const GONE_MAX: u32 = 8;

type FileStage = Stage<NameLookup, Reading>;

/// A file at the target that may be this version.
struct Comparing {
    comparison: Box<Comparison>,
    plan: ObjectPlan,
    discovered: Discovered,
}

/// The job; done when it has an outcome.
pub(crate) struct FileJob<'a> {
    context: Rc<FileContext<'a>>,
    name: Name,
    target: Target,
    state: FileStage,
    versions: u32,
    last_version: Option<u64>,
    /// Times that `last_version` was gone, and the time when it is looked for again.
    gone_count: u32,
    paused_until_ns: u64,
    /// Nobody answered for `last_version`; it fails with this unless there is a newer one.
    suspected: Option<ReadError>,
    /// When enough had come last, and the bytes since.
    progressed_ns: u64,
    progressed_bytes: u64,
    /// Fetched, but not in place yet.
    whole: Option<PartFile>,
    /// The version to read, known without asking.
    resolved: Option<Box<Discovered>>,
    comparing: Option<Box<Comparing>>,
    outcome: Option<Result<FileReport, ClientError>>,
}

impl<'a> FileJob<'a> {
    pub(crate) fn new(
        context: Rc<FileContext<'a>>,
        name: Name,
        target: Target,
        now_ns: u64,
    ) -> Self {
        let mut lookup = NameLookup::new(name.clone(), context.config.discovery_to_read(), now_ns);
        // What stands there may be the same, or have much of it.
        if matches!(target.stat(), Ok(None)) {
            lookup = lookup.speculating(context.config.fetch());
        }
        FileJob {
            context,
            name,
            target,
            state: FileStage::LookingUp(Box::new(lookup)),
            versions: 0,
            last_version: None,
            gone_count: 0,
            paused_until_ns: 0,
            suspected: None,
            progressed_ns: now_ns,
            progressed_bytes: 0,
            whole: None,
            resolved: None,
            comparing: None,
            outcome: None,
        }
    }

    /// Begins with a version that is verified already; another one is looked for only if that is
    /// gone.
    pub(crate) fn with_resolved(mut self, discovered: Discovered) -> Self {
        self.state = FileStage::Done;
        self.resolved = Some(Box::new(discovered));
        self
    }

    fn begin_resolved(&mut self, context: &Context<'_>) {
        let Some(resolved) = self.resolved.take() else { return };
        self.progressed_ns = context.now_ns;
        // Something newer may have been seen since it was resolved.
        if context.versions.check(self.name.view(), resolved.version).is_err() {
            let config = self.context.config.discovery_to_read();
            let lookup = NameLookup::new(self.name.clone(), config, context.now_ns);
            self.state = FileStage::LookingUp(Box::new(lookup));
            return;
        }
        match self.begin(*resolved, &mut None) {
            Ok(None) => {}
            Ok(Some(report)) => self.finish(Ok(report)),
            Err(error) => self.finish(Err(error)),
        }
    }

    pub(crate) fn into_outcome(self) -> Result<FileReport, ClientError> {
        self.outcome.expect("the driver hands out jobs that are done")
    }

    fn finish(&mut self, outcome: Result<FileReport, ClientError>) {
        self.state = FileStage::Done;
        let path = &self.target.shown;
        match &outcome {
            Ok(report) => self.context.report(Event::FileDone { path, report }),
            Err(error) => self.context.report(Event::FileFailed { path, error }),
        }
        self.outcome.get_or_insert(outcome);
    }

    /// Goes on with whatever the last event made possible.
    fn step(&mut self, context: &mut Context<'_>) {
        match &mut self.state {
            FileStage::Done => {}
            FileStage::LookingUp(lookup) => match lookup.poll_outcome() {
                None => {
                    if let Some(waiting) = lookup.poll_waiting(context.now_ns) {
                        self.context.report(Event::Waiting { path: &self.target.shown, waiting });
                    }
                }
                Some(Err(error)) => self.finish(Err(error.into())),
                Some(Ok(discovered)) => {
                    let mut speculative = lookup.take_speculative();
                    self.progressed_ns = context.now_ns;
                    match self.begin(discovered, &mut speculative) {
                        Ok(None) => self.trust_speculative(context),
                        Ok(Some(report)) => self.finish(Ok(report)),
                        Err(error) => self.finish(Err(error)),
                    }
                    if let Some(mut unused) = speculative {
                        unused.abandon(context.flow);
                    }
                }
            },
            FileStage::Reading(_) => self.step_reading(context),
        }
    }

    /// Looks at the target, then begins to read. A report if there is nothing to do.
    fn begin(
        &mut self,
        discovered: Discovered,
        speculative: &mut Option<Box<Reader>>,
    ) -> Result<Option<FileReport>, ClientError> {
        if discovered.metadata.is_directory() {
            let problem = ProtocolProblem::Kind { is_directory: true };
            return Err(ReadError::Protocol { name: self.name.clone(), problem }.into());
        }
        let suspected = self.suspected.take();
        if let Some(error) = suspected.filter(|_| self.last_version == Some(discovered.version)) {
            return Err(error.into());
        }
        let is_insecure = discovered.trust == Trusted::Insecure;
        let plan = ObjectPlan::new(&discovered.metadata, is_insecure)?;
        match identical::look_at(&self.target, &self.context, &plan)? {
            AtTarget::Nothing => self.begin_reading(plan, discovered, speculative).map(|()| None),
            AtTarget::Kept => {
                Ok(Some(untouched(FileOutcome::Kept, &discovered, plan.size.unwrap_or(0))))
            }
            AtTarget::Candidate(comparison) => {
                self.state = FileStage::Done;
                self.comparing = Some(Box::new(Comparing { comparison, plan, discovered }));
                Ok(None)
            }
        }
    }

    /// Compares some of what stands at the target. True if there is more to compare.
    fn compare(&mut self, now_ns: u64) -> bool {
        let Some(mut comparing) = self.comparing.take() else { return false };
        let Some(is_same) = comparing.comparison.step(&self.target) else {
            self.comparing = Some(comparing);
            return true;
        };
        let Comparing { comparison, plan, discovered } = *comparing;
        self.progressed_ns = now_ns;
        if is_same {
            let size = plan.size.unwrap_or(0);
            let outcome = comparison.take_over(&self.target, &self.context, &discovered);
            self.finish(outcome.map(|outcome| untouched(outcome, &discovered, size)));
        } else if let Err(error) = self.begin_reading(plan, discovered, &mut None) {
            self.finish(Err(error));
        }
        false
    }

    fn begin_reading(
        &mut self,
        plan: ObjectPlan,
        discovered: Discovered,
        speculative: &mut Option<Box<Reader>>,
    ) -> Result<(), ClientError> {
        if self.last_version != Some(discovered.version) {
            self.versions += 1;
            self.gone_count = 0;
            self.last_version = Some(discovered.version);
        }
        let size = plan.size;
        let mut reading =
            Reading::begin(&self.target, plan, discovered, self.context.config.fetch())?;
        reading.go_on_with(speculative);
        self.context.report(Event::FileStarted { path: &self.target.shown, size });
        self.state = FileStage::Reading(Box::new(reading));
        Ok(())
    }

    /// Trusts the data requested speculatively.
    fn trust_speculative(&mut self, context: &mut Context<'_>) {
        let FileStage::Reading(reading) = &mut self.state else { return };
        reading.write(|reader, out| reader.trust(context, out));
        self.step_reading(context);
    }

    fn step_reading(&mut self, context: &mut Context<'_>) {
        let FileStage::Reading(reading) = &mut self.state else { return };
        let bytes = reading.poll_reused();
        if bytes > 0 {
            self.progressed_ns = context.now_ns;
            self.context.report(Event::Reused { bytes });
        }
        let bytes = reading.poll_fetched();
        if bytes > 0 {
            self.progressed_bytes += bytes;
            if self.progressed_bytes >= self.context.config.progress_bytes() {
                self.progressed_ns = context.now_ns;
                self.progressed_bytes = 0;
            }
            self.context.report(Event::Fetched { bytes });
        }
        while let Some(what) = reading.poll_refused() {
            let (path, what) = (&*self.target.shown, &what[..]);
            self.context.report(Event::Refused { path, what, endpoint: None });
        }
        if let Some(error) = reading.part.take_error() {
            return self.end_reading(error, context);
        }
        if let Some(error) = reading.reader.failure() {
            let error = error.clone();
            return self.on_failure(error, context);
        }
        if reading.reader.is_finished() {
            return self.complete(context);
        }
        let idle_ns = context.now_ns.saturating_sub(self.progressed_ns);
        if idle_ns >= nanoseconds(self.context.config.no_progress) {
            let after = self.context.config.no_progress;
            let name = self.name.clone();
            self.end_reading(ClientError::NoProgress { name, after }, context);
        }
    }

    /// Ends with an error; the part file stays for the next run if there is anything in it.
    fn end_reading(&mut self, error: ClientError, context: &mut Context<'_>) {
        if let FileStage::Reading(reading) = std::mem::replace(&mut self.state, FileStage::Done) {
            let Reading { mut reader, part, .. } = *reading;
            reader.abandon(context.flow);
            if reader.verified().is_none_or(|verified| verified.count() == 0) {
                part.discard();
            }
        }
        self.finish(Err(error));
    }

    fn on_failure(&mut self, error: ReadError, context: &mut Context<'_>) {
        let is_gone = matches!(error, ReadError::VersionGone { .. });
        // Some forwarders swallow the refusal of an old version, so silence may mean the same.
        let is_suspect = matches!(error, ReadError::TimeOut { .. });
        if !is_gone && !is_suspect {
            return self.end_reading(error.into(), context);
        }
        if self.versions >= VERSIONS_MAX {
            let (name, versions) = (self.name.clone(), self.versions);
            return self.end_reading(ClientError::KeepsChanging { name, versions }, context);
        }
        if let FileStage::Reading(reading) = &mut self.state {
            reading.reader.abandon(context.flow);
        }
        if is_gone {
            if self.has_gained() {
                self.gone_count = 0;
            }
            if self.gone_count >= GONE_MAX {
                return self.end_reading(error.into(), context);
            }
            // The first time, there is most likely a new one.
            let random = context.flow.jitter().next_u64();
            let pause_ns = GONE_PAUSES.pause_ns(self.gone_count, random);
            self.paused_until_ns = context.now_ns.saturating_add(pause_ns);
            self.gone_count += 1;
        }
        let mut config = self.context.config.discovery_to_read();
        if is_suspect {
            config.fetch.silence_ns /= SUSPICION_DIVISOR;
            self.suspected = Some(error);
        }
        let lookup = Box::new(NameLookup::new(self.name.clone(), config, context.now_ns));
        self.state = FileStage::LookingUp(lookup);
    }

    /// True if this reading verified anything that was not here before.
    fn has_gained(&self) -> bool {
        let FileStage::Reading(reading) = &self.state else { return false };
        let verified = reading.reader.verified().map_or(0, |verified| verified.count());
        verified > reading.reader.local_count()
    }

    fn complete(&mut self, context: &mut Context<'_>) {
        let state = std::mem::replace(&mut self.state, FileStage::Done);
        let FileStage::Reading(reading) = state else { return };
        let (fetched_bytes, reused_bytes) = (reading.fetched_bytes(), reading.reused_bytes());
        let Reading { mut reader, part, discovered, .. } = *reading;
        reader.abandon(context.flow);
        let size = reader.size().unwrap_or(fetched_bytes);
        let options = self.context.options;
        let report = FileReport {
            outcome: FileOutcome::Fetched,
            version: discovered.version,
            size,
            fetched_bytes,
            reused_bytes,
            sources: Vec::new(),
        };
        let sealed = part.seal(size, attributes(&discovered));
        if sealed.is_ok() {
            // Without its root a description proves no copy.
            let discovered = reader.settled().unwrap_or(&discovered);
            if discovered.metadata.root != ContentRoot::Pending {
                self.context.keep(part.file(), discovered);
            } else if let Some(copies) = &self.context.config.copies {
                let path = self.target.shown.clone();
                copies.postpone(self.name.clone(), discovered.version, path);
            }
        }
        if self.context.is_batched && sealed.is_ok() {
            self.whole = Some(part);
            self.outcome = Some(Ok(report));
            return;
        }
        let placement = Placement { is_exclusive: options.no_clobber, is_synced: options.sync };
        self.finish(sealed.and_then(|()| part.place(placement)).map(|()| report));
    }

    /// The whole file that the caller has to place, together with others.
    pub(crate) fn take_whole(&mut self) -> Option<PartFile> {
        self.whole.take()
    }
}

/// The report of a file that is left as it is.
fn untouched(outcome: FileOutcome, discovered: &Discovered, size: u64) -> FileReport {
    let (version, sources) = (discovered.version, Vec::new());
    FileReport { outcome, version, size, fetched_bytes: 0, reused_bytes: 0, sources }
}

impl Job for FileJob<'_> {
    fn handle_data(&mut self, data: &Data<'_>, is_marked: bool, context: &mut Context<'_>) -> bool {
        let was_taken = match &mut self.state {
            FileStage::LookingUp(lookup) => lookup.handle_data(data, context),
            FileStage::Reading(reading) => {
                reading.write(|reader, out| reader.handle_data(data, is_marked, context, out))
            }
            FileStage::Done => false,
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
        if context.now_ns < self.paused_until_ns {
            return None;
        }
        self.paused_until_ns = 0;
        self.begin_resolved(context);
        if self.compare(context.now_ns) {
            return None;
        }
        if let FileStage::Reading(reading) = &mut self.state
            && reading.reader.wants_local()
        {
            reading.look_at_local_units(context.now_ns);
            self.step(context);
        }
        if let Some(request) = self.state.poll_request(context) {
            return Some(request);
        }
        // The network has enough to do; now there is time for what came.
        let FileStage::Reading(reading) = &mut self.state else { return None };
        if !reading.reader.has_buffered_spans() {
            return None;
        }
        let now_ns = context.now_ns;
        reading.write(|reader, out| reader.settle(now_ns, out));
        self.step(context);
        self.state.poll_request(context)
    }

    fn poll_deadline(&mut self, flow: &Flow) -> Option<u64> {
        if self.comparing.is_some() || self.resolved.is_some() {
            return Some(0);
        }
        match &self.state {
            FileStage::LookingUp(_) if self.paused_until_ns > 0 => Some(self.paused_until_ns),
            FileStage::Reading(reading)
                if reading.reader.wants_local() || reading.reader.has_buffered_spans() =>
            {
                Some(0)
            }
            _ => self.state.poll_deadline(flow),
        }
    }

    fn is_done(&self) -> bool {
        self.outcome.is_some()
    }

    fn refused_count(&mut self) -> u64 {
        self.state.refused_count()
    }

    fn abandon(&mut self, flow: &mut Flow) {
        self.state.abandon(flow);
    }
}
