//! `byname get`: a file or a tree, verified, to the local disk.

mod filter;

use crate::exit::{Code, Failure, Outcome};
use crate::failure;
use crate::output;
use crate::progress::Reporter;
use crate::target::{Pace, ReadArgs, Session};
use crate::walk::{self, Wanted};
use byname_client::{ClientError, DownloadOptions, TreeOptions, TreeReport};
use byname_profile::Paths;
use byname_transfer::congestion::Congestion;
use filter::{Filter, FilterArgs};
use serde_json::json;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Fetch a file, or with -r a directory, and check every byte.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname get /lab/run7/events.root                   to ./events.root
  byname get 'byname:/lab/run7?via=tcp://host&key=SHA256:…' -r -o run7
  byname get -r /lab/run7 -o run7 --include '*.root' --transfers 16
  byname get /lab/run7/log.txt -o - | less

What an interrupted run has fetched is checked and used by the next.")]
pub(crate) struct Args {
    /// Name or link.
    target: String,
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
    /// Do not keep the publisher's signed packets with the copy (`serve --mirror` needs them).
    #[arg(long)]
    no_keep: bool,
    /// Only say what would be fetched.
    #[arg(long)]
    dry_run: bool,
    /// Remove local files that are not published (with -r).
    #[arg(long, requires = "recursive")]
    delete: bool,
    /// Octets per second at most; K, M and G mean KiB, MiB and GiB.
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
    bwlimit: Option<u64>,
    /// Give up when less than this comes in a second, averaged over a minute.
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
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
    let to_stdout = args.output.as_deref() == Some(Path::new("-"));
    if to_stdout && args.recursive {
        return Err(Failure::usage(
            "a directory cannot go to stdout: -r and -o - exclude each other",
        ));
    }
    let filter = Filter::new(&args.filter)?;
    let pace = Pace {
        transfers: args.transfers,
        bytes_per_second: args.bwlimit,
        min_bytes_per_second: args.min_rate.unwrap_or(0),
        congestion: args.congestion.unwrap_or_default(),
        is_bulk: true,
        keeps_packets: !args.no_keep && !args.dry_run,
    };
    let mut session = Session::open(&args.target, &args.read, pace, paths)?;
    if to_stdout {
        return super::cat::whole(&mut session);
    }
    let target = match &args.output {
        Some(path) if !args.recursive && path.as_os_str().as_bytes().ends_with(b"/") => {
            let path = path.display();
            return Err(Failure::usage(format!(
                "-o names the file itself, and {path} is a directory"
            )));
        }
        Some(path) => path.clone(),
        None => default_target(&session)?,
    };
    if args.dry_run {
        return dry_run(args, &mut session, &filter, &target);
    }
    if args.recursive {
        tree(args, &mut session, filter, &target, quiet)
    } else {
        file(args, &mut session, &target, quiet)
    }
}

/// Text that is no size.
#[derive(Debug)]
struct NoSize;

impl std::fmt::Display for NoSize {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a size is a whole number of bytes, or one with K, M or G behind it")
    }
}

impl std::error::Error for NoSize {}

/// `512`, `10K`, `3M`, `1G`.
fn parse_size(text: &str) -> Result<u64, NoSize> {
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (&text[..text.len() - 1], 10),
        Some(b'M' | b'm') => (&text[..text.len() - 1], 20),
        Some(b'G' | b'g') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let size = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
    size.ok_or(NoSize)
}

fn default_target(session: &Session) -> Outcome<PathBuf> {
    let last = session.name.view().last().map(|component| component.value);
    match last.filter(|name| byname_transfer::naming::is_safe_entry(name)) {
        Some(name) => Ok(PathBuf::from(OsStr::from_bytes(name))),
        None => Err(Failure::usage("the name makes no file name: say -o PATH")),
    }
}

fn options(args: &Args) -> DownloadOptions {
    DownloadOptions { no_clobber: args.no_clobber, sync: args.sync, checksum: args.checksum }
}

