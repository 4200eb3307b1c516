//! `byname df`: room for content below names of a site.

use super::site::account::SiteArgs;
use super::writing::open_tree;
use crate::exit::Outcome;
use crate::output;
use byname_access::Room;
use byname_profile::Paths;
use serde_json::{Value, json};

/// Room for content below names of a site: by the quota of the tree that they are in, and by the
/// disks of its space.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname df /lab
  byname df /lab/run7 --json

Sizes are those of files: each is on as many disks as the site asks for.")]
pub(crate) struct Args {
    /// Names or links.
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
    #[command(flatten)]
    site: SiteArgs,
    /// One JSON object per name.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> Outcome {
    let (mut tree, names) = open_tree(&args.site, &args.names, paths)?;
    let mut rows = Vec::new();
    for name in &names {
        let room = tree.room(name)?;
        let shown = output::name(name.view());
        if args.json {
            output::json_line(as_json(&room, &shown));
        } else {
            rows.push(row(&room, shown));
        }
    }
    if !args.json {
        output::table(&["SIZE", "USED", "FREE", "ENTRIES", "SPACE", "NAME"], &rows);
    }
    Ok(())
}

fn row(room: &Room, name: String) -> Vec<String> {
    vec![
        output::size(room.size_bytes),
        output::size(room.used_bytes),
        output::size(room.free_bytes),
        entries(room),
        output::one_line(&room.space),
        name,
    ]
}

/// How many there are, and of how many if that is limited.
fn entries(room: &Room) -> String {
    match room.inodes_max {
        u64::MAX => room.inodes.to_string(),
        max => format!("{} of {max}", room.inodes),
    }
}

fn as_json(room: &Room, name: &str) -> Value {
    json!({
        "name": name,
        "space": room.space,
        "replicas": room.replicas,
        "disks": room.disks,
        "size_bytes": room.size_bytes,
        "used_bytes": room.used_bytes,
        "free_bytes": room.free_bytes,
        "entries": room.inodes,
        "entries_max": (room.inodes_max < u64::MAX).then_some(room.inodes_max),
    })
}
