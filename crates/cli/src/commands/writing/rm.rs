//! `byname rm`: files and directories of a site are removed.

use super::{about, each, open_tree};
use crate::commands::site::account::SiteArgs;
use crate::exit::Outcome;
use byname_catalog::Refusal;
use byname_profile::Paths;

/// Remove files of a site, and with -r directories with all that is in them.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname rm /lab/run7/a.root
  byname rm -r /lab/run7

A directory is out of sight at once, with all that is in it. Its quota is free when the head has
taken it apart, some seconds later where there are many files. Whoever reads a removed file at that
moment has ten minutes to finish. Where the site has a trash, what is removed goes there and counts
for quota: `byname site trash ls`, `restore`, `purge`.")]
pub(crate) struct Args {
    /// Names or links.
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
    /// Remove directories, with all that is in them.
    #[arg(short, long)]
    recursive: bool,
    /// What is not there is fine.
    #[arg(short, long)]
    force: bool,
    #[command(flatten)]
    site: SiteArgs,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> Outcome {
    let (mut tree, names) = open_tree(&args.site, &args.names, paths)?;
    each(&names, |name| {
        let removed = match args.recursive {
            true => tree.remove_all(name)?,
            false => tree.unlink(name)?,
        };
        match removed {
            Ok(()) => Ok(()),
            Err(Refusal::NotFound) if args.force => Ok(()),
            Err(Refusal::IsDirectory) => {
                let hint = "to remove it with all that is in it: byname rm -r";
                Err(about(name, Refusal::IsDirectory).hint(hint))
            }
            Err(refusal) => Err(about(name, refusal)),
        }
    })
}
