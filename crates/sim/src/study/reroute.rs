//! Time that a reader goes without answers when a link on its path is cut.
//!
//! One reader fetches without end from one source; at three seconds a link of its path is cut. What
//! counts is the longest silence after that, and when goodput is back at nine tenths of what it
//! was. The links around the cut can carry as much, so that is possible.

use byname_forwarder::Config;
use byname_packet::Name;

use crate::plot::{Axis, Plot, Series};
use crate::study::{Effort, Section, on_all_processors};
use crate::topology::plan::{Plan, link};
use crate::topology::routes::{Distances, Routing, Ways};
use crate::topology::{Topology, shapes, sites};
use crate::traffic::{FetchJob, SEGMENT_BYTES, Sink, ZeroSource};
use crate::world::{Fault, HostId, Incident, LinkId, MS, ProgramId, SECOND, World};

/// The question that this answers.
pub const QUESTION: &str =
    "How long does a reader go without answers when a link on its path is cut?";

/// When the link is cut.
const CUT_NS: u64 = 3 * SECOND;
/// Time before the cut over which goodput counts as normal.
const BEFORE_MS: usize = 500;
/// Goodput is compared over this.
const WINDOW_MS: usize = 100;
/// If no more than that is missing so soon after the cut, goodput was never away: the other path
/// was taken at once, or before.
const AT_ONCE_MS: usize = 500;
/// Goodput that counts as back.
const BACK: f64 = 0.9;
/// Rate of all links.
const LINE_BITS_PER_S: u64 = 200_000_000;
const PREFIX: &str = "/site/data";

/// Who learns of the cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Learns {
    /// The two ends, at once: their faces go down.
    Ends,
    /// Nobody.
    Nobody,
    /// Nobody, but routes lead around it after so long, as a routing protocol would see to.
    Routing {
        /// After the cut.
        after_ns: u64,
    },
}

/// A case to try.
#[derive(Clone, Debug)]
pub struct Case {
    /// The network.
    pub plan: Plan,
    /// Names of the hosts of source and reader, and of the ends of the link that is cut.
    pub hosts: [&'static str; 4],
    /// Strategy of all forwarders.
    pub strategy: &'static str,
    /// Which routes there are.
    pub ways: Ways,
    /// Who learns of the cut.
    pub learns: Learns,
    /// Virtual time after the cut.
    pub seconds: u64,
    /// Seed.
    pub seed: u64,
}

/// The outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The longest time without an answer after the cut, in milliseconds.
    pub silence_ms: u64,
    /// From the cut until goodput was back at nine tenths, in milliseconds, if it was; 0 if it was
    /// never away.
    pub back_ms: Option<u64>,
    /// Goodput before the cut as a share of 200 Mbit/s, which no link of the study has less than.
    pub before: f64,
    /// Goodput of the last second as a share of that before the cut.
    pub share: f64,
    /// Interests that the reader repeated.
    pub repeated: u64,
    /// Way to the source before and after, without queues, in milliseconds.
    pub path_ms: (f64, f64),
    /// Segments that came in each millisecond.
    pub course: Vec<u32>,
}

struct Stage {
    world: World,
    topology: Topology,
    prefix: Name,
    source: HostId,
    reader: HostId,
    cut: LinkId,
    sink: ProgramId,
}

fn stage(case: &Case) -> Stage {
    let mut world = World::new(case.seed);
    let mut plan = case.plan.clone();
    for host in &mut plan.hosts {
        host.strategy = Some(case.strategy.to_owned());
        host.store_bytes = Some(0);
    }
    let topology = plan.build(&mut world, &Config::default());
    let [source, reader, one, other] =
        case.hosts.map(|name| topology.find(&world, name).expect("hosts of the plan"));
    let prefix: Name = PREFIX.parse().expect("a constant name");
    let program = world.add_program(source, ZeroSource::default());
    world.route_to(program, &prefix);
    let (targets, ways) = (&[source][..], case.ways);
    topology.put_routes(&mut world, &Routing { prefix: &prefix, targets, ways, without: &[] });
    let job = FetchJob { start_ns: SECOND, name: prefix.clone(), segments: u64::MAX / 2 };
    let sink = world.add_program(reader, Sink::new([job], case.seed).with_course(MS));
    let cut = topology.link(one, other).expect("a link of the plan");
    Stage { world, topology, prefix, source, reader, cut, sink }
}

