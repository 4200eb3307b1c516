//! `byname cache warm`: reads whole files through the cache and throws the bytes away.

use crate::exit::{Code, Failure, Outcome};
use crate::progress::Meter;
use crate::target::{Pace, ReadArgs, Session};
use crate::walk::{self, Wanted};
use crate::{output, settings};
use byname_cache::{Cache, Content};
use byname_client::{Client, ClientError};
use byname_packet::Name;
use byname_profile::{Paths, Profile};
use serde_json::json;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time that is given to the disk for what is still to be written after each file.
const FLUSH_PATIENCE: Duration = Duration::from_secs(30);
/// Files that are read before it is looked whether the cache has them: a service of the machine
/// writes what it is brought in its own time.
const UNCHECKED_MAX: usize = 1000;
/// Names that a list may have.
const NAMES_MAX: usize = 1_000_000;

/// Arguments of `cache warm`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Names or links of files and trees.
    #[arg(required_unless_present = "list")]
    targets: Vec<String>,
    /// The names or links that this file has, one a line.
    #[arg(long, value_name = "FILE")]
    list: Option<PathBuf>,
    /// One JSON object per file.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    read: ReadArgs,
}

/// A file that was read, and is perhaps in the cache.
struct Read {
    name: Name,
    bytes: u64,
    /// `None` if it was not to be kept.
    content: Option<Content>,
}

#[derive(Default)]
struct Sum {
    /// Files that the cache has whole, and their bytes.
    files: u64,
    bytes: u64,
    incomplete: u64,
    unchecked: Vec<Read>,
    is_json: bool,
}

impl Sum {
    /// Counts what was read, and looks whether the cache has it.
    fn check(&mut self, cache: Option<&Cache>) {
        if let Some(cache) = cache {
            cache.flush(FLUSH_PATIENCE);
        }
        let mut patience = FLUSH_PATIENCE;
        for Read { name, bytes, content } in self.unchecked.drain(..) {
            let is_whole = content.is_some_and(|content| content.wait_until_whole(patience));
            if !is_whole {
                // What was queued behind it does not wait as long again.
                patience = Duration::ZERO;
            }
            match is_whole {
                true => {
                    self.files += 1;
                    self.bytes += bytes;
                }
                false => self.incomplete += 1,
            }
            if self.is_json {
                let shown = output::name(name.view());
                output::json_line(json!({ "name": shown, "bytes": bytes, "whole": is_whole }));
            }
        }
    }
}

pub(crate) fn run(args: &Args, paths: &Paths) -> Outcome {
    let mut targets = args.targets.clone();
    if let Some(list) = &args.list {
        read_list(list, &mut targets)?;
    }
    let mut sum = Sum { is_json: args.json, ..Sum::default() };
    let meter = Meter::new();
    for target in &targets {
        let pace = Pace { is_bulk: true, is_cached: true, ..Pace::default() };
        let mut session = Session::open(target, &args.read, pace, paths)?;
        if session.is_insecure() {
            return Err(Failure::usage("what nobody vouches for is not cached"));
        }
        let cache = session.cache().cloned();
        let mut warm = |client: &mut Client, name: &Name| -> Result<(), ClientError> {
            sum.unchecked.push(file(client, name, cache.as_ref(), &meter)?);
            if sum.unchecked.len() >= UNCHECKED_MAX {
                sum.check(cache.as_ref());
            }
            Ok(())
        };
        let read = session.run(|client, name| {
            if !client.stat(name)?.is_directory() {
                return warm(client, name);
            }
            walk::published(client, name, Wanted::Details, &mut |client, found| {
                if !found.is_directory && found.link_target().is_none() {
                    warm(client, &found.name)?;
                }
                Ok(found.is_directory)
            })
        });
        sum.check(cache.as_ref());
        read?;
    }
    let (files, bytes) = (output::count(sum.files, "file"), output::size(sum.bytes));
    output::err_line(&format!("{files}, {bytes} are in the cache"));
    if sum.incomplete > 0 {
        return Err(not_whole(sum.incomplete, &settings::profile(paths)?));
    }
    Ok(())
}

/// So many files are not whole in the cache, and why, if its disk has no room for them.
fn not_whole(count: u64, profile: &Profile) -> Failure {
    let message = format!("{} not whole in the cache", output::count(count, "file"));
    let own = profile.cache();
    let hint = match profile.settings().text("cache.service") {
        Some(socket) => match profile.cache_to_read().service_failure() {
            Some(error) => format!("the service at {socket} does not answer: {error}"),
            None => format!("the service at {socket} has no room for it, or had no time yet"),
        },
        None if super::is_disk_full(&own) => {
            let room = super::room_left(&own).unwrap_or_default();
            format!("the disk of {} has {room}", own.directory().display())
        }
        None => "`byname cache status` shows what there is room for".to_owned(),
    };
    Failure::new(Code::LocalDisk, message).hint(hint)
}

/// Reads one file through the cache.
fn file(
    client: &mut Client,
    name: &Name,
    cache: Option<&Cache>,
    meter: &Meter,
) -> Result<Read, ClientError> {
    // Waits for the root: what is read before its publisher knows it is not kept.
    client.lookup(name)?;
    let file = client.open(name)?;
    let mut sink = |_: u64, bytes: &[u8]| {
        meter.add(bytes.len());
        // What is read faster than the disk writes would not be kept.
        if let Some(cache) = cache {
            cache.wait_for_room(FLUSH_PATIENCE);
        }
        Ok(())
    };
    let bytes = client.read_range(&file, 0..u64::MAX, &mut sink)?;
    let content = cache.zip(file.stat().root).map(|(cache, root)| cache.content(root, bytes));
    Ok(Read { name: name.clone(), bytes, content })
}

fn read_list(path: &Path, targets: &mut Vec<String>) -> Outcome {
    let file = std::fs::File::open(path).map_err(|error| Failure::disk(path, error))?;
    for line in std::io::BufReader::new(file).lines() {
        let line = line.map_err(|error| Failure::disk(path, error))?;
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if targets.len() >= NAMES_MAX {
            return Err(Failure::usage(format!("more than {NAMES_MAX} names")));
        }
        targets.push(line.to_owned());
    }
    Ok(())
}
