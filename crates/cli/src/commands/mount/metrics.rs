//! Numbers of a mount as Prometheus reads them.

use crate::commands::server_metrics::{counter, gauge, serve_text};
use crate::exit::Outcome;
use byname_mount::{MountLevels, MountMeter};
use std::net::SocketAddr;

/// Serves the numbers of a mount at `http://ADDRESS/metrics`.
pub(super) fn serve(address: SocketAddr, meter: MountMeter) -> Outcome {
    serve_text(address, move || render(&meter.levels()))
}

fn render(levels: &MountLevels) -> String {
    let mut out = String::new();
    gauge(&mut out, "mount_inodes", "files and directories that the kernel holds", levels.inodes);
    gauge(&mut out, "mount_open_files", "versions of files that are open", levels.open_files);
    let help = "open files that the kernel reads by itself";
    gauge(&mut out, "mount_passed_through_files", help, levels.passed_through_files);
    let help = "opens that let the kernel read by itself";
    counter(&mut out, "mount_passed_through_opens", help, levels.passed_through_opens);
    let Some(cache) = &levels.cache else { return out };
    for (name, help, value) in [
        ("read_bytes", "bytes read from the site cache", cache.read_bytes),
        ("written_bytes", "bytes written to the site cache", cache.written_bytes),
        ("refused_bytes", "bytes that the site cache did not take", cache.refused_bytes),
        ("rotten_units", "units that were not what was signed", cache.rotten_units),
        ("failed_reads", "reads that the disk refused or did not answer", cache.failed_reads),
        ("failed_writes", "writes that the disk refused", cache.failed_writes),
        ("evicted_entries", "contents removed to make room", cache.evicted_entries),
        ("bypasses", "times that the disk was passed by from then on", cache.bypasses),
    ] {
        counter(&mut out, &format!("cache_{name}"), help, value);
    }
    out
}
