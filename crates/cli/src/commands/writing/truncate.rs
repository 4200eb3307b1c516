//! `byname truncate`: files of a site are made shorter or longer.

use super::{each, open_tree};
use crate::commands::site::account::SiteArgs;
use crate::exit::Outcome;
use crate::target::watch_signals;
use byname_client::Stop;
use byname_profile::{Paths, units};

/// Make files of a site shorter or longer; what is added are zeros.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname truncate /lab/run7/a.root                 empty
  byname truncate -s 1M /lab/run7/a.root

A size other than 0 is a new version: what stays is read and written anew, by way of $TMPDIR.")]
pub(crate) struct Args {
    /// The new size.
    #[arg(short, long, value_name = "SIZE", default_value = "0", value_parser = units::size)]
    size: u64,
    /// Names or links.
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
    #[command(flatten)]
    site: SiteArgs,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> Outcome {
    let stop = Stop::default();
    watch_signals(&stop)?;
    let (tree, names) = open_tree(&args.site, &args.names, paths)?;
    let mut tree = tree.stopped_by(&stop);
    each(&names, |name| Ok(tree.resize(name, args.size)?))
}
