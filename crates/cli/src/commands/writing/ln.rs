//! `byname ln`: a second name for a file of a site, or a symbolic link.

use super::{about, open_tree};
use crate::commands::site::account::SiteArgs;
use crate::exit::Outcome;
use byname_access::Tree;
use byname_catalog::{Command, Refusal};
use byname_packet::Name;
use byname_profile::Paths;

/// Give a file of a site another name, or make a symbolic link.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname ln /lab/run7/a.root /lab/best.root         two names of one file
  byname ln -s run7/a.root /lab/newest.root         relative to the directory of the link")]
pub(crate) struct Args {
    /// The file; with -s the target's path as the link has it.
    #[arg(value_name = "TARGET")]
    target: String,
    /// The new name.
    #[arg(value_name = "NAME")]
    name: String,
    /// Make a symbolic link. Its target is not looked at; readers follow relative ones only.
    #[arg(short, long)]
    symbolic: bool,
    #[command(flatten)]
    site: SiteArgs,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> Outcome {
    let mut targets = vec![args.name.clone()];
    if !args.symbolic {
        targets.push(args.target.clone());
    }
    let (mut tree, names) = open_tree(&args.site, &targets, paths)?;
    let place = tree.place(&names[0])?;
    let command = match names.get(1) {
        Some(existing) => Command::Link { existing: tree.place(existing)?, place },
        None => Command::MakeSymlink { place, target: args.target.clone().into_bytes() },
    };
    match tree.execute(command)? {
        Ok(_) => Ok(()),
        Err(refusal) => {
            let existing = names.get(1).filter(|existing| is_about(&mut tree, existing, refusal));
            Err(about(existing.unwrap_or(&names[0]), refusal))
        }
    }
}

/// True if a refusal to give a file another name is about the file.
fn is_about(tree: &mut Tree, existing: &Name, refusal: Refusal) -> bool {
    match refusal {
        Refusal::LinkToDirectory | Refusal::TooManyLinks => true,
        Refusal::NotFound | Refusal::NotDirectory => {
            let found = tree.describe(existing);
            found.is_err_and(|error| error.refusal() == Some(Refusal::NotFound))
        }
        _ => false,
    }
}
