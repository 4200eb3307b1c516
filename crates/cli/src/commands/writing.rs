//! Commands that change the name space of a site: `mkdir`, `rm`, `mv`, `ln`, `chmod`, `chown`,
//! `getfacl`, `setfacl`, `touch`, `truncate`, `xattr`.
//!
//! Each is one command to the head, or several, each of which happens whole or not at all.

pub(crate) mod acl;
pub(crate) mod attributes;
mod below;
pub(crate) mod ln;
pub(crate) mod mkdir;
pub(crate) mod mv;
pub(crate) mod rm;
pub(crate) mod touch;
pub(crate) mod truncate;
pub(crate) mod xattr;

pub(crate) use super::site::failure::about;
pub(super) use below::each_below;
pub(super) use mkdir::without_umask;

use super::site::account::SiteArgs;
use crate::exit::{Code, Failure, Outcome};
use byname_access::Tree;
use byname_packet::Name;
use byname_profile::Paths;
use std::time::Duration;

/// Failures that are shown; more are counted.
const FAILURES_MAX: usize = 100;
/// Time for which caches keep what a site says, and a little more: a list is as old at most.
pub(super) const CACHED: Duration = Duration::from_millis(1100);

/// A user at the site above the names that a command is about, and these names.
pub(super) fn open_tree(
    args: &SiteArgs,
    targets: &[String],
    paths: &Paths,
) -> Outcome<(Tree, Vec<Name>)> {
    let (account, names) = args.account_above(targets, paths)?;
    Ok((Tree::open(account)?, names))
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
