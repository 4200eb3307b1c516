//! `byname chmod`, `byname chown`, `byname truncate`: attributes of what a site has.

use super::{Tree, each, mode};
use crate::commands::site::account::SiteArgs;
use crate::exit::{Failure, Outcome};
use byname_catalog::{AttributeChanges, Command};
use byname_profile::Paths;

/// Change the permission bits of files and directories of a site.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname chmod 640 /lab/run7/a.root")]
pub(crate) struct ChmodArgs {
    /// Permission bits in octal notation.
    #[arg(value_name = "MODE", value_parser = mode)]
    mode: u16,
    /// Names or links.
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
    #[command(flatten)]
    site: SiteArgs,
}

/// Change the owner and group of files and directories of a site.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname chown anna /lab/run7/a.root
  byname chown :physics /lab/run7/a.root
  byname chown anna:physics /lab/run7

Operators give files away; an owner chooses among her groups.")]
pub(crate) struct ChownArgs {
    /// Owner, :GROUP, or OWNER:GROUP.
    #[arg(value_name = "OWNER:GROUP")]
    owner: String,
    /// Names or links.
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
    #[command(flatten)]
    site: SiteArgs,
}

/// Make files of a site empty.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname truncate /lab/run7/log.txt")]
pub(crate) struct TruncateArgs {
    /// Names or links.
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
    #[command(flatten)]
    site: SiteArgs,
}

pub(crate) fn truncate(args: &TruncateArgs, paths: &Paths) -> Outcome {
    let changes = AttributeChanges { size: Some(0), ..AttributeChanges::default() };
    change((&args.site, &args.names), &changes, paths)
}

pub(crate) fn chmod(args: &ChmodArgs, paths: &Paths) -> Outcome {
    let changes = AttributeChanges { mode: Some(args.mode), ..AttributeChanges::default() };
    change((&args.site, &args.names), &changes, paths)
}

pub(crate) fn chown(args: &ChownArgs, paths: &Paths) -> Outcome {
    let (owner, group) = match args.owner.split_once(':') {
        Some((owner, group)) => (owner, Some(group)),
        None => (args.owner.as_str(), None),
    };
    let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let (owner, group) = (given(owner), group.and_then(given));
    if owner.is_none() && group.is_none() {
        return Err(Failure::usage("whose? OWNER, :GROUP or OWNER:GROUP"));
    }
    let changes = AttributeChanges { owner, group, ..AttributeChanges::default() };
    change((&args.site, &args.names), &changes, paths)
}

fn change(
    (site, names): (&SiteArgs, &[String]),
    changes: &AttributeChanges,
    paths: &Paths,
) -> Outcome {
    let (mut tree, names) = Tree::open(site, names, paths)?;
    each(&names, |name| {
        let place = tree.place(name)?;
        tree.run(name, Command::SetAttributes { place, changes: changes.clone() })
    })
}
