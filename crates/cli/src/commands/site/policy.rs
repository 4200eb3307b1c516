//! `byname site policy`: where the content of files goes, and how many replicas it gets.

use super::account::SiteArgs;
use super::session::SiteSession;
use crate::commands::writing::{each_below, open_tree};
use crate::exit::{Failure, Outcome};
use crate::output;
use byname_access::{Room, Tree};
use byname_catalog::{Command, PolicyChanges};
use byname_packet::Name;
use byname_profile::Paths;
use serde_json::{Value, json};

/// Where the content of files goes, and how many replicas it gets.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: PolicyCommand,
}

/// What a policy says.
#[derive(Debug, Clone, Default, clap::Args)]
pub(in crate::commands) struct PolicyArgs {
    /// Replicas of each file.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u8).range(1..=16))]
    replicas: Option<u8>,
    /// Receipts of disks that a file needs before it is there. Default: of all replicas.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u8).range(1..=16))]
    receipts: Option<u8>,
    /// Space whose disks take the replicas.
    #[arg(long, value_name = "SPACE")]
    space: Option<String>,
}

impl PolicyArgs {
    pub(in crate::commands) fn changes(&self) -> PolicyChanges {
        PolicyChanges {
            space: self.space.clone(),
            replica_count: self.replicas,
            receipt_count: self.receipts,
        }
    }
}

#[derive(Debug, clap::Subcommand)]
enum PolicyCommand {
    /// List the policies of names and, without names, those of patterns.
    #[command(after_help = "Examples:
  byname site policy ls /lab /lab/raw
  byname site policy ls")]
    Ls {
        /// Names or links of directories and files. None: patterns.
        #[arg(value_name = "NAME")]
        names: Vec<String>,
        #[command(flatten)]
        site: SiteArgs,
        /// One JSON object per name or pattern.
        #[arg(long)]
        json: bool,
    },
    /// Set the policy of a directory, a file, or of new files whose names fit a pattern.
    #[command(after_help = "Examples:
  byname site policy set /lab/raw --replicas 3
  byname site policy set /lab/scratch --replicas 1 -R     all that is below it, too
  byname site policy set --pattern '*.raw' --space tape
  byname site policy set /lab/raw --versions 5 -R        of each file the last 5 before the current

What is made in a directory inherits its policy. A pattern counts more, the longest of several that
fit; options of `byname put` count more than both. What is there moves when it is written again.")]
    Set {
        /// Names or links of directories and files.
        #[arg(value_name = "NAME", required_unless_present = "pattern")]
        names: Vec<String>,
        /// Pattern of the names of new files: `*` is anything, `?` one octet.
        #[arg(long, value_name = "PATTERN", conflicts_with_all = ["names", "recursive"],
            value_parser = clap::builder::NonEmptyStringValueParser::new())]
        pattern: Option<String>,
        /// Set it for all that is in directories too.
        #[arg(short = 'R', long)]
        recursive: bool,
        #[command(flatten)]
        policy: PolicyArgs,
        /// Versions of each file that are kept when they are replaced. They count for quota.
        #[arg(long, value_name = "COUNT", conflicts_with = "pattern")]
        versions: Option<u8>,
        #[command(flatten)]
        site: SiteArgs,
    },
    /// Take the policy of a pattern back.
    Rm {
        /// The pattern.
        #[arg(long, value_name = "PATTERN")]
        pattern: String,
        #[command(flatten)]
        site: SiteArgs,
    },
}

pub(super) fn run(args: &Args, paths: &Paths) -> Outcome {
    match &args.command {
        PolicyCommand::Ls { names, site, json } if names.is_empty() => {
            patterns(&mut site.session(paths)?, *json)
        }
        PolicyCommand::Ls { names, site, json } => {
            let (mut tree, names) = open_tree(site, names, paths)?;
            list(&mut tree, &names, *json)
        }
        PolicyCommand::Set { names, pattern, recursive, policy, versions, site } => {
            let changes = policy.changes();
            if changes.is_empty() && versions.is_none() {
                return Err(Failure::usage("what? --replicas, --receipts, --space or --versions"));
            }
            if let Some(pattern) = pattern {
                let (pattern, changes) = (pattern.clone(), Some(changes));
                let command = Command::SetPattern { pattern, changes };
                let mut session = site.session(paths)?;
                session.run(command)?;
                tell_of_no_disks(policy, session.query("disks"));
                return Ok(());
            }
            let (mut tree, names) = open_tree(site, names, paths)?;
            names.iter().try_for_each(|name| match recursive {
                false => set(&mut tree, name, (&changes, *versions)),
                true => {
                    let act = &mut |tree: &mut Tree, name: &Name, is_link| match is_link {
                        true => Ok(()),
                        false => set(tree, name, (&changes, *versions)),
                    };
                    each_below((&mut tree, name), false, act)
                }
            })?;
            tell_of_no_disks(policy, tree.ask("disks"));
            Ok(())
        }
        PolicyCommand::Rm { pattern, site } => {
            let command = Command::SetPattern { pattern: pattern.clone(), changes: None };
            Ok(site.session(paths)?.run(command).map(drop)?)
        }
    }
}

/// A space is a word on disks: one that none of them has is not made by using it.
fn tell_of_no_disks<E>(policy: &PolicyArgs, disks: Result<Vec<Value>, E>) {
    // Who may not see disks is told when he writes.
    if let (Some(space), Ok(disks)) = (&policy.space, disks)
        && !disks.iter().any(|disk| disk["space"] == space.as_str())
    {
        let note = format!("no disk is in the space {space} yet: nothing can be written to it");
        output::err_line(&note);
    }
}

/// Sets what is given; the rest stays as it is.
fn set(tree: &mut Tree, name: &Name, (changes, versions): (&PolicyChanges, Option<u8>)) -> Outcome {
    if !changes.is_empty() {
        tree.set_policy(name, changes)?;
    }
    if let Some(wanted) = versions {
        let place = tree.place(name)?;
        tree.run(name, Command::SetVersions { place, wanted })?;
    }
    Ok(())
}

fn list(tree: &mut Tree, names: &[Name], json: bool) -> Outcome {
    let mut rows = Vec::new();
    for name in names {
        let Room { space, replicas, receipts, .. } = tree.room(name)?;
        let shown = output::name(name.view());
        if json {
            output::json_line(json!({
                "name": shown,
                "space": space,
                "replicas": replicas,
                "receipts": receipts,
            }));
        } else {
            let counts = [replicas.to_string(), receipts.to_string()];
            rows.push([&counts[..], &[output::one_line(&space), shown]].concat());
        }
    }
    if !json {
        output::table(&["REPLICAS", "RECEIPTS", "SPACE", "NAME"], &rows);
    }
    Ok(())
}

fn patterns(session: &mut SiteSession, json: bool) -> Outcome {
    let patterns = session.query("patterns")?;
    if json {
        patterns.into_iter().for_each(output::json_line);
        return Ok(());
    }
    let row = |pattern: &Value| {
        let given = |key: &str| match &pattern[key] {
            Value::String(text) => output::one_line(text),
            Value::Number(number) => number.to_string(),
            _ => String::new(),
        };
        ["replicas", "receipts", "space", "pattern"].map(given).to_vec()
    };
    let rows: Vec<_> = patterns.iter().map(row).collect();
    output::table(&["REPLICAS", "RECEIPTS", "SPACE", "PATTERN"], &rows);
    Ok(())
}
