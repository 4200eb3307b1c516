//! Numbers of a head as Prometheus reads them.
//!
//! Labels are bounded by what the head tells: operations by its table, users by the busiest, disks
//! by their number. What it counts by them it counts while it leads, and tells then only.

use super::{counter, family, gauge, head};
use byname_head::{
    Activity, DiskActivity, HeadCounters, OperationActivity, QueueActivity, UserActivity,
};
use std::fmt::Write;

/// Labels of a row, without the braces around them.
type Labels = String;
/// The value that a family has of a user.
type OfUser = fn(&UserActivity) -> String;
/// The same of a disk, if there is one.
type OfDisk = fn(&DiskActivity) -> Option<String>;

pub(super) fn render(counters: &HeadCounters) -> String {
    let mut out = String::new();
    render_commands(&mut out, counters);
    if let Some(activity) = counters.activity() {
        let Activity { operations, users, disks, queues } = &activity;
        render_operations(&mut out, operations);
        render_users(&mut out, users);
        render_disks(&mut out, disks);
        render_queues(&mut out, queues);
    }
    out
}

fn render_commands(out: &mut String, counters: &HeadCounters) {
    let (counts, levels) = (counters.get(), counters.levels());
    gauge(out, "head_leads", "1 if this head leads the catalog", u64::from(counters.leads()));
    counter(out, "head_commands", "commands and queries taken", counts.commands);
    counter(out, "head_batches", "transactions of commands", counts.batches);
    family(
        out,
        ("head_unexecuted", "reason", "commands that were not executed again, or not at all"),
        &[
            ("joined", counts.joined),
            ("congested", counts.congested),
            ("expired", counts.expired),
            ("nacked", counts.nacked),
            ("forged", counts.forged),
        ],
    );
    let waiting = levels.waiting as u64;
    gauge(out, "head_commands_waiting", "commands that wait for a batch", waiting);
    let in_flight = levels.in_flight as u64;
    gauge(out, "head_commands_in_flight", "commands of the batch in flight", in_flight);
    gauge(out, "head_commands_bytes", "octets of both", levels.bytes as u64);
    let help = "time that commands have waited for their batches";
    let waited = [(String::new(), seconds(counts.waited_ns))];
    table(out, ("head_command_wait_seconds_total", "counter", help), &waited);
}

fn render_operations(out: &mut String, operations: &[OperationActivity]) {
    let named = |of: &OperationActivity| format!("operation=\"{}\"", escaped(&of.name));
    let outcomes = |of: &OperationActivity| {
        let with = |outcome: &str| format!("{},outcome=\"{outcome}\"", named(of));
        let done = of.times.count.saturating_sub(of.failed);
        [(with("done"), done.to_string()), (with("failed"), of.failed.to_string())]
    };
    let rows: Vec<_> = operations.iter().flat_map(outcomes).collect();
    let help = "commands and questions that were executed";
    table(out, ("head_operations_total", "counter", help), &rows);
    let took = |of: &OperationActivity| (named(of), seconds(of.times.took_ns));
    let rows: Vec<_> = operations.iter().map(took).collect();
    let help = "time from when they were taken to when they were answered";
    table(out, ("head_operation_seconds_total", "counter", help), &rows);
    let longest = |of: &OperationActivity| (named(of), seconds(of.times.longest_ns));
    let rows: Vec<_> = operations.iter().map(longest).collect();
    let help = "the longest such time since the head leads";
    table(out, ("head_operation_longest_seconds", "gauge", help), &rows);
}

fn render_users(out: &mut String, users: &[UserActivity]) {
    let named = |of: &UserActivity| {
        let door = escaped(of.door.as_deref().unwrap_or_default());
        format!("user=\"{}\",door=\"{door}\"", escaped(&of.name))
    };
    let sent = |of: &UserActivity| {
        let with = |kind: &str| format!("{},kind=\"{kind}\"", named(of));
        let row = |kind, count: u64| (with(kind), count.to_string());
        [row("command", of.commands), row("question", of.questions)]
    };
    let rows: Vec<_> = users.iter().flat_map(sent).collect();
    let help = "commands and questions of those who sent most";
    table(out, ("head_user_requests_total", "counter", help), &rows);
    let families: [(&str, &str, OfUser); 3] = [
        ("held_back", "of them, those that came too fast", |of| of.held_back.to_string()),
        ("answers", "of them, those that were executed", |of| of.times.count.to_string()),
        ("seconds", "time from when these were taken to when they were answered", |of| {
            seconds(of.times.took_ns)
        }),
    ];
    for (name, help, value) in families {
        let rows: Vec<_> = users.iter().map(|of| (named(of), value(of))).collect();
        table(out, (&format!("head_user_{name}_total"), "counter", help), &rows);
    }
}

