//! `byname cache warm`: reads whole files through the cache and throws the bytes away.

use crate::exit::{Code, Failure, Outcome};
use crate::output;
use crate::progress::Meter;
use crate::target::{Pace, ReadArgs, Session};
use crate::walk::{self, Wanted};
use byname_client::{Client, ClientError};
use byname_packet::Name;
use byname_profile::Paths;
use serde_json::json;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time that is given to the disk for what is still to be written after each file.
const FLUSH_PATIENCE: Duration = Duration::from_secs(30);
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

#[derive(Default)]
struct Sum {
    files: u64,
    bytes: u64,
    incomplete: u64,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> Outcome {
    let mut targets = args.targets.clone();
    if let Some(list) = &args.list {
        read_list(list, &mut targets)?;
    }
    let (mut sum, meter) = (Sum::default(), Meter::new());
    for target in &targets {
        let pace = Pace { is_bulk: true, is_cached: true, ..Pace::default() };
        let mut session = Session::open(target, &args.read, pace, paths)?;
        if session.is_insecure() {
            return Err(Failure::usage("what nobody vouches for is not cached"));
        }
        let cache = session.cache().cloned();
        let mut warm = |client: &mut Client, name: &Name| -> Result<(), ClientError> {
            let (bytes, is_whole) = file(client, name, cache.as_ref(), &meter)?;
            sum.files += 1;
            sum.bytes += bytes;
            sum.incomplete += u64::from(!is_whole);
            if args.json {
                let shown = output::name(name.view());
                output::json_line(json!({ "name": shown, "bytes": bytes, "whole": is_whole }));
            }
            Ok(())
        };
        session.run(|client, name| {
            if !client.stat(name)?.is_directory() {
                return warm(client, name);
            }
            walk::published(client, name, Wanted::Details, &mut |client, found| {
                if !found.is_directory && found.link_target().is_none() {
                    warm(client, &found.name)?;
                }
                Ok(found.is_directory)
            })
        })?;
    }
    let (files, bytes) = (output::count(sum.files, "file"), output::size(sum.bytes));
    output::err_line(&format!("{files}, {bytes} are in the cache"));
    if sum.incomplete > 0 {
        let message = format!("{} not whole", output::count(sum.incomplete, "file"));
        let hint = "`byname cache status` shows what there is room for";
        return Err(Failure::new(Code::LocalDisk, message).hint(hint));
    }
    Ok(())
}

/// Reads one file. Returns its bytes, and whether all of them are in the cache then.
fn file(
    client: &mut Client,
    name: &Name,
    cache: Option<&byname_cache::Cache>,
    meter: &Meter,
) -> Result<(u64, bool), ClientError> {
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
    let (Some(cache), Some(root)) = (cache, file.stat().root) else { return Ok((bytes, false)) };
    cache.flush(FLUSH_PATIENCE);
    let content = cache.content(root, bytes);
    Ok((bytes, content.present_bytes() == bytes))
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
