//! Goodput of one flow on a path: rate by round trip by loss, the default control beside CUBIC.
//!
//! Real flow, real fetch, packets without content ([`crate::bottleneck`]); one cell is repeated
//! with real forwarders, server and reader, to show that this says the same.

use byname_forwarder::Config;
use byname_packet::Name;
use byname_transfer::congestion::{Congestion, WINDOW_MAX};
use byname_transfer::verify::SEGMENTS_MAX;

use super::path::{GBIT, line, measure, percent, world};
use super::{Effort, Section, on_all_processors};
use crate::bottleneck::ConsumerConfig;
use crate::disk::Disk;
use crate::line::{Faults, LineConfig};
use crate::plot::{Axis, Plot, Series};
use crate::programs::publisher::{DiskTimes, Publisher};
use crate::programs::reader::{Download, DownloadOrder};
use crate::queue::Discipline;
use crate::topology::Topology;
use crate::world::{LinkConfig, MS, SECOND, START_UNIX_NS, World};

/// For the list of studies.
pub const QUESTION: &str =
    "What does one flow make of 1 to 100 Gbit/s, 1 to 200 ms, 0 to 1 % loss?";

const LOSSES: [f64; 5] = [0.0, 1e-5, 1e-4, 1e-3, 1e-2];
const RTTS_MS: [u64; 5] = [1, 10, 50, 100, 200];
/// Round trips that a start may take: a window doubles from 16 to 400 000 in 15 of them.
const START_ROUNDS: u64 = 25;
const ROUNDS: u64 = 50;
/// Share of the line required of the default control at 10 Gbit/s, 100 ms and 0.01 %.
const TARGET: f64 = 0.9;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Cell {
    gbit: u64,
    rtt_ms: u64,
    loss: f64,
    congestion: Congestion,
    /// Segments of one file that may be in flight.
    room: usize,
}

impl Cell {
    /// The part of the line that it fills, over 50 round trips after the start, a second at least.
    fn share(&self, seed: u64) -> f64 {
        let rtt_ns = self.rtt_ms * MS;
        let queue = line(self.gbit * GBIT, rtt_ns, 1.0, Discipline::DropTail);
        let config = ConsumerConfig::at(rtt_ns).with(self.congestion);
        let config = ConsumerConfig { room: self.room, ..config };
        let mut world = world(queue, self.loss, &[config], seed);
        let from_ns = (START_ROUNDS * rtt_ns).max(SECOND / 2);
        measure(&mut world, from_ns, from_ns + (ROUNDS * rtt_ns).max(SECOND)).used()
    }
}

/// One cell, for [`apart`](super::apart): its words are rate, round trip, loss (a share), control
/// and seed. Its share of the line.
pub(super) fn cell(words: &[&str]) -> Option<f64> {
    let [gbit, rtt_ms, loss, control, seed] = *words else { return None };
    let congestion = match control {
        "bdp" => Congestion::Bdp,
        "cubic" => Congestion::Cubic,
        _ => return None,
    };
    let (gbit, rtt_ms, loss) = (gbit.parse().ok()?, rtt_ms.parse().ok()?, loss.parse().ok()?);
    let cell = Cell { gbit, rtt_ms, loss, congestion, room: usize::MAX };
    Some(cell.share(seed.parse().ok()?))
}

/// Answers the question.
pub fn run(effort: &Effort) -> Section {
    let cells = cells(effort);
    let shares = on_all_processors(&cells, |cell| cell.share(effort.seed));
    let found: Vec<(Cell, f64)> = cells.into_iter().zip(shares).collect();
    let mut section = Section::new("Goodput of one flow");
    section.paragraph(format!(
        "One flow of one consumer, alone on a line whose buffer holds one product of rate and \
         round trip (drop-tail), with random loss behind it. Shares of what the line can carry of \
         payload, in per cent, over {ROUNDS} round trips (a second at least) after {START_ROUNDS} \
         (half a second at least) for the start: default control (`bdp`) / CUBIC. \
         Over so short a time CUBIC's shares hold much of what its start had gained; in the long \
         run 0.01 % at 100 ms leave it 123 Mbit/s by its formula, on any line."
    ));
    for gbit in rates(effort) {
        section.paragraph(format!("**{gbit} Gbit/s**"));
        section.table(&head(), rows(&found, gbit));
        section.plot(plot(&found, gbit));
    }
    section.paragraph(verdict(&found));
    limits(&mut section, effort);
    whole(&mut section, effort);
    section
}

fn rates(effort: &Effort) -> Vec<u64> {
    if effort.is_quick { vec![1] } else { vec![1, 10, 100] }
}