fn file(args: &Args, session: &mut Session, target: &Path, quiet: bool) -> Outcome {
    let mut reporter = Reporter::new(quiet, false);
    let result =
        session.run(|client, name| client.download(name, target, options(args), &mut reporter));
    reporter.finish();
    result?;
    report_done(args, (session, &reporter), 0, quiet);
    Ok(())
}

fn report_done(args: &Args, (session, reporter): (&Session, &Reporter), failed: u64, quiet: bool) {
    let (kept, unkept) = session.kept_counts();
    if unkept > 0 {
        tracing::info!("{unkept} packets of the publisher could not be kept with the copies");
    }
    if args.json {
        output::json_line(json!({
            "files": reporter.files,
            "files_skipped": reporter.files_skipped + reporter.files_kept,
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
        }));
    } else if !quiet {
        output::err_line(&reporter.summary());
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
        let mut accept = |path: &Path, is_directory: bool| filter.accepts(path, is_directory);
        let options = TreeOptions { files: options(args), filter: &mut accept };
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
    let missing = filter.missing();
    if args.delete && report.is_complete() {
        delete_extra(target, &filter)?;
    } else if args.delete {
        output::err_line("not everything could be fetched: nothing was deleted");
    }
    let failed = report.failed_count + report.skipped_count + missing.len() as u64;
    report_done(args, (session, &reporter), failed, quiet);
    if failed == 0 { Ok(()) } else { Err(some_failed(&report, &missing, failed)) }
}

fn some_failed(report: &TreeReport, missing: &[PathBuf], failed: u64) -> Failure {
    let mut lines = Vec::new();
    for (path, error) in &report.failures {
        lines.push(output::one_line(&format!("{}: {}", path.display(), failure::text(error))));
    }
    let unpublished = |path: &PathBuf| format!("{}: is not published", path.display());
    lines.extend(missing.iter().map(|path| output::one_line(&unpublished(path))));
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

fn dry_run(args: &Args, session: &mut Session, filter: &Filter, target: &Path) -> Outcome {
    if !args.recursive {
        let found = session.run(|client, name| client.lookup(name))?;
        let size = found.metadata.size.map(output::size).unwrap_or_default();
        output::out_line(&format!("{}  {size}", target.display()));
        return Ok(());
    }
    let mut filter = filter.clone();
    session.run(|client, name| {
        walk::published(client, name, Wanted::Names, &mut |_, found| {
            let Some(path) = &found.path else { return Ok(false) };
            let accepted = filter.accepts(path, found.is_directory);
            if accepted && !found.is_directory {
                output::out_line(&output::one_line(&target.join(path).display().to_string()));
            }
            Ok::<bool, ClientError>(accepted)
        })
    })
}

/// Removes what is local only, below directories that were fetched. What a filter leaves out stays.
fn delete_extra(target: &Path, filter: &Filter) -> Outcome {
    let found = walk::local(target).map_err(|error| Failure::disk(target, error))?;
    for (path, kind) in found.iter().rev() {
        if filter.was_published(path) || filter.excludes(path, kind.is_dir()) {
            continue;
        }
        let full = target.join(path);
        let removed =
            if kind.is_dir() { std::fs::remove_dir(&full) } else { std::fs::remove_file(&full) };
        match removed {
            Ok(()) => tracing::info!("{} removed", full.display()),
            // It holds something that is excluded.
            Err(error) if error.kind() == std::io::ErrorKind::DirectoryNotEmpty => {}
            Err(error) => return Err(Failure::disk(&full, error)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::parse_size;

    #[test]
    fn sizes() {
        assert_eq!(parse_size("10k").unwrap(), 10 << 10);
        assert_eq!(parse_size("3M").unwrap(), 3 << 20);
        assert!(parse_size("99999999999G").is_err());
        assert!(parse_size("x").is_err());
    }
}
