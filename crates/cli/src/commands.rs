//! One module per command.

mod config;
mod decode;

use crate::exit::Outcome;
use crate::paths::Paths;

/// The verbs.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    Decode(decode::Args),
    Config(config::Args),
}

impl Command {
    /// Runs the command.
    pub(crate) fn run(&self, quiet: bool) -> Outcome {
        let paths = Paths::from_env();
        let _ = quiet;
        match self {
            Self::Decode(args) => decode::run(args),
            Self::Config(args) => config::run(args, &paths),
        }
    }
}
