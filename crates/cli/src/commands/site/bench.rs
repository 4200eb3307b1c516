//! `byname site bench`: rates of what a catalog does, in the way of mdtest.
//!
//! Each client has a connection, a session and a directory of its own, and does one thing after the
//! other with empty files, all clients at a time: create, stat, ask, list, rename, remove. What is
//! read is verified as by any reader: of `stat` each answer is signed for everybody, of `ask` each
//! is under the keys of the client's session.

mod client;
mod many;

use super::account::{Account, SiteArgs};
use crate::exit::{Code, Failure, Outcome};
use crate::output;
use byname_access::place;
use byname_catalog::{Command, EntryName, Place};
use byname_packet::Name;
use byname_profile::Paths;
use client::Client;
use serde_json::json;
use std::time::{Duration, Instant};

/// Measure how many empty files a site creates, stats, lists, renames and removes in a second.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname site bench /lab/rates --files 100           one client, one thing at a time
  byname site bench /lab/rates --clients 4 --in-flight 64 --files 100

The directory is made, and removed at the end. Content and disks have no part in it.")]
pub(super) struct Args {
    /// Exact name or link of a directory that does not exist yet.
    #[arg(value_name = "NAME")]
    name: String,
    /// Clients, each with a directory of its own.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    clients: u16,
    /// Files of each client.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    files: u32,
    /// Requests that each client has in flight.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    in_flight: u16,
    #[command(flatten)]
    site: SiteArgs,
    /// One JSON object for each phase.
    #[arg(long)]
    json: bool,
}

/// A part of the run, which all clients do at a time.
type Work = fn(&mut Client) -> Outcome<Vec<u64>>;

/// Its name, and what a client does in it; the times that come back are of single operations.
const PHASES: [(&str, Work); 6] = [
    ("create", Client::create),
    ("stat", Client::stat),
    ("ask", Client::ask),
    ("list", Client::list),
    ("rename", Client::rename),
    ("remove", Client::remove),
];

pub(super) fn run(args: &Args, paths: &Paths) -> Outcome {
    let targets = [args.name.clone()];
    let (account, names) = args.site.account_above(&targets, paths)?;
    let [top] = names.as_slice() else { return Err(Failure::usage("one name")) };
    let mut first = Client::open((&args.site, &account), top, (0, 1))?;
    let at = place(&account.site, top.view())?;
    first.run(Command::MakeDirectory { place: at.clone(), mode: 0o755 })?;
    let measured = directories(args, &account, (top, &at), &mut first);
    let removed = first.run(Command::RemoveDirectory { place: at });
    measured.and(removed)
}

/// Makes a directory for each client, measures, and removes the directories.
fn directories(
    args: &Args,
    account: &Account,
    (top, at): (&Name, &Place),
    first: &mut Client,
) -> Outcome {
    let mut clients = Vec::new();
    for number in 0..args.clients {
        let component = format!("client{number}");
        let mut place = at.clone();
        let name = EntryName::new(component.as_bytes());
        place.names.push(name.map_err(|error| Failure::new(Code::Other, error))?);
        first.run(Command::MakeDirectory { place, mode: 0o755 })?;
        let name = top.with_generic(component.as_bytes());
        clients.push(Client::open((&args.site, account), &name, (args.files, args.in_flight))?);
    }
    let mut rows = Vec::new();
    let measured = PHASES.iter().try_for_each(|(phase, work)| {
        let report = Report::of(phase, &mut clients, *work)?;
        match args.json {
            true => output::json_line(report.json(args)),
            false => rows.push(report.row()),
        }
        Ok(())
    });
    if !rows.is_empty() {
        output::table(&["PHASE", "COUNT", "PER S", "MEDIAN US", "P99 US"], &rows);
    }
    let removed = clients.iter_mut().try_for_each(Client::remove_directory);
    measured.and(removed)
}

/// Outcome of a phase.
struct Report {
    phase: &'static str,
    count: usize,
    wall: Duration,
    /// Of single operations, in order.
    times_ns: Vec<u64>,
}

impl Report {
    /// Lets all clients do their part at a time.
    fn of(phase: &'static str, clients: &mut [Client], work: Work) -> Outcome<Self> {
        let began = Instant::now();
        let done: Outcome<Vec<Vec<u64>>> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                clients.iter_mut().map(|client| scope.spawn(move || work(client))).collect();
            let died = |_| Failure::new(Code::Other, "a client's thread died");
            threads.into_iter().map(|thread| thread.join().map_err(died)?).collect()
        });
        let wall = began.elapsed();
        let mut times_ns = done?.concat();
        times_ns.sort_unstable();
        // A list is one operation with as many entries as there are files.
        let count = clients.iter().map(Client::file_count).sum();
        Ok(Self { phase, count, wall, times_ns })
    }

    fn per_s(&self) -> f64 {
        self.count as f64 / self.wall.as_secs_f64()
    }

    fn time_us(&self, percent: usize) -> f64 {
        let last = self.times_ns.len().saturating_sub(1);
        let time_ns = self.times_ns.get(last * percent / 100).copied().unwrap_or_default();
        time_ns as f64 / 1e3
    }

    fn row(&self) -> Vec<String> {
        let times = [self.time_us(50), self.time_us(99)].map(|us| format!("{us:.0}"));
        let [median, p99] = times;
        let count = self.count.to_string();
        vec![self.phase.to_owned(), count, format!("{:.0}", self.per_s()), median, p99]
    }

    fn json(&self, args: &Args) -> serde_json::Value {
        json!({
            "phase": self.phase,
            "clients": args.clients,
            "in_flight": args.in_flight,
            "count": self.count,
            "wall_s": self.wall.as_secs_f64(),
            "per_s": self.per_s(),
            "median_us": self.time_us(50),
            "p99_us": self.time_us(99),
        })
    }
}
