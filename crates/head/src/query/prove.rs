//! Queries about proofs that disks have what they should: to ask for them, and to hear of them.

use byname_catalog::id::{ContentId, DiskId};
use byname_catalog::{Entry, Failure, Place, Reader, Refusal};
use serde_json::json;

use super::lines::{Lines, ROWS_MAX, number};
use crate::proving::{PROOFS_MAX, ProofReport, ProofReports, Wanted};

/// Asks for proofs of replicas of a disk: `NUMBER COUNT`.
pub(super) fn of_disk(
    reader: &Reader<'_>,
    proofs: &ProofReports,
    what: &str,
) -> Result<Vec<u8>, Failure> {
    operators_only(reader)?;
    let (disk, count) = what.split_once(' ').ok_or(Refusal::BadName)?;
    let disk = DiskId(number(disk)?);
    reader.disk(disk)?;
    let count = usize::try_from(number(count)?).unwrap_or(usize::MAX);
    Ok(begin(proofs, Wanted::OfDisk(disk, count.min(PROOFS_MAX))))
}

/// The same of all replicas of a file.
pub(super) fn of_file(
    reader: &Reader<'_>,
    proofs: &ProofReports,
    place: &Place,
) -> Result<Vec<u8>, Failure> {
    operators_only(reader)?;
    let Entry { id: inode, inode: of } = reader.entry(place)?;
    let version = of.content().ok_or(Refusal::NoContent)?.version;
    Ok(begin(proofs, Wanted::OfContent(ContentId { inode, version })))
}

fn begin(proofs: &ProofReports, wanted: Wanted) -> Vec<u8> {
    let has_begun = proofs.begin(wanted);
    Lines::of([(String::new(), json!({ "begun": has_begun }))].into_iter())
}

/// How far it is.
pub(super) fn state(reader: &Reader<'_>, proofs: &ProofReports) -> Result<Vec<u8>, Failure> {
    operators_only(reader)?;
    Ok(proofs.read(|ProofReport { is_running, failure, left, proofs }| {
        let line = json!({
            "running": is_running,
            "failure": failure,
            "left": left,
            "proofs": proofs.len(),
        });
        Lines::of([(String::new(), line)].into_iter())
    }))
}

/// Outcomes behind the first so many.
pub(super) fn outcomes(
    reader: &Reader<'_>,
    proofs: &ProofReports,
    after: &str,
) -> Result<Vec<u8>, Failure> {
    operators_only(reader)?;
    let skipped = if after.is_empty() { 0 } else { number(after)? as usize };
    Ok(proofs.read(|report| {
        let rows = report.proofs.iter().enumerate().skip(skipped).take(ROWS_MAX);
        Lines::of(rows.map(|(index, proof)| {
            let line = json!({
                "disk": proof.disk.0,
                "inode": proof.content.inode.0,
                "version": proof.content.version.0,
                "bytes": proof.size,
                "proved": proof.outcome.is_ok(),
                "reason": proof.outcome.err().map(|why| why.to_string()),
            });
            ((index + 1).to_string(), line)
        }))
    }))
}

fn operators_only(reader: &Reader<'_>) -> Result<(), Failure> {
    if reader.is_operator() { Ok(()) } else { Err(Refusal::NotOperator.into()) }
}
