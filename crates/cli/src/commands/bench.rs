//! `byname bench`: measuring.

use byname_profile::Paths;
mod traffic;
mod transfer;

use crate::exit::Outcome;

/// Measure forwarders and transfers.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Traffic(traffic::Args),
    Transfer(transfer::Args),
}

pub(crate) fn run(args: &Args, paths: &Paths) -> Outcome {
    match &args.command {
        Command::Traffic(args) => traffic::run(args, paths),
        Command::Transfer(args) => transfer::run(args),
    }
}
