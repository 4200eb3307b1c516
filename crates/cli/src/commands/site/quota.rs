//! `byname site quota`: what users, groups and trees use, and may use.

use super::account::SiteArgs;
use super::session::SiteSession;
use crate::commands::writing::{about, open_tree};
use crate::exit::{Code, Failure, Outcome};
use crate::output;
use byname_access::Tree;
use byname_catalog::id::InodeId;
use byname_catalog::{Command, Limits, Refusal, Subject};
use byname_packet::Name;
use byname_profile::{Paths, units};
use serde_json::{Value, json};

/// What users, groups and trees of a site use, and may use.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: QuotaCommand,
}

#[derive(Debug, clap::Subcommand)]
enum QuotaCommand {
    /// List use and limits: operators see all, others their own and those of trees.
    #[command(after_help = "Examples:
  byname site quota ls
  byname site quota ls --json

Sizes are those of files: each is on as many disks as its policy asks for.")]
    Ls {
        #[command(flatten)]
        site: SiteArgs,
        /// One JSON object per user, group or tree.
        #[arg(long)]
        json: bool,
    },
    /// Limit what a user, a group or a tree may use. What is not given stays.
    #[command(after_help = "Examples:
  byname site quota set user:anna --bytes 2T --entries 1000000
  byname site quota set group:physics --bytes none
  byname site quota set /lab/archive --bytes 10T

A directory becomes a tree with a quota of its own while it is empty; the top directory is one.")]
    Set {
        /// user:NAME, group:NAME, or name or link of a directory.
        #[arg(value_name = "WHOSE")]
        whose: String,
        /// Octets of files, such as 500G or 2T, or `none`.
        #[arg(long, value_name = "SIZE", required_unless_present = "entries")]
        bytes: Option<String>,
        /// Files, directories and links, or `none`.
        #[arg(long, value_name = "COUNT")]
        entries: Option<String>,
        #[command(flatten)]
        site: SiteArgs,
    },
}

pub(super) fn run(args: &Args, paths: &Paths) -> Outcome {
    match &args.command {
        QuotaCommand::Ls { site, json } => list(&mut site.session(paths)?, *json),
        QuotaCommand::Set { whose, bytes, entries, site } => {
            let bytes = bytes.as_deref().map(|text| limit(text, octets)).transpose()?;
            let entries = entries.as_deref().map(|text| limit(text, count)).transpose()?;
            let change = |old: Limits| Limits {
                inodes: entries.unwrap_or(old.inodes),
                bytes: bytes.unwrap_or(old.bytes),
            };
            match Whose::of(whose) {
                Whose::Tree if !whose.contains(['/', ':']) => {
                    let hint = format!("user:{whose}, group:{whose}, or the name of a directory");
                    Err(Failure::usage(format!("{whose}: whose quota?")).hint(hint))
                }
                Whose::Tree => set_tree(site, whose, &change, paths),
                Whose::Somebody(subject) => {
                    let mut session = site.session(paths)?;
                    let limits = change(limits_of(&mut session, &subject)?);
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
            _ => Self::Tree,
        }
    }
}

fn limit(text: &str, read: fn(&str) -> Outcome<u64>) -> Outcome<u64> {
    if text == "none" { Ok(u64::MAX) } else { read(text) }
}

fn octets(text: &str) -> Outcome<u64> {
    units::size(text).map_err(Failure::usage)
}

fn count(text: &str) -> Outcome<u64> {
    text.parse().map_err(|_| Failure::usage(format!("{text}: neither a number nor `none`")))
}

/// Limits of a user or group as they are.
fn limits_of(session: &mut SiteSession, subject: &Subject) -> Outcome<Limits> {
    let (kind, name) = match subject {
        Subject::User(name) => ("user", name.as_str()),
        Subject::Group(name) => ("group", name.as_str()),
        Subject::Tree(_) => ("tree", ""),
    };
    let quotas = session.query("quotas")?;
    let known = quotas.iter().find(|quota| quota["kind"] == kind && quota["name"] == name);
    Ok(known.and_then(limits).unwrap_or(Limits::NONE))
}

fn limits(quota: &Value) -> Option<Limits> {
    Some(Limits { inodes: quota["inodes_max"].as_u64()?, bytes: quota["bytes_max"].as_u64()? })
}

/// Limits a directory, which gets a quota of its own if it has none.
fn set_tree(
    site: &SiteArgs,
    whose: &str,
    change: &dyn Fn(Limits) -> Limits,
    paths: &Paths,
) -> Outcome {
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
    let subject = Subject::Tree(InodeId(inode));
    Ok(tree.run(name, Command::SetLimits { subject, limits: change(old) })?)
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

fn list(session: &mut SiteSession, json: bool) -> Outcome {
    let site = output::name(session.site().view());
    let shown = |quota: &Value| {
        let name = quota["name"].as_str().unwrap_or_default();
        match quota["kind"].as_str() {
            Some("tree") if name == "/" => site.clone(),
            Some("tree") if name.starts_with('/') => format!("{site}{name}"),
            _ => output::one_line(name),
        }
    };
    let quotas = session.query("quotas")?;
    if json {
        for quota in &quotas {
            let limited = |key: &str| quota[key].as_u64().filter(|limit| *limit < u64::MAX);
            output::json_line(json!({
                "kind": quota["kind"],
                "name": shown(quota),
                "entries": quota["inodes"],
                "entries_reserved": quota["reserved_inodes"],
                "entries_max": limited("inodes_max"),
                "bytes": quota["bytes"],
                "bytes_reserved": quota["reserved_bytes"],
                "bytes_max": limited("bytes_max"),
            }));
        }
        return Ok(());
    }
    let row = |quota: &Value| {
        let number = |key: &str| quota[key].as_u64().unwrap_or_default();
        let most = |key: &str, text: fn(u64) -> String| match number(key) {
            u64::MAX => "-".to_owned(),
            limit => text(limit),
        };
        vec![
            output::one_line(quota["kind"].as_str().unwrap_or_default()),
            output::size(number("bytes").saturating_add(number("reserved_bytes"))),
            most("bytes_max", output::size),
            number("inodes").saturating_add(number("reserved_inodes")).to_string(),
            most("inodes_max", |limit| limit.to_string()),
            shown(quota),
        ]
    };
    let rows: Vec<_> = quotas.iter().map(row).collect();
    output::table(&["OF", "SIZE", "LIMIT", "ENTRIES", "LIMIT", "NAME"], &rows);
    Ok(())
}
