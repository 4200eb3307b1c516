//! Numbers of file servers as Prometheus reads them.

mod of_head;

use crate::exit::{Code, Failure, Outcome, chain};
use crate::output;
use byname_disk::{DiskReport, DiskReports};
use byname_head::HeadCounters;
use byname_store::{ServerHandle, WatchLevels};
use byname_transfer::server::Counters;
use std::fmt::Write;
use std::net::SocketAddr;

/// Serves the numbers of all servers of this process, added up, at `http://ADDRESS/metrics`.
pub(crate) fn serve(address: SocketAddr, handles: &[ServerHandle]) -> Outcome {
    let handles = handles.to_vec();
    serve_text(address, move || render(&handles))
}

/// Serves the numbers of a head.
pub(crate) fn serve_head(
    address: SocketAddr,
    server: ServerHandle,
    commands: HeadCounters,
) -> Outcome {
    let handles = [server];
    serve_text(address, move || render(&handles) + &of_head::render(&commands))
}

/// Serves the numbers of a disk.
pub(crate) fn serve_disk(
    address: SocketAddr,
    server: ServerHandle,
    reports: DiskReports,
) -> Outcome {
    let handles = [server];
    serve_text(address, move || render(&handles) + &render_disk(&reports.get()))
}

/// Serves what `render` writes.
pub(super) fn serve_text(
    address: SocketAddr,
    render: impl Fn() -> String + Send + Sync + 'static,
) -> Outcome {
    let served = byname_web::serve(address, Box::new(move || Some(render())));
    let served = served.map_err(|error| {
        Failure::new(Code::Other, chain(&error)).hint("choose another address with --metrics")
    })?;
    output::err_line(&format!("metrics at http://{served}/metrics"));
    Ok(())
}

fn render(handles: &[ServerHandle]) -> String {
    let all: Vec<Counters> = handles.iter().map(ServerHandle::counters).collect();
    let sum = |of: fn(&Counters) -> u64| all.iter().map(of).sum::<u64>();
    let mut out = String::new();
    counter(&mut out, "server_interests", "Interests handled", sum(|it| it.interests));
    family(
        &mut out,
        ("server_answers", "kind", "packets that answered"),
        &[
            ("metadata", sum(|it| it.metadata)),
            ("absence", sum(|it| it.absences)),
            ("segment", sum(|it| it.segments)),
            ("listing_segment", sum(|it| it.listing_segments)),
            ("certificate", sum(|it| it.fixed)),
        ],
    );
    family(
        &mut out,
        ("server_refusals", "reason", "Interests that were not answered with Data"),
        &[
            ("not_understood", sum(|it| it.not_understood)),
            ("stale", sum(|it| it.stale)),
            ("changed", sum(|it| it.changed)),
            ("failed", sum(|it| it.failed)),
            ("pending_full", sum(|it| it.pending_full)),
            ("signing_limited", sum(|it| it.signing_limited)),
            ("nodes_full", sum(|it| it.nodes_full)),
            ("expired", sum(|it| it.expired)),
        ],
    );
    counter(&mut out, "server_signatures", "packets signed", sum(|it| it.signatures));
    counter(&mut out, "server_hashes", "roots computed", sum(|it| it.hashes));
    let marks = handles.iter().map(ServerHandle::congestion_marks).sum();
    counter(&mut out, "server_congestion_marks", "packets marked for a long queue", marks);
    let handed = handles.iter().map(ServerHandle::bursts_handed_over).sum();
    counter(&mut out, "server_handed_over_bursts", "bursts read by other threads", handed);
    let answered = sum(|it| it.mirror_metadata);
    counter(&mut out, "mirror_answers", "descriptions of publishers sent", answered);
    let hidden = sum(|it| it.mirror_changed);
    counter(&mut out, "mirror_hidden", "times a changed copy was hidden", hidden);
    let unfresh = sum(|it| it.mirror_unfresh);
    counter(&mut out, "mirror_unfresh", "questions for the publisher's word only", unfresh);
    let elsewhere = sum(|it| it.mirror_elsewhere);
    counter(&mut out, "mirror_elsewhere", "questions for what is not here", elsewhere);
    let unvalidated = handles.iter().map(ServerHandle::unvalidated_drops).sum();
    let help = "datagrams not sent to those who did not show that they receive";
    counter(&mut out, "server_unvalidated_drops", help, unvalidated);
    let stalled = handles.iter().map(ServerHandle::stalled_clients).sum();
    counter(&mut out, "server_stalled_clients", "readers closed while memory was short", stalled);
    let bytes: usize = handles.iter().map(ServerHandle::connection_bytes).sum();
    gauge(&mut out, "server_connection_bytes", "memory of connections' buffers", bytes as u64);
    let peers: usize = handles.iter().map(ServerHandle::peers).sum();
    gauge(&mut out, "server_peers", "peers that are connected", peers as u64);
    render_watched(&mut out, handles);
    out
}

