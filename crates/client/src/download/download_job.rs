//! Download of one file: from all sources side by side if that is worth it, then by a
//! [`FileJob`], then the packets of late copies.

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use byname_packet::{Data, Name, NameRef};
use byname_security::trust::Trusted;
use byname_transfer::discovery::{Discovered, DiscoveryConfig};
use byname_transfer::error::ReadError;
use byname_transfer::fetch::NackKind;
use byname_transfer::flow::Flow;
use byname_transfer::reader::ObjectPlan;
use byname_transfer::request::{Context, Request};

use crate::config::ClientConfig;
use crate::download::context::{DownloadOptions, FileContext};
use crate::download::disk_queue::{DiskAccess, DiskQueue, DiskTask};
use crate::download::file_job::FileJob;
use crate::download::late::LateCopies;
use crate::download::part_file::Target;
use crate::download::progress::{FileReport, NoProgress, Progress};
use crate::download::striped::{self, Remainder, StripeRunner, StripedPart, Striping};
use crate::engine::job::Job;
use crate::engine::source_names::SourceNames;
use crate::error::ClientError;
use crate::lookup::name::LookupJob;

/// Needs of a download besides its name and target.
pub(crate) struct DownloadContext<'a> {
    pub(crate) config: ClientConfig,
    pub(crate) options: DownloadOptions,
    pub(crate) events: Box<dyn Progress + 'a>,
    pub(crate) source_names: Arc<SourceNames>,
    /// Runs several sources side by side, where there are several.
    pub(crate) stripes: Option<Rc<dyn StripeRunner>>,
    pub(crate) disk: DiskAccess,
}

enum DownloadStage<'a> {
    /// The target's directory, and whether nothing stands there.
    Opening(DiskTask<(Target, bool)>),
    LookingUp(Box<LookupJob>),
    /// The part file for several sources, if it is a new one.
    OpeningPart(DiskTask<Option<StripedPart>>, Box<(ObjectPlan, Discovered)>),
    Striping(Box<Striping>, Box<Discovered>),
    Fetching(Box<FileJob<'a>>),
    KeepingLate(Box<LateCopies>, Result<FileReport, ClientError>),
    Done,
}

/// The job; done when it has an outcome.
pub(crate) struct DownloadJob<'a> {
    name: Name,
    /// `None` before it is opened.
    target: Option<Target>,
    disk: DiskQueue,
    context: DownloadContext<'a>,
    stage: DownloadStage<'a>,
    report: striped::StripeReport,
    outcome: Option<Result<FileReport, ClientError>>,
}

impl<'a> DownloadJob<'a> {
    pub(crate) fn new(name: Name, path: PathBuf, context: DownloadContext<'a>) -> Self {
        let (disk, local) = (context.disk.queue(&path), context.config.disk.clone());
        let opening = disk.submit(move || {
            let target = Target::at(&path, &local)?;
            let is_new = matches!(target.stat(), Ok(None));
            Ok((target, is_new))
        });
        DownloadJob {
            name,
            target: None,
            disk,
            context,
            stage: DownloadStage::Opening(opening),
            report: striped::StripeReport::default(),
            outcome: None,
        }
    }

    /// The target is there: begins with the network.
    fn begin(&mut self, (target, is_new): (Target, bool), now_ns: u64) {
        self.target = Some(target);
        let config = &self.context.config;
        if self.context.stripes.is_some() && config.bytes_per_second.is_none() && is_new {
            // Whatever has to be waited for is reported by the download that follows.
            let config = DiscoveryConfig { being_written_ns: 0, ..config.discovery_to_read() };
            let lookup = LookupJob::new(self.name.clone(), config, now_ns);
            self.stage = DownloadStage::LookingUp(Box::new(lookup));
        } else {
            self.fetch(None, now_ns);
        }
    }

    pub(crate) fn into_outcome(self) -> Result<FileReport, ClientError> {
        self.outcome.unwrap_or(Err(ClientError::Interrupted))
    }

    fn fetch(&mut self, resolved: Option<Discovered>, now_ns: u64) {
        let Some(target) = self.target.clone() else { return };
        let DownloadContext { config, options, events, source_names, disk, .. } = &mut self.context;
        let events = std::mem::replace(events, Box::new(NoProgress));
        let events = Remainder::new(events, self.report.unit_bytes());
        let (names, disk) = (Arc::clone(source_names), disk.clone());
        let context = Rc::new(FileContext::new(config, *options, Box::new(events), disk, names));
        let mut job = FileJob::new(context, self.name.clone(), target, now_ns);
        if let Some(resolved) = resolved {
            job = job.with_resolved(resolved);
        }
        self.stage = DownloadStage::Fetching(Box::new(job));
    }

    /// Begins to fetch from several sources, if the file is worth it.
    fn stripe(&mut self, found: Result<Discovered, ClientError>, now_ns: u64) {
        let found = match found {
            Err(ClientError::Read(ReadError::BeingWritten { .. })) => {
                return self.fetch(None, now_ns);
            }
            Err(error) => return self.finish(Err(error)),
            Ok(found) => found,
        };
        let plan = ObjectPlan::new(&found.metadata, found.trust == Trusted::Insecure).ok();
        let plan = plan.filter(|plan| !found.metadata.is_directory() && striped::is_worth_it(plan));
        let (Some(plan), Some(target)) = (plan, self.target.clone()) else {
            return self.fetch(None, now_ns);
        };
        let size = plan.size.unwrap_or(0);
        let task = self.disk.submit(move || StripedPart::open(&target, size));
        self.stage = DownloadStage::OpeningPart(task, Box::new((plan, found)));
    }

