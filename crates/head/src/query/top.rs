//! What a head is asked for, by whom, and what it is doing: counts, whose differences are rates.

use byname_catalog::{Failure, Reader, Refusal};
use serde_json::json;

use super::lines::Lines;
use crate::observations::Observations;

/// Users that are told of, at most: those who asked for most.
const USERS_MAX: usize = 32;

/// One line about the head, then one for each operation and user, as many as there is room for.
pub(super) fn top(reader: &Reader<'_>, observations: &Observations) -> Result<Vec<u8>, Failure> {
    if !reader.is_operator() {
        return Err(Refusal::NotOperator.into());
    }
    let repairs = observations.repairs.report();
    let mut lines = Lines::default();
    lines.push(&json!({
        "kind": "head",
        "transaction": reader.last_transaction()?.0,
        "replicas_in_flight": repairs.in_flight,
        "replicas_moved": repairs.moved,
        "replicas_moved_bytes": repairs.moved_bytes,
        "files_short": repairs.files.map(|files| files.short),
        "files_thin": repairs.files.map(|files| files.thin),
        "files_out_of_reach": repairs.files.map(|files| files.out_of_reach),
        "files_lost": repairs.files.map(|files| files.lost),
        "fsck_running": observations.fsck.read(|report| report.is_running),
    }));
    let mut is_room = true;
    for (name, of) in observations.traffic.operations() {
        is_room = is_room
            && lines.push(&json!({
                "kind": "operation", "name": name, "count": of.count, "failed": of.failed,
                "took_ns": of.took_ns, "longest_ns": of.longest_ns,
            }));
    }
    for ((name, door), of) in observations.traffic.users().into_iter().take(USERS_MAX) {
        is_room = is_room
            && lines.push(&json!({
                "kind": "user", "name": name, "door": door, "commands": of.commands,
                "questions": of.questions, "held_back": of.held_back,
            }));
    }
    Ok(lines.0)
}
