//! What an upload did, for people and programs.

use super::UploadEvent;
use super::failure;
use crate::exit::{Code, Failure, Outcome};
use crate::output;
use crate::progress::Bar;
use byname_packet::Name;
use byname_writer::WriterError;
use serde_json::json;
use std::path::PathBuf;
use std::time::Instant;

/// Failures that are shown; more are counted.
const FAILURES_MAX: usize = 100;

/// Counts what happens and shows it.
pub(super) struct Report {
    started: Instant,
    bar: Bar,
    is_quiet: bool,
    is_tree: bool,
    total_bytes: u64,
    done_bytes: u64,
    written_files: u64,
    written_bytes: u64,
    identical_files: u64,
    skipped: u64,
    failed: u64,
    failures: Vec<(PathBuf, WriterError)>,
}

impl Report {
    pub(super) fn new(is_quiet: bool, is_tree: bool) -> Self {
        Self {
            started: Instant::now(),
            bar: Bar::new(is_quiet),
            is_quiet,
            is_tree,
            total_bytes: 0,
            done_bytes: 0,
            written_files: 0,
            written_bytes: 0,
            identical_files: 0,
            skipped: 0,
            failed: 0,
            failures: Vec::new(),
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
                self.failed += 1;
                if self.failures.len() < FAILURES_MAX {
                    self.failures.push((path.to_owned(), error));
                }
            }
        }
        self.bar.show(self.done_bytes, self.total_bytes);
    }

    /// Says what was done.
    pub(super) fn finish(&mut self, json: bool) {
        self.bar.finish();
        let seconds = self.started.elapsed().as_secs_f64();
        if json {
            output::json_line(json!({
                "files": self.written_files,
                "files_skipped": self.identical_files,
                "files_failed": self.failed,
                "entries_skipped": self.skipped,
                "bytes": self.written_bytes,
                "seconds": seconds,
            }));
        } else if !self.is_quiet {
            let rate = (self.written_bytes as f64 / seconds.max(1e-6)) as u64;
            output::err_line(&format!(
                "wrote {}, {} in {seconds:.1} s ({}/s), {} identical already",
                output::count(self.written_files, "file"),
                output::size(self.written_bytes),
                output::size(rate),
                self.identical_files,
            ));
        }
    }

    /// The command's outcome after all was tried.
    pub(super) fn outcome(mut self, name: &Name) -> Outcome {
        if !self.is_tree
            && let Some((_, error)) = self.failures.pop()
        {
            return Err(failure::of(name, error));
        }
        let count = self.failed + self.skipped;
        if count == 0 {
            return Ok(());
        }
        let line = |(path, error): (PathBuf, WriterError)| {
            let shown = output::path(&path);
            format!("{shown}: {}", crate::exit::chain(&error))
        };
        let shown = self.failures.len() as u64;
        let mut lines: Vec<String> = self.failures.into_iter().map(line).collect();
        if shown < self.failed {
            lines.push(format!("and {} more", self.failed - shown));
        }
        let message = format!("{count} of the entries failed:");
        Err(Failure::new(Code::SomeFailed, message).hint(lines.join("\n")))
    }
}
