//! `byname df`: room for content below names of a site.

use super::site::account::SiteArgs;
use super::writing::Tree;
use crate::exit::{Code, Failure, Outcome};
use crate::output;
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
    let (mut tree, names) = Tree::open(&args.site, &args.names, paths)?;
    let mut rows = Vec::new();
    for name in &names {
        let answer = tree.query("room", name)?;
        let room = answer.first().and_then(Room::of).ok_or_else(|| {
            Failure::new(Code::Other, "the head answered something else than was asked")
        })?;
        let shown = output::name(name.view());
        if args.json {
            output::json_line(room.json(&shown));
        } else {
            rows.push(room.row(shown));
        }
    }
    if !args.json {
        output::table(&["SIZE", "USED", "FREE", "ENTRIES", "SPACE", "NAME"], &rows);
    }
    Ok(())
}

/// Room at one name, in octets of files.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Room {
    space: String,
    replicas: u64,
    disks: u64,
    inodes: u64,
    inodes_max: u64,
    used_bytes: u64,
    size_bytes: u64,
    free_bytes: u64,
}

impl Room {
    fn of(answer: &Value) -> Option<Self> {
        let number = |key: &str| answer[key].as_u64();
        let replicas = number("replicas")?.max(1);
        let limit = number("bytes_max")?;
        let (used_bytes, reserved) = (number("bytes")?, number("reserved_bytes")?);
        let left = limit.saturating_sub(used_bytes).saturating_sub(reserved);
        Some(Self {
            space: answer["space"].as_str()?.to_owned(),
            replicas,
            disks: number("disks")?,
            inodes: number("inodes")?,
            inodes_max: number("inodes_max")?,
            used_bytes,
            size_bytes: (number("capacity_bytes")? / replicas).min(limit),
            free_bytes: (number("free_bytes")? / replicas).min(left),
        })
    }

    fn row(&self, name: String) -> Vec<String> {
        vec![
            output::size(self.size_bytes),
            output::size(self.used_bytes),
            output::size(self.free_bytes),
            self.inodes.to_string(),
            output::one_line(&self.space),
            name,
        ]
    }

    fn json(&self, name: &str) -> Value {
        json!({
            "name": name,
            "space": self.space,
            "replicas": self.replicas,
            "disks": self.disks,
            "size_bytes": self.size_bytes,
            "used_bytes": self.used_bytes,
            "free_bytes": self.free_bytes,
            "entries": self.inodes,
            "entries_max": (self.inodes_max < u64::MAX).then_some(self.inodes_max),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Room;
    use serde_json::json;

    #[test]
    fn room_is_what_quota_and_disks_leave() {
        let answer = |bytes_max: u64, free: u64| {
            json!({
                "space": "default", "replicas": 2, "inodes": 3, "inodes_max": u64::MAX,
                "bytes": 100, "reserved_bytes": 50, "bytes_max": bytes_max, "disks": 4,
                "capacity_bytes": 4000, "free_bytes": free,
            })
        };
        let room = |limit, free| {
            let room = Room::of(&answer(limit, free)).unwrap();
            (room.size_bytes, room.free_bytes)
        };
        assert_eq!(room(u64::MAX, 3000), (2000, 1500), "two replicas of each octet");
        assert_eq!(room(1000, 3000), (1000, 850), "the quota, less what is reserved");
        assert_eq!(room(1000, 10), (1000, 5), "the disks have less");
        assert_eq!(room(120, 3000), (120, 0), "more is used than may be");
        assert_eq!(Room::of(&json!({})), None);
    }
}
