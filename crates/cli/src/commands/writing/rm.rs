//! `byname rm`: files and directories of a site are removed.

use super::{CACHED, Tree, about, each};
use crate::commands::site::account::SiteArgs;
use crate::exit::{Code, Failure, Outcome};
use crate::output;
use crate::target::Session;
use byname_catalog::{Command, Refusal};
use byname_packet::Name;
use byname_profile::Paths;

/// Times that a directory is listed which is not empty when all that was listed is gone.
const ROUNDS: u32 = 5;

/// Remove files of a site, and with -r directories with all that is in them.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname rm /lab/run7/a.root
  byname rm -r /lab/run7

A directory is out of sight at once, with all that is in it. Its quota is free when the head has
taken it apart, some seconds later where there are many files. Whoever reads a removed file at that
moment has ten minutes to finish.")]
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
    let (mut tree, names) = Tree::open(&args.site, &args.names, paths)?;
    each(&names, |name| {
        let place = tree.place(name)?;
        let command = match args.recursive {
            true => Command::RemoveAll { place },
            false => Command::Unlink { place },
        };
        match tree.execute(command)? {
            Ok(_) => Ok(()),
            Err(Refusal::NotFound) if args.force => Ok(()),
            Err(Refusal::TreeTooLarge) => {
                let mut reader = tree.account.reader(name)?;
                tree.remove_in_parts(name, &mut reader)
            }
            Err(Refusal::IsDirectory) => {
                let hint = "to remove it with all that is in it: byname rm -r";
                Err(about(name, Refusal::IsDirectory).hint(hint))
            }
            Err(refusal) => Err(about(name, refusal)),
        }
    })
}

impl Tree {
    /// Removes a directory with all that is in it, where the head will not find out at once whether
    /// this user may.
    fn remove_in_parts(&mut self, name: &Name, reader: &mut Session) -> Outcome {
        for round in 0..ROUNDS {
            if round > 0 {
                std::thread::sleep(CACHED);
            }
            self.empty(name, reader)?;
            let place = self.place(name)?;
            match self.execute(Command::RemoveAll { place })? {
                Ok(_) | Err(Refusal::NotFound) => return Ok(()),
                // Somebody adds to it, or the list was not the newest.
                Err(Refusal::TreeTooLarge) => {}
                Err(refusal) => return Err(about(name, refusal)),
            }
        }
        let shown = output::name(name.view());
        Err(Failure::new(Code::Other, format!("{shown}: somebody goes on writing in it")))
    }

    /// Removes all that a list has.
    fn empty(&mut self, name: &Name, reader: &mut Session) -> Outcome {
        let listing = match reader.run(|client, _| client.list(name)) {
            Err(failure) if failure.code == Code::NotFound => return Ok(()),
            listing => listing?,
        };
        for listed in listing.listed() {
            let below = name.with_generic(listed.entry.name);
            let place = self.place(&below)?;
            match self.execute(Command::RemoveAll { place })? {
                Ok(_) | Err(Refusal::NotFound) => {}
                Err(Refusal::TreeTooLarge) => self.remove_in_parts(&below, reader)?,
                Err(refusal) => return Err(about(&below, refusal)),
            }
        }
        Ok(())
    }
}