    /// The part file is open, unless an earlier run has left something in it.
    fn stripe_to(
        &mut self,
        part: Option<StripedPart>,
        (plan, found): (ObjectPlan, Discovered),
        now_ns: u64,
    ) {
        let (Some(part), Some(runner)) = (part, &self.context.stripes) else {
            return self.fetch(Some(found), now_ns);
        };
        let needs = (&self.context.config, &**runner);
        let striping = Striping::begin(plan, part, self.disk.clone(), needs);
        self.stage = DownloadStage::Striping(Box::new(striping), Box::new(found));
    }

    fn finish(&mut self, outcome: Result<FileReport, ClientError>) {
        self.stage = DownloadStage::Done;
        self.outcome = Some(outcome);
    }

    fn is_stage_over(&mut self) -> bool {
        match &mut self.stage {
            DownloadStage::Opening(task) => task.is_ready(),
            DownloadStage::OpeningPart(task, _) => task.is_ready(),
            DownloadStage::LookingUp(job) => job.is_done(),
            DownloadStage::Striping(striping, _) => striping.is_done(),
            DownloadStage::Fetching(job) => job.is_done(),
            DownloadStage::KeepingLate(job, _) => job.is_done(),
            DownloadStage::Done => false,
        }
    }

    /// Goes over to the next stages when one is done.
    fn step(&mut self, context: &mut Context<'_>) {
        if let DownloadStage::Striping(striping, _) = &mut self.stage {
            striping.report_to(&mut *self.context.events);
        }
        while self.is_stage_over() {
            self.abandon(context.flow);
            self.end_stage(context);
        }
    }

    fn end_stage(&mut self, context: &mut Context<'_>) {
        match std::mem::replace(&mut self.stage, DownloadStage::Done) {
            DownloadStage::Opening(mut task) => match task.take() {
                Some(Ok(opened)) => self.begin(opened, context.now_ns),
                Some(Err(error)) => self.finish(Err(error)),
                None => {}
            },
            DownloadStage::OpeningPart(mut task, found) => match task.take() {
                Some(Ok(part)) => self.stripe_to(part, *found, context.now_ns),
                Some(Err(error)) => self.finish(Err(error)),
                None => {}
            },
            DownloadStage::LookingUp(job) => self.stripe(job.into_outcome(), context.now_ns),
            DownloadStage::Striping(striping, found) => {
                self.report = striping.into_report();
                self.fetch(Some(*found), context.now_ns);
            }
            DownloadStage::Fetching(job) => {
                let outcome = job.into_outcome().map(|report| self.with_stripes(report));
                match LateCopies::new(&self.context.config, &self.context.disk) {
                    Some(late) => self.stage = DownloadStage::KeepingLate(Box::new(late), outcome),
                    None => self.finish(outcome),
                }
            }
            DownloadStage::KeepingLate(_, outcome) => self.finish(outcome),
            DownloadStage::Done => {}
        }
    }

    /// Bytes that several sources brought were found in the part file: they are fetched ones.
    fn with_stripes(&mut self, mut report: FileReport) -> FileReport {
        let found_bytes = report.reused_bytes.min(self.report.unit_bytes());
        report.reused_bytes -= found_bytes;
        report.fetched_bytes += found_bytes;
        report.sources = std::mem::take(&mut self.report.sources);
        report
    }

    fn inner(&mut self) -> Option<&mut dyn Job> {
        match &mut self.stage {
            DownloadStage::LookingUp(job) => Some(&mut **job),
            DownloadStage::Fetching(job) => Some(&mut **job),
            DownloadStage::KeepingLate(job, _) => Some(&mut **job),
            DownloadStage::Opening(_)
            | DownloadStage::OpeningPart(..)
            | DownloadStage::Striping(..)
            | DownloadStage::Done => None,
        }
    }
}

impl Job for DownloadJob<'_> {
    fn handle_data(&mut self, data: &Data<'_>, is_marked: bool, context: &mut Context<'_>) -> bool {
        let Some(job) = self.inner() else { return false };
        let was_taken = job.handle_data(data, is_marked, context);
        self.step(context);
        was_taken
    }

    fn handle_nack(&mut self, name: NameRef<'_>, kind: NackKind, context: &mut Context<'_>) {
        if let Some(job) = self.inner() {
            job.handle_nack(name, kind, context);
        }
        self.step(context);
    }

    fn handle_timeout(&mut self, context: &mut Context<'_>) {
        if let Some(job) = self.inner() {
            job.handle_timeout(context);
        }
        self.step(context);
    }

    fn poll_request(&mut self, context: &mut Context<'_>) -> Option<Request> {
        loop {
            self.step(context);
            let request = self.inner()?.poll_request(context);
            // Looking at local units may have ended a stage without any packet.
            if request.is_some() || !self.is_stage_over() {
                return request;
            }
        }
    }

    fn poll_deadline(&mut self, flow: &Flow) -> Option<u64> {
        match &mut self.stage {
            DownloadStage::Opening(task) => task.is_ready().then_some(0),
            DownloadStage::OpeningPart(task, _) => task.is_ready().then_some(0),
            _ => self.inner()?.poll_deadline(flow),
        }
    }

    fn is_done(&self) -> bool {
        self.outcome.is_some()
    }

    fn refused_by(&mut self, source: usize) -> u64 {
        self.inner().map_or(0, |job| job.refused_by(source))
    }

    fn abandon(&mut self, flow: &mut Flow) {
        if let Some(job) = self.inner() {
            job.abandon(flow);
        }
    }
}