fn render_disks(out: &mut String, disks: &[DiskActivity]) {
    let named = |of: &DiskActivity| format!("disk=\"{}\"", of.disk.0);
    let errors = |of: &DiskActivity| {
        let row =
            |kind: &str, count: u64| (format!("{},kind=\"{kind}\"", named(of)), count.to_string());
        let of = of.errors;
        [
            row("unanswered", of.unanswered),
            row("refused", of.refused),
            row("failed_pull", of.failed_pulls),
            row("replaced", of.replaced),
        ]
    };
    let rows: Vec<_> = disks.iter().flat_map(errors).collect();
    let help = "what a disk did not do: orders, replicas of others, what writers wanted";
    table(out, ("head_disk_errors_total", "counter", help), &rows);
    let families: [(&str, &str, OfDisk); 4] = [
        ("well", "1 if the disk's last answer was that all is well", |of| {
            of.is_well.map(|is_well| u8::from(is_well).to_string())
        }),
        ("load", "threads of the disk that wait for its file system", |of| {
            of.load.map(|hundredths| (hundredths as f64 / 100.0).to_string())
        }),
        ("rotten_contents", "contents that have rotted", |of| of.rotten.map(|it| it.to_string())),
        (
            "contents_to_drop",
            "contents that the disk has to drop, as far as one order goes",
            |of| Some(of.to_drop.to_string()),
        ),
    ];
    for (name, help, value) in families {
        let row = |of: &DiskActivity| Some((named(of), value(of)?));
        let rows: Vec<_> = disks.iter().filter_map(row).collect();
        table(out, (&format!("head_disk_{name}"), "gauge", help), &rows);
    }
}

fn render_queues(out: &mut String, queues: &QueueActivity) {
    let in_flight = queues.replicas_in_flight as u64;
    gauge(out, "head_replicas_in_flight", "replicas that are being made elsewhere", in_flight);
    let help = "replicas that were asked for by name and are not made yet";
    gauge(out, "head_replicas_wished", help, queues.replicas_wished as u64);
    counter(out, "head_replicas_moved", "replicas that were made elsewhere", queues.replicas_moved);
    let bytes = queues.replicas_moved_bytes;
    counter(out, "head_replicas_moved_bytes", "octets of these", bytes);
    if let Some(files) = queues.files {
        let row = |state: &str, count: u64| (format!("state=\"{state}\""), count.to_string());
        let rows = [
            row("short", files.short),
            row("thin", files.thin),
            row("out_of_reach", files.out_of_reach),
            row("lost", files.lost),
        ];
        let help = "files that lack replicas, by the last look at all of them";
        table(out, ("head_files", "gauge", help), &rows);
    }
    let duties = queues.duties;
    family(
        out,
        ("head_ended", "what", "what has ended because it was due"),
        &[("expired", duties.expired), ("purged", duties.purged), ("collected", duties.collected)],
    );
    let help = "1 if the last look has left something that is due";
    gauge(out, "head_is_behind", help, u64::from(duties.is_behind));
}

/// A family with its rows; nothing if there are none.
fn table(out: &mut String, (name, kind, help): (&str, &str, &str), rows: &[(Labels, String)]) {
    if rows.is_empty() {
        return;
    }
    let name = format!("byname_{name}");
    head(out, &name, kind, help);
    for (labels, value) in rows {
        let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{name}{labels} {value}");
    }
}

fn seconds(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

/// Text as the value of a label.
fn escaped(text: &str) -> String {
    text.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use byname_head::Times;

    #[test]
    fn names_of_users_cannot_make_up_series() {
        let times = Times { count: 3, took_ns: 1_500_000_000, longest_ns: 1_000_000_000 };
        let user = UserActivity {
            name: "an\"na\n\\".into(),
            door: Some("xrd".into()),
            commands: 2,
            questions: 1,
            held_back: 0,
            times,
        };
        let mut out = String::new();
        render_users(&mut out, &[user]);
        let labels = r#"user="an\"na\n\\",door="xrd""#;
        let wanted = format!("byname_head_user_seconds_total{{{labels}}} 1.500000000\n");
        assert!(out.contains(&wanted), "{out}");
        let wanted = format!("byname_head_user_requests_total{{{labels},kind=\"question\"}} 1\n");
        assert!(out.contains(&wanted), "{out}");
        assert_eq!(out.lines().count(), 4 * 2 + 5, "{out}");
    }
}
