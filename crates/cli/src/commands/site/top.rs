//! `byname site top`: what the head is asked for, by whom, and how its disks are.

use super::account::SiteArgs;
use super::session::SiteSession;
use crate::exit::{Failure, Outcome};
use crate::output;
use byname_profile::Paths;
use byname_profile::units;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Users that are shown.
const USERS_MAX: usize = 10;

/// What a site is doing: rates and times by operation and user, disks with their load and errors,
/// what waits to be done. For operators.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname site top                 every 2 s, until it is interrupted
  byname site top --count 1 --every 10
  byname site top --json --count 1

Rates are those between two looks. TIME is from when the head took a command to when it was
answered, on average, and LONGEST the most since the head leads; commands that come together are
made durable together. HELD is what came faster than `byname catalog` lets a user ask (--user-rate)
or a door (--door-rate). Of a disk, counted since the head leads: SILENT orders that it did not
answer, REFUSED those it did not follow, FAILED replicas that it should have taken from another
disk, REPLACED times that a writer had another disk in its place. ROTTEN contents are not what was
written, TO DROP have to go.")]
pub(super) struct Args {
    /// Time between two looks.
    #[arg(long, value_name = "DURATION", default_value = "2s",
        value_parser = units::whole_seconds)]
    every: u64,
    /// Looks, and no end unless it is given.
    #[arg(long, value_name = "NUMBER")]
    count: Option<u64>,
    #[command(flatten)]
    site: SiteArgs,
    /// One JSON object a look.
    #[arg(long)]
    json: bool,
}

/// Longest time between two looks.
const EVERY_MAX_S: u64 = 3600;

/// Counts of a look, by kind and name.
struct Look {
    at: Instant,
    head: Value,
    counts: BTreeMap<(String, String), Value>,
}

pub(super) fn run(args: &Args, paths: &Paths) -> Outcome {
    if args.every > EVERY_MAX_S {
        return Err(Failure::usage("--every is an hour at most"));
    }
    let mut session = args.site.session(paths)?;
    let mut last = look(&mut session)?;
    let mut looks = 0;
    while args.count.is_none_or(|count| looks < count) {
        std::thread::sleep(Duration::from_secs(args.every));
        let now = look(&mut session)?;
        let disks = session.query("disks")?;
        match args.json {
            true => output::json_line(object(&last, &now, &disks)),
            false => show(&last, &now, &disks),
        }
        (last, looks) = (now, looks + 1);
    }
    Ok(())
}

fn look(session: &mut SiteSession) -> Outcome<Look> {
    let (mut head, mut counts) = (Value::Null, BTreeMap::new());
    for line in session.query("top")? {
        let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
        match text("kind").as_str() {
            "head" => head = line,
            kind => {
                let name = match line["door"].as_str() {
                    Some(door) => format!("{} through {door}", text("name")),
                    None => text("name"),
                };
                counts.insert((kind.to_owned(), name), line.clone());
            }
        }
    }
    Ok(Look { at: Instant::now(), head, counts })
}

/// What was counted between two looks. Another head begins anew.
fn since(last: &Look, now: &Look, of: &(String, String), key: &str) -> u64 {
    let number = |look: &Look| look.counts.get(of).and_then(|line| line[key].as_u64());
    let (before, after) = (number(last).unwrap_or_default(), number(now).unwrap_or_default());
    after.checked_sub(before).unwrap_or(after)
}

fn per_s(count: u64, span: Duration) -> f64 {
    count as f64 / span.as_secs_f64().max(0.001)
}

/// Rows of a kind with what was counted since, the most first.
fn rows<'a>(last: &Look, now: &'a Look, kind: &str, keys: &[&str]) -> Vec<(&'a str, Vec<u64>)> {
    let of_kind = now.counts.keys().filter(|(of, _)| of == kind);
    let mut rows: Vec<(&str, Vec<u64>)> = of_kind
        .map(|of| (of.1.as_str(), keys.iter().map(|key| since(last, now, of, key)).collect()))
        .collect();
    rows.retain(|(_, counts)| counts.iter().any(|count| *count > 0));
    rows.sort_by_key(|(_, counts)| std::cmp::Reverse(counts[0]));
    rows
}

/// What is counted of an operation and of a user, in the order of their rows.
const OPERATION_KEYS: [&str; 3] = ["count", "failed", "took_ns"];
const USER_KEYS: [&str; 5] = ["commands", "questions", "held_back", "answered", "took_ns"];

fn object(last: &Look, now: &Look, disks: &[Value]) -> Value {
    let span = now.at.duration_since(last.at);
    let rate = |count: u64| (per_s(count, span) * 10.0).round() / 10.0;
    let operation = |(name, counts): (&str, Vec<u64>)| {
        json!({
            "name": name, "per_s": rate(counts[0]), "failed_per_s": rate(counts[1]),
            "mean_ns": counts[2].checked_div(counts[0]),
            "longest_ns": longest(now, "operation", name),
        })
    };
    let user = |(name, counts): (&str, Vec<u64>)| {
        json!({
            "name": name, "commands_per_s": rate(counts[0]), "questions_per_s": rate(counts[1]),
            "held_back_per_s": rate(counts[2]), "mean_ns": counts[4].checked_div(counts[3]),
            "longest_ns": longest(now, "user", name),
        })
    };
    let operations = rows(last, now, "operation", &OPERATION_KEYS);
    let users = rows(last, now, "user", &USER_KEYS);
    json!({
        "seconds": span.as_secs_f64(),
        "head": now.head,
        "operations": operations.into_iter().map(operation).collect::<Vec<_>>(),
        "users": users.into_iter().map(user).collect::<Vec<_>>(),
        "disks": disks,
    })
}

