//! Progress for people: one line on a terminal, nothing elsewhere.

mod bar;

pub(crate) use bar::Bar;

use crate::output;
use byname_client::{Event, FileOutcome, Progress};
use byname_transfer::discovery::Waiting;
use indicatif::{ProgressBar, ProgressStyle};
use std::path::Path;
use std::time::{Duration, Instant};

/// Corrupt pieces that are shown one by one.
const REFUSED_SHOWN_MAX: u64 = 20;
/// Shorter work needs no bar.
const DELAY: Duration = Duration::from_secs(1);

/// Counts what happens and shows it.
pub(crate) struct Reporter {
    started: Instant,
    bar: Bar,
    total_bytes: u64,
    shows_files: bool,
    is_quiet: bool,
    /// Pieces that arrived and did not verify.
    pub(crate) refused: u64,
    pub(crate) fetched_bytes: u64,
    pub(crate) reused_bytes: u64,
    pub(crate) files: u64,
    pub(crate) files_skipped: u64,
    pub(crate) files_kept: u64,
}

impl Reporter {
    pub(crate) fn new(quiet: bool, shows_files: bool) -> Self {
        Self {
            started: Instant::now(),
            bar: Bar::new(quiet),
            total_bytes: 0,
            shows_files,
            is_quiet: quiet,
            refused: 0,
            fetched_bytes: 0,
            reused_bytes: 0,
            files: 0,
            files_skipped: 0,
            files_kept: 0,
        }
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    /// True if only what went wrong is said.
    pub(crate) fn is_quiet(&self) -> bool {
        self.is_quiet
    }

    /// The work done, in a line.
    pub(crate) fn summary(&self) -> String {
        let seconds = self.seconds().max(1e-6);
        let mut text = format!(
            "fetched {}, {} in {seconds:.1} s ({}/s)",
            output::count(self.files, "file"),
            output::size(self.fetched_bytes),
            output::size((self.fetched_bytes as f64 / seconds) as u64),
        );
        for (count, what) in [
            (self.files_skipped, "identical already"),
            (self.refused, "corrupt pieces requested again"),
            (self.files_kept, "different and kept (--no-clobber)"),
        ] {
            if count > 0 {
                text.push_str(&format!(", {count} {what}"));
            }
        }
        if self.reused_bytes > 0 {
            let reused = output::size(self.reused_bytes);
            text.push_str(&format!(", {reused} were there already"));
        }
        text
    }

    /// Takes the bar off the terminal.
    pub(crate) fn finish(&mut self) {
        self.bar.finish();
    }

    fn show(&mut self) {
        self.bar.show(self.fetched_bytes + self.reused_bytes, self.total_bytes);
    }

    /// A network that spoils packets spoils many: the first are shown, the others counted.
    fn on_refused(&mut self, path: &Path, what: &str, endpoint: Option<&str>) {
        self.refused += 1;
        if self.refused <= REFUSED_SHOWN_MAX {
            let shown = output::one_line(&path.display().to_string());
            let from = endpoint.map(|uri| format!(" (from {uri})")).unwrap_or_default();
            self.report(&format!("{shown}: {what}{from}; requested again"));
        }
        if self.refused == REFUSED_SHOWN_MAX {
            self.report("more of this is counted and not shown");
        }
    }

    fn report(&self, line: &str) {
        self.bar.report(line);
    }
}

impl Progress for Reporter {
    fn on_event(&mut self, event: Event<'_>) {
        match event {
            Event::Waiting { path, waiting } => {
                let shown = output::one_line(&path.display().to_string());
                self.report(&waiting_line(&shown, waiting));
            }
            Event::DirectoryWaiting { name, waiting } => {
                self.report(&waiting_line(&output::name(name.view()), waiting));
            }
            Event::FileStarted { size, .. } => self.total_bytes += size.unwrap_or(0),
            Event::Fetched { bytes } => self.fetched_bytes += bytes,
            Event::Refused { path, what, endpoint } => self.on_refused(path, what, endpoint),
            Event::Reused { bytes } => self.reused_bytes += bytes,
            Event::FileDone { path, report } => {
                match report.outcome {
                    FileOutcome::Fetched => self.files += 1,
                    FileOutcome::Identical => self.files_skipped += 1,
                    FileOutcome::Kept => {
                        self.files_kept += 1;
                        let shown = output::one_line(&path.display().to_string());
                        self.report(&format!("{shown}: kept, it is different"));
                    }
                }
                if self.shows_files && report.outcome == FileOutcome::Fetched {
                    tracing::info!("{} done", output::one_line(&path.display().to_string()));
                }
            }
            Event::FileFailed { .. } | Event::DirectoryListed { .. } => {}
            Event::EntrySkipped { directory, entry } => {
                let directory = output::name(directory.view());
                let entry = output::component(entry);
                self.report(&format!("{directory}: {entry} makes no safe file name: skipped"));
            }
        }
        self.show();
    }
}

/// Why a publisher is waited for, in a line.
fn waiting_line(shown: &str, waiting: Waiting) -> String {
    let doing = match waiting {
        Waiting::Written => "somebody is still writing it",
        Waiting::Hashed => "the publisher is hashing it",
        Waiting::Listed => "the publisher is busy making its list",
    };
    format!("{shown}: {doing}; waiting")
}

/// Says why a directory is waited for, and nothing else.
pub(crate) struct ListingNotices;

impl Progress for ListingNotices {
    fn on_event(&mut self, event: Event<'_>) {
        if let Event::DirectoryWaiting { name, waiting } = event {
            output::err_line(&waiting_line(&output::name(name.view()), waiting));
        }
    }
}

/// Counts bytes of work whose end nobody knows, and shows them on a terminal.
pub(crate) struct Meter {
    started: Instant,
    bar: ProgressBar,
}

impl Meter {
    pub(crate) fn new() -> Self {
        let bar = ProgressBar::hidden();
        let style = "{spinner} {bytes} {bytes_per_sec}";
        bar.set_style(ProgressStyle::with_template(style).expect("a fixed template"));
        Self { started: Instant::now(), bar }
    }

    /// So many more bytes are done.
    pub(crate) fn add(&self, bytes: usize) {
        if self.bar.is_hidden() && self.started.elapsed() > DELAY && output::stderr_is_terminal() {
            self.bar.set_draw_target(indicatif::ProgressDrawTarget::stderr());
        }
        self.bar.inc(bytes as u64);
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A reader whose bytes are counted.
pub(crate) struct Metered<'a, R> {
    pub(crate) meter: &'a Meter,
    pub(crate) reader: R,
}

impl<R: std::io::Read> std::io::Read for Metered<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.reader.read(buffer)?;
        self.meter.add(count);
        Ok(count)
    }
}
