//! `-o`: options as mount(8) hands them on from /etc/fstab.

use super::Args;
use crate::exit::{Failure, Outcome};
use byname_profile::units;

/// Options that mount(8), systemd or the kernel handle, or that say what holds anyway.
const PASSED_OVER: &[&str] = &[
    "ro",
    "rw",
    "defaults",
    "auto",
    "noauto",
    "user",
    "users",
    "nouser",
    "owner",
    "group",
    "nofail",
    "_netdev",
    "suid",
    "nosuid",
    "dev",
    "nodev",
    "exec",
    "noexec",
    "atime",
    "noatime",
    "relatime",
    "norelatime",
    "strictatime",
    "diratime",
    "nodiratime",
    "lazytime",
    "sync",
    "async",
    "dirsync",
    "default_permissions",
];

/// Moves what `-o` says to where the flags are.
pub(super) fn apply(args: &mut Args) -> Outcome {
    for option in all(args) {
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (option.as_str(), None),
        };
        match (name, value) {
            ("allow_other", None) => args.allow_other = true,
            ("table", None) => args.table = true,
            ("no_cache", None) => args.no_cache = true,
            ("no_passthrough", None) => args.no_passthrough = true,
            ("freshness", Some(value)) => {
                let wrong = |why| Failure::usage(format!("-o {option}: {why}"));
                args.freshness = Some(units::seconds(value).map_err(wrong)?);
            }
            ("metrics", Some(value)) => {
                let wrong = |why| Failure::usage(format!("-o {option}: {why}"));
                args.metrics = Some(value.parse().map_err(wrong)?);
            }
            ("inodes", Some(value)) => {
                let wrong = |why| Failure::usage(format!("-o {option}: {why}"));
                args.inodes = value.parse().map_err(wrong)?;
            }
            (name, None) if PASSED_OVER.contains(&name) => {}
            (name, _) if name.starts_with("x-") || name == "comment" => {}
            (name, value) => {
                let is_known = args.read.set(name, value);
                if !is_known.map_err(|why| Failure::usage(format!("-o {option}: {why}")))? {
                    return Err(Failure::usage(format!("-o {option}: no such option")));
                }
            }
        }
    }
    if args.read.is_fresh() && args.read.is_offline() {
        return Err(Failure::usage("fresh and offline exclude each other"));
    }
    Ok(())
}

/// True if `-o` has this option.
pub(super) fn has(args: &Args, name: &str) -> bool {
    all(args).iter().any(|option| option == name)
}

fn all(args: &Args) -> Vec<String> {
    let words = args.options.iter().flat_map(|list| list.split(','));
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}
