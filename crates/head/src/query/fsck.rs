//! Queries about a comparison of the catalog with its disks: to begin one, and to hear of it.

use byname_catalog::{Failure, Reader, Refusal};
use serde_json::{Value, json};

use super::lines::{Lines, ROWS_MAX, number};
use crate::fsck::{Finding, FsckReport, FsckReports, Problem, ScannedDisk, Wanted};

/// Begins a comparison; one that is running goes on.
pub(super) fn begin(
    reader: &Reader<'_>,
    reports: &FsckReports,
    mode: &str,
) -> Result<Vec<u8>, Failure> {
    if !reader.is_operator() {
        return Err(Refusal::NotOperator.into());
    }
    let (is_reread, is_repaired) = match mode {
        "" => (false, false),
        "content" => (true, false),
        "repair" => (false, true),
        "content-repair" => (true, true),
        _ => return Err(Refusal::BadName.into()),
    };
    let has_begun = reports.begin(Wanted { is_reread, is_repaired });
    Ok(Lines::of([(String::new(), json!({ "begun": has_begun }))].into_iter()))
}

/// How far it is: one line, then one for each disk.
pub(super) fn state(reader: &Reader<'_>, reports: &FsckReports) -> Result<Vec<u8>, Failure> {
    if !reader.is_operator() {
        return Err(Refusal::NotOperator.into());
    }
    Ok(reports.read(|report| {
        let FsckReport { is_running, failure, disks, files, findings, more_findings } = report;
        let first = json!({
            "running": is_running,
            "failure": failure,
            "files": files,
            "findings": findings.len(),
            "more_findings": more_findings,
        });
        let disks = disks.iter().map(|disk| (String::new(), disk_line(disk)));
        Lines::of(std::iter::once((String::new(), first)).chain(disks))
    }))
}

fn disk_line(ScannedDisk { id, listed, listed_bytes, end }: &ScannedDisk) -> Value {
    let failure = end.and_then(Result::err).map(|why| why.to_string());
    json!({
        "disk": id.0,
        "listed": listed,
        "listed_bytes": listed_bytes,
        "done": end.is_some(),
        "failure": failure,
    })
}

/// Findings behind the first so many.
pub(super) fn findings(
    reader: &Reader<'_>,
    reports: &FsckReports,
    after: &str,
) -> Result<Vec<u8>, Failure> {
    if !reader.is_operator() {
        return Err(Refusal::NotOperator.into());
    }
    let skipped = if after.is_empty() { 0 } else { number(after)? as usize };
    Ok(reports.read(|report| {
        let rows = report.findings.iter().enumerate().skip(skipped).take(ROWS_MAX);
        Lines::of(rows.map(|(index, finding)| ((index + 1).to_string(), line(finding))))
    }))
}

fn line(finding: &Finding) -> Value {
    let Finding { problem, content, disk, size, replicas, name, owner, remedy } = finding;
    json!({
        "problem": match problem {
            Problem::Lost => "lost",
            Problem::OutOfReach => "out-of-reach",
            Problem::Missing => "missing",
            Problem::Size => "different-size",
            Problem::Content => "different-content",
            Problem::Under => "under-replicated",
            Problem::Over => "over-replicated",
            Problem::Orphaned => "orphaned",
            Problem::Unknown => "unknown",
            Problem::Leaving => "leaving",
        },
        "disk": disk.map(|disk| disk.0),
        "inode": content.inode.0,
        "version": content.version.0,
        "bytes": size,
        "replicas": replicas.map(|(there, _)| there),
        "wanted": replicas.map(|(_, wanted)| wanted),
        "name": name,
        "owner": owner,
        "remedy": remedy.text(),
    })
}
