//! Steps of a file at the local disk: from the look at its target to its name.

use std::sync::Arc;

use byname_transfer::discovery::Discovered;
use byname_transfer::metadata::ContentRoot;
use byname_transfer::reader::ObjectPlan;
use byname_transfer::request::Context;

use super::{FileJob, FileStage};
use crate::download::context::attributes;
use crate::download::disk_queue::DiskTask;
use crate::download::identical::{AtTarget, Comparison, look_at, untouched};
use crate::download::part_file::{PartFile, Placement};
use crate::download::progress::{Event, FileOutcome, FileReport};
use crate::download::reading::{Prepared, Reading};
use crate::error::ClientError;

/// A version to be fetched.
pub(super) struct Found {
    pub(super) plan: ObjectPlan,
    pub(super) discovered: Discovered,
}

/// Step that a file waits for.
pub(super) enum DiskStage {
    NotBegun,
    /// Whether what a manifest says stands there already.
    Expecting(DiskTask<Option<FileOutcome>>),
    /// Whether anything stands there, while the name is looked up.
    Looking(DiskTask<bool>),
    Opening(DiskTask<AtTarget>, Box<Found>),
    Comparing(DiskTask<(Box<Comparison>, Option<bool>)>, Box<Found>),
    TakingOver(DiskTask<()>, Box<Found>),
    /// The last one; a part file comes back if the caller has to place it.
    Completing(DiskTask<Option<PartFile>>, Box<FileReport>),
}

impl DiskStage {
    /// True if the step is over.
    pub(super) fn is_ready(&mut self) -> bool {
        match self {
            DiskStage::NotBegun => true,
            DiskStage::Expecting(task) => task.is_ready(),
            DiskStage::Looking(task) => task.is_ready(),
            DiskStage::Opening(task, _) => task.is_ready(),
            DiskStage::Comparing(task, _) => task.is_ready(),
            DiskStage::TakingOver(task, _) => task.is_ready(),
            DiskStage::Completing(task, _) => task.is_ready(),
        }
    }
}

