//! `byname mkdir`: directories of a site.

use super::{each, mode, open_tree};
use crate::commands::site::account::SiteArgs;
use crate::exit::Outcome;
use byname_profile::Paths;
use rustix::fs::Mode;

/// Make directories of a site.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname mkdir /lab/run7
  byname mkdir -p /lab/2026/11/run7")]
pub(crate) struct Args {
    /// Names or links.
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
    /// Make what is missing above them too; what is there already is fine.
    #[arg(short, long)]
    parents: bool,
    /// Permission bits in octal notation. Default: 777 without the umask.
    #[arg(short, long, value_name = "MODE", value_parser = mode)]
    mode: Option<u16>,
    #[command(flatten)]
    site: SiteArgs,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> Outcome {
    let (mut tree, names) = open_tree(&args.site, &args.names, paths)?;
    let mode = args.mode.unwrap_or_else(|| without_umask(0o777));
    each(&names, |name| {
        match args.parents {
            true => tree.make_path(name, mode)?,
            false => tree.make_directory(name, mode)?,
        }
        Ok(())
    })
}

/// Permission bits that the process's umask leaves.
pub(crate) fn without_umask(mode: u16) -> u16 {
    let mask = rustix::process::umask(Mode::empty());
    rustix::process::umask(mask);
    mode & !(mask.bits() as u16)
}
