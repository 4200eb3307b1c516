//! `byname cat`: verified bytes on standard output, whole or in ranges.

use crate::exit::{Failure, Outcome};
use crate::paths::Paths;
use crate::target::{Pace, ReadArgs, Session};
use byname_transfer::congestion::Congestion;
use std::io::Write;
use std::ops::Range;

/// Write a file, or ranges of it, to standard output; nothing unverified is printed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname cat /lab/run7/log.txt | less
  byname cat /lab/run7/events.root --range 0:100 --range 4096:512 > parts")]
pub(crate) struct Args {
    /// Name or link.
    target: String,
    /// Only these bytes (repeatable); bytes beyond the end do not exist.
    #[arg(long, value_name = "OFFSET:LENGTH")]
    range: Vec<String>,
    /// What decides how many requests are under way: bdp, cubic, aimd or fixed=N.
    #[arg(long, value_name = "NAME")]
    congestion: Option<Congestion>,
    #[command(flatten)]
    read: ReadArgs,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> Outcome {
    let ranges: Vec<Range<u64>> =
        args.range.iter().map(|text| parse_range(text)).collect::<Outcome<_>>()?;
    let pace = Pace { congestion: args.congestion.unwrap_or_default(), ..Pace::default() };
    let mut session = Session::open(&args.target, &args.read, pace, paths)?;
    if ranges.is_empty() { whole(&mut session) } else { parts(&mut session, &ranges) }
}

/// Writes the whole file.
pub(crate) fn whole(session: &mut Session<'_>) -> Outcome {
    let all = 0..u64::MAX;
    parts(session, std::slice::from_ref(&all))
}

fn parts(session: &mut Session<'_>, ranges: &[Range<u64>]) -> Outcome {
    let mut out = std::io::BufWriter::with_capacity(256 << 10, std::io::stdout().lock());
    session.run(|client, name| {
        let file = client.open(name)?;
        for range in ranges {
            let mut sink = |_: u64, bytes: &[u8]| out.write_all(bytes);
            client.read_range(&file, range.clone(), &mut sink)?;
        }
        out.flush().map_err(byname_client::ClientError::Output)
    })
}

fn parse_range(text: &str) -> Outcome<Range<u64>> {
    let wrong = || Failure::usage(format!("--range wants OFFSET:LENGTH in bytes, not {text:?}"));
    let (offset, length) = text.split_once(':').ok_or_else(wrong)?;
    let offset: u64 = offset.parse().map_err(|_| wrong())?;
    let length: u64 = length.parse().map_err(|_| wrong())?;
    Ok(offset..offset.saturating_add(length))
}