fn cells(effort: &Effort) -> Vec<Cell> {
    let mut cells = Vec::new();
    for gbit in rates(effort) {
        for rtt_ms in RTTS_MS {
            for loss in LOSSES {
                let is_left_out = effort.is_quick && (rtt_ms > 50 || loss == 1e-5);
                if is_left_out {
                    continue;
                }
                for congestion in [Congestion::Bdp, Congestion::Cubic] {
                    cells.push(Cell { gbit, rtt_ms, loss, congestion, room: usize::MAX });
                }
            }
        }
    }
    // The largest first, so that no processor is left with one at the end.
    cells.sort_by_key(|cell| std::cmp::Reverse(cell.gbit * cell.rtt_ms));
    cells
}

fn share_of(found: &[(Cell, f64)], wanted: (u64, u64, f64), congestion: Congestion) -> Option<f64> {
    let is_it = |cell: &Cell| {
        (cell.gbit, cell.rtt_ms, cell.loss) == wanted && cell.congestion == congestion
    };
    found.iter().find(|(cell, _)| is_it(cell)).map(|(_, share)| *share)
}

fn head() -> [&'static str; 6] {
    ["round trip", "no loss", "0.001 %", "0.01 %", "0.1 %", "1 %"]
}

fn rows(found: &[(Cell, f64)], gbit: u64) -> Vec<Vec<String>> {
    let cell = |rtt_ms: u64, loss: f64| {
        let of = |congestion| share_of(found, (gbit, rtt_ms, loss), congestion);
        match (of(Congestion::Bdp), of(Congestion::Cubic)) {
            (Some(own), Some(cubic)) => format!("{} / {}", percent(own), percent(cubic)),
            _ => "–".to_owned(),
        }
    };
    let row = |rtt_ms: u64| -> Vec<String> {
        let cells = LOSSES.iter().map(|loss| cell(rtt_ms, *loss));
        std::iter::once(format!("{rtt_ms} ms")).chain(cells).collect()
    };
    RTTS_MS.into_iter().map(row).filter(|row| row[1..].iter().any(|cell| cell != "–")).collect()
}

fn plot(found: &[(Cell, f64)], gbit: u64) -> Plot {
    let mut series = Vec::new();
    for congestion in [Congestion::Bdp, Congestion::Cubic] {
        for (loss, title) in [(0.0, "no loss"), (1e-4, "0.01 %"), (1e-2, "1 %")] {
            let point = |rtt_ms: &u64| {
                let share = share_of(found, (gbit, *rtt_ms, loss), congestion)?;
                Some((*rtt_ms as f64, share * gbit as f64))
            };
            let points = RTTS_MS.iter().filter_map(point).collect();
            series.push(Series::dots(format!("{congestion}, {title}"), points));
        }
    }
    Plot {
        name: format!("goodput-{gbit}"),
        title: format!("One flow on {gbit} Gbit/s"),
        x: Axis::log("round trip, ms"),
        y: Axis::log("Gbit/s of the line"),
        series,
    }
}

fn verdict(found: &[(Cell, f64)]) -> String {
    let own = found.iter().filter(|(cell, _)| cell.congestion == Congestion::Bdp);
    let least = own.min_by(|one, other| one.1.total_cmp(&other.1));
    let least = least.map_or(String::new(), |(cell, share)| {
        let Cell { gbit, rtt_ms, loss, .. } = cell;
        let (share, loss) = (percent(*share), loss * 100.0);
        format!(
            " The default control's least share of all cells is {share} % ({gbit} Gbit/s, \
             {rtt_ms} ms, {loss} %)."
        )
    });
    let at = |congestion| share_of(found, (10, 100, 1e-4), congestion);
    let Some((own, cubic)) = at(Congestion::Bdp).zip(at(Congestion::Cubic)) else {
        return least.trim_start().to_owned();
    };
    let word = if own >= TARGET { "met" } else { "missed" };
    format!(
        "Target, {} % of 10 Gbit/s at 100 ms and 0.01 % loss: **{word}**, {} % (CUBIC {} %).\
         {least}",
        100.0 * TARGET,
        percent(own),
        percent(cubic)
    )
}

