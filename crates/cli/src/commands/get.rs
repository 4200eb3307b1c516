//! `byname get`: a file or a tree, verified, to the local disk.

mod extra;
mod plan;

use super::filter::{Candidate, Filter, FilterArgs};
use crate::exit::{Code, Failure, Outcome};
use crate::failure;
use crate::output;
use crate::progress::Reporter;
use crate::target::{Pace, ReadArgs, Session};
use crate::trace;
use byname_client::{DownloadOptions, TreeEntry, TreeOptions, TreeReport};
use byname_profile::{Paths, units};
use byname_transfer::congestion::Congestion;
use extra::{Deleted, Extra};
use serde_json::json;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Fetch a file, or with -r a directory, and check every byte.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname get /lab/run7/events.root                   to ./events.root
  byname get 'byname:/lab/run7,via=tcp://host,key=SHA256:…' -r -o run7
  byname get -r /lab/run7 -o run7 --include '*.root' --transfers 16
  byname get -r /lab/run7 -o run7 --delete --dry-run   what would change
  byname get /lab/a /lab/b DIR                         both into DIR
  byname get /lab/run7/log.txt -o - | less

What an interrupted run has fetched is checked and used by the next.")]
pub(crate) struct Args {
    /// Names or links; behind them a directory to put each into, under its last component.
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
    /// Exact target: the file, or with -r the directory for the contents; `-` is stdout.
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Fetch a directory with everything below it.
    #[arg(short, long)]
    recursive: bool,
    /// Leave files that exist alone.
    #[arg(long)]
    no_clobber: bool,
    /// Make finished files survive a power cut.
    #[arg(long)]
    sync: bool,
    /// With -r, read files that have the published size and time, and check them too.
    #[arg(long)]
    checksum: bool,
    /// With -r, fetch what symbolic links lead to in place of making links.
    #[arg(long, requires = "recursive")]
    copy_links: bool,
    /// Do not keep the publisher's signed packets with the copy (`serve --mirror` needs them).
    #[arg(long)]
    no_keep: bool,
    /// Only list what would change: new, changed and, with --delete, deleted entries.
    #[arg(long)]
    dry_run: bool,
    /// Remove local files that are not published, and say which (with -r).
    #[arg(long, requires = "recursive")]
    delete: bool,
    /// Bytes per second at most: 500K, 20M.
    #[arg(long, value_name = "SIZE", value_parser = units::size)]
    bwlimit: Option<u64>,
    /// Give up when less than this comes in a second, averaged over a minute.
    #[arg(long, value_name = "SIZE", value_parser = units::size)]
    min_rate: Option<u64>,
    /// Congestion control, which decides how many requests are in flight: bdp, cubic, aimd,
    /// scavenger or fixed=N.
    #[arg(long, value_name = "NAME")]
    congestion: Option<Congestion>,
    /// Files fetched side by side (with -r).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=64))]
    transfers: Option<u64>,
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    read: ReadArgs,
    /// One JSON object at the end.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, paths: &Paths, quiet: bool) -> Outcome {
    let filter = Filter::new(&args.filter)?;
    let (names, into) = split_names(&args.names)?;
    let run = Run { args, paths, quiet, filter, into };
    let [name] = names else { return run.several(names) };
    run.one(name)
}

/// Tells the names from the directory that may stand behind them.
fn split_names(words: &[String]) -> Outcome<(&[String], Option<&Path>)> {
    let is_local =
        |word: &String| word.starts_with('.') || !(word.starts_with('/') || word.contains(':'));
    let (names, into) = match words.split_last() {
        Some((last, names)) if is_local(last) && !names.is_empty() => {
            (names, Some(Path::new(last)))
        }
        _ => (words, None),
    };
    match names.iter().find(|word| is_local(word)) {
        Some(word) if into.is_some() => {
            Err(Failure::usage(format!("{word}: names begin with /; only the last is a directory")))
        }
        _ => Ok((names, into)),
    }
}

/// A call of the command.
struct Run<'a> {
    args: &'a Args,
    paths: &'a Paths,
    quiet: bool,
    filter: Filter,
    /// The directory for everything, each under its last component.
    into: Option<&'a Path>,
}

