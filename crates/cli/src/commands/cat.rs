//! `byname cat`: verified bytes on standard output, whole or in ranges.

use crate::exit::{Failure, Outcome};
use crate::target::{Pace, ReadArgs, Session};
use byname_client::{Client, ClientError, LocalFile, RANGES_MAX};
use byname_packet::Name;
use byname_profile::{Paths, units};
use byname_transfer::congestion::Congestion;
use byname_transfer::error::ReadError;
use std::io::{BufRead, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Ranges up to this size are read together, larger ones one after the other.
const SMALL_BYTES_MAX: u64 = 1 << 20;
/// Bytes read in one go.
const BATCH_BYTES_MAX: u64 = 16 << 20;
/// Versions begun before a file that changes all the time is an error.
const VERSIONS_MAX: usize = 5;
/// Ranges on the command line and in the file.
const RANGES_ASKED_MAX: usize = 16 << 20;

/// Write a file, or ranges of it, to standard output; nothing unverified is printed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname cat /lab/run7/log.txt | less
  byname cat /lab/run7/events.root --range 0+100 --range 4096+512 > parts
  byname cat /lab/run7/events.root --ranges-file wanted.txt > parts")]
pub(crate) struct Args {
    /// Name or link.
    target: String,
    /// Only these bytes (repeatable); bytes beyond the end do not exist.
    #[arg(long, value_name = "OFFSET+LENGTH")]
    range: Vec<String>,
    /// The bytes that this file lists, one "offset length" a line; after those of --range.
    #[arg(long, value_name = "FILE")]
    ranges_file: Option<PathBuf>,
    /// Congestion control, which decides how many requests are in flight: bdp, cubic, aimd,
    /// scavenger or fixed=N.
    #[arg(long, value_name = "NAME")]
    congestion: Option<Congestion>,
    #[command(flatten)]
    read: ReadArgs,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> Outcome {
    let mut ranges: Vec<Range<u64>> =
        args.range.iter().map(|text| parse_range(text)).collect::<Outcome<_>>()?;
    if let Some(path) = &args.ranges_file {
        read_ranges_file(path, &mut ranges)?;
    }
    let congestion = args.congestion.unwrap_or_default();
    let pace = Pace { congestion, is_bulk: true, ..Pace::default() };
    let mut session = Session::open(&args.target, &args.read, pace, paths)?;
    let is_whole = args.range.is_empty() && args.ranges_file.is_none();
    if is_whole { whole(&mut session) } else { parts(&mut session, &ranges) }
}

/// Writes the whole file.
pub(crate) fn whole(session: &mut Session) -> Outcome {
    let all = 0..u64::MAX;
    parts(session, std::slice::from_ref(&all))
}

fn parts(session: &mut Session, ranges: &[Range<u64>]) -> Outcome {
    let mut out = std::io::BufWriter::with_capacity(256 << 10, std::io::stdout().lock());
    session.run(|client, name| match write_version(client, name, ranges, &mut out) {
        // Who reads has enough, as with any filter.
        Err(ClientError::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    })
}

/// Writes the version that is there, or the one that takes its place before a byte is written.
fn write_version(
    client: &mut Client,
    name: &Name,
    ranges: &[Range<u64>],
    out: &mut dyn Write,
) -> Result<(), ClientError> {
    for _ in 1..VERSIONS_MAX {
        let mut written_bytes = 0;
        let written = write_parts(client, name, ranges, &mut |bytes| {
            written_bytes += bytes.len();
            out.write_all(bytes)
        });
        // Nobody has seen anything of the version that is gone.
        match written {
            Err(ClientError::Read(ReadError::VersionGone { .. })) if written_bytes == 0 => {}
            other => return other.and_then(|()| out.flush().map_err(ClientError::Output)),
        }
    }
    write_parts(client, name, ranges, &mut |bytes| out.write_all(bytes))?;
    out.flush().map_err(ClientError::Output)
}

/// Writes all ranges of the version that is there now.
fn write_parts(
    client: &mut Client,
    name: &Name,
    ranges: &[Range<u64>],
    write: &mut dyn FnMut(&[u8]) -> std::io::Result<()>,
) -> Result<(), ClientError> {
    let file = client.open(name)?;
    let mut rest = ranges;
    while let Some(range) = rest.first() {
        let (small, tail) = rest.split_at(batch_count(rest));
        if small.is_empty() {
            let mut sink = |_: u64, bytes: &[u8]| write(bytes);
            client.read_range(&file, range.clone(), &mut sink)?;
            rest = &rest[1..];
            continue;
        }
        write_batch(client, &file, small, write)?;
        rest = tail;
    }
    Ok(())
}

/// Number of the first ranges that are small enough to be read together.
fn batch_count(ranges: &[Range<u64>]) -> usize {
    let mut bytes = 0u64;
    let is_in_batch = |range: &&Range<u64>| {
        let length = range.end - range.start;
        bytes = length.saturating_add(bytes);
        length <= SMALL_BYTES_MAX && bytes <= BATCH_BYTES_MAX
    };
    ranges.iter().take(RANGES_MAX).take_while(is_in_batch).count()
}

/// Writes small ranges, which travel together, in the order asked.
fn write_batch(
    client: &mut Client,
    file: &LocalFile,
    ranges: &[Range<u64>],
    write: &mut dyn FnMut(&[u8]) -> std::io::Result<()>,
) -> Result<(), ClientError> {
    let asked: Vec<(u64, usize)> =
        ranges.iter().map(|range| (range.start, (range.end - range.start) as usize)).collect();
    let read = client.read_ranges(file, &asked)?;
    let mut rest = read.buffer.as_slice();
    for ((_, length), filled) in asked.iter().zip(read.filled) {
        let (place, tail) = rest.split_at(*length);
        write(&place[..filled]).map_err(ClientError::Output)?;
        rest = tail;
    }
    Ok(())
}

fn parse_range(text: &str) -> Outcome<Range<u64>> {
    let wrong = || {
        Failure::usage(format!(
            "--range wants OFFSET+LENGTH, such as 0+4096 or 1M+64K, not {text:?}"
        ))
    };
    let (offset, length) = text.split_once(['+', ':']).ok_or_else(wrong)?;
    range_of(offset, length).ok_or_else(wrong)
}

fn range_of(offset: &str, length: &str) -> Option<Range<u64>> {
    let (offset, length): (u64, u64) = (units::size(offset).ok()?, units::size(length).ok()?);
    Some(offset..offset.saturating_add(length))
}

/// Adds the ranges of a file; empty lines and those that begin with `#` say nothing.
fn read_ranges_file(path: &Path, ranges: &mut Vec<Range<u64>>) -> Outcome {
    let file = std::fs::File::open(path).map_err(|error| Failure::disk(path, error))?;
    for (index, line) in std::io::BufReader::new(file).lines().enumerate() {
        let line = line.map_err(|error| Failure::disk(path, error))?;
        let mut words = line.split_whitespace();
        let Some(offset) = words.next().filter(|word| !word.starts_with('#')) else { continue };
        let range = words.next().and_then(|length| range_of(offset, length));
        let Some(range) = range.filter(|_| words.next().is_none()) else {
            let place = format!("{}:{}", path.display(), index + 1);
            return Err(Failure::usage(format!("{place}: not \"offset length\": {line:?}")));
        };
        if ranges.len() >= RANGES_ASKED_MAX {
            return Err(Failure::usage(format!("more than {RANGES_ASKED_MAX} ranges")));
        }
        ranges.push(range);
    }
    Ok(())
}
