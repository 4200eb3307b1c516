//! `byname chmod`, `byname chown`: attributes of what a site has.

use super::{each, each_below, mode, open_tree};
use crate::commands::site::account::SiteArgs;
use crate::exit::{Failure, Outcome};
use byname_access::Tree;
use byname_catalog::AttributeChanges;
use byname_packet::Name;
use byname_profile::Paths;

/// Right of an owner to walk through a directory.
const OWNER_SEARCH: u16 = 0o100;

/// Change the permission bits of files and directories of a site.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname chmod 640 /lab/run7/a.root
  byname chmod -R 750 /lab/run7                    the directory and all below it")]
pub(crate) struct ChmodArgs {
    /// Permission bits in octal notation.
    #[arg(value_name = "MODE", value_parser = mode)]
    mode: u16,
    /// Names or links.
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
    /// Change all that is in directories too. Symbolic links are not followed, and have no mode.
    #[arg(short = 'R', long)]
    recursive: bool,
    #[command(flatten)]
    site: SiteArgs,
}

/// Change the owner and group of files and directories of a site.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname chown anna /lab/run7/a.root
  byname chown :physics /lab/run7/a.root
  byname chown anna:physics /lab/run7
  byname chown -R :physics /lab/run7               the directory and all below it

Operators give files away; an owner chooses among her groups.")]
pub(crate) struct ChownArgs {
    /// Owner, :GROUP, or OWNER:GROUP.
    #[arg(value_name = "OWNER:GROUP")]
    owner: String,
    /// Names or links.
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
    /// Change all that is in directories too. Symbolic links are not followed.
    #[arg(short = 'R', long)]
    recursive: bool,
    #[command(flatten)]
    site: SiteArgs,
}

pub(crate) fn chmod(args: &ChmodArgs, paths: &Paths) -> Outcome {
    let changes = AttributeChanges { mode: Some(args.mode), ..AttributeChanges::default() };
    change((&args.site, &args.names), (&changes, args.recursive), paths)
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
    change((&args.site, &args.names), (&changes, args.recursive), paths)
}

fn change(
    (site, names): (&SiteArgs, &[String]),
    (changes, recursive): (&AttributeChanges, bool),
    paths: &Paths,
) -> Outcome {
    let (mut tree, names) = open_tree(site, names, paths)?;
    each(&names, |name| match recursive {
        true => set_below(&mut tree, name, changes),
        false => set(&mut tree, name, changes),
    })
}

fn set(tree: &mut Tree, name: &Name, changes: &AttributeChanges) -> Outcome {
    Ok(tree.set_attributes(name, changes.clone())?)
}

/// Changes something and all that is in it; goes on after failures.
fn set_below(tree: &mut Tree, name: &Name, changes: &AttributeChanges) -> Outcome {
    // Whoever takes the right to walk through a directory from himself does so last.
    let walks_first = changes.mode.is_some_and(|mode| mode & OWNER_SEARCH == 0);
    each_below((tree, name), walks_first, &mut |tree, name, is_link| match is_link {
        true if changes.mode.is_some() => Ok(()),
        _ => set(tree, name, changes),
    })
}
