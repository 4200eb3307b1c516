//! `byname touch`: files of a site get the time it is now, and those that are missing are made.

use super::{Tree, about, each};
use crate::commands::site::account::SiteArgs;
use crate::commands::writing::without_umask;
use crate::exit::Outcome;
use byname_catalog::{
    AttributeChanges, Command, Create, Place, PolicyChanges, Publish, Refusal, TimeChange,
};
use byname_packet::Name;
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
    let (mut tree, names) = Tree::open(&args.site, &args.names, paths)?;
    each(&names, |name| {
        let place = tree.place(name)?;
        let modified = Some(TimeChange::Now);
        let changes = AttributeChanges { modified, ..AttributeChanges::default() };
        let command = Command::SetAttributes { place: place.clone(), changes };
        match tree.execute(command)? {
            Ok(_) => Ok(()),
            Err(Refusal::NotFound) if args.no_create => Ok(()),
            Err(Refusal::NotFound) => tree.make_empty(name, place),
            Err(refusal) => Err(about(name, refusal)),
        }
    })
}

impl Tree {
    /// Makes an empty file.
    fn make_empty(&mut self, name: &Name, place: Place) -> Outcome {
        let create = Create {
            place,
            mode: without_umask(0o666),
            size_max: 0,
            publish: Publish::Whole,
            exclusive: true,
            policy: PolicyChanges::default(),
        };
        match self.execute(Command::Create(create))? {
            // Or somebody else has made it meanwhile.
            Ok(_) | Err(Refusal::Exists) => Ok(()),
            Err(refusal) => Err(about(name, refusal)),
        }
    }
}
