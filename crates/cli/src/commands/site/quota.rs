//! `byname site quota`: what users, groups, trees and spaces use, and may use.

mod report;

use super::account::SiteArgs;
use super::session::SiteSession;
use super::user::is_user;
use crate::commands::writing::{about, open_tree};
use crate::exit::{Code, Failure, Outcome};
use crate::output;
use byname_access::Tree;
use byname_catalog::id::InodeId;
use byname_catalog::{Command, Limits, Refusal, Subject};
use byname_packet::Name;
use byname_profile::{Paths, units};
use serde_json::Value;

pub(super) use report::warnings;

/// What users, groups, trees and spaces of a site use, and may use.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: QuotaCommand,
}

#[derive(Debug, clap::Subcommand)]
enum QuotaCommand {
    /// List use and limits: operators see all, others their own and those of trees and spaces.
    #[command(after_help = "Examples:
  byname site quota ls
  byname site quota ls --over
  byname site quota ls --json

Sizes are those of files: each is on as many disks as its policy asks for. Before a size or a number
of entries that is above its soft limit is a `+`, before one that has reached its hard one a `!`.")]
    Ls {
        #[command(flatten)]
        site: SiteArgs,
        /// Only those above a soft limit, or at 95 % of a hard one.
        #[arg(long)]
        over: bool,
        /// One JSON object per user, group, tree or space.
        #[arg(long)]
        json: bool,
    },
    /// Limit what a user, a group, a tree or a space may use. What is not given stays.
    #[command(after_help = "Examples:
  byname site quota set user:anna --bytes 2T --entries 1000000
  byname site quota set user:anna --soft-bytes 1.5T --grace 7d
  byname site quota set group:physics --bytes none
  byname site quota set /lab/archive --bytes 10T
  byname site quota set space:tape --bytes 500T

A directory becomes a tree with a quota of its own while it is empty; the top directory is one.
A soft limit may be passed for the grace time; then nothing is added until it is kept again.")]
    Set {
        /// user:NAME, group:NAME, space:NAME, or name or link of a directory.
        #[arg(value_name = "WHOSE")]
        whose: String,
        #[command(flatten)]
        limits: LimitArgs,
        #[command(flatten)]
        site: SiteArgs,
    },
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = true)]
struct LimitArgs {
    /// Octets of files, such as 500G or 2T, or `none`.
    #[arg(long, value_name = "SIZE")]
    bytes: Option<String>,
    /// Files, directories and links, or `none`.
    #[arg(long, value_name = "COUNT")]
    entries: Option<String>,
    /// Octets that may be passed for the grace time, or `none`.
    #[arg(long, value_name = "SIZE")]
    soft_bytes: Option<String>,
    /// Files, directories and links that may be passed for the grace time, or `none`.
    #[arg(long, value_name = "COUNT", visible_alias = "soft-files")]
    soft_entries: Option<String>,
    /// Time above a soft limit in which one may still add: 7d unless it is set, 0s for none.
    #[arg(long, value_name = "TIME")]
    grace: Option<String>,
}

/// Limits that are given; the others stay.
#[derive(Debug, Clone, Copy, Default)]
struct LimitChanges {
    bytes: Option<u64>,
    inodes: Option<u64>,
    soft_bytes: Option<u64>,
    soft_inodes: Option<u64>,
    grace_ns: Option<u64>,
}

impl LimitArgs {
    fn read(&self) -> Outcome<LimitChanges> {
        let limit = |text: &Option<String>, read: fn(&str) -> Outcome<u64>| {
            let read = |text: &str| if text == "none" { Ok(u64::MAX) } else { read(text) };
            text.as_deref().map(read).transpose()
        };
        Ok(LimitChanges {
            bytes: limit(&self.bytes, octets)?,
            inodes: limit(&self.entries, count)?,
            soft_bytes: limit(&self.soft_bytes, octets)?,
            soft_inodes: limit(&self.soft_entries, count)?,
            grace_ns: self.grace.as_deref().map(nanoseconds).transpose()?,
        })
    }
}

impl LimitChanges {
    fn of(&self, old: Limits) -> Limits {
        Limits {
            inodes: self.inodes.unwrap_or(old.inodes),
            bytes: self.bytes.unwrap_or(old.bytes),
            soft_inodes: self.soft_inodes.unwrap_or(old.soft_inodes),
            soft_bytes: self.soft_bytes.unwrap_or(old.soft_bytes),
            grace_ns: self.grace_ns.unwrap_or(old.grace_ns),
        }
    }
}

