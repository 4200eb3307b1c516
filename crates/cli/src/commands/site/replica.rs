//! `byname site replica`: the disks that files are on.

use super::account::SiteArgs;
use crate::commands::writing::open_tree;
use crate::exit::Outcome;
use crate::output;
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
}

pub(super) fn run(args: &Args, paths: &Paths) -> Outcome {
    let ReplicaCommand::Ls { names, site, json } = &args.command;
    let (mut tree, names) = open_tree(site, names, paths)?;
    let mut rows = Vec::new();
    for name in &names {
        let shown = output::name(name.view());
        for replica in tree.query("replicas", name)? {
            if *json {
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
    if !*json {
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
