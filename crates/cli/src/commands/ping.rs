//! `byname ping`: is a name reachable, and how far away is who answers?

use crate::exchange::{Ask, Exchange, Reply, Wanted};
use crate::exit::{Code, Failure, Outcome};
use crate::output;
use crate::{forwarders, settings, typed};
use byname_io::Connection;
use byname_profile::units;
use byname_profile::{OpenOptions, Paths};
use serde_json::json;
use std::time::{Duration, Instant};

/// Ask for a name's metadata and measure the round trip. Nothing is verified.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname ping /lab/run7
  byname ping 'byname:/lab/run7,via=udp://host,key=SHA256:…' -c 10 --interval 0.2")]
pub(crate) struct Args {
    /// Name or link.
    target: String,
    /// Number of requests.
    #[arg(short, long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..))]
    count: u64,
    /// Time between requests: 200ms, 2s; a number alone means seconds.
    #[arg(long, value_name = "DURATION", default_value = "0.5", value_parser = units::seconds)]
    interval: Duration,
    /// Seconds to wait for each answer.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..))]
    timeout: u64,
    /// Forwarder to ask.
    #[arg(long, value_name = "URI")]
    connect: Option<String>,
    /// One JSON object per request.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> Outcome {
    let profile = settings::profile(paths)?;
    let link = profile.link(&args.target)?;
    let connect = args.connect.as_deref().map(typed::endpoint).transpose()?;
    let options = OpenOptions { connect, ..OpenOptions::default() };
    let endpoints = profile.endpoints(&link, &options)?;
    let endpoint = forwarders::first_answering(&endpoints.list)?;
    let connection = Connection::connect(&endpoint, Duration::from_secs(5))
        .map_err(|error| Failure::new(Code::NoRoute, error))?;
    let mut exchange = Exchange::new(connection)?;
    let question = link.name.with_keyword(b"metadata");
    let ask = Ask::new(question.view(), Wanted::Fresh, Duration::from_secs(args.timeout));
    let shown = output::name(link.name.view());
    let mut answered = 0;
    for sequence in 1..=args.count {
        let started = Instant::now();
        let reply = exchange.request(&ask)?;
        answered += u64::from(matches!(reply, Reply::Data { .. }));
        report(args, &shown, sequence, &reply, started.elapsed());
        if sequence < args.count {
            std::thread::sleep(args.interval);
        }
    }
    if answered > 0 {
        return Ok(());
    }
    Err(Failure::new(Code::NoRoute, format!("{shown} did not answer")))
}

fn report(args: &Args, name: &str, sequence: u64, reply: &Reply, elapsed: Duration) {
    let rtt_us = elapsed.as_secs_f64() * 1e6;
    let error = match reply {
        Reply::Data { .. } => None,
        Reply::Nack(reason) => Some(format!("Nack (reason {reason})")),
        Reply::Silence => Some("no answer".to_owned()),
    };
    match (args.json, error) {
        (true, None) => {
            output::json_line(json!({ "name": name, "sequence": sequence, "rtt_us": rtt_us }));
        }
        (true, Some(error)) => {
            output::json_line(json!({ "name": name, "sequence": sequence, "error": error }));
        }
        (false, None) => {
            output::out_line(&format!("{name}: seq={sequence} time={:.3} ms", rtt_us / 1e3));
        }
        (false, Some(error)) => output::out_line(&format!("{name}: seq={sequence} {error}")),
    }
}
