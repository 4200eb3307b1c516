//! A flash crowd: everybody wants one object within a second.
//!
//! The origin hangs on a tree of routers by one link; readers sit at the leaves. Without stores,
//! requests still meet in the routers while they wait for an answer (PIT aggregation), so the two
//! effects can be told apart. One copy for each reader, as servers on TCP send it, is computed.

use byname_forwarder::Config;

use super::{Effort, Section, on_all_processors};
use crate::plot::{Axis, Plot, Series};
use crate::random::Random;
use crate::topology::Topology;
use crate::workload::{Catalogue, Scene, make, plain_link};
use crate::world::{MS, SECOND, World};

/// For the list of studies.
pub const QUESTION: &str =
    "When does a flash crowd have the object, and what does the origin send?";

const LINK_MBIT_PER_S: u64 = 200;
const WITHIN_NS: u64 = SECOND;
const START_NS: u64 = 2 * SECOND;

/// One run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Case {
    /// Links below each router; the readers are `arity` to the power of `depth`.
    pub arity: usize,
    /// Routers on the way from the core to a reader, itself included.
    pub depth: u32,
    /// Octets of the object.
    pub object_bytes: u64,
    /// True if forwarders keep what passes.
    pub has_stores: bool,
    /// Seed of everything random.
    pub seed: u64,
}

impl Case {
    /// Number of readers that want the object.
    pub fn readers(&self) -> usize {
        self.arity.pow(self.depth)
    }
}

/// The outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Octets that left the origin.
    pub origin_bytes: u64,
    /// Octets on all links.
    pub link_bytes: u64,
    /// From the first request until each had it, in the order of time.
    pub had_it_ns: Vec<u64>,
    /// Waiting times, in the order of length.
    pub waited_ns: Vec<u64>,
}

/// Lets the crowd come.
///
/// # Panics
/// If a promise of the code under test is broken.
pub fn crowd(case: &Case) -> Outcome {
    let mut world = World::new(case.seed);
    let config = match case.has_stores {
        true => Config::default(),
        false => Config { cs_entries_max: 0, cs_bytes_max: 0, ..Config::default() },
    };
    let link = plain_link(LINK_MBIT_PER_S, 2 * MS, None);
    let mut topology = Topology::tree(&mut world, case.arity, case.depth, &config, link);
    let places = topology.hosts.len();
    topology.hosts.push(world.add_host("origin", config));
    topology.join(&mut world, 0, places, link);
    let prefix = "/news".parse().expect("a name");
    let catalogue = Catalogue::new(&prefix, [case.object_bytes]);
    let mut scene = Scene::new(world, topology, catalogue, places);
    let mut random = Random::new(case.seed);
    for place in places - case.readers()..places {
        let file = &scene.catalogue.files[0];
        let request = make::sudden(file, START_NS, WITHIN_NS, &mut random);
        scene.add_consumer(place, vec![request], 1);
    }
    scene.run(START_NS + 3600 * SECOND).unwrap_or_else(|fault| panic!("{fault:?}"));
    let done = scene.records().filter(|(_, record)| record.is_complete());
    let (mut had_it_ns, mut waited_ns): (Vec<u64>, Vec<u64>) = done
        .filter_map(|(_, record)| Some((record.ended_ns? - START_NS, record.took_ns()?)))
        .unzip();
    had_it_ns.sort_unstable();
    waited_ns.sort_unstable();
    let account = scene.account();
    let origin_bytes = scene.origin_bytes();
    Outcome { origin_bytes, link_bytes: account.total_bytes(), had_it_ns, waited_ns }
}

/// See the module.
pub fn run(effort: &Effort) -> Section {
    let mut section = Section::new("A flash crowd");
    let (object_bytes, depths): (u64, &[u32]) =
        if effort.is_quick { (256 << 10, &[1, 2]) } else { (4 << 20, &[1, 2, 3]) };
    section.paragraph(format!(
        "One object of {} KiB, wanted by everybody at the leaves of a tree of routers (four links \
         below each) within {} s; all links have {LINK_MBIT_PER_S} Mbit/s and 2 ms, the origin \
         hangs on the core by one. The last column is a calculation: that link carries one copy \
         for each reader, without any header.",
        object_bytes >> 10,
        WITHIN_NS / SECOND
    ));
    let case = |depth: u32, has_stores| Case {
        arity: 4,
        depth,
        object_bytes,
        has_stores,
        seed: effort.seed,
    };
    let cases: Vec<Case> =
        depths.iter().flat_map(|depth| [case(*depth, true), case(*depth, false)]).collect();
    let found = on_all_processors(&cases, crowd);
    let rows = cases.iter().zip(&found).map(|(case, one)| row(case, one));
    let head = [
        "readers",
        "stores",
        "had it",
        "from the origin, × object",
        "on all links, × object",
        "all have it after, s",
        "median wait, s",
        "longest wait, s",
        "one copy each, s",
    ];
    section.table(&head, rows.collect());
    let largest = cases.iter().zip(&found).rev().take(2);
    section.plot(course(largest.rev()));
    section
}

fn copies_s(case: &Case) -> f64 {
    let bits = case.readers() as f64 * case.object_bytes as f64 * 8.0;
    bits / (LINK_MBIT_PER_S as f64 * 1e6)
}

fn row(case: &Case, one: &Outcome) -> Vec<String> {
    let times = |bytes: u64| format!("{:.2}", bytes as f64 / case.object_bytes as f64);
    let seconds =
        |ns: Option<&u64>| ns.map_or("–".into(), |ns| format!("{:.2}", *ns as f64 / 1e9));
    vec![
        case.readers().to_string(),
        if case.has_stores { "256 MiB each".into() } else { "none".into() },
        one.had_it_ns.len().to_string(),
        times(one.origin_bytes),
        times(one.link_bytes),
        seconds(one.had_it_ns.last()),
        seconds(one.waited_ns.get(one.waited_ns.len() / 2)),
        seconds(one.waited_ns.last()),
        format!("{:.2}", copies_s(case)),
    ]
}

fn course<'a>(found: impl Iterator<Item = (&'a Case, &'a Outcome)>) -> Plot {
    let mut series = Vec::new();
    let mut readers = 0;
    for (case, one) in found {
        readers = case.readers();
        let points = one.had_it_ns.iter().enumerate();
        let points = points.map(|(place, ns)| (*ns as f64 / 1e9, (place + 1) as f64));
        let label = if case.has_stores { "with stores" } else { "without stores" };
        series.push(Series::line(label, points.collect()));
        if !case.has_stores {
            let end = (copies_s(case), readers as f64);
            let label = "one copy each, one after the other (computed)";
            series.push(Series::line(label, vec![(0.0, 0.0), end]));
        }
    }
    Plot {
        name: "flash-crowd".to_owned(),
        title: format!("{readers} readers within a second: how many have it"),
        x: Axis::linear("seconds since the first request"),
        y: Axis::linear("readers that have the object"),
        series,
    }
}