impl Run<'_> {
    /// Fetches one after the other; goes on after failures.
    fn several(&self, names: &[String]) -> Outcome {
        if self.args.output.is_some() {
            return Err(Failure::usage(
                "-o names one target: for several names put the directory behind them",
            ));
        }
        let mut failed = Vec::new();
        for name in names {
            match self.one(name) {
                Ok(()) => {}
                Err(failure) if failure.code == Code::Interrupted => return Err(failure),
                Err(failure) => {
                    let hint = failure.hint.map(|hint| format!("\n{hint}")).unwrap_or_default();
                    failed.push(format!("{name}: {}{hint}", failure.message));
                }
            }
        }
        if failed.is_empty() {
            return Ok(());
        }
        let message = format!("{} of {} names failed:", failed.len(), names.len());
        Err(Failure::new(Code::SomeFailed, message).hint(failed.join("\n")))
    }

    fn one(&self, name: &str) -> Outcome {
        let args = self.args;
        let to_stdout = args.output.as_deref() == Some(Path::new("-"));
        if to_stdout && args.recursive {
            return Err(Failure::usage(
                "a directory cannot go to stdout: -r and -o - exclude each other",
            ));
        }
        let pace = Pace {
            transfers: args.transfers,
            bytes_per_second: args.bwlimit,
            min_bytes_per_second: args.min_rate.unwrap_or(0),
            congestion: args.congestion.unwrap_or_default(),
            is_bulk: true,
            keeps_packets: !args.no_keep && !args.dry_run,
            is_cached: false,
            // Part of what -v tells.
            traces: tracing::enabled!(tracing::Level::INFO),
        };
        let mut session = Session::open(name, &args.read, pace, self.paths)?;
        if to_stdout {
            return super::cat::whole(&mut session);
        }
        let target = self.target(&session)?;
        let mut filter = self.filter.clone();
        if args.dry_run {
            return plan::run(args, &mut session, &mut filter, &target);
        }
        if let Some(into) = self.into {
            std::fs::create_dir_all(into).map_err(|error| not_made(into, error))?;
        }
        if args.recursive {
            tree(args, &mut session, filter, &target, self.quiet)
        } else {
            file(args, &mut session, &target, self.quiet)
        }
    }

    fn target(&self, session: &Session) -> Outcome<PathBuf> {
        match (&self.args.output, self.into) {
            (Some(_), Some(into)) => {
                let into = into.display();
                Err(Failure::usage(format!("-o and {into} both say where to: leave one out")))
            }
            (Some(path), None) => {
                if !self.args.recursive && path.as_os_str().as_bytes().ends_with(b"/") {
                    let path = path.display();
                    let message = format!("-o names the file itself, and {path} is a directory");
                    return Err(Failure::usage(message));
                }
                Ok(path.clone())
            }
            (None, into) => Ok(into.unwrap_or(Path::new("")).join(default_target(session)?)),
        }
    }
}

/// What stands behind the names is no directory, and none can be made.
fn not_made(into: &Path, error: std::io::Error) -> Failure {
    if error.kind() != std::io::ErrorKind::AlreadyExists {
        return Failure::disk(into, error);
    }
    let into = output::one_line(&into.display().to_string());
    Failure::usage(format!("{into} is a file: what stands behind the names is a directory"))
        .hint("-o PATH names the file itself; a path below a link goes before its first comma")
}

fn default_target(session: &Session) -> Outcome<PathBuf> {
    let last = session.name.view().last().map(|component| component.value);
    match last.filter(|name| byname_transfer::naming::is_safe_entry(name)) {
        Some(name) => Ok(PathBuf::from(OsStr::from_bytes(name))),
        None => Err(Failure::usage("the name makes no file name: say -o PATH")),
    }
}

fn options(args: &Args) -> DownloadOptions {
    DownloadOptions {
        no_clobber: args.no_clobber,
        sync: args.sync,
        checksum: args.checksum,
        copy_links: args.copy_links,
        ..DownloadOptions::default()
    }
}

fn file(args: &Args, session: &mut Session, target: &Path, quiet: bool) -> Outcome {
    let mut reporter = Reporter::new(quiet, false);
    let result =
        session.run(|client, name| client.download(name, target, options(args), &mut reporter));
    reporter.finish();
    result?;
    report_done(args, session, &reporter, &Counts::default());
    Ok(())
}

/// Entries of a tree that did not become what they should, and those that were removed.
#[derive(Debug, Default)]
struct Counts {
    failed: u64,
    deleted: usize,
}