/// Effect of the production code's bounds at large bandwidth-delay products.
fn limits(section: &mut Section, effort: &Effort) {
    let paths: &[(u64, u64)] =
        if effort.is_quick { &[(1, 10)] } else { &[(10, 50), (10, 100), (10, 200), (100, 10)] };
    let (loss, congestion) = (1e-4, Congestion::Bdp);
    let cell = |&(gbit, rtt_ms): &(u64, u64)| {
        let cell = Cell { gbit, rtt_ms, loss, congestion, room: SEGMENTS_MAX };
        let most = (SEGMENTS_MAX * 8192 * 8) as f64 / (rtt_ms as f64 * 1e6);
        vec![
            format!("{gbit} Gbit/s"),
            format!("{rtt_ms} ms"),
            percent(cell.share(effort.seed)),
            format!("{most:.1}"),
        ]
    };
    let pit = Config::default().pit_entries_max;
    section.paragraph(format!(
        "**Bounds.** The cells above have the flow's default bound of {WINDOW_MAX} segments in \
         flight (100 Gbit/s at 200 ms hold 305 000, and the control wants half as much again while \
         it looks for more). Two other bounds of the production code are lower. A forwarder's \
         table of pending Interests has {pit} entries by default: {:.0} Gbit/s at 200 ms; more is \
         refused with a Nack until `pit_entries` is raised. One file has at most {SEGMENTS_MAX} \
         segments in flight, because the nodes that verify them take memory; more needs several \
         files at a time, which share the flow. With that bound, at 0.01 % loss:",
        pit as f64 * 8192.0 * 8.0 / 0.2 / 1e9
    ));
    let head = ["rate", "round trip", "% of the line", "bound, Gbit/s"];
    section.table(&head, on_all_processors(paths, cell));
}

/// The same path with everything real: forwarders, server, reader, verification.
fn whole(section: &mut Section, effort: &Effort) {
    let (rtt_ms, loss) = if effort.is_quick { (10, 1e-3) } else { (50, 1e-3) };
    let (congestion, room) = (Congestion::Bdp, SEGMENTS_MAX);
    let small = Cell { gbit: 1, rtt_ms, loss, congestion, room }.share(effort.seed);
    let text = match whole_share(rtt_ms, loss, effort.seed) {
        Ok(whole) => format!(
            "**The same with everything real**: a file over three hosts with real forwarders, \
             links, file server, reader and proof of every octet, 1 Gbit/s, {rtt_ms} ms, {} % \
             loss: {} % of the line; this study's world says {} %.",
            loss * 100.0,
            percent(whole),
            percent(small)
        ),
        Err(what) => format!("**The same with everything real** failed: {what:?}."),
    };
    section.paragraph(text);
}

/// The share of the line that a download fills, by what the line carried.
fn whole_share(rtt_ms: u64, loss: f64, seed: u64) -> Result<f64, crate::Fault> {
    let mut world = World::new(seed);
    let rtt_ns = rtt_ms * MS;
    let faults = Faults { loss, burst: 1, ..Faults::default() };
    let link = |bits_per_s: u64, delay_ns: u64, faults: Faults| LinkConfig {
        line: LineConfig {
            queue: line(bits_per_s, rtt_ns, 1.0, Discipline::DropTail),
            delay_ns,
            jitter_ns: 0,
            faults,
        },
        mtu_bytes: None,
    };
    let config = Config { cs_entries_max: 0, cs_bytes_max: 0, ..Config::default() };
    let mut topology = Topology::hosts(&mut world, 3, &config);
    let hosts = topology.hosts.clone();
    // The publisher's own link is no bottleneck.
    topology.join(&mut world, 0, 1, link(100 * GBIT, 0, Faults::default()));
    let thin = topology.join(&mut world, 1, 2, link(GBIT, rtt_ns / 2, faults));
    let prefix: Name = "/site".parse().expect("a name");
    let (from_ns, to_ns) =
        (SECOND + START_ROUNDS * rtt_ns, SECOND + (START_ROUNDS + ROUNDS) * rtt_ns);
    let mut disk = Disk::default();
    disk.put("file", 5, GBIT / 8 * to_ns / SECOND, START_UNIX_NS - 3600 * SECOND);
    let publisher = Publisher::new(&prefix, 1, disk, DiskTimes::default());
    let anchor = (prefix.clone(), publisher.key_id());
    let publisher = world.add_program(hosts[0], publisher);
    world.route_to(publisher, &prefix);
    topology.route(&mut world, &prefix, hosts[0]);
    let order = DownloadOrder {
        name: "/site/file".parse().expect("a name"),
        anchor,
        seeds: vec![5],
        congestion: Congestion::Bdp,
        start_ns: SECOND,
    };
    world.add_program(hosts[2], Download::new(order, seed));
    world.run(from_ns, &|_| false)?;
    let before = world.line_counters(thin, hosts[1]);
    world.run(to_ns, &|_| false)?;
    let after = world.line_counters(thin, hosts[1]);
    let lost = (after.losses - before.losses) as f64 / (after.frames - before.frames).max(1) as f64;
    let bits = (after.bytes - before.bytes) as f64 * 8.0 * (1.0 - lost);
    Ok(bits / (GBIT as f64 * (to_ns - from_ns) as f64 / 1e9))
}