/// The longest time since the head leads.
fn longest(now: &Look, kind: &str, name: &str) -> Option<u64> {
    now.counts.get(&(kind.to_owned(), name.to_owned()))?["longest_ns"].as_u64()
}

fn show(last: &Look, now: &Look, disks: &[Value]) {
    let span = now.at.duration_since(last.at);
    let rate = |count: u64| format!("{:.1}", per_s(count, span));
    show_queues(&now.head, disks);
    let operations: Vec<Vec<String>> = rows(last, now, "operation", &OPERATION_KEYS)
        .into_iter()
        .map(|(name, counts)| {
            let mean = time(counts[2].checked_div(counts[0]));
            let most = time(longest(now, "operation", name));
            vec![output::one_line(name), rate(counts[0]), rate(counts[1]), mean, most]
        })
        .collect();
    output::table(&["OPERATION", "/S", "FAILED/S", "TIME", "LONGEST"], &operations);
    let users: Vec<Vec<String>> = rows(last, now, "user", &USER_KEYS)
        .into_iter()
        .take(USERS_MAX)
        .map(|(name, counts)| {
            let mean = time(counts[4].checked_div(counts[3]));
            let (commands, questions, held) = (rate(counts[0]), rate(counts[1]), rate(counts[2]));
            let most = time(longest(now, "user", name));
            vec![output::one_line(name), commands, questions, held, mean, most]
        })
        .collect();
    output::table(&["WHO", "COMMANDS/S", "QUESTIONS/S", "HELD/S", "TIME", "LONGEST"], &users);
    let columns = [
        "DISK", "STATE", "LOAD", "USED", "SILENT", "REFUSED", "FAILED", "REPLACED", "ROTTEN",
        "TO DROP", "ANSWERS",
    ];
    output::table(&columns, &disk_rows(disks));
    output::out_line("");
}

fn time(ns: Option<u64>) -> String {
    ns.map_or_else(String::new, |ns| output::short_time(Duration::from_nanos(ns)))
}

/// What waits, and what was done about it.
fn show_queues(head: &Value, disks: &[Value]) {
    let number = |key: &str| head[key].as_u64().unwrap_or_default();
    let files = |key: &str| match head[key].as_u64() {
        Some(count) => count.to_string(),
        None => "?".to_owned(),
    };
    output::out_line(&format!(
        "commands waiting {}, in the batch {}, longest wait {}, refused for want of room {}, \
         nobody waited any more for {}",
        number("commands_waiting"),
        number("commands_in_flight"),
        time(head["commands_longest_wait_ns"].as_u64()),
        number("commands_congested"),
        number("commands_expired"),
    ));
    output::out_line(&format!(
        "replicas on their way {}, asked for {}, moved {} ({}), files with fewer than wanted {}, \
         on disks that answer {}",
        number("replicas_in_flight"),
        number("replicas_wished"),
        number("replicas_moved"),
        output::size(number("replicas_moved_bytes")),
        files("files_short"),
        files("files_thin"),
    ));
    let to_drop: u64 = disks.iter().filter_map(|disk| disk["to_drop"].as_u64()).sum();
    output::out_line(&format!(
        "contents to drop {to_drop}, ended by time {}, out of the trash {}, out of removed \
         directories {}{}",
        number("expired"),
        number("purged"),
        number("collected"),
        if head["is_behind"] == true { ", and more is due" } else { "" },
    ));
}

fn disk_rows(disks: &[Value]) -> Vec<Vec<String>> {
    let row = |disk: &Value| {
        let text = |key: &str| output::one_line(disk[key].as_str().unwrap_or_default());
        let load = disk["load"].as_f64().map_or_else(String::new, |load| format!("{load:.2}"));
        let number = |key: &str| disk[key].as_u64().unwrap_or_default();
        let used =
            u128::from(number("used_bytes")) * 100 / u128::from(number("capacity_bytes").max(1));
        // A head of before has not counted some of it.
        let count = |value: &Value| value.as_u64().map_or_else(String::new, |it| it.to_string());
        let errors = &disk["errors"];
        let mut row = vec![disk["disk"].to_string(), text("state"), load, format!("{used} %")];
        let counts = ["unanswered", "refused", "failed_pulls", "replaced"];
        row.extend(counts.map(|key| count(&errors[key])));
        row.extend([count(&disk["scrub"]["rotten"]), count(&disk["to_drop"]), text("answers")]);
        row
    };
    disks.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look_of(count: u64, at: Instant) -> Look {
        let line = json!({ "count": count, "failed": 0, "took_ns": count * 1000 });
        let user = json!({
            "commands": count, "questions": 0, "held_back": count / 2,
            "answered": count / 2, "took_ns": count * 1000, "longest_ns": 9000,
        });
        let counts = BTreeMap::from([
            (("operation".to_owned(), "mkdir".to_owned()), line),
            (("user".to_owned(), "anna".to_owned()), user),
        ]);
        Look { at, head: Value::Null, counts }
    }

    #[test]
    fn rates_are_of_what_came_between_and_another_head_begins_anew() {
        let begin = Instant::now();
        let later = begin + Duration::from_secs(2);
        let told = object(&look_of(10, begin), &look_of(50, later), &[]);
        assert_eq!(told["operations"][0]["per_s"], 20.0);
        assert_eq!(told["operations"][0]["mean_ns"], 1000);
        let anna = &told["users"][0];
        assert_eq!(
            (&anna["commands_per_s"], &anna["held_back_per_s"]),
            (&json!(20.0), &json!(10.0))
        );
        assert_eq!((&anna["mean_ns"], &anna["longest_ns"]), (&json!(2000), &json!(9000)));
        let told = object(&look_of(100, begin), &look_of(6, later), &[]);
        assert_eq!(told["operations"][0]["per_s"], 3.0);
    }
}
