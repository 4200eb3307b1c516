//! What a head is asked for, by whom, and what it is doing: counts, whose differences are rates.

use byname_catalog::{Failure, Reader, Refusal};
use serde_json::{Value, json};

use super::lines::{Lines, number};
use crate::activity::{Activity, DiskActivity, OperationActivity, QueueActivity, UserActivity};
use crate::observations::Observations;

/// One line about the head, then one for each operation, and for each of those who asked for most.
/// Rows are counted by where they are, so what changes places between two pages may come twice, or
/// not at all.
pub(super) fn top(
    reader: &Reader<'_>,
    observations: &Observations,
    after: &str,
) -> Result<Vec<u8>, Failure> {
    if !reader.is_operator() {
        return Err(Refusal::NotOperator.into());
    }
    let after: u64 = if after.is_empty() { 0 } else { number(after)? };
    let Activity { operations, users, queues, .. } = Activity::of(observations);
    let mut head = head_line(&queues);
    head["transaction"] = reader.last_transaction()?.0.into();
    head["fsck_running"] = observations.fsck.read(|report| report.is_running).into();
    let operations = operations.iter().map(operation_line);
    let lines = std::iter::once(head).chain(operations).chain(users.iter().map(user_line));
    let rows = (1_u64..).zip(lines).filter(|(at, _)| *at > after);
    Ok(Lines::of(rows.map(|(at, line)| (at.to_string(), line))))
}

fn head_line(queues: &QueueActivity) -> Value {
    let QueueActivity { commands, counters, files, duties, .. } = queues;
    json!({
        "kind": "head",
        "commands_waiting": commands.waiting,
        "commands_in_flight": commands.in_flight,
        "commands_bytes": commands.bytes,
        "commands_taken": counters.commands,
        "commands_waited_ns": counters.waited_ns,
        "commands_longest_wait_ns": counters.longest_wait_ns,
        "commands_congested": counters.congested,
        "commands_expired": counters.expired,
        "batches": counters.batches,
        "replicas_in_flight": queues.replicas_in_flight,
        "replicas_wished": queues.replicas_wished,
        "replicas_moved": queues.replicas_moved,
        "replicas_moved_bytes": queues.replicas_moved_bytes,
        "files_short": files.map(|files| files.short),
        "files_thin": files.map(|files| files.thin),
        "files_out_of_reach": files.map(|files| files.out_of_reach),
        "files_lost": files.map(|files| files.lost),
        "expired": duties.expired,
        "purged": duties.purged,
        "collected": duties.collected,
        "is_behind": duties.is_behind,
    })
}

fn operation_line(of: &OperationActivity) -> Value {
    json!({
        "kind": "operation", "name": of.name, "count": of.times.count, "failed": of.failed,
        "took_ns": of.times.took_ns, "longest_ns": of.times.longest_ns,
    })
}

fn user_line(of: &UserActivity) -> Value {
    json!({
        "kind": "user", "name": of.name, "door": of.door, "commands": of.commands,
        "questions": of.questions, "held_back": of.held_back, "answered": of.times.count,
        "took_ns": of.times.took_ns, "longest_ns": of.times.longest_ns,
    })
}

/// What a disk did not do, for its line.
pub(super) fn errors_line(of: &DiskActivity) -> Value {
    json!({
        "unanswered": of.errors.unanswered,
        "refused": of.errors.refused,
        "failed_pulls": of.errors.failed_pulls,
        "replaced": of.errors.replaced,
    })
}
