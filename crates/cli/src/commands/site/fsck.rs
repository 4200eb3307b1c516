//! `byname site fsck`: the catalog against itself, or against what the disks have.

use super::account::SiteArgs;
use super::defaults::directory;
use super::session::SiteSession;
use crate::exit::{Code, Failure, Outcome};
use crate::output;
use crate::progress::Bar;
use byname_head::Head;
use byname_packet::Name;
use byname_profile::Paths;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

/// Pause between two looks at how far the head is.
const PAUSE: Duration = Duration::from_millis(300);
/// What goes by itself, and is nothing wrong.
const LEAVING: &str = "leaving";

/// Check a site: its catalog against itself, or (--disks) against what the disks have.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname site fsck --disks             the head asks all disks what they have, and compares
  byname site fsck --disks --content   the disks read every replica anew
  byname site fsck /lab                the catalog alone, of a head that does not run

Problems of files: lost (no replica is left), out-of-reach (on disks that do not answer),
under-replicated, over-replicated. Of replicas: missing, different-size, different-content. Of
contents that no file has: orphaned; unknown (the catalog has not given it out, so it is kept);
leaving (its disk is told to drop it: nothing is wrong).")]
pub(super) struct Args {
    /// The site whose catalog is checked here. Its head must not run.
    #[arg(value_name = "SITE", required_unless_present_any = ["dir", "disks"])]
    name: Option<String>,
    /// The catalog's directory.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Have the running head compare the catalog with its disks, both ways.
    #[arg(long, conflicts_with_all = ["name", "dir"])]
    disks: bool,
    /// Have the disks read and hash what they have.
    #[arg(long, requires = "disks")]
    content: bool,
    #[command(flatten)]
    site: SiteArgs,
    /// One JSON object per finding.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, paths: &Paths) -> Outcome {
    let is_well = if args.disks { compare(args, paths)? } else { check(args, paths)? };
    match is_well {
        true => Ok(()),
        false => Err(Failure::new(Code::Other, "")),
    }
}

/// The catalog alone.
fn check(args: &Args, paths: &Paths) -> Outcome<bool> {
    let dir = directory(args.name.as_deref(), args.dir.as_deref(), paths)?;
    let head = Head::open(&dir)?;
    let found = head.check()?;
    for it in &found {
        let table = format!("{:?}", it.table).to_lowercase();
        let key: String = it.key.iter().map(|octet| format!("{octet:02x}")).collect();
        match args.json {
            true => output::json_line(json!({ "table": table, "key": key, "what": it.what })),
            false => output::out_line(&format!("{table} {key}: {}", it.what)),
        }
    }
    if !args.json {
        let shown = output::name(head.site().view());
        let verdict = match found.len() {
            0 => "OK".to_owned(),
            count => output::count(count as u64, "contradiction"),
        };
        output::out_line(&format!("{shown}: {verdict}"));
    }
    Ok(found.is_empty())
}

/// The catalog and the disks, by the head.
fn compare(args: &Args, paths: &Paths) -> Outcome<bool> {
    let mut session = args.site.session(paths)?;
    let begun = session.page("fsck-begin", if args.content { "content" } else { "" })?;
    if begun.first().is_some_and(|line| line["begun"] == false) {
        output::err_line("a comparison is running already: this is its outcome");
    }
    let (state, disks) = outcome(&mut session)?;
    if let Some(failure) = state["failure"].as_str() {
        return Err(Failure::new(Code::Other, output::one_line(failure)));
    }
    let findings = session.query("fsck")?;
    let is_unseen = |disk: &&Value| disk["failure"].is_string();
    let wrong = findings.iter().filter(|it| it["problem"] != LEAVING).count();
    if args.json {
        findings.iter().cloned().for_each(output::json_line);
        disks.iter().cloned().for_each(output::json_line);
    } else {
        show(&findings, &disks);
        let shown = output::name(session.site().view());
        let listed = disks.iter().filter_map(|disk| disk["listed"].as_u64()).sum();
        let files = output::count(state["files"].as_u64().unwrap_or_default(), "file");
        let replicas = output::count(listed, "replica");
        let verdict = match wrong as u64 + state["more_findings"].as_u64().unwrap_or_default() {
            0 => "OK".to_owned(),
            count => output::count(count, "problem"),
        };
        output::out_line(&format!("{shown}: {files}, {replicas}: {verdict}"));
    }
    Ok(wrong == 0 && !disks.iter().any(|disk| is_unseen(&disk)))
}

/// Waits for the end, and shows how much the disks have listed of what the catalog has there.
fn outcome(session: &mut SiteSession) -> Outcome<(Value, Vec<Value>)> {
    let sum = |lines: &[Value], field: &str| -> u64 {
        lines.iter().filter_map(|line| line[field].as_u64()).sum()
    };
    let used_bytes = sum(&session.query("disks")?, "used_bytes");
    let mut bar = Bar::new(!tracing::enabled!(tracing::Level::WARN));
    loop {
        let mut lines = session.query("fsck-state")?.into_iter();
        let state = lines.next().unwrap_or_default();
        let disks: Vec<Value> = lines.collect();
        if state["running"] != true {
            bar.finish();
            return Ok((state, disks));
        }
        let listed_bytes = sum(&disks, "listed_bytes");
        // A disk may have more than the catalog knows of.
        bar.show(listed_bytes, used_bytes.max(listed_bytes));
        std::thread::sleep(PAUSE);
    }
}

fn show(findings: &[Value], disks: &[Value]) {
    let number = |value: &Value| value.as_u64().map_or_else(String::new, |it| it.to_string());
    let row = |it: &Value| {
        let replicas = match (it["replicas"].as_u64(), it["wanted"].as_u64()) {
            (Some(there), Some(wanted)) => format!("{there} of {wanted}"),
            _ => String::new(),
        };
        let content = format!("content {} version {}", it["inode"], it["version"]);
        let name = it["name"].as_str().and_then(|name| name.parse::<Name>().ok());
        vec![
            output::one_line(it["problem"].as_str().unwrap_or_default()),
            number(&it["disk"]),
            output::size(it["bytes"].as_u64().unwrap_or_default()),
            replicas,
            name.map_or(content, |name| output::name(name.view())),
        ]
    };
    if !findings.is_empty() {
        let rows: Vec<Vec<String>> = findings.iter().map(row).collect();
        output::table(&["PROBLEM", "DISK", "SIZE", "REPLICAS", "NAME"], &rows);
    }
    for disk in disks {
        if let Some(failure) = disk["failure"].as_str() {
            let failure = output::one_line(failure);
            output::out_line(&format!("disk {} was not compared: {failure}", disk["disk"]));
        }
    }
    let leaving = findings.iter().filter(|it| it["problem"] == LEAVING).count();
    if leaving > 0 {
        let contents = output::count(leaving as u64, "content");
        output::out_line(&format!("{contents} leaving: nothing to do, the disks are told"));
    }
}
