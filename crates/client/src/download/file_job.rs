//! Fetches one file to its place on disk.
//!
//! Discover the version; leave if the target is the same; otherwise fill the part file, what is
//! left of an earlier run first, and rename it. When the version disappears meanwhile, everything
//! starts over with the new one: what is equal in both is found again in the part file.
//!
//! [`at_disk`] has the steps at the local disk, [`failure`] what comes of an error.

mod at_disk;
mod failure;

use std::rc::Rc;

use byname_packet::{Data, Name, NameRef};
use byname_security::trust::Trusted;
use byname_transfer::discovery::Discovered;
use byname_transfer::error::{ProtocolProblem, ReadError};
use byname_transfer::fetch::NackKind;
use byname_transfer::flow::Flow;
use byname_transfer::reader::ObjectPlan;
use byname_transfer::request::{Context, Request};

use crate::config::nanoseconds;
use crate::download::context::FileContext;
use crate::download::disk_queue::DiskQueue;
use crate::download::file_job::at_disk::{DiskStage, Found};
use crate::download::identical::Expected;
use crate::download::part_file::{PartFile, Target};
use crate::download::progress::{Event, FileReport};
use crate::download::reading::Reading;
use crate::engine::job::Job;
use crate::error::ClientError;
use crate::lookup::name::NameLookup;
use crate::lookup::stage::Stage;

/// Pause between two looks of a job that may not ask because the disk is behind: deadlines of what
/// it wants to ask for have come, and are of no use.
const BLOCKED_PAUSE_NS: u64 = 5_000_000;

type FileStage = Stage<NameLookup, Reading>;

/// The job; done when it has an outcome.
pub(crate) struct FileJob<'a> {
    context: Rc<FileContext<'a>>,
    name: Name,
    target: Target,
    disk: DiskQueue,
    /// The part that waits for packets. A lookup stays until the file is open, for the sake of what
    /// was asked for speculatively.
    state: FileStage,
    /// The part that waits for the disk.
    disk_stage: Option<DiskStage>,
    versions: u32,
    last_version: Option<u64>,
    /// Times that `last_version` was gone, and the time when it is looked for again.
    gone_count: u32,
    /// Lookups in a row that ended in an outage.
    lookups: u32,
    paused_until_ns: u64,
    /// The disk was behind when this job was last asked; the next time.
    blocked_until_ns: u64,
    /// The memory knows the version of what stands at the target.
    is_copy_known: bool,
    /// Nobody answered for `last_version`; it fails with this unless there is a newer one.
    suspected: Option<ReadError>,
    /// When enough had come last, and the bytes since.
    progressed_ns: u64,
    progressed_bytes: u64,
    /// Fetched, but not in place yet.
    whole: Option<PartFile>,
    /// What a manifest says of the file, which may stand there already.
    expected: Option<Expected>,
    /// The version to read, known without asking.
    resolved: Option<Box<Discovered>>,
    outcome: Option<Result<FileReport, ClientError>>,
}

impl<'a> FileJob<'a> {
    pub(crate) fn new(
        context: Rc<FileContext<'a>>,
        name: Name,
        target: Target,
        now_ns: u64,
    ) -> Self {
        let disk = context.disk.queue(&target.shown);
        FileJob {
            context,
            name,
            target,
            disk,
            state: FileStage::Done,
            disk_stage: Some(DiskStage::NotBegun),
            versions: 0,
            last_version: None,
            gone_count: 0,
            lookups: 0,
            paused_until_ns: 0,
            blocked_until_ns: 0,
            is_copy_known: false,
            suspected: None,
            progressed_ns: now_ns,
            progressed_bytes: 0,
            whole: None,
            expected: None,
            resolved: None,
            outcome: None,
        }
    }

    /// Begins with a version that is verified already; another one is looked for only if that is
    /// gone.
    pub(crate) fn with_resolved(mut self, discovered: Discovered) -> Self {
        self.resolved = Some(Box::new(discovered));
        self
    }

    /// Leaves the file alone if this stands there already.
    pub(crate) fn unless_at_target(mut self, expected: Option<Expected>) -> Self {
        self.expected = expected;
        self
    }

    /// Begins to read what was resolved, or to look the name up.
    fn begin_packets(&mut self, context: &mut Context<'_>) {
        self.progressed_ns = context.now_ns;
        let resolved = self.resolved.take();
        // Something newer may have been seen since it was resolved.
        let is_current = |resolved: &Discovered| {
            context.versions.check(self.name.view(), resolved.version).is_ok()
        };
        match resolved.filter(|resolved| is_current(resolved)) {
            Some(resolved) => self.begin(*resolved, context),
            None => {
                let config = self.context.config.discovery_to_read();
                let lookup = NameLookup::new(self.name.clone(), config, context.now_ns);
                self.state = FileStage::LookingUp(Box::new(lookup));
            }
        }
    }

    pub(crate) fn into_outcome(self) -> Result<FileReport, ClientError> {
        self.outcome.expect("the driver hands out jobs that are done")
    }

    fn finish(&mut self, outcome: Result<FileReport, ClientError>) {
        self.state = FileStage::Done;
        self.disk_stage = None;
        let path = &self.target.shown;
        match &outcome {
            Ok(report) => self.context.report(Event::FileDone { path, report }),
            Err(error) => self.context.report(Event::FileFailed { path, error }),
        }
        self.outcome.get_or_insert(outcome);
    }

    /// Goes on with whatever the last event made possible.
    fn step(&mut self, context: &mut Context<'_>) {
        self.step_packets(context);
        while self.step_disk(context) {
            self.step_packets(context);
        }
    }