/// Numbers of watched directories, of servers that watch any.
fn render_watched(out: &mut String, handles: &[ServerHandle]) {
    let all: Vec<WatchLevels> = handles.iter().filter_map(ServerHandle::watched).collect();
    if all.is_empty() {
        return;
    }
    let sum = |of: fn(&WatchLevels) -> u64| all.iter().map(of).sum::<u64>();
    for (name, help, value) in [
        ("watched_directories", "directories that are watched", sum(|it| it.directories)),
        ("unwatched_directories", "directories without a watch", sum(|it| it.unwatched)),
    ] {
        gauge(out, &format!("server_{name}"), help, value);
    }
    let help = "times that changes were lost";
    counter(out, "server_watch_overflows", help, sum(|it| it.overflows));
    let help = "walks through a whole published tree";
    counter(out, "server_watch_walks", help, sum(|it| it.walks));
    let help = "files hashed before anybody asked";
    counter(out, "server_hashed_ahead", help, sum(|it| it.hashed));
    let help = "new files that are hashed only when asked for";
    counter(out, "server_ahead_dropped", help, sum(|it| it.dropped));
}

fn render_disk(report: &DiskReport) -> String {
    let mut out = String::new();
    counter(&mut out, "disk_orders", "orders to pull and to drop", report.orders);
    family(
        &mut out,
        ("disk_pulls", "outcome", "contents that writers offered"),
        &[("stored", report.stored), ("failed", report.failed)],
    );
    counter(&mut out, "disk_drops", "contents that were dropped", report.dropped);
    let help = "orders answered by a Nack: too many were refused to one asker";
    counter(&mut out, "disk_refusals_unsigned", help, report.unsigned);
    let help = "octets that were read anew to see whether they are what they were";
    counter(&mut out, "disk_scrubbed_bytes", help, report.scrubbed_bytes);
    head(&mut out, "byname_disk_rotten_contents", "gauge", "contents that have rotted");
    let _ = writeln!(out, "byname_disk_rotten_contents {}", report.rotten);
    if let Some(ended_s) = report.scrub_ended_s {
        let help = "when all contents had been read anew, in seconds since 1970";
        head(&mut out, "byname_disk_scrub_ended_seconds", "gauge", help);
        let _ = writeln!(out, "byname_disk_scrub_ended_seconds {ended_s}");
    }
    let census = &report.census;
    let help = "contents, by what is happening to them";
    head(&mut out, "byname_disk_contents", "gauge", help);
    for (state, count) in [
        ("stored", census.stored),
        ("waiting", census.waiting),
        ("pulling", census.pulling),
        ("unknown", census.unknown),
    ] {
        let _ = writeln!(out, "byname_disk_contents{{state=\"{state}\"}} {count}");
    }
    head(&mut out, "byname_disk_writable", "gauge", "1 if what was last written could be");
    let _ = writeln!(out, "byname_disk_writable {}", u8::from(report.health.is_none()));
    out
}

fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

/// Writes a counter.
pub(super) fn counter(out: &mut String, name: &str, help: &str, value: u64) {
    let name = format!("byname_{name}_total");
    head(out, &name, "counter", help);
    let _ = writeln!(out, "{name} {value}");
}

/// Writes a gauge.
pub(super) fn gauge(out: &mut String, name: &str, help: &str, value: u64) {
    let name = format!("byname_{name}");
    head(out, &name, "gauge", help);
    let _ = writeln!(out, "{name} {value}");
}

fn family(out: &mut String, (name, label, help): (&str, &str, &str), values: &[(&str, u64)]) {
    let name = format!("byname_{name}_total");
    head(out, &name, "counter", help);
    for (value, count) in values {
        let _ = writeln!(out, "{name}{{{label}=\"{value}\"}} {count}");
    }
}
