//! `byname site prove`: disks show that they have the octets of replicas, without moving them.

use super::account::SiteArgs;
use super::session::SiteSession;
use crate::exit::{Code, Failure, Outcome};
use crate::output;
use byname_packet::Name;
use byname_profile::Paths;
use serde_json::Value;
use std::time::Duration;

/// Pause between two looks at how far the head is.
const PAUSE: Duration = Duration::from_millis(200);

/// Have disks prove that they have what they should.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname site prove 3                       16 replicas of disk 3, drawn at random
  byname site prove 3 4 --samples 200
  byname site prove /lab/run7/a.root        all replicas of a file

The head draws octets of each content by random numbers, and the disk shows these and what leads
from them to the root of the content, which the catalog has: who has not the octets cannot. Each
proof shows three pieces of 1 KiB. The exit code is 1 if one fails.")]
pub(super) struct Args {
    /// Numbers of disks, and names of files.
    #[arg(value_name = "DISK|NAME", required = true)]
    what: Vec<String>,
    /// Replicas of each disk, 1024 at most.
    #[arg(long, value_name = "NUMBER", default_value_t = 16,
          value_parser = clap::value_parser!(u64).range(1..=1024))]
    samples: u64,
    #[command(flatten)]
    site: SiteArgs,
    /// One JSON object per replica.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, paths: &Paths) -> Outcome {
    let mut session = args.site.session(paths)?;
    let (mut proved, mut failed) = (0_u64, 0_u64);
    for what in &args.what {
        let name = match what.parse::<u64>() {
            Ok(_) => None,
            Err(_) => Some(what.parse::<Name>().map_err(|error| {
                Failure::usage(format!("{what}: neither a number nor a name: {error}"))
            })?),
        };
        let (kind, wanted) = match &name {
            None => ("prove-disk", format!("{what} {}", args.samples)),
            Some(name) => ("prove-file", name.to_string()),
        };
        for proof in proofs(&mut session, kind, &wanted)? {
            let is_proved = proof["proved"] == true;
            *(if is_proved { &mut proved } else { &mut failed }) += 1;
            match args.json {
                true => output::json_line(proof),
                false if is_proved => {}
                false => show(&proof, name.as_ref()),
            }
        }
    }
    if !args.json {
        let replicas = output::count(proved + failed, "replica");
        output::out_line(&match failed {
            0 => format!("{replicas} proved"),
            failed => format!("{replicas}, {failed} not proved"),
        });
    }
    if failed == 0 { Ok(()) } else { Err(Failure::new(Code::Other, "")) }
}

/// What came of one wish, when it has come to its end.
fn proofs(session: &mut SiteSession, kind: &str, wanted: &str) -> Outcome<Vec<Value>> {
    // One at a time: who comes second waits for the first.
    while session.page(kind, wanted)?.first().is_some_and(|it| it["begun"] == false) {
        std::thread::sleep(PAUSE);
    }
    loop {
        let state = session.query("prove-state")?.into_iter().next().unwrap_or_default();
        if let Some(failure) = state["failure"].as_str() {
            return Err(Failure::new(Code::Other, output::one_line(failure)));
        }
        if state["running"] != true {
            return Ok(session.query("prove")?);
        }
        std::thread::sleep(PAUSE);
    }
}

fn show(proof: &Value, name: Option<&Name>) {
    let content = format!("content {} version {}", proof["inode"], proof["version"]);
    let what = name.map_or(content, |name| output::name(name.view()));
    let reason = output::one_line(proof["reason"].as_str().unwrap_or_default());
    let bytes = output::size(proof["bytes"].as_u64().unwrap_or_default());
    output::out_line(&format!("disk {}: {what} ({bytes}): {reason}", proof["disk"]));
}
