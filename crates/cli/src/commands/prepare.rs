//! `byname prepare`: hash a tree before it is published.

use super::daemon::{ExposureArgs, mirror_state_dir, state_dir};
use super::serving::{AttributeArgs, ChecksumArgs};
use super::up::default_name;
use crate::exit::{Code, Failure, Outcome};
use crate::output;
use crate::settings;
use crate::typed::{directory, name};
use byname_profile::Paths;
use byname_store::prepare::{PrepareConfig, Prepared, prepare};
use byname_store::{StateError, StoreError};
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Hash a directory ahead, so that nobody waits when it is published.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname prepare /data/run7 --name /lab/run7
  byname serve /data/run7 --name /lab/run7

The name and --hidden, --private must be those of the later `up` or `serve`. What was hashed
already is not hashed again, so it can be stopped and started. Files that change later are hashed
when they are asked for.")]
pub(crate) struct Args {
    /// Directory that will be published.
    #[arg(default_value = ".")]
    dir: PathBuf,
    /// Its name. Default: /<user>-<host>/<directory>.
    #[arg(long)]
    name: Option<String>,
    /// Threads that hash. Default: one for each processor.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,
    #[command(flatten)]
    exposure: ExposureArgs,
    /// For `serve --mirror`: the directory is a copy, whose roots a mirror compares with those that
    /// the publisher signed.
    #[arg(long, conflicts_with = "checksums")]
    mirror: bool,
    #[command(flatten)]
    attributes: AttributeArgs,
    #[command(flatten)]
    checksums: ChecksumArgs,
    /// Print what was done as one JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, paths: &Paths, is_quiet: bool) -> Outcome {
    let profile = settings::profile(paths)?;
    let directory = directory(&args.dir)?;
    let published = match &args.name {
        Some(text) => name(text)?,
        None => default_name(&directory),
    };
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let state_dir = match args.mirror {
        true => mirror_state_dir(paths, &published),
        false => state_dir(paths, &published),
    };
    let config = PrepareConfig {
        exposure: args.exposure.exposure(profile.settings()),
        threads: args.threads.map_or(cpus, usize::from),
        attributes: args.attributes.are_used(),
        checksums: args.checksums.algorithms(),
        ..PrepareConfig::new(directory, state_dir)
    };
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, stop.clone())
            .map_err(|error| Failure::new(Code::Other, format!("signals: {error}")))?;
    }
    let begun = std::time::Instant::now();
    let prepared = prepare(&config, &stop, &mut |so_far| {
        if !is_quiet {
            output::err_line(&summary(so_far));
        }
    });
    let prepared = prepared.map_err(|error| match error {
        StoreError::State(StateError::Locked { .. }) => Failure::new(
            Code::LocalDisk,
            format!("a server publishes {} now", output::name(published.view())),
        )
        .hint("there is nothing to prepare: it hashes what is asked for, and answers meanwhile"),
        error => error.into(),
    })?;
    if args.json {
        let mut object = as_json(&prepared);
        object["name"] = json!(output::name(published.view()));
        object["seconds"] = json!(begun.elapsed().as_secs_f64());
        output::json_line(object);
    } else {
        output::out_line(&summary(&prepared));
    }
    match (prepared.was_stopped, prepared.failed) {
        (true, _) => {
            Err(Failure::new(Code::Interrupted, "stopped; the next run goes on from here"))
        }
        (false, 0) => Ok(()),
        (false, failed) => Err(Failure::new(
            Code::SomeFailed,
            format!("{failed} files or directories could not be read"),
        )),
    }
}

fn summary(prepared: &Prepared) -> String {
    let Prepared { files, known_files, hashed_files, summed_files, changed_files, .. } = prepared;
    let bytes = output::size(prepared.hashed_bytes);
    let files = output::count(*files, "file");
    let mut text = format!("{files}: {hashed_files} hashed ({bytes}), {known_files} known");
    if *summed_files > 0 {
        text.push_str(&format!(", {summed_files} with new checksums"));
    }
    if *changed_files > 0 {
        text.push_str(&format!(", {changed_files} changed meanwhile"));
    }
    text
}

fn as_json(prepared: &Prepared) -> serde_json::Value {
    json!({
        "files": prepared.files,
        "bytes": prepared.bytes,
        "known_files": prepared.known_files,
        "hashed_files": prepared.hashed_files,
        "hashed_bytes": prepared.hashed_bytes,
        "summed_files": prepared.summed_files,
        "changed_files": prepared.changed_files,
        "failed": prepared.failed,
        "stopped": prepared.was_stopped,
    })
}
