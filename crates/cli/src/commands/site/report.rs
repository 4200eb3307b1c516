//! `byname site status`, `log` and `audit`.

use super::account::SiteArgs;
use super::session::SiteSession;
use crate::exit::{Code, Failure, Outcome};
use crate::output;
use byname_catalog::id::TransactionNumber;
use byname_profile::Paths;
use serde_json::{Value, json};
use std::time::Duration;

/// Pause between two looks at the log.
const FOLLOW_PAUSE: Duration = Duration::from_millis(500);

/// Quotas that are shown with the state; more are counted.
const QUOTAS_MAX: usize = 10;

/// State of a site; the last line is OK, or what is wrong.
#[derive(Debug, clap::Args)]
pub(super) struct StatusArgs {
    #[command(flatten)]
    site: SiteArgs,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

/// The change log: a JSON object per transaction.
#[derive(Debug, clap::Args)]
pub(super) struct LogArgs {
    /// Begin behind this transaction.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    after: u64,
    /// Wait for more at the end.
    #[arg(short, long)]
    follow: bool,
    #[command(flatten)]
    site: SiteArgs,
}

/// What files lack, by the head's words for it.
const LACKS: [(&str, &str); 2] = [
    ("files_short", "than wanted"),
    ("files_thin", "on disks that answer and are not off than wanted"),
];

pub(super) fn status(args: &StatusArgs, paths: &Paths) -> Outcome {
    let mut session = args.site.session(paths)?;
    let lines = session.query("status")?;
    let disks = session.query("disks")?;
    let state = lines.first().cloned().unwrap_or_default();
    let quotas = super::quota::warnings(&mut session)?;
    let mut problems = problems(&disks);
    problems.extend(lost(&state));
    let site = output::name(session.site().view());
    if args.json {
        let ok = problems.is_empty();
        output::json_line(json!({
            "site": site, "ok": ok, "problems": problems, "quotas": quotas,
            "state": state, "disks": disks,
        }));
    } else {
        let number = |key: &str| state[key].as_u64().unwrap_or_default();
        let size = |key: &str| output::size(number(key));
        let sum = |key: &str| -> u64 { disks.iter().filter_map(|it| it[key].as_u64()).sum() };
        output::out_line(&format!("site      {site}"));
        output::out_line(&format!("inodes    {}", number("inodes")));
        output::out_line(&format!("content   {}", size("bytes")));
        output::out_line(&format!(
            "disks     {}, {} of {} used",
            disks.len(),
            output::size(sum("used_bytes")),
            output::size(sum("capacity_bytes")),
        ));
        output::out_line(&format!("changes   {}", TransactionNumber(number("transaction"))));
        output::out_line(&format!("copies    {}", copies(&disks)));
        for (key, lack) in LACKS {
            if let Some(count) = state[key].as_u64().filter(|count| *count > 0) {
                let files = output::count(count, "file");
                output::out_line(&format!("replicas  {files} with fewer {lack}"));
            }
        }
        for line in quotas.iter().take(QUOTAS_MAX) {
            output::out_line(&format!("quota     {line}"));
        }
        if let Some(more) = quotas.len().checked_sub(QUOTAS_MAX).filter(|more| *more > 0) {
            output::out_line(&format!("quota     and {more} more: byname site quota ls --over"));
        }
        match problems.as_slice() {
            [] => output::out_line("OK"),
            problems => output::out_line(&problems.join("; ")),
        }
    }
    match problems.is_empty() {
        true => Ok(()),
        false => Err(Failure::new(Code::Other, "")),
    }
}

/// How far copies of the catalog on disks are.
fn copies(disks: &[Value]) -> String {
    let through = disks.iter().filter_map(|disk| disk["catalog"]["through"].as_u64());
    let through: Vec<u64> = through.filter(|number| *number > 0).collect();
    match through.iter().max() {
        None => "none yet: no disk has the catalog's rows".to_owned(),
        Some(newest) => {
            let disks = output::count(through.len() as u64, "disk");
            let newest = TransactionNumber(*newest);
            format!("{disks}; the newest has all changes up to {newest}")
        }
    }
}

/// Files that cannot be read.
fn lost(state: &Value) -> impl Iterator<Item = String> {
    let count = |key: &str| state[key].as_u64().filter(|count| *count > 0);
    let files = |count: u64| output::count(count, "file");
    let names = "`byname site fsck --disks` names them";
    let lost = count("files_lost").map(|it| format!("no disk has {} ({names})", files(it)));
    let out_of_reach = count("files_out_of_reach")
        .map(|it| format!("no disk that answers has {} ({names})", files(it)));
    lost.into_iter().chain(out_of_reach)
}

/// What keeps the site from taking and giving all it could.
fn problems(disks: &[Value]) -> Vec<String> {
    let mut problems = Vec::new();
    let is_writable = |disk: &Value| disk["state"] == "rw" && disk["up"] == true;
    if !disks.iter().any(is_writable) {
        problems.push("no disk takes new content".to_owned());
    }
    for disk in disks {
        let number = &disk["disk"];
        if disk["up"] == false && disk["state"] != "off" {
            problems.push(format!("disk {number} does not answer"));
        }
        let answers = disk["answers"].as_str().unwrap_or_default();
        if !["well", "nothing yet", "not at all"].contains(&answers) {
            problems.push(format!("disk {number}: {}", output::one_line(answers)));
        }
        if let Some(rotten) = disk["scrub"]["rotten"].as_u64().filter(|rotten| *rotten > 0) {
            let (contents, have) =
                (output::count(rotten, "content"), if rotten == 1 { "has" } else { "have" });
            problems.push(format!("disk {number} has {contents} that {have} rotted"));
        }
        if let Some(problem) = disk["catalog"]["problem"].as_str() {
            let problem = output::one_line(problem);
            problems.push(format!("disk {number} keeps no copy of the catalog: {problem}"));
        }
        let bytes = |key: &str| disk[key].as_u64().unwrap_or_default();
        let taken = bytes("used_bytes").saturating_add(bytes("reserved_bytes"));
        if disk["state"] == "rw" && taken >= bytes("capacity_bytes") {
            problems.push(format!("disk {number} is full"));
        }
    }
    problems
}

/// Who asked for what, and what came of it: a JSON object per command, refused ones too.
///
/// Those of the head that answers, as far back as its files go. `at` of a line is what --after
/// takes to go on behind it.
#[derive(Debug, clap::Args)]
pub(super) struct AuditArgs {
    /// Begin behind this line, by its `at`.
    #[arg(long, value_name = "PLACE", default_value = "")]
    after: String,
    /// Wait for more at the end.
    #[arg(short, long)]
    follow: bool,
    #[command(flatten)]
    site: SiteArgs,
}

pub(super) fn audit(args: &AuditArgs, paths: &Paths) -> Outcome {
    lines(&mut args.site.session(paths)?, ("audit", "at"), (&args.after, args.follow))
}

pub(super) fn log(args: &LogArgs, paths: &Paths) -> Outcome {
    let after = args.after.to_string();
    lines(&mut args.site.session(paths)?, ("log", "transaction"), (&after, args.follow))
}

/// Lines of a subject behind one of them, whose key says how to go on.
fn lines(
    session: &mut SiteSession,
    (subject, key): (&str, &str),
    (after, follow): (&str, bool),
) -> Outcome {
    let mut after = after.to_owned();
    loop {
        let (mut is_more, mut last) = (false, None);
        for line in session.page(subject, &after)? {
            match line.get("more") {
                Some(_) => is_more = true,
                None => {
                    last = Some(match &line[key] {
                        Value::String(text) => text.clone(),
                        other => other.to_string(),
                    });
                    output::json_line(line);
                }
            }
        }
        let has_new = last.is_some();
        after = last.unwrap_or(after);
        match (is_more && has_new, follow) {
            (true, _) => {}
            (false, true) => std::thread::sleep(FOLLOW_PAUSE),
            (false, false) => return Ok(()),
        }
    }
}
