//! `byname mkdir`: directories of a site.

use super::{Tree, about, each, mode};
use crate::commands::site::account::SiteArgs;
use crate::exit::Outcome;
use byname_catalog::{Command, Refusal};
use byname_packet::Name;
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
    let (mut tree, names) = Tree::open(&args.site, &args.names, paths)?;
    let mode = args.mode.unwrap_or_else(|| without_umask(0o777));
    each(&names, |name| match args.parents {
        true => tree.make_path(name, mode),
        false => {
            let place = tree.place(name)?;
            tree.run(name, Command::MakeDirectory { place, mode })
        }
    })
}

/// Permission bits that the process's umask leaves.
pub(crate) fn without_umask(mode: u16) -> u16 {
    let mask = rustix::process::umask(Mode::empty());
    rustix::process::umask(mask);
    mode & !(mask.bits() as u16)
}

impl Tree {
    /// Makes a directory and what is missing above it.
    pub(crate) fn make_path(&mut self, name: &Name, mode: u16) -> Outcome {
        // Mostly the directory above is there: what is missing is found from below.
        let top = self.account.site.view().count();
        let (depth, mut at) = (name.view().count(), name.view().count());
        while at <= depth && at > top {
            let one = name.view().prefix(at).to_name();
            let place = self.place(&one)?;
            match self.execute(Command::MakeDirectory { place, mode })? {
                Ok(_) => at += 1,
                Err(Refusal::Exists) if at < depth => at += 1,
                Err(Refusal::Exists) => return self.check_directory(name),
                Err(Refusal::NotFound) if at > top + 1 => at -= 1,
                Err(refusal) => return Err(about(&one, refusal)),
            }
        }
        Ok(())
    }

    fn check_directory(&self, name: &Name) -> Outcome {
        let mut reader = self.account.reader(name)?;
        match reader.run(|client, name| client.stat(name))?.is_directory() {
            true => Ok(()),
            false => Err(about(name, Refusal::Exists)),
        }
    }
}
