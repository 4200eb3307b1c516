//! `byname site space`: the spaces that a site's disks make up.

use super::account::SiteArgs;
use crate::exit::Outcome;
use crate::output;
use byname_profile::Paths;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The spaces of a site: named sets of disks.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: SpaceCommand,
}

#[derive(Debug, clap::Subcommand)]
enum SpaceCommand {
    /// List spaces: their disks, and how much room there is for new content.
    #[command(after_help = "Examples:
  byname site space ls
  byname site space ls --json")]
    Ls {
        #[command(flatten)]
        site: SiteArgs,
        /// One JSON object per space.
        #[arg(long)]
        json: bool,
    },
}

/// Sums over the disks of a space.
#[derive(Debug, Default, PartialEq, Eq)]
struct Space {
    disks: u64,
    /// Those that take new content.
    writable: u64,
    capacity_bytes: u64,
    used_bytes: u64,
    /// Room on those that take new content.
    free_bytes: u64,
}

pub(super) fn run(args: &Args, paths: &Paths) -> Outcome {
    let SpaceCommand::Ls { site, json } = &args.command;
    let disks = site.session(paths)?.query("disks")?;
    let spaces = spaces(&disks);
    if *json {
        for (name, space) in &spaces {
            output::json_line(json!({
                "space": name,
                "disks": space.disks,
                "writable": space.writable,
                "capacity_bytes": space.capacity_bytes,
                "used_bytes": space.used_bytes,
                "free_bytes": space.free_bytes,
            }));
        }
        return Ok(());
    }
    let row = |(name, space): (&String, &Space)| {
        vec![
            output::one_line(name),
            space.disks.to_string(),
            space.writable.to_string(),
            output::size(space.used_bytes),
            output::size(space.capacity_bytes),
            output::size(space.free_bytes),
        ]
    };
    let header = ["SPACE", "DISKS", "WRITABLE", "USED", "CAPACITY", "FREE"];
    output::table(&header, &spaces.iter().map(row).collect::<Vec<_>>());
    Ok(())
}

fn spaces(disks: &[Value]) -> BTreeMap<String, Space> {
    let mut spaces: BTreeMap<String, Space> = BTreeMap::new();
    for disk in disks {
        let bytes = |key: &str| disk[key].as_u64().unwrap_or_default();
        let space = spaces.entry(disk["space"].as_str().unwrap_or_default().to_owned());
        let space = space.or_default();
        space.disks += 1;
        space.capacity_bytes = space.capacity_bytes.saturating_add(bytes("capacity_bytes"));
        space.used_bytes = space.used_bytes.saturating_add(bytes("used_bytes"));
        if disk["state"] == "rw" && disk["up"] == true {
            let taken = bytes("used_bytes").saturating_add(bytes("reserved_bytes"));
            let free = bytes("capacity_bytes").saturating_sub(taken);
            space.writable += 1;
            space.free_bytes = space.free_bytes.saturating_add(free);
        }
    }
    spaces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_disks_that_take_content_have_room() {
        let disk = |space: &str, state: &str, is_up: bool| {
            json!({
                "space": space, "state": state, "up": is_up,
                "capacity_bytes": 100, "used_bytes": 30, "reserved_bytes": 20,
            })
        };
        let disks = [
            disk("main", "rw", true),
            disk("main", "rw", false),
            disk("main", "ro", true),
            disk("tape", "drain", true),
        ];
        let spaces = spaces(&disks);
        let space = |disks, writable, free_bytes| Space {
            disks,
            writable,
            capacity_bytes: 100 * disks,
            used_bytes: 30 * disks,
            free_bytes,
        };
        assert_eq!(spaces["main"], space(3, 1, 50));
        assert_eq!(spaces["tape"], space(1, 0, 0));
    }
}
