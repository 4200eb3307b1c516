//! `byname touch`: files of a site get the time it is now, and those that are missing are made.

use super::{about, each, open_tree};
use crate::commands::site::account::SiteArgs;
use crate::commands::writing::without_umask;
use crate::exit::Outcome;
use byname_catalog::{AttributeChanges, Command, Refusal, TimeChange};
use byname_profile::Paths;

/// Set the time of files of a site to now; make those that are missing, empty.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname touch /lab/run7/done")]
pub(crate) struct Args {
    /// Names or links.
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
    /// Make nothing that is missing.
    #[arg(short = 'c', long)]
    no_create: bool,
    #[command(flatten)]
    site: SiteArgs,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> Outcome {
    let (mut tree, names) = open_tree(&args.site, &args.names, paths)?;
    each(&names, |name| {
        let place = tree.place(name)?;
        let modified = Some(TimeChange::Now);
        let changes = AttributeChanges { modified, ..AttributeChanges::default() };
        let command = Command::SetAttributes { place, changes };
        match tree.execute(command)? {
            Ok(_) => Ok(()),
            Err(Refusal::NotFound) if args.no_create => Ok(()),
            Err(Refusal::NotFound) => Ok(tree.make_empty(name, without_umask(0o666))?),
            Err(refusal) => Err(about(name, refusal)),
        }
    })
}