    fn step_packets(&mut self, context: &mut Context<'_>) {
        match &mut self.state {
            FileStage::Done => {}
            FileStage::LookingUp(lookup) => match lookup.poll_outcome() {
                None => {
                    if let Some(waiting) = lookup.poll_waiting(context.now_ns) {
                        self.context.report(Event::Waiting { path: &self.target.shown, waiting });
                    }
                }
                Some(Err(error)) => self.end_lookup(error.into(), context),
                Some(Ok(discovered)) => {
                    self.context.begin();
                    self.lookups = 0;
                    self.progressed_ns = context.now_ns;
                    self.begin(discovered, context);
                }
            },
            FileStage::Reading(_) => self.step_reading(context),
        }
    }

    /// Nobody has answered, or what came is no good. During an outage the name is looked up again.
    fn end_lookup(&mut self, error: ClientError, context: &mut Context<'_>) {
        let again_ns = self.context.again_ns(&error, self.progressed_ns, self.lookups, context);
        let Some(again_ns) = again_ns.filter(|_| self.suspected.is_none()) else {
            return self.finish(Err(error));
        };
        self.lookups += 1;
        self.state.abandon(context.flow);
        let config = self.context.config.discovery_to_read();
        let lookup = NameLookup::new(self.name.clone(), config, again_ns);
        self.state = FileStage::LookingUp(Box::new(lookup));
    }

    /// Begins with a version: by a look at the target.
    fn begin(&mut self, discovered: Discovered, context: &mut Context<'_>) {
        match self.plan(&discovered) {
            Ok(plan) => self.look_at_target(Box::new(Found { plan, discovered })),
            Err(error) => self.fail(error, context),
        }
    }

    /// Ends before anything is read.
    fn fail(&mut self, error: ClientError, context: &mut Context<'_>) {
        self.state.abandon(context.flow);
        self.finish(Err(error));
    }

    fn plan(&mut self, discovered: &Discovered) -> Result<ObjectPlan, ClientError> {
        if discovered.metadata.is_directory() {
            let problem = ProtocolProblem::Kind { is_directory: true };
            return Err(ReadError::Protocol { name: self.name.clone(), problem }.into());
        }
        let suspected = self.suspected.take();
        if let Some(error) = suspected.filter(|_| self.last_version == Some(discovered.version)) {
            return Err(error.into());
        }
        let is_insecure = discovered.trust == Trusted::Insecure;
        Ok(ObjectPlan::new(&discovered.metadata, is_insecure)?)
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
        while let Some((what, source)) = reading.poll_refused() {
            let (path, what) = (&*self.target.shown, &what[..]);
            let endpoint = Some(self.context.source_names.name(source));
            self.context.report(Event::Refused { path, what, endpoint });
        }
        if let Some(error) = reading.writer.take_error() {
            return self.end_reading(error, context);
        }
        if let Some(error) = reading.reader.failure() {
            let error = error.clone();
            return self.on_failure(error, context);
        }
        if reading.is_finished() {
            return self.complete(context);
        }
        if self.blocked_until_ns > 0 {
            // It is the disk that makes no progress.
            self.progressed_ns = context.now_ns;
        }
        let idle_ns = context.now_ns.saturating_sub(self.progressed_ns);
        if idle_ns >= nanoseconds(self.context.config.no_progress) {
            let after = self.context.config.no_progress;
            let name = self.name.clone();
            self.end_reading(ClientError::NoProgress { name, after }, context);
        }
    }

    /// The whole file that the caller has to place, together with others.
    pub(crate) fn take_whole(&mut self) -> Option<PartFile> {
        self.whole.take()
    }

    /// Checks what is on the disk, and says whether content may be asked for.
    fn prepare_request(&mut self, context: &mut Context<'_>) -> bool {
        let FileStage::Reading(reading) = &mut self.state else { return true };
        if reading.wants_local() {
            if let Err(error) = reading.check_local_units(context.now_ns) {
                self.end_reading(error, context);
                return false;
            }
            self.step(context);
        }
        let FileStage::Reading(reading) = &self.state else { return true };
        let has_room = reading.writer.has_room();
        if self.blocked_until_ns > 0 {
            self.progressed_ns = context.now_ns;
        }
        let blocked_until_ns = context.now_ns.saturating_add(BLOCKED_PAUSE_NS);
        self.blocked_until_ns = if has_room { 0 } else { blocked_until_ns };
        has_room
    }
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
        if !std::mem::replace(&mut self.is_copy_known, true) {
            self.context.learn(&self.target, self.name.view(), context);
        }
        self.step(context);
        if self.prepare_request(context)
            && let Some(request) = self.state.poll_request(context)
        {
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
        if self.blocked_until_ns > 0 { None } else { self.state.poll_request(context) }
    }

    fn poll_deadline(&mut self, flow: &Flow) -> Option<u64> {
        if self.disk_stage.as_mut().is_some_and(DiskStage::is_ready) {
            return Some(0);
        }
        if let FileStage::Reading(reading) = &mut self.state {
            if reading.wants_local() || reading.reader.has_buffered_spans() {
                return Some(0);
            }
            let at_ns = reading.reader.poll_deadline(flow)?;
            return Some(at_ns.max(self.blocked_until_ns));
        }
        match &self.state {
            FileStage::LookingUp(_) if self.paused_until_ns > 0 => Some(self.paused_until_ns),
            _ => self.state.poll_deadline(flow),
        }
    }

    fn is_done(&self) -> bool {
        self.outcome.is_some()
    }

    fn refused_by(&mut self, source: usize) -> u64 {
        self.state.refused_by(source)
    }

    fn abandon(&mut self, flow: &mut Flow) {
        self.state.abandon(flow);
    }
}
