//! What an upload did, for people and programs.

use super::extra::Extra;
use super::plan::{self, Plan};
use super::{Args, failure};
use crate::exit::{Code, Failure, Outcome};
use crate::output;
use crate::progress::Bar;
use byname_packet::Name;
use byname_writer::{UploadEvent, WriterError};
use serde_json::json;
use std::path::Path;
use std::time::Instant;

/// Failures that are shown; more are counted.
const FAILURES_MAX: usize = 100;

/// Counts what happens and shows it.
pub(super) struct Report {
    started: Instant,
    bar: Bar,
    is_quiet: bool,
    is_tree: bool,
    as_json: bool,
    deletes: bool,
    /// What only the site has, if it is to go.
    extras: Vec<Extra>,
    /// Changes of an upload that makes none.
    plan: Option<Plan>,
    total_bytes: u64,
    done_bytes: u64,
    written_files: u64,
    written_bytes: u64,
    identical_files: u64,
    kept: u64,
    removed: u64,
    skipped: u64,
    failed: u64,
    failures: Vec<String>,
    /// What the only file failed of.
    error: Option<WriterError>,
}

impl Report {
    pub(super) fn new(is_quiet: bool, args: &Args) -> Self {
        Self {
            started: Instant::now(),
            bar: Bar::new(is_quiet || args.dry_run),
            is_quiet,
            is_tree: args.recursive,
            as_json: args.json,
            deletes: args.delete,
            extras: Vec::new(),
            plan: args.dry_run.then(Plan::default),
            total_bytes: 0,
            done_bytes: 0,
            written_files: 0,
            written_bytes: 0,
            identical_files: 0,
            kept: 0,
            removed: 0,
            skipped: 0,
            failed: 0,
            failures: Vec::new(),
            error: None,
        }
    }

    pub(super) fn handle(&mut self, event: UploadEvent<'_>) {
        match event {
            UploadEvent::Planned { size } => self.total_bytes += size,
            UploadEvent::Received { bytes } => self.done_bytes += bytes,
            UploadEvent::Identical { size } => {
                self.identical_files += 1;
                self.done_bytes += size;
            }
            UploadEvent::Kept { size } => {
                self.kept += 1;
                self.done_bytes += size;
            }
            UploadEvent::Change { path, change } => {
                if let Some(plan) = &mut self.plan {
                    plan.change(path, change, self.as_json);
                }
            }
            UploadEvent::Extra { path, published } if self.deletes => {
                self.extras.push(Extra { path: path.to_owned(), published: published.clone() });
            }
            UploadEvent::Extra { .. } => {}
            UploadEvent::Written { path, size } => {
                self.written_files += 1;
                self.written_bytes += size;
                if self.is_tree {
                    tracing::info!("{} done", output::path(path));
                }
            }
            UploadEvent::Skipped { path } => {
                self.skipped += 1;
                let shown = output::path(path);
                self.bar.report(&format!("{shown}: is no file, directory or link: skipped"));
            }
            UploadEvent::Failed { path, error } => {
                let (shown, text) = (output::path(path), crate::exit::chain(&error));
                self.fail(format!("{shown}: {text}"));
                self.error = Some(error);
            }
        }
        self.bar.show(self.done_bytes, self.total_bytes);
    }

    /// Notes a failure.
    pub(super) fn fail(&mut self, line: String) {
        self.failed += 1;
        if self.failures.len() < FAILURES_MAX {
            self.failures.push(line);
        }
    }

    /// What only the site has.
    pub(super) fn take_extras(&mut self) -> Vec<Extra> {
        std::mem::take(&mut self.extras)
    }

    /// Says that something was removed, or would be.
    pub(super) fn removed(&mut self, path: &Path, is_directory: bool) {
        self.removed += 1;
        let is_dry = self.plan.is_some();
        if self.as_json || is_dry || !self.is_quiet {
            plan::removed(path, is_directory, (self.as_json, is_dry));
        }
    }

    /// True if everything was written, or found to be the same.
    pub(super) fn is_complete(&self) -> bool {
        self.failed + self.skipped == 0
    }

    /// Says what was done.
    pub(super) fn finish(&mut self) {
        self.bar.finish();
        if let Some(plan) = self.plan.take() {
            return self.finish_plan(&plan);
        }
        let seconds = self.started.elapsed().as_secs_f64();
        if self.as_json {
            output::json_line(json!({
                "files": self.written_files,
                "files_skipped": self.identical_files + self.kept,
                "files_deleted": self.removed,
                "files_failed": self.failed,
                "entries_skipped": self.skipped,
                "bytes": self.written_bytes,
                "seconds": seconds,
            }));
        } else if !self.is_quiet && (self.is_tree || self.written_files > 0) {
            let rate = (self.written_bytes as f64 / seconds.max(1e-6)) as u64;
            let mut text = format!(
                "wrote {}, {} in {seconds:.1} s ({}/s), {} identical already",
                output::count(self.written_files, "file"),
                output::size(self.written_bytes),
                output::size(rate),
                self.identical_files,
            );
            self.add_counts(&mut text);
            if self.removed > 0 {
                text.push_str(&format!(", {} deleted", self.removed));
            }
            output::err_line(&text);
        }
    }

    fn add_counts(&self, text: &mut String) {
        if self.kept > 0 {
            text.push_str(&format!(", {} kept (--no-clobber)", self.kept));
        }
    }

    fn finish_plan(&self, plan: &Plan) {
        let Plan { new_count, changed_count, bytes } = plan;
        let files = new_count + changed_count;
        if self.as_json {
            output::json_line(json!({
                "dry_run": true,
                "files": files,
                "files_new": new_count,
                "files_changed": changed_count,
                "files_skipped": self.identical_files + self.kept,
                "files_deleted": self.removed,
                "files_failed": self.failed,
                "bytes": bytes,
            }));
            return;
        }
        let mut text = format!(
            "would write {} ({new_count} new, {changed_count} changed), {}; {} identical already",
            output::count(files, "file"),
            output::size(*bytes),
            self.identical_files,
        );
        self.add_counts(&mut text);
        if self.removed > 0 {
            text.push_str(&format!("; would delete {}", self.removed));
        }
        output::err_line(&text);
    }

    /// The command's outcome after all was tried.
    pub(super) fn outcome(mut self, name: &Name) -> Outcome {
        if !self.is_tree
            && let Some(error) = self.error.take()
        {
            return Err(failure::of(name, error));
        }
        let count = self.failed + self.skipped;
        if count == 0 {
            return Ok(());
        }
        let shown = self.failures.len() as u64;
        let mut lines = self.failures;
        if shown < self.failed {
            lines.push(format!("and {} more", self.failed - shown));
        }
        let message = format!("{count} of the entries failed:");
        Err(Failure::new(Code::SomeFailed, message).hint(lines.join("\n")))
    }
}
