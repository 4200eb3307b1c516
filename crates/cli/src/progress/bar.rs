//! A bar on a terminal, as wide as that allows.

use super::DELAY;
use crate::output;
use indicatif::{ProgressBar, ProgressStyle};
use std::time::Instant;

/// A progress bar; nothing where there is no terminal.
pub(crate) struct Bar {
    started: Instant,
    bar: Option<ProgressBar>,
    /// Width that the bar was made for.
    columns: Option<u16>,
}

impl Bar {
    pub(crate) fn new(quiet: bool) -> Self {
        let bar = (!quiet && output::stderr_is_terminal()).then(ProgressBar::hidden);
        Self { started: Instant::now(), bar, columns: None }
    }

    /// Takes the bar off the terminal.
    pub(crate) fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    /// Shows so many octets of so many.
    pub(crate) fn show(&mut self, bytes: u64, total_bytes: u64) {
        let Some(bar) = &self.bar else { return };
        if bar.is_hidden() && self.started.elapsed() > DELAY {
            bar.set_draw_target(indicatif::ProgressDrawTarget::stderr());
        }
        let columns = output::stderr_columns();
        if columns != self.columns {
            self.columns = columns;
            bar.set_style(style_for(columns));
        }
        bar.set_length(total_bytes);
        bar.set_position(bytes);
    }

    /// Prints a line above the bar.
    pub(crate) fn report(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| output::err_line(line)),
            None => output::err_line(line),
        }
    }
}

/// The bar for a terminal of this width. It takes what the rest leaves; where nothing is left, it
/// goes first.
fn style_for(columns: Option<u16>) -> ProgressStyle {
    let template = match columns {
        Some(..20) => "{percent:>3}%",
        Some(..40) => "{percent:>3}% {bytes}",
        _ => "{percent:>3}% {wide_bar} {bytes} {bytes_per_sec} {eta}",
    };
    ProgressStyle::with_template(template).expect("a fixed template")
}
