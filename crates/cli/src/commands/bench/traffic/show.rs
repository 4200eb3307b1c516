//! Reports, for people and for programs.

use super::parse::Part;
use crate::output;
use byname_traffic::{ConsumerReport, Latency, ProducerReport};
use serde_json::{Value, json};

/// Percentiles shown, and their names in JSON.
const PERCENTILES: [(f64, &str); 4] =
    [(50.0, "p50"), (90.0, "p90"), (99.0, "p99"), (99.9, "p99_9")];

pub(super) fn consumer(parts: &[Part], report: &ConsumerReport, cpu_ns: u64, is_json: bool) {
    let total = report.total();
    if is_json {
        return output::json_line(consumer_json(parts, report, cpu_ns));
    }
    let header = ["name", "interests", "data", "mismatches", "nacks", "time-outs"];
    let row = |name: String, counters: &byname_traffic::PatternCounters| {
        let numbers = [
            counters.interests,
            counters.data,
            counters.mismatches,
            counters.nacks,
            counters.timeouts,
        ];
        let mut row = vec![name];
        row.extend(numbers.iter().map(u64::to_string));
        row
    };
    let mut rows: Vec<Vec<String>> = parts
        .iter()
        .zip(&report.patterns)
        .map(|(part, counters)| row(output::one_line(&output::name(part.prefix.view())), counters))
        .collect();
    if rows.len() > 1 {
        rows.push(row("total".to_owned(), &total));
    }
    output::table(&header, &rows);
    details(report);
    output::out_line(&format!(
        "{:.2} s, {:.0} exchanges/s, {}/s of content, {:.2} µs of processor time each",
        seconds(report),
        per_second(report, total.data),
        output::size(per_second(report, report.content_bytes) as u64),
        cpu_us(cpu_ns, total.data),
    ));
    let times = PERCENTILES.map(|(percent, _)| {
        let us = report.latency.percentile_ns(percent) as f64 / 1e3;
        format!("{percent} %: {us:.1}")
    });
    let (min, max) = (report.latency.min_ns() as f64 / 1e3, report.latency.max_ns() as f64 / 1e3);
    output::out_line(&format!("µs, least: {min:.1}, {}, most: {max:.1}", times.join(", ")));
}

fn consumer_json(parts: &[Part], report: &ConsumerReport, cpu_ns: u64) -> Value {
    let total = report.total();
    json!({
        "kind": "consumer",
        "seconds": seconds(report),
        "interests": total.interests,
        "data": total.data,
        "mismatches": total.mismatches,
        "nacks": nacks(report),
        "timeouts": total.timeouts,
        "unexpected": report.unexpected,
        "skipped": report.skipped,
        "content_bytes": report.content_bytes,
        "packet_bytes": report.packet_bytes,
        "data_per_s": per_second(report, total.data),
        "content_bytes_per_s": per_second(report, report.content_bytes),
        "latency_us": latency(&report.latency),
        "cpu_us_per_exchange": cpu_us(cpu_ns, total.data),
        "parts": parts.iter().zip(&report.patterns).map(|(part, counters)| json!({
            "name": output::name(part.prefix.view()),
            "interests": counters.interests,
            "data": counters.data,
            "mismatches": counters.mismatches,
            "nacks": counters.nacks,
            "timeouts": counters.timeouts,
        })).collect::<Vec<_>>(),
    })
}

fn seconds(report: &ConsumerReport) -> f64 {
    report.elapsed_ns as f64 / 1e9
}

fn per_second(report: &ConsumerReport, count: u64) -> f64 {
    let seconds = seconds(report);
    if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
}

/// Unexpected counts, shown only when they are not zero.
fn details(report: &ConsumerReport) {
    for (reason, count) in &report.nacks {
        output::out_line(&format!("Nacks with reason {reason}: {count}"));
    }
    for (what, count) in [
        ("packets that nobody waited for", report.unexpected),
        ("Interests skipped, because too many waited", report.skipped),
    ] {
        if count > 0 {
            output::out_line(&format!("{what}: {count}"));
        }
    }
}

pub(super) fn producer(report: &ProducerReport, cpu_ns: u64, is_json: bool) {
    let cpu_us = cpu_us(cpu_ns, report.data);
    if is_json {
        return output::json_line(json!({
            "kind": "producer",
            "data": report.data,
            "content_bytes": report.content_bytes,
            "ignored": report.ignored,
            "too_large": report.too_large,
            "cpu_us_per_exchange": cpu_us,
        }));
    }
    output::out_line(&format!(
        "producer: {} answers, {} ignored, {} too large, {cpu_us:.2} µs of processor time each",
        report.data, report.ignored, report.too_large
    ));
}

pub(super) fn forwarder(cpu_ns: u64, exchanges: u64, is_json: bool) {
    let cpu_us = cpu_us(cpu_ns, exchanges);
    if is_json {
        let fields = json!({ "kind": "forwarder", "cpu_us_per_exchange": cpu_us });
        return output::json_line(fields);
    }
    output::out_line(&format!("forwarder: {cpu_us:.2} µs of processor time per exchange"));
}

fn cpu_us(cpu_ns: u64, exchanges: u64) -> f64 {
    if exchanges == 0 { 0.0 } else { cpu_ns as f64 / 1e3 / exchanges as f64 }
}

fn nacks(report: &ConsumerReport) -> Value {
    report.nacks.iter().map(|(reason, count)| (reason.to_string(), json!(count))).collect()
}

fn latency(latency: &Latency) -> Value {
    let us = |ns: u64| json!(ns as f64 / 1e3);
    let mut fields = serde_json::Map::new();
    fields.insert("min".to_owned(), us(latency.min_ns()));
    fields.insert("mean".to_owned(), json!(latency.mean_ns() / 1e3));
    for (percent, name) in PERCENTILES {
        fields.insert(name.to_owned(), us(latency.percentile_ns(percent)));
    }
    fields.insert("max".to_owned(), us(latency.max_ns()));
    Value::Object(fields)
}
