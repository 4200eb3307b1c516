//! Commands that change the name space of a site: `mkdir`, `rm`, `mv`, `ln`, `chmod`, `chown`,
//! `touch`, `truncate`, `xattr`.
//!
//! Each is one command to the head, or several, each of which happens whole or not at all.

pub(crate) mod attributes;
mod below;
pub(crate) mod ln;
pub(crate) mod mkdir;
pub(crate) mod mv;
pub(crate) mod rm;
pub(crate) mod touch;
pub(crate) mod truncate;
pub(crate) mod xattr;

pub(super) use mkdir::without_umask;

use super::site::account::{Account, SiteArgs};
use super::site::session::{SiteSession, refused};
use crate::exit::{Code, Failure, Outcome};
use crate::output;
use byname_catalog::{Command, EntryName, NAME_BYTES_MAX, PATH_NAMES_MAX, Place, Refusal};
use byname_packet::{Name, NameRef};
use byname_profile::Paths;
use byname_site::{SiteAnswer, SiteName};
use serde_json::Value;
use std::time::Duration;

/// Type of a generic component.
const GENERIC: u16 = 8;
/// Failures that are shown; more are counted.
const FAILURES_MAX: usize = 100;
/// Time for which caches keep what a site says, and a little more: a list is as old at most.
pub(super) const CACHED: Duration = Duration::from_millis(1100);

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

    /// Lines of a query about a name, which no cache answers.
    pub(super) fn query(&mut self, subject: &str, name: &Name) -> Outcome<Vec<Value>> {
        self.place(name)?;
        let lines = self.session.query(&format!("{subject} {name}"));
        lines.map_err(|failure| {
            let message = format!("{}: {}", output::name(name.view()), failure.message);
            Failure { message, ..failure }
        })
    }

    /// Sends a command about a name.
    pub(super) fn execute(&mut self, command: Command) -> Outcome<Result<SiteAnswer, Refusal>> {
        self.session.execute(command)
    }

    /// The same where every refusal is a failure.
    pub(super) fn run(&mut self, name: &Name, command: Command) -> Outcome {
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
    if place.names.len() > PATH_NAMES_MAX {
        return Err(bad(Refusal::NameTooLong));
    }
    Ok(place)
}

/// A refusal that concerns a name.
pub(crate) fn about(name: &Name, refusal: Refusal) -> Failure {
    let failure = refused(refusal);
    let message = format!("{}: {}", output::name(name.view()), failure.message);
    let failure = Failure { message, ..failure };
    match refusal {
        Refusal::NameTooLong => failure.hint(format!(
            "a name has at most {NAME_BYTES_MAX} octets, a path at most {PATH_NAMES_MAX} names"
        )),
        _ => failure,
    }
}

/// Failures of some of many things that are done one after the other.
#[derive(Debug, Default)]
struct Failures {
    count: u64,
    shown: Vec<String>,
}

impl Failures {
    fn add(&mut self, failure: Failure) {
        self.count += 1;
        if self.shown.len() < FAILURES_MAX {
            let hint = failure.hint.map(|hint| format!("\n{hint}")).unwrap_or_default();
            self.shown.push(format!("{}{hint}", failure.message));
        }
    }

    /// The end after `total` things.
    fn outcome(mut self, total: u64, what: &str) -> Outcome {
        if self.count == 0 {
            return Ok(());
        }
        let message = format!("{} of {total} {what} failed:", self.count);
        let more = self.count - self.shown.len() as u64;
        if more > 0 {
            self.shown.push(format!("and {more} more"));
        }
        Err(Failure::new(Code::SomeFailed, message).hint(self.shown.join("\n")))
    }
}

/// Does something with each name and goes on after failures; one name fails with its own code.
fn each(names: &[Name], mut act: impl FnMut(&Name) -> Outcome) -> Outcome {
    if let [name] = names {
        return act(name);
    }
    let mut failures = Failures::default();
    for name in names {
        if let Err(failure) = act(name) {
            failures.add(failure);
        }
    }
    failures.outcome(names.len() as u64, "names")
}

/// Reads permission bits in octal notation.
fn mode(text: &str) -> Result<u16, &'static str> {
    let mode = u16::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o7777);
    mode.ok_or("a mode is octal, such as 755")
}
