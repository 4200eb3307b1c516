//! `byname mv`: another name for a file or directory of a site.

use super::{about, each, open_tree};
use crate::commands::site::account::SiteArgs;
use crate::exit::{Failure, Outcome};
use byname_catalog::Refusal;
use byname_profile::Paths;

/// Rename files and directories of a site. No content moves.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname mv /lab/run7/a.root /lab/run7/b.root
  byname mv /lab/run7 /lab/run8 /lab/2026          both into the directory 2026

What has the new name is replaced, a directory only if it is empty.")]
pub(crate) struct Args {
    /// What is renamed, and behind it its new name, or the directory into which it goes.
    #[arg(value_name = "NAME", required = true, num_args = 2..)]
    names: Vec<String>,
    /// Leave what has the new name alone.
    #[arg(short, long)]
    no_clobber: bool,
    /// The new name is meant exactly, and is no directory to move into.
    #[arg(short = 'T', long)]
    no_target_directory: bool,
    #[command(flatten)]
    site: SiteArgs,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> Outcome {
    let (mut tree, mut names) = open_tree(&args.site, &args.names, paths)?;
    let target = names.pop().ok_or_else(|| Failure::usage("where to?"))?;
    if args.no_target_directory && names.len() > 1 {
        return Err(Failure::usage("-T renames one thing"));
    }
    let is_one = names.len() == 1;
    each(&names, |name| {
        if args.no_target_directory {
            return tree.rename(name, &target, args.no_clobber)?.map_err(|why| about(name, why));
        }
        // The head knows whether the target is a directory: whoever asks first may be late.
        let last = name.view().last().ok_or_else(|| about(name, Refusal::IsRoot))?;
        let inside = target.with(last);
        match tree.rename(name, &inside, args.no_clobber)? {
            Err(Refusal::NotFound | Refusal::NotDirectory | Refusal::SymbolicLink) if is_one => {
                tree.rename(name, &target, args.no_clobber)?.map_err(|why| about(name, why))
            }
            Err(Refusal::Exists) => Err(about(&inside, Refusal::Exists)),
            moved => moved.map_err(|why| about(name, why)),
        }
    })
}