pub(super) fn run(args: &Args, paths: &Paths) -> Outcome {
    match &args.command {
        QuotaCommand::Ls { site, over, json } => {
            report::list(&mut site.session(paths)?, *over, *json)
        }
        QuotaCommand::Set { whose, limits, site } => {
            let changes = limits.read()?;
            match Whose::of(whose) {
                Whose::Tree if !whose.contains(['/', ':']) => {
                    let hint = format!(
                        "user:{whose}, group:{whose}, space:{whose}, or the name of a directory"
                    );
                    Err(Failure::usage(format!("{whose}: whose quota?")).hint(hint))
                }
                Whose::Tree => set_tree(site, whose, &changes, paths),
                Whose::Somebody(subject) => {
                    let mut session = site.session(paths)?;
                    if let Subject::User(user) = &subject
                        && !is_user(&mut session, user)?
                    {
                        output::err_line(&format!("the site has no user {user} yet"));
                    }
                    let limits = changes.of(limits_of(&mut session, &subject)?);
                    check_order(&limits)?;
                    Ok(session.run(Command::SetLimits { subject, limits }).map(drop)?)
                }
            }
        }
    }
}

/// Whose quota.
enum Whose {
    Somebody(Subject),
    Tree,
}

impl Whose {
    fn of(text: &str) -> Self {
        match text.split_once(':') {
            Some(("user", name)) => Self::Somebody(Subject::User(name.to_owned())),
            Some(("group", name)) => Self::Somebody(Subject::Group(name.to_owned())),
            Some(("space", name)) => Self::Somebody(Subject::Space(name.to_owned())),
            _ => Self::Tree,
        }
    }
}

fn octets(text: &str) -> Outcome<u64> {
    units::size(text).map_err(Failure::usage)
}

fn count(text: &str) -> Outcome<u64> {
    text.parse().map_err(|_| Failure::usage(format!("{text}: neither a number nor `none`")))
}

fn nanoseconds(text: &str) -> Outcome<u64> {
    let time = units::age(text).map_err(Failure::usage)?;
    u64::try_from(time.as_nanos()).map_err(|_| Failure::usage(format!("{text} is too long")))
}

/// Limits of a user, group or space as they are.
fn limits_of(session: &mut SiteSession, subject: &Subject) -> Outcome<Limits> {
    let (kind, name) = match subject {
        Subject::User(name) => ("user", name.as_str()),
        Subject::Group(name) => ("group", name.as_str()),
        Subject::Space(name) => ("space", name.as_str()),
        Subject::Tree(_) => ("tree", ""),
    };
    let quotas = session.query("quotas")?;
    let known = quotas.iter().find(|quota| quota["kind"] == kind && quota["name"] == name);
    Ok(known.and_then(limits).unwrap_or(Limits::NONE))
}

fn limits(quota: &Value) -> Option<Limits> {
    let number = |key: &str| quota[key].as_u64();
    let none = Limits::NONE;
    Some(Limits {
        inodes: number("inodes_max")?,
        bytes: number("bytes_max")?,
        soft_inodes: number("soft_inodes").unwrap_or(none.soft_inodes),
        soft_bytes: number("soft_bytes").unwrap_or(none.soft_bytes),
        grace_ns: number("grace_ns").unwrap_or(none.grace_ns),
    })
}

/// Limits a directory, which gets a quota of its own if it has none.
fn set_tree(site: &SiteArgs, whose: &str, changes: &LimitChanges, paths: &Paths) -> Outcome {
    let (mut tree, names) = open_tree(site, &[whose.to_owned()], paths)?;
    let [name] = names.as_slice() else { return Err(Failure::usage("one name")) };
    let room = tree.query("room", name)?.into_iter().next().unwrap_or_default();
    let (Some(inode), Some(top)) = (room["inode"].as_u64(), room["tree"].as_u64()) else {
        return Err(Failure::new(Code::Other, "the head answered something else than was asked"));
    };
    let old = match inode == top {
        true => limits(&room).unwrap_or(Limits::NONE),
        false => {
            make_tree(&mut tree, name)?;
            Limits::NONE
        }
    };
    let (subject, limits) = (Subject::Tree(InodeId(inode)), changes.of(old));
    check_order(&limits)?;
    Ok(tree.run(name, Command::SetLimits { subject, limits })?)
}

/// A soft limit above the hard one would never count.
fn check_order(limits: &Limits) -> Outcome {
    let wrong = |what| {
        Failure::usage(format!("the soft limit of {what} is above the hard one"))
            .hint("give both, or `none` for one of them")
    };
    // Without a limit there is nothing to be above.
    let is_above = |soft: u64, hard: u64| soft != u64::MAX && soft > hard;
    match (is_above(limits.soft_bytes, limits.bytes), is_above(limits.soft_inodes, limits.inodes)) {
        (true, _) => Err(wrong("octets")),
        (_, true) => Err(wrong("entries")),
        _ => Ok(()),
    }
}

fn make_tree(tree: &mut Tree, name: &Name) -> Outcome {
    let place = tree.place(name)?;
    let made = tree.execute(Command::MakeTree { place })?;
    made.map(drop).map_err(|refusal| match refusal {
        Refusal::NotEmpty => about(name, refusal)
            .hint("only an empty directory gets a quota of its own: make one, move things there"),
        _ => about(name, refusal),
    })
}
