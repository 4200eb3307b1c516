//! `byname-sim`: long runs of random scenarios, and the repetition of one that failed.
//!
//! A scenario follows from its seed alone, so one number is all that has to be kept of a failure.

use std::process::ExitCode;

use byname_sim::campaign::{self, CampaignKind, CampaignOptions};
use byname_sim::report;
use byname_sim::study::{Effort, cell};
use clap::{Args, Parser, Subcommand};

/// The production code in virtual time: random scenarios with checks after every step.
#[derive(Debug, Parser)]
#[command(name = "byname-sim", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Plays one random scenario after another until the time is over or a promise is broken.
    Campaign(CampaignArgs),
    /// Plays the scenario of one seed again.
    Replay(ReplayArgs),
    /// Publishes and reads what a text says, over the network it describes.
    Run(RunArgs),
    /// Answers questions about the network with tables and plots.
    Study(StudyArgs),
    /// Plays one cell of a study, in a process of its own.
    #[command(hide = true)]
    Cell {
        /// Which: names KIND COUNT LOOKUPS, nodes HOSTS SECONDS SEED, cluster SEED, or goodput
        /// GBIT RTT_MS LOSS bdp|cubic SEED.
        words: Vec<String>,
    },
}

#[derive(Debug, Args)]
struct StudyArgs {
    /// Names of studies; without any, all.
    names: Vec<String>,
    /// Names and questions only.
    #[arg(long)]
    list: bool,
    /// A few cells instead of all.
    #[arg(long)]
    quick: bool,
    /// Where everything random begins.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Writes the page here, its plots into the folder of that name; otherwise it is printed.
    #[arg(long, value_name = "FILE.md")]
    report: Option<std::path::PathBuf>,
}

#[derive(Debug, Args)]
struct CampaignArgs {
    /// Duration, in seconds of the machine's clock.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Seed of the first scenario; the others follow. Without it, one is made from the clock.
    #[arg(long)]
    seed: Option<u64>,
    /// Ends after so many scenarios, too.
    #[arg(long)]
    count: Option<u64>,
    /// Scenarios played at a time.
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// Sites with a head, disks, writers and readers, in place of networks.
    #[arg(long)]
    sites: bool,
    /// One line of JSON for each scenario and for the end.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct ReplayArgs {
    /// Seed printed by the campaign.
    seed: u64,
    /// It was a site.
    #[arg(long)]
    sites: bool,
    /// The outcome as one line of JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct RunArgs {
    /// Hosts, links, files and readers, a line each; the README has the format.
    file: std::path::PathBuf,
    /// Seed of everything random.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Campaign(args) => {
            let options = CampaignOptions {
                seconds: args.seconds,
                seed: args.seed.unwrap_or_else(campaign::seed_of_the_clock),
                count: args.count.unwrap_or(u64::MAX),
                jobs: args.jobs.max(1),
                kind: kind(args.sites),
                json: args.json,
            };
            outcome(campaign::run(&options))
        }
        Command::Study(args) => {
            let effort = Effort { is_quick: args.quick, seed: args.seed };
            outcome(report::answer(&args.names, args.list, &effort, args.report.as_deref()))
        }
        Command::Cell { words } => outcome(cell::answer(&words)),
        Command::Run(args) => outcome(byname_sim::topology::run::print(&args.file, args.seed)),
        Command::Replay(args) => outcome(campaign::replay(args.seed, kind(args.sites), args.json)),
    }
}

fn kind(is_site: bool) -> CampaignKind {
    if is_site { CampaignKind::Sites } else { CampaignKind::Networks }
}

fn outcome(is_good: bool) -> ExitCode {
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