impl FileJob<'_> {
    /// Goes over to what comes behind a step at the disk. True if one was over.
    pub(super) fn step_disk(&mut self, context: &mut Context<'_>) -> bool {
        let Some(stage) = self.disk_stage.take_if(DiskStage::is_ready) else { return false };
        if let Err(error) = self.end_stage(stage, context) {
            self.fail(error, context);
        }
        true
    }

    fn end_stage(
        &mut self,
        stage: DiskStage,
        context: &mut Context<'_>,
    ) -> Result<(), ClientError> {
        match stage {
            DiskStage::NotBegun => self.expect_at_target(context),
            DiskStage::Expecting(mut task) => match task.take().transpose()?.flatten() {
                Some(outcome) => self.leave_alone(outcome),
                None => self.begin_and_look(context),
            },
            DiskStage::Looking(mut task) => {
                if let (Some(true), FileStage::LookingUp(lookup)) =
                    (task.take().transpose()?, &mut self.state)
                {
                    lookup.allow_speculation(self.context.config.fetch_begun());
                }
            }
            DiskStage::Opening(mut task, found) => match task.take().transpose()? {
                Some(AtTarget::Kept) => self.leave_untouched(FileOutcome::Kept, &found, context),
                Some(AtTarget::Candidate(comparison)) => self.compare(comparison, found),
                Some(AtTarget::Nothing(prepared)) => self.begin_reading(prepared, found, context),
                None => {}
            },
            DiskStage::Comparing(mut task, found) => match task.take().transpose()? {
                Some((comparison, None)) => self.compare(comparison, found),
                Some((comparison, Some(true))) => self.take_over(comparison, found),
                Some((_, Some(false))) => self.open_part(found),
                None => {}
            },
            DiskStage::TakingOver(mut task, found) => {
                task.take().transpose()?;
                self.leave_untouched(FileOutcome::Identical, &found, context);
            }
            DiskStage::Completing(mut task, report) => match task.take().transpose()?.flatten() {
                None => self.finish(Ok(*report)),
                Some(part) => {
                    self.whole = Some(part);
                    self.outcome = Some(Ok(*report));
                }
            },
        }
        Ok(())
    }

    /// The first step, if a manifest says what the file is.
    fn expect_at_target(&mut self, context: &mut Context<'_>) {
        let Some(expected) = self.expected.clone() else { return self.begin_and_look(context) };
        let (target, options) = (self.target.clone(), self.context.options);
        let task = self.disk.submit(move || {
            let stat = target.stat().ok().flatten();
            Ok(stat.and_then(|stat| expected.outcome_at(&target, &stat, options)))
        });
        self.disk_stage = Some(DiskStage::Expecting(task));
    }

    fn leave_alone(&mut self, outcome: FileOutcome) {
        if let Some(expected) = self.expected.take() {
            self.finish(Ok(expected.untouched(outcome)));
        }
    }

    /// Begins with the network, and looks whether it is worth while to speculate: what stands
    /// there may be the same, or have much of it.
    fn begin_and_look(&mut self, context: &mut Context<'_>) {
        self.begin_packets(context);
        if let FileStage::LookingUp(_) = self.state {
            let target = self.target.clone();
            let task = self.disk.submit(move || Ok(matches!(target.stat(), Ok(None))));
            self.disk_stage = Some(DiskStage::Looking(task));
        }
    }

    /// A version was found: looks at the target, and opens the part file if it is needed.
    pub(super) fn look_at_target(&mut self, found: Box<Found>) {
        let (target, options) = (self.target.clone(), self.context.options);
        let plan = found.plan.clone();
        let task = self.disk.submit(move || look_at(&target, options, &plan));
        self.disk_stage = Some(DiskStage::Opening(task, found));
    }

    /// Compares some of what stands at the target.
    fn compare(&mut self, mut comparison: Box<Comparison>, found: Box<Found>) {
        let target = self.target.clone();
        let task = self.disk.submit(move || {
            let is_same = comparison.step(&target);
            Ok((comparison, is_same))
        });
        self.disk_stage = Some(DiskStage::Comparing(task, found));
    }

    fn take_over(&mut self, comparison: Box<Comparison>, found: Box<Found>) {
        let (target, discovered) = (self.target.clone(), found.discovered.clone());
        let copies = self.context.config.copies.clone();
        let task =
            self.disk.submit(move || comparison.take_over(&target, copies.as_deref(), &discovered));
        self.disk_stage = Some(DiskStage::TakingOver(task, found));
    }

    fn open_part(&mut self, found: Box<Found>) {
        let (target, plan) = (self.target.clone(), found.plan.clone());
        let task = self.disk.submit(move || Ok(AtTarget::Nothing(Prepared::open(&target, &plan)?)));
        self.disk_stage = Some(DiskStage::Opening(task, found));
    }

    fn leave_untouched(&mut self, outcome: FileOutcome, found: &Found, context: &mut Context<'_>) {
        self.state.abandon(context.flow);
        let size = found.plan.size.unwrap_or(0);
        self.finish(Ok(untouched(outcome, found.discovered.version, size)));
    }

    fn begin_reading(&mut self, prepared: Prepared, found: Box<Found>, context: &mut Context<'_>) {
        let Found { plan, discovered } = *found;
        if self.last_version != Some(discovered.version) {
            self.versions += 1;
            self.gone_count = 0;
            self.last_version = Some(discovered.version);
        }
        let size = plan.size;
        let config = self.context.config.fetch_begun();
        let mut reading =
            Box::new(Reading::begin(prepared, (plan, discovered), self.disk.clone(), config));
        if let FileStage::LookingUp(lookup) = &mut self.state {
            let mut speculative = lookup.take_speculative();
            reading.go_on_with(&mut speculative);
            if let Some(mut unused) = speculative {
                unused.abandon(context.flow);
            }
        }
        self.progressed_ns = context.now_ns;
        self.context.report(Event::FileStarted { path: &self.target.shown, size });
        // Trusts what was asked for speculatively, if anything.
        reading.write(|reader, out| reader.trust(context, out));
        self.state = FileStage::Reading(reading);
    }

    /// Everything is verified and handed to the disk: gives the file its attributes and its name.
    pub(super) fn complete(&mut self, context: &mut Context<'_>) {
        let state = std::mem::replace(&mut self.state, FileStage::Done);
        let FileStage::Reading(reading) = state else { return };
        let (fetched_bytes, reused_bytes) = (reading.fetched_bytes(), reading.reused_bytes());
        let Reading { mut reader, writer, discovered, .. } = *reading;
        reader.abandon(context.flow);
        let size = reader.size().unwrap_or(fetched_bytes);
        let report = FileReport {
            outcome: FileOutcome::Fetched,
            version: discovered.version,
            size,
            fetched_bytes,
            reused_bytes,
            sources: Vec::new(),
        };
        let attributes = attributes(&discovered);
        let options = self.context.options;
        let placement = Placement { is_exclusive: options.no_clobber, is_synced: options.sync };
        let is_batched = self.context.is_batched;
        let keeping = self.keeping(reader.settled().unwrap_or(&discovered).clone());
        let task = writer.finish(move |part| {
            part.seal(size, attributes)?;
            keeping(&part);
            if is_batched {
                return Ok(Some(part));
            }
            part.place(placement)?;
            Ok(None)
        });
        self.disk_stage = Some(DiskStage::Completing(task, Box::new(report)));
    }

    /// Keeps the publisher's packet with a file that is whole.
    fn keeping(&self, discovered: Discovered) -> impl FnOnce(&PartFile) + Send + 'static {
        let copies = self.context.config.copies.as_ref().map(Arc::clone);
        let (name, path) = (self.name.clone(), self.target.shown.clone());
        move |part| {
            let Some(copies) = copies else { return };
            // Without its root a description proves no copy.
            match discovered.metadata.root {
                ContentRoot::Pending => copies.postpone(name, discovered.version, path),
                _ => copies.keep_file(part.file(), &discovered),
            }
        }
    }
}
