//! `byname site fsck`: the catalog against itself, or against what the disks have.

use super::account::SiteArgs;
use super::defaults::directory;
use super::session::SiteSession;
use crate::exit::{Code, Failure, Outcome};
use crate::output;
use crate::progress::Bar;
use byname_catalog::Inconsistency;
use byname_head::Head;
use byname_io::Clock;
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
  byname site fsck --disks --repair    says what would be done about it
  byname site fsck --disks --repair --yes
  byname site fsck /lab                the catalog alone, of a head that does not run
  byname site fsck /lab --repair       says what would be done about it, --yes does it

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
    /// Mend what can be mended. Without --yes this says what would be done, and changes nothing.
    #[arg(long)]
    repair: bool,
    /// Do it.
    #[arg(short, long, requires = "repair")]
    yes: bool,
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
    if args.repair {
        mend(&head, args)?;
        if !args.yes {
            return Ok(true);
        }
    }
    let found = head.check()?;
    found.iter().for_each(|it| show_row(it, args.json));
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

/// Mends the catalog, or says what that would be.
fn mend(head: &Head, args: &Args) -> Outcome {
    let done = head.mend(Clock::new().unix_ns(), !args.yes)?;
    done.iter().for_each(|it| show_row(it, args.json));
    let rows = output::count(done.len() as u64, "row");
    match (done.len(), args.yes) {
        (0, _) => output::err_line("there is nothing to mend"),
        (_, true) => output::err_line(&format!("{rows} mended")),
        (_, false) => output::err_line(&format!("{rows} would be mended: say --yes")),
    }
    Ok(())
}

fn show_row(it: &Inconsistency, json: bool) {
    let table = format!("{:?}", it.table).to_lowercase();
    let key: String = it.key.iter().map(|octet| format!("{octet:02x}")).collect();
    match json {
        true => output::json_line(json!({ "table": table, "key": key, "what": it.what })),
        false => output::out_line(&format!("{table} {key}: {}", it.what)),
    }
}

/// The catalog and the disks, by the head.
fn compare(args: &Args, paths: &Paths) -> Outcome<bool> {
    let mut session = args.site.session(paths)?;
    let mode = match (args.content, args.repair && args.yes) {
        (false, false) => "",
        (true, false) => "content",
        (false, true) => "repair",
        (true, true) => "content-repair",
    };
    let begun = session.page("fsck-begin", mode)?;
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
        show(&findings, &disks, args.repair);
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
    if args.repair && wrong > 0 {
        output::err_line(match args.yes {
            true => "what has a remedy is being mended: look again in a while",
            false => "nothing was changed: say --yes",
        });
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

fn show(findings: &[Value], disks: &[Value], says_remedy: bool) {
    let number = |value: &Value| value.as_u64().map_or_else(String::new, |it| it.to_string());
    let row = |it: &Value| {
        let replicas = match (it["replicas"].as_u64(), it["wanted"].as_u64()) {
            (Some(there), Some(wanted)) => format!("{there} of {wanted}"),
            _ => String::new(),
        };
        let content = format!("content {} version {}", it["inode"], it["version"]);
        let name = it["name"].as_str().and_then(|name| name.parse::<Name>().ok());
        let mut row = vec![
            output::one_line(it["problem"].as_str().unwrap_or_default()),
            number(&it["disk"]),
            output::size(it["bytes"].as_u64().unwrap_or_default()),
            replicas,
            output::one_line(it["owner"].as_str().unwrap_or_default()),
            name.map_or(content, |name| output::name(name.view())),
        ];
        if says_remedy {
            row.push(output::one_line(it["remedy"].as_str().unwrap_or_default()));
        }
        row
    };
    if !findings.is_empty() {
        let rows: Vec<Vec<String>> = findings.iter().map(row).collect();
        let header = ["PROBLEM", "DISK", "SIZE", "REPLICAS", "OWNER", "NAME", "REMEDY"];
        output::table(&header[..if says_remedy { 7 } else { 6 }], &rows);
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