/// Tries it.
///
/// # Errors
/// [`Fault`]: a promise was broken.
pub fn measure(case: &Case) -> Result<Outcome, Fault> {
    let mut stage = stage(case);
    let end_ns = CUT_NS + case.seconds * SECOND;
    let path = |stage: &Stage, without: &[LinkId]| {
        let Stage { topology, world, source, .. } = stage;
        let distances = Distances::new(topology, world, &[*source], without);
        distances.from(stage.reader).map_or(f64::NAN, |us| us as f64 / 1e3)
    };
    let path_ms = (path(&stage, &[]), path(&stage, &[stage.cut]));
    let is_noticed = case.learns == Learns::Ends;
    stage.world.plan(CUT_NS, Incident::Cut { link: stage.cut, is_noticed });
    if let Learns::Routing { after_ns } = case.learns {
        stage.world.run(CUT_NS + after_ns, &|_| false)?;
        let Stage { world, topology, prefix, source, cut, .. } = &mut stage;
        let (targets, ways, without) = (&[*source][..], case.ways, &[*cut][..]);
        topology.put_routes(world, &Routing { prefix, targets, ways, without });
    }
    stage.world.run(end_ns, &|_| false)?;
    let sink = stage.world.program::<Sink>(stage.sink).expect("the reader");
    let mut course = sink.course().to_vec();
    course.resize((end_ns / MS) as usize, 0);
    let repeated = sink.asked().saturating_sub(sink.received());
    Ok(judge(course, repeated, path_ms))
}

fn judge(course: Vec<u32>, repeated: u64, path_ms: (f64, f64)) -> Outcome {
    let cut = (CUT_NS / MS) as usize;
    let mean = |range: &[u32]| {
        range.iter().map(|count| f64::from(*count)).sum::<f64>() / range.len().max(1) as f64
    };
    let before = mean(&course[cut - BEFORE_MS..cut]);
    let after = &course[cut..];
    let mut at_once = after.windows(WINDOW_MS).take(AT_ONCE_MS);
    let was_never_away = at_once.all(|window| mean(window) >= BACK * before);
    let silences = after.split(|count| *count > 0).map(<[u32]>::len);
    let silence_ms = silences.max().unwrap_or(0) as u64;
    // Not before the silence: what was in flight still comes.
    let silent_until = after
        .windows(silence_ms.max(1) as usize)
        .position(|window| window.iter().all(|count| *count == 0))
        .map_or(0, |at| at + silence_ms as usize);
    let back = after
        .windows(WINDOW_MS)
        .skip(silent_until)
        .position(|window| mean(window) >= BACK * before);
    let last = &after[after.len().saturating_sub(1000)..];
    Outcome {
        before: before * 8e3 * SEGMENT_BYTES as f64 / LINE_BITS_PER_S as f64,
        silence_ms,
        back_ms: if was_never_away { Some(0) } else { back.map(|at| (silent_until + at) as u64) },
        share: mean(last) / before.max(f64::MIN_POSITIVE),
        repeated,
        path_ms,
        course,
    }
}

/// Networks with a path around, and the link that is cut.
fn networks() -> Vec<(&'static str, Plan, [&'static str; 4])> {
    let even = link(LINE_BITS_PER_S, 2 * MS);
    let mut lhc = sites::lhc();
    for link in &mut lhc.links {
        // A reader of a Tier 2 with its own limit: all paths can carry it.
        link.config.line.queue.bits_per_s = LINE_BITS_PER_S;
    }
    vec![
        ("ring of 6, next to the reader", shapes::ring(6, even), ["h0", "h2", "h1", "h2"]),
        ("ring of 6, next to the source", shapes::ring(6, even), ["h0", "h2", "h0", "h1"]),
        (
            "fat tree of 4, above the reader's edge",
            shapes::fat_tree(4, link(LINE_BITS_PER_S, MS / 10)),
            ["h0-0-0", "h3-1-1", "agg3-0", "edge3-1"],
        ),
        ("LHC sites, CERN to Karlsruhe", lhc, ["cern", "t2-desy", "cern", "t1-kit"]),
    ]
}

const LEARNS: [(&str, Learns); 3] = [
    ("its ends", Learns::Ends),
    ("nobody", Learns::Nobody),
    ("routing after 1 s", Learns::Routing { after_ns: SECOND }),
];

const WAYS: [(&str, Ways); 2] = [("nearer", Ways::Nearer), ("around", Ways::Around)];