fn report_done(args: &Args, session: &Session, reporter: &Reporter, counts: &Counts) {
    let Counts { failed, deleted } = counts;
    let (kept, unkept) = session.kept_counts();
    if unkept > 0 {
        tracing::info!("{unkept} packets of the publisher could not be kept with the copies");
    }
    if args.json {
        output::json_line(json!({
            "files": reporter.files,
            "files_skipped": reporter.files_skipped + reporter.files_kept,
            "files_deleted": deleted,
            "files_failed": failed,
            "bytes": reporter.fetched_bytes,
            "bytes_resumed": reporter.reused_bytes,
            "seconds": reporter.seconds(),
            "packets_kept": kept,
            "packets_not_kept": unkept,
            "age_ms": session.age_ms(),
            "refused": reporter.refused,
            "path": session.path(),
            "sources": session.sources(),
            "answers": session.answer_paths().iter().map(trace::path_json).collect::<Vec<_>>(),
        }));
    } else if !reporter.is_quiet() {
        let deleted = if *deleted > 0 { format!(", {deleted} deleted") } else { String::new() };
        output::err_line(&format!("{}{deleted}", reporter.summary()));
        for path in session.answer_paths() {
            output::err_line(&output::one_line(&trace::path_text(&path)));
        }
        for line in session.source_paths() {
            output::err_line(&output::one_line(&line));
        }
    }
}

fn tree(
    args: &Args,
    session: &mut Session,
    mut filter: Filter,
    target: &Path,
    quiet: bool,
) -> Outcome {
    let mut reporter = Reporter::new(quiet, true);
    let result = session.run(|client, name| {
        let files = DownloadOptions { prune_empty: filter.is_active(), ..options(args) };
        let mut accept = |entry: &TreeEntry<'_>| filter.accepts(Candidate::from(entry));
        let options = TreeOptions { files, filter: &mut accept };
        match client.download_tree(name, target, options, &mut reporter) {
            Err(error) if failure::is_a_file(&error) => Ok(None),
            other => other.map(Some),
        }
    });
    reporter.finish();
    let Some(report) = result? else {
        // Asked for as a directory, but it is a file: then the file is what is wanted.
        return file(args, session, target, quiet);
    };
    filter.remarks().iter().for_each(|line| output::err_line(&output::one_line(line)));
    let missing = filter.missing();
    let mut deleted = Deleted::default();
    if args.delete && report.is_complete() && missing.is_empty() {
        deleted = extra::delete(target, &mut filter)?;
        report_deleted(args, &deleted, quiet);
    } else if args.delete {
        output::err_line("not everything could be fetched: nothing was deleted");
    }
    let unpublished = |path: &PathBuf| format!("{}: is not published", path.display());
    let mut others: Vec<String> = missing.iter().map(unpublished).collect();
    others.append(&mut deleted.failures);
    let failed = report.failed_count + report.skipped_count + others.len() as u64;
    let counts = Counts { failed, deleted: deleted.entries.len() };
    report_done(args, session, &reporter, &counts);
    let file_count = report.fetched_count + report.identical_count + report.kept_count;
    if file_count + failed == 0 && !filter.is_active() && !quiet {
        output::err_line(
            "there is no file: none is published there, or the publisher hides them all (its \
             `byname up` says how many, and why)",
        );
    }
    if failed == 0 { Ok(()) } else { Err(some_failed(&report, &others, failed)) }
}

fn report_deleted(args: &Args, deleted: &Deleted, quiet: bool) {
    for Extra { path, is_directory } in &deleted.entries {
        let shown = output::path(path);
        if args.json {
            let kind = if *is_directory { "directory" } else { "file" };
            output::json_line(json!({ "change": "deleted", "type": kind, "path": shown }));
        } else if !quiet {
            output::err_line(&format!("deleted {shown}{}", if *is_directory { "/" } else { "" }));
        }
    }
}

fn some_failed(report: &TreeReport, others: &[String], failed: u64) -> Failure {
    let mut lines = Vec::new();
    for (path, error) in &report.failures {
        lines.push(output::one_line(&format!("{}: {}", path.display(), failure::text(error))));
    }
    lines.extend(others.iter().map(|line| output::one_line(line)));
    if report.skipped_count > 0 {
        lines.push(format!("{} entries make no safe file names", report.skipped_count));
    }
    let shown = lines.len() as u64;
    if shown < failed && report.failures.len() as u64 == byname_client::FAILURES_MAX as u64 {
        lines.push(format!("and {} more", failed - shown));
    }
    Failure::new(Code::SomeFailed, format!("{failed} of the entries failed:"))
        .hint(lines.join("\n"))
}
