//! `byname`: files by name. One binary, one module per command.
//!
//! Data goes to stdout, everything for people to stderr; a command returns an [`exit::Outcome`] and
//! `main` turns a failure into one line of cause, one of advice and the documented exit code.

mod access_log;
mod commands;
mod diagnosis;
#[cfg(test)]
mod examples;
mod exchange;
mod exit;
mod face_uri;
mod failure;
mod forwarders;
mod manager;
mod node_config;
mod notify;
mod output;
mod progress;
mod settings;
mod target;
mod trace;
mod typed;
mod walk;

use crate::exit::Failure;
use clap::{CommandFactory, Parser};
use std::process::ExitCode;

/// Files by name: publish a directory under a name, read it back by that name, verified.
#[derive(Debug, Parser)]
#[command(
    name = "byname",
    version = VERSION,
    max_term_width = 100,
    after_help = "Examples:
  byname up /data/run7 --share             publish a directory, print a link for others
  byname get -r byname:/me-host/run7,via=tcp://host:6363,key=SHA256:…   elsewhere, verified
  byname ls -l /lab/run7                   look first
  byname cat /lab/run7/log.txt | less

Exit codes: 0 ok, 1 other, 2 usage, 3 not found, 4 no route or time-out, 5 does not verify,
6 unknown key, 7 local disk or permission, 8 some files failed, 130 interrupted."
)]
struct Cli {
    #[command(flatten)]
    log: LogArgs,
    #[command(subcommand)]
    command: commands::Command,
}

#[derive(Debug, clap::Args)]
struct LogArgs {
    /// Say more on stderr (repeat for more).
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    /// Say only what went wrong.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
}

const VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\nlinks: unix tcp udp websocket memif multicast",
    "\nsignatures: ed25519 ecdsa-p256 hmac-sha256 sha256 null",
    "\nhash tree: blake3"
);

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // clap prints help and version on stdout with code 0, mistakes on stderr with code 2.
            let code = if error.use_stderr() { exit::Code::Usage as u8 } else { 0 };
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    init_log(&cli.log);
    match cli.command.run(cli.log.quiet, Cli::command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => report(&failure),
    }
}

/// Prints cause and advice on stderr and returns the process's exit code.
fn report(failure: &Failure) -> ExitCode {
    if !failure.message.is_empty() {
        output::err_line(&format!("byname: {}", failure.message));
    }
    if let Some(hint) = &failure.hint {
        for line in hint.lines() {
            output::err_line(&format!("  {line}"));
        }
    }
    ExitCode::from(failure.code as u8)
}

/// `BYNAME_LOG` (a filter such as `byname_node=debug`) wins over `-v` and `-q`.
fn init_log(log: &LogArgs) {
    let level = match (log.quiet, log.verbose) {
        (true, _) => "error",
        (false, 0) => "warn",
        (false, 1) => "info",
        (false, 2) => "debug",
        (false, _) => "trace",
    };
    let filter = tracing_subscriber::EnvFilter::builder()
        .with_env_var("BYNAME_LOG")
        .try_from_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(level));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(output::stderr_is_terminal())
        .with_target(false)
        .init();
}