/// The time to reroute.
pub fn run(effort: &Effort) -> Section {
    let mut section = Section::new("Time to reroute after a cut link");
    section.paragraph(
        "One reader and one source over links of 200 Mbit/s, no content stores; at 3 s a link on \
         the path is cut. Routes, `nearer`: to neighbours that are nearer to the source than the \
         host itself, so that no Interest goes in circles; `around`: also to others that reach the \
         source without coming back, dearer, as NLSR finds them. Which is used is up to the \
         strategy. Silence is the longest time without an answer after the cut; `back` is the time \
         until 100 ms bring nine tenths of what came before (0: always), `share` what the last \
         second brings. `Before` is the share of the line that was used in the half second before \
         the cut.",
    );
    let (mut rows, mut found) = (Vec::new(), Vec::new());
    let cases = cases(effort);
    let outcomes = on_all_processors(&cases, |(_, case)| measure(case));
    for ((words, _), outcome) in cases.into_iter().zip(outcomes) {
        match outcome {
            Ok(outcome) => {
                rows.push(row(words, &outcome));
                found.push((words, outcome));
            }
            Err(fault) => section.paragraph(format!("A promise was broken: {fault:?}.")),
        }
    }
    let head = [
        "network and cut",
        "routes",
        "who learns",
        "strategy",
        "path before → after, ms",
        "before",
        "silence, ms",
        "back, ms",
        "share at the end",
        "repeated",
    ];
    section.table(&head, rows);
    let ring = Chart {
        name: "reroute",
        network: "ring of 6",
        cut: "next to the reader",
        routes: &["around"],
    };
    draw(&mut section, &found, &ring);
    let fat_tree = Chart {
        name: "reroute-fat-tree",
        network: "fat tree",
        cut: "",
        routes: &["nearer", "around"],
    };
    draw(&mut section, &found, &fat_tree);
    section
}

/// Runs whose goodput is drawn together.
struct Chart {
    name: &'static str,
    /// Prefix of the case's name: the network.
    network: &'static str,
    /// Suffix of the case's name: the cut.
    cut: &'static str,
    routes: &'static [&'static str],
}

/// Goodput over time; where routing learns of the cut, its first second is as if nobody knew, so
/// that is left out.
fn draw(section: &mut Section, found: &[([&str; 4], Outcome)], chart: &Chart) {
    let mut series = Vec::new();
    for ([case, routes, who, strategy], outcome) in found {
        let is_it = case.starts_with(chart.network)
            && case.ends_with(chart.cut)
            && chart.routes.contains(routes);
        if is_it && *who != LEARNS[2].0 {
            series.push(curve(&format!("{strategy}, {who} know, {routes}"), outcome));
        }
    }
    if !series.is_empty() {
        section.plot(Plot {
            name: chart.name.to_owned(),
            title: format!("Goodput around a cut at 3 s, {}", chart.network),
            x: Axis::linear("seconds"),
            y: Axis::linear("Mbit/s"),
            series,
        });
    }
}

/// Cases, with the words for them.
fn cases(effort: &Effort) -> Vec<([&'static str; 4], Case)> {
    let (count, seconds) = if effort.is_quick { (1, 3) } else { (usize::MAX, 10) };
    let mut cases = Vec::new();
    for (network, plan, hosts) in networks().into_iter().take(count) {
        for (routes, ways) in WAYS {
            for (who, learns) in LEARNS {
                for strategy in ["best-route", "asf"] {
                    let (plan, seed) = (plan.clone(), effort.seed);
                    let case = Case { plan, hosts, strategy, ways, learns, seconds, seed };
                    cases.push(([network, routes, who, strategy], case));
                }
            }
        }
    }
    cases
}

fn row(words: [&str; 4], it: &Outcome) -> Vec<String> {
    let mut row: Vec<String> = words.map(str::to_owned).into();
    row.extend([
        format!("{:.1} → {:.1}", it.path_ms.0, it.path_ms.1),
        format!("{:.0} %", it.before * 100.0),
        it.silence_ms.to_string(),
        it.back_ms.map_or("never".to_owned(), |ms| ms.to_string()),
        format!("{:.0} %", it.share * 100.0),
        it.repeated.to_string(),
    ]);
    row
}

/// Goodput over time, in steps of 50 ms.
fn curve(label: &str, outcome: &Outcome) -> Series {
    const STEP_MS: usize = 50;
    let points = outcome.course.chunks(STEP_MS).enumerate().skip(2000 / STEP_MS);
    let points = points.map(|(place, chunk)| {
        let bits = chunk.iter().sum::<u32>() as f64 * SEGMENT_BYTES as f64 * 8.0;
        ((place * STEP_MS) as f64 / 1e3, bits / chunk.len() as f64 / 1e3)
    });
    Series::line(label, points.collect())
}
