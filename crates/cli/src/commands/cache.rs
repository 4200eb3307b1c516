//! `byname cache`: the site cache for people. Reading through it needs none of this.

mod warm;

use crate::exit::{Code, Failure, Outcome};
use crate::{output, settings};
use byname_cache::{Cache, CacheError, EntryReport};
use byname_packet::{Name, NameRef};
use byname_profile::{Paths, Profile, units};
use serde_json::json;
use std::time::{SystemTime, UNIX_EPOCH};

/// Look after the site cache: what it holds, what stays, whether it is sound.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname cache warm /lab/run7                fetch it into the cache
  byname cache ls /lab
  byname cache pin /lab/run7                 never removed to make room
  byname cache limit /lab/scratch 10G        at most so much of it
  byname cache scrub                         check everything against its roots")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: CacheCommand,
}

#[derive(Debug, clap::Subcommand)]
enum CacheCommand {
    /// List what is there.
    Ls(Selection),
    /// Say how much is there, and how much may be.
    Status {
        /// One JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Fetch files and trees into the cache.
    Warm(warm::Args),
    /// Never remove what lies under a name to make room, now and later.
    Pin {
        /// Name or link.
        target: String,
    },
    /// End a pin.
    Unpin {
        /// The name that was pinned.
        target: String,
    },
    /// Keep at most so many bytes of what lies under a name, now and later.
    Limit {
        /// Name or link.
        target: String,
        /// Size, such as 10G or 500M; `none` ends the limit.
        #[arg(value_parser = bytes_or_none)]
        size: BytesMax,
    },
    /// Check what lies under a name against its roots; without the network.
    Verify(Selection),
    /// Remove what lies under a name, or everything.
    Drop {
        /// Name or link; content that is known by other names, too, goes with it.
        #[arg(required_unless_present = "all")]
        target: Option<String>,
        /// Everything.
        #[arg(long, conflicts_with = "target")]
        all: bool,
    },
    /// Check everything against its roots; what is rotten counts as missing afterwards.
    Scrub {
        /// One JSON object per entry with something wrong, and one for all.
        #[arg(long)]
        json: bool,
    },
}

/// A limit; `None` for none.
#[derive(Debug, Clone, Copy)]
struct BytesMax(Option<u64>);

fn bytes_or_none(text: &str) -> Result<BytesMax, units::UnitError> {
    match text {
        "none" => Ok(BytesMax(None)),
        text => units::size(text).map(|bytes| BytesMax(Some(bytes))),
    }
}

#[derive(Debug, clap::Args)]
struct Selection {
    /// Name or link; what lies below it as well.
    target: Option<String>,
    /// One JSON object per entry.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> Outcome {
    let profile = settings::profile(paths)?;
    let name = |target: &str| -> Outcome<Name> { Ok(profile.link(target)?.name) };
    let below = |target: &Option<String>| target.as_deref().map(name).transpose();
    let cache = profile.cache();
    if let Some(socket) = profile.settings().text("cache.service")
        && !matches!(args.command, CacheCommand::Warm(_) | CacheCommand::Status { .. })
    {
        let own = cache.directory().display();
        output::err_line(&format!("this is about {own}; readers use the service at {socket}"));
    }
    match &args.command {
        CacheCommand::Ls(Selection { target, json }) => list(&cache, below(target)?, *json),
        CacheCommand::Status { json } => status(&profile, &cache, *json),
        CacheCommand::Warm(args) => warm::run(args, paths),
        CacheCommand::Pin { target } => {
            if !cache.pin(&name(target)?)? {
                output::err_line("it was pinned already");
            }
            Ok(())
        }
        CacheCommand::Unpin { target } => match cache.unpin(&name(target)?)? {
            true => Ok(()),
            false => Err(Failure::new(Code::NotFound, format!("{target} is not pinned"))),
        },
        CacheCommand::Limit { target, size: BytesMax(bytes_max) } => {
            Ok(cache.limit(&name(target)?, *bytes_max)?)
        }
        CacheCommand::Verify(Selection { target, json }) => scrub(&cache, below(target)?, *json),
        CacheCommand::Drop { target, .. } => {
            let count = cache.remove(below(target)?.as_ref().map(Name::view))?;
            output::err_line(&format!("removed {}", entries(count)));
            Ok(())
        }
        CacheCommand::Scrub { json } => scrub(&cache, None, *json),
    }
}

fn entries(count: u64) -> String {
    if count == 1 { "1 entry".to_owned() } else { format!("{count} entries") }
}

fn list(cache: &Cache, below: Option<Name>, json: bool) -> Outcome {
    let mut reports = cache.entries(below.as_ref().map(Name::view))?;
    reports.sort_by(|a, b| (&a.names, &a.key.size).cmp(&(&b.names, &b.key.size)));
    if json {
        reports.iter().for_each(|report| output::json_line(entry_json(report)));
        return Ok(());
    }
    let rows: Vec<Vec<String>> = reports.iter().map(row).collect();
    output::table(&["CACHED", "OF", "USED", "", "NAME"], &rows);
    Ok(())
}

fn row(report: &EntryReport) -> Vec<String> {
    let name = match report.names.first() {
        Some((name, _)) => shown(name.view()),
        None => report.key.to_string(),
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let used = output::duration(now.saturating_sub(report.used_ns / 1_000_000_000));
    let mark = match (report.is_pinned, report.is_whole) {
        (true, _) => "pinned",
        (false, true) => "whole",
        (false, false) => "",
    };
    let (cached, size) = (output::size(report.cached_bytes), output::size(report.key.size));
    vec![cached, size, used, mark.to_owned(), name]
}

fn entry_json(report: &EntryReport) -> serde_json::Value {
    let names = report.names.iter();
    let names: Vec<_> = names
        .map(|(name, version)| json!({ "name": shown(name.view()), "version": version }))
        .collect();
    json!({
        "root": root_of(report.key),
        "size": report.key.size,
        "cached_bytes": report.cached_bytes,
        "disk_bytes": report.disk_bytes,
        "whole": report.is_whole,
        "pinned": report.is_pinned,
        "used_ns": report.used_ns,
        "names": names,
    })
}

fn root_of(key: byname_cache::ContentKey) -> String {
    let text = key.to_string();
    text.split('-').next().unwrap_or_default().to_owned()
}

fn shown(name: NameRef<'_>) -> String {
    output::one_line(&output::name(name))
}

fn status(profile: &Profile, cache: &Cache, json: bool) -> Outcome {
    let (usage, pins, config) = (cache.usage()?, cache.pins()?, cache.config());
    let limits = cache.limits()?;
    let is_used = profile.settings().switch("cache.enabled");
    let failure = profile.cache_to_read().service_failure();
    if json {
        output::json_line(json!({
            "directory": cache.directory().to_string_lossy(),
            "service": profile.settings().text("cache.service"),
            "service_error": failure.map(|error| error.to_string()),
            "enabled": is_used,
            "bytes": usage.bytes,
            "bytes_max": config.bytes_max,
            "free_bytes": cache.free_bytes(),
            "free_bytes_min": config.free_bytes_min,
            "entries": usage.entries,
            "entries_max": config.files_max,
            "pins": pins.iter().map(|name| shown(name.view())).collect::<Vec<_>>(),
            "limits": limits.iter().map(|limit| json!({
                "name": shown(limit.name.view()), "bytes_max": limit.bytes_max,
            })).collect::<Vec<_>>(),
        }));
        return Ok(());
    }
    let held = (output::size(usage.bytes), output::size(config.bytes_max));
    output::out_line(&format!("directory  {}", cache.directory().display()));
    output::out_line(&format!("holds      {} of {}", held.0, held.1));
    output::out_line(&format!("entries    {} of {}", usage.entries, config.files_max));
    if let Some(room) = room_left(cache) {
        output::out_line(&format!("disk       {room}"));
    }
    for name in &pins {
        output::out_line(&format!("pinned     {}", shown(name.view())));
    }
    for limit in &limits {
        let (bytes, name) = (output::size(limit.bytes_max), shown(limit.name.view()));
        output::out_line(&format!("limited    {name} to {bytes}"));
    }
    let others = if is_used { "every reader" } else { "mounts only (cache.enabled is false)" };
    output::out_line(&format!("used by    {others}"));
    if let Some(socket) = profile.settings().text("cache.service") {
        let state = match failure {
            None => "used in place of a directory of one's own".to_owned(),
            Some(error) => format!("does not answer ({error}); reading goes on without a cache"),
        };
        output::out_line(&format!("service    {socket}: {state}"));
    }
    Ok(())
}

/// True if the cache's file system has less room than the cache is to leave free.
fn is_disk_full(cache: &Cache) -> bool {
    cache.free_bytes().is_some_and(|free| free < cache.config().free_bytes_min)
}

/// What the cache's file system has room for, for people.
fn room_left(cache: &Cache) -> Option<String> {
    let (free, min) = (cache.free_bytes()?, cache.config().free_bytes_min);
    let sizes = (output::size(free), output::size(min));
    Some(match is_disk_full(cache) {
        true => format!(
            "{} free, and {} are to stay free (cache.free_mib): nothing more is kept",
            sizes.0, sizes.1
        ),
        false => format!("{} free, of which {} stay free", sizes.0, sizes.1),
    })
}

fn scrub(cache: &Cache, below: Option<Name>, json: bool) -> Outcome {
    let named = below.as_ref().map(|name| shown(name.view()));
    let sum = cache.scrub(below.as_ref().map(Name::view), &mut |key, report| match report {
        Ok(report) if report.rotten_units == 0 => {}
        Ok(report) if json => output::json_line(json!({
            "root": root_of(key), "size": key.size, "rotten_units": report.rotten_units,
        })),
        Ok(report) => {
            let rotten = output::count(report.rotten_units, "unit");
            output::out_line(&format!("rotten: {rotten} of {key}"));
        }
        Err(error) if json => output::json_line(json!({
            "root": root_of(key), "size": key.size, "error": error.to_string(),
        })),
        Err(error) => output::out_line(&format!("unreadable: {key}: {error}")),
    })?;
    if json {
        output::json_line(json!({
            "entries": sum.entries,
            "good_units": sum.good_units,
            "rotten_units": sum.rotten_units,
            "unproved_units": sum.unproved_units,
            "unreadable_entries": sum.unreadable_entries,
        }));
    } else {
        let good = output::count(sum.good_units, "unit");
        output::err_line(&format!("{} checked, {good} good", entries(sum.entries)));
    }
    if let Some(name) = named.filter(|_| sum.entries == 0) {
        return Err(Failure::new(Code::NotFound, format!("nothing of {name} is in the cache"))
            .hint("`byname cache ls` lists what is there"));
    }
    let bad = sum.rotten_units + sum.unreadable_entries;
    if bad > 0 {
        let rotten = output::count(sum.rotten_units, "rotten unit");
        let unreadable = entries(sum.unreadable_entries);
        let message = format!("{rotten}, {unreadable} unreadable");
        let hint = "what is rotten is fetched anew when it is read";
        return Err(Failure::new(Code::NotVerified, message).hint(hint));
    }
    Ok(())
}

impl From<CacheError> for Failure {
    fn from(error: CacheError) -> Self {
        Failure::new(Code::LocalDisk, crate::exit::chain(&error))
    }
}
