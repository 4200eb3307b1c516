//! Commands that change the name space of a site: `mkdir`, `rm`, `mv`, `ln`, `chmod`, `chown`,
//! `touch`, `truncate`.
//!
//! Each is one command to the head, or several, each of which happens whole or not at all.

pub(crate) mod attributes;
pub(crate) mod ln;
pub(crate) mod mkdir;
pub(crate) mod mv;
pub(crate) mod rm;
pub(crate) mod touch;

pub(super) use mkdir::without_umask;

use super::site::account::{Account, SiteArgs};
use super::site::session::{SiteSession, refused};
use crate::exit::{Code, Failure, Outcome};
use crate::output;
use byname_catalog::{Command, EntryName, Place, Refusal};
use byname_packet::{Name, NameRef};
use byname_profile::Paths;
use byname_site::{SiteAnswer, SiteName};

/// Type of a generic component.
const GENERIC: u16 = 8;

/// A user at the site above the names that a command is about.
pub(super) struct Tree {
    pub(super) account: Account,
    session: SiteSession,
}

impl Tree {
    pub(super) fn open(
        args: &SiteArgs,
        targets: &[String],
        paths: &Paths,
    ) -> Outcome<(Self, Vec<Name>)> {
        let (account, names) = args.account_above(targets, paths)?;
        let session = SiteSession::of(&account)?;
        Ok((Self { account, session }, names))
    }

    pub(super) fn place(&self, name: &Name) -> Outcome<Place> {
        place(&self.account.site, name.view())
    }

    /// Sends a command about a name.
    fn execute(&mut self, command: Command) -> Outcome<Result<SiteAnswer, Refusal>> {
        self.session.execute(command)
    }

    /// The same where every refusal is a failure.
    fn run(&mut self, name: &Name, command: Command) -> Outcome {
        self.execute(command)?.map(drop).map_err(|refusal| about(name, refusal))
    }
}

/// The place of a name of a site.
pub(super) fn place(site: &SiteName, name: NameRef<'_>) -> Outcome<Place> {
    let bad = |refusal| about(&name.to_name(), refusal);
    let below = name.suffix(site.view().count());
    let mut place = Place::path("").map_err(bad)?;
    for component in below.components() {
        if component.typ != GENERIC {
            return Err(bad(Refusal::BadName));
        }
        place.names.push(EntryName::new(component.value).map_err(bad)?);
    }
    Ok(place)
}

/// A refusal that concerns a name.
pub(crate) fn about(name: &Name, refusal: Refusal) -> Failure {
    let failure = refused(refusal);
    let message = format!("{}: {}", output::name(name.view()), failure.message);
    Failure { message, ..failure }
}

/// Does something with each name and goes on after failures; one name fails with its own code.
fn each(names: &[Name], mut act: impl FnMut(&Name) -> Outcome) -> Outcome {
    if let [name] = names {
        return act(name);
    }
    let mut failed = Vec::new();
    for name in names {
        if let Err(failure) = act(name) {
            let hint = failure.hint.map(|hint| format!("\n{hint}")).unwrap_or_default();
            failed.push(format!("{}{hint}", failure.message));
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    let message = format!("{} of {} names failed:", failed.len(), names.len());
    Err(Failure::new(Code::SomeFailed, message).hint(failed.join("\n")))
}

/// Reads permission bits in octal notation.
fn mode(text: &str) -> Result<u16, &'static str> {
    let mode = u16::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o7777);
    mode.ok_or("a mode is octal, such as 755")
}
