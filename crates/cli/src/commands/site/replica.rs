//! `byname site replica`: the disks that files are on, and others that they shall be on.

mod placing;

use super::account::SiteArgs;
use crate::commands::writing::open_tree;
use crate::exit::Outcome;
use crate::output;
use byname_access::Tree;
use byname_packet::Name;
use byname_profile::Paths;
use serde_json::{Value, json};

/// Replicas of files.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: ReplicaCommand,
}

#[derive(Debug, clap::Subcommand)]
enum ReplicaCommand {
    /// List the disks that files are on. An empty file is on none.
    #[command(after_help = "Examples:
  byname site replica ls /lab/run7/a.root
  byname site replica ls /lab/run7/a.root /lab/run7/log.txt --json

WANTED is how many replicas the file's directory asked for when it was written. Whether the disks
have what the catalog says is found by `byname site fsck --disks`.")]
    Ls {
        /// Names or links of files.
        #[arg(value_name = "NAME", required = true)]
        names: Vec<String>,
        #[command(flatten)]
        site: SiteArgs,
        /// One JSON object per replica.
        #[arg(long)]
        json: bool,
    },
    /// Have files put on one more disk each, and wait until they are there.
    #[command(after_help = "Examples:
  byname site replica add /lab/run7/a.root            the head chooses the disk
  byname site replica add /lab/run7/a.root --to 5

What a file has beyond its policy stays until somebody drops it; `byname site fsck --disks` lists it
as over-replicated.")]
    Add {
        /// Names or links of files.
        #[arg(value_name = "NAME", required = true)]
        names: Vec<String>,
        /// The disk, by its number.
        #[arg(long, value_name = "DISK")]
        to: Option<u64>,
        #[command(flatten)]
        site: SiteArgs,
    },
    /// Have a disk drop files that another disk which answers has, too.
    #[command(after_help = "Example:
  byname site replica drop /lab/run7/a.root --from 3 --yes

A file that has fewer replicas than its policy wants then gets one more by itself: `byname site
policy set NAME --replicas N` says how many it shall have.")]
    Drop {
        /// Names or links of files.
        #[arg(value_name = "NAME", required = true)]
        names: Vec<String>,
        /// The disk, by its number.
        #[arg(long, value_name = "DISK")]
        from: u64,
        /// Drop them. Without this nothing is changed.
        #[arg(short, long)]
        yes: bool,
        #[command(flatten)]
        site: SiteArgs,
    },
    /// Have files leave a disk for another one, and wait until they have.
    #[command(after_help = "Examples:
  byname site replica move /lab/run7/a.root --from 3
  byname site replica move /lab/run7/a.root /lab/run7/b.root --from 3 --to 5

A file never has fewer replicas meanwhile. `byname site disk drain` does it with all that a disk
has.")]
    Move {
        /// Names or links of files.
        #[arg(value_name = "NAME", required = true)]
        names: Vec<String>,
        /// The disk that they leave, by its number.
        #[arg(long, value_name = "DISK")]
        from: u64,
        /// The disk that gets them. Default: the head chooses.
        #[arg(long, value_name = "DISK")]
        to: Option<u64>,
        #[command(flatten)]
        site: SiteArgs,
    },
}

pub(super) fn run(args: &Args, paths: &Paths) -> Outcome {
    match &args.command {
        ReplicaCommand::Ls { names, site, json } => list(names, site, *json, paths),
        ReplicaCommand::Add { names, to, site } => {
            each(names, site, paths, |tree, name| placing::make(tree, name, (None, *to)))
        }
        ReplicaCommand::Drop { names, from, yes, site } => {
            each(names, site, paths, |tree, name| placing::let_go(tree, name, *from, *yes))
        }
        ReplicaCommand::Move { names, from, to, site } => {
            each(names, site, paths, |tree, name| placing::make(tree, name, (Some(*from), *to)))
        }
    }
}

/// Does something with one file after the other; the first that fails ends it.
fn each(
    names: &[String],
    site: &SiteArgs,
    paths: &Paths,
    work: impl Fn(&mut Tree, &Name) -> Outcome,
) -> Outcome {
    let (mut tree, names) = open_tree(site, names, paths)?;
    names.iter().try_for_each(|name| work(&mut tree, name))
}

fn list(names: &[String], site: &SiteArgs, json: bool, paths: &Paths) -> Outcome {
    let (mut tree, names) = open_tree(site, names, paths)?;
    let mut rows = Vec::new();
    for name in &names {
        let shown = output::name(name.view());
        for replica in tree.query("replicas", name)? {
            if json {
                let mut line = json!({ "name": shown });
                if let (Some(line), Some(replica)) = (line.as_object_mut(), replica.as_object()) {
                    line.extend(replica.clone());
                }
                output::json_line(line);
            } else {
                rows.push(row(&replica, &shown));
            }
        }
    }
    if !json {
        let header = ["DISK", "STATE", "", "SERVER", "PLACE", "SIZE", "WANTED", "NAME"];
        output::table(&header, &rows);
    }
    Ok(())
}

fn row(replica: &Value, name: &str) -> Vec<String> {
    let text = |key: &str| output::one_line(replica[key].as_str().unwrap_or_default());
    let number = |key: &str| replica[key].as_u64().unwrap_or_default();
    let seen = if replica["up"] == true { "up" } else { "down" };
    vec![
        number("disk").to_string(),
        text("state"),
        seen.to_owned(),
        text("server"),
        text("place"),
        output::size(number("bytes")),
        number("wanted").to_string(),
        name.to_owned(),
    ]
}
