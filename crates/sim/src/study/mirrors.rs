//! Mirrors that join and die while others read from them.
//!
//! Six routers in a ring, a reader at each, no stores, so that every octet comes from a holder.
//! While they read, two mirrors join; then one dies without a word, then the origin dies for good.
//! Required: every reader gets all of it, and nothing else.

use std::collections::VecDeque;

use byname_forwarder::Config;

use super::{Effort, Section, on_all_processors};
use crate::plot::{Axis, Plot, Series};
use crate::topology::Topology;
use crate::workload::{Catalogue, Scene, make, plain_link};
use crate::world::{HostId, Incident, MS, SECOND, World};

/// For the list of studies.
pub const QUESTION: &str =
    "Do readers get everything, and nothing else, while mirrors join and die?";

const ROUTERS: usize = 6;
const START_NS: u64 = 2 * SECOND;
const SAMPLE_NS: u64 = 50 * MS;
/// Time that a routing protocol takes to see that somebody is gone.
const NOTICE_NS: u64 = SECOND;

/// One run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Case {
    /// Octets that each reader wants.
    pub object_bytes: u64,
    /// Of all links.
    pub mbit_per_s: u64,
    /// Remedy for dead holders.
    pub remedy: Remedy,
    /// Seed of everything random.
    pub seed: u64,
}

/// Remedies for holders that do not answer any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Nobody is told; forwarders have the default strategy, which prefers the path that costs
    /// least, tries others when an Interest is repeated, and then suspends the dead.
    Nothing,
    /// Nobody is told; forwarders measure which path answers (strategy `asf`).
    Measuring,
    /// Routes to the dead are taken back a second later; default strategy.
    Routing,
}

impl Remedy {
    /// All.
    pub const ALL: [Remedy; 3] = [Remedy::Nothing, Remedy::Measuring, Remedy::Routing];

    fn label(self) -> &'static str {
        match self {
            Remedy::Nothing => "best-route, nobody is told",
            Remedy::Measuring => "asf, nobody is told",
            Remedy::Routing => "best-route, routes taken back after 1 s",
        }
    }
}

/// Things that happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Join(usize),
    Die(usize),
    Forget(usize),
}

/// When what happens, after the start, in tenths of the time that one reader alone would need at
/// least.
const STEPS: [(u64, Step); 4] =
    [(2, Step::Join(2)), (4, Step::Join(4)), (6, Step::Die(2)), (8, Step::Die(0))];

impl Case {
    fn unit_ns(&self) -> u64 {
        self.object_bytes * 8 * 1000 / self.mbit_per_s / 10
    }

    /// When the last holder dies, after the start.
    pub fn last_death_ns(&self) -> u64 {
        STEPS[STEPS.len() - 1].0 * self.unit_ns()
    }
}

/// The outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Readers, and those that got all of it.
    pub readers: (usize, usize),
    /// Octets handed out to readers at each time of sampling, in seconds since the start.
    pub read: Vec<(f64, f64)>,
    /// Octets that left the origin and the two mirrors, at the same times.
    pub held: Vec<[f64; 3]>,
    /// The longest time in which no reader that still read got anything.
    pub pause_ns: u64,
    /// From the start until all had it.
    pub took_ns: u64,
}

/// Lets them read.
///
/// # Panics
/// If a promise of the code under test is broken: an octet that was never published, above all.
pub fn reading(case: &Case) -> Outcome {
    let mut world = World::new(case.seed);
    let config = Config { cs_entries_max: 0, cs_bytes_max: 0, ..Config::default() };
    let link = plain_link(case.mbit_per_s, 2 * MS, None);
    let mut topology = Topology::ring(&mut world, ROUTERS, &config, link);
    // Holders and readers have hosts of their own, so that the death of one is not that of all.
    for place in 0..2 * ROUTERS {
        topology.hosts.push(world.add_host(&format!("at{place}"), config.clone()));
        topology.join(&mut world, place % ROUTERS, ROUTERS + place, link);
    }
    let holder = |router: usize| ROUTERS + router;
    let prefix = "/data".parse().expect("a name");
    let catalogue = Catalogue::new(&prefix, [case.object_bytes]);
    let mut scene = Scene::new(world, topology, catalogue, holder(0));
    if case.remedy == Remedy::Measuring {
        for host in scene.world.hosts() {
            assert!(scene.world.set_strategy(host, &scene.catalogue.prefix, "asf"), "it is known");
        }
    }
    for router in 0..ROUTERS {
        let request = make::whole(&scene.catalogue.files[0], START_NS);
        scene.add_consumer(2 * ROUTERS + router, vec![request], 1);
    }
    let holders = [0, 2, 4].map(|router| scene.topology.hosts[holder(router)]);
    watch(&mut scene, case, holders)
}

fn watch(scene: &mut Scene, case: &Case, holders: [HostId; 3]) -> Outcome {
    let (mut read, mut held) = (Vec::new(), Vec::new());
    let (mut pause_ns, mut last) = (0, (START_NS, 0));
    let mut steps: VecDeque<(u64, Step)> =
        STEPS.iter().map(|(at, step)| (START_NS + at * case.unit_ns(), *step)).collect();
    if case.remedy == Remedy::Routing {
        steps.extend(steps.clone().iter().filter_map(|(at_ns, step)| match step {
            Step::Die(router) => Some((at_ns + NOTICE_NS, Step::Forget(*router))),
            _ => None,
        }));
    }
    let limit_ns = START_NS + 1000 * case.unit_ns() + 120 * SECOND;
    let mut at_ns = START_NS;
    while at_ns < limit_ns && !scene.consumers().all(|one| one.is_finished()) {
        while steps.front().is_some_and(|(due_ns, _)| *due_ns <= at_ns) {
            let Some((_, step)) = steps.pop_front() else { break };
            happen(scene, step, at_ns);
        }
        at_ns += SAMPLE_NS;
        scene.run(at_ns).unwrap_or_else(|fault| panic!("{fault:?}"));
        let bytes = scene.served_bytes();
        if bytes > last.1 {
            last = (at_ns, bytes);
        }
        pause_ns = pause_ns.max(at_ns - last.0);
        let seconds = (at_ns - START_NS) as f64 / 1e9;
        read.push((seconds, bytes as f64));
        let account = scene.account();
        held.push(holders.map(|host| account.sent_bytes(host) as f64));
    }
    let all = scene.records().count();
    let readers = (all, all - scene.unfulfilled_count());
    Outcome { readers, read, held, pause_ns, took_ns: scene.took_ns() }
}

fn happen(scene: &mut Scene, step: Step, at_ns: u64) {
    match step {
        Step::Join(router) => _ = scene.add_mirror(ROUTERS + router),
        Step::Die(router) => {
            let host = scene.topology.hosts[ROUTERS + router];
            scene.world.plan(at_ns, Incident::Crash { host });
        }
        Step::Forget(router) => scene.lose_holder(ROUTERS + router),
    }
}

/// See the module.
pub fn run(effort: &Effort) -> Section {
    let mut section = Section::new("Mirrors that join and die");
    let object_bytes = if effort.is_quick { 4 << 20 } else { 64 << 20 };
    let case = |remedy| Case { object_bytes, mbit_per_s: 200, remedy, seed: effort.seed };
    let cases = Remedy::ALL.map(case);
    let found = on_all_processors(&cases, reading);
    let one = &cases[0];
    let at = |step: usize| (STEPS[step].0 * one.unit_ns()) as f64 / 1e9;
    section.paragraph(format!(
        "Six routers in a ring, a reader at each, no stores, {} Mbit/s and 2 ms; an object of {} \
         MiB. The origin is at the first router. After {:.2} s a mirror joins at the third, after \
         {:.2} s one at the fifth; after {:.2} s the first mirror dies without a word, after {:.2} \
         s the origin for good. A mirror serves what the publisher signed and has no key of its \
         own. Every octet was compared with what was published. A pause is a time in which no \
         reader got anything (sampled every {} ms).",
        one.mbit_per_s,
        object_bytes >> 20,
        at(0),
        at(1),
        at(2),
        at(3),
        SAMPLE_NS / MS
    ));
    let rows = cases.iter().zip(&found).map(|(case, one)| {
        vec![
            case.remedy.label().to_owned(),
            format!("{} of {}", one.readers.1, one.readers.0),
            format!("{:.2} s", one.took_ns as f64 / 1e9),
            format!("{} ms", one.pause_ns / MS),
        ]
    });
    section.table(
        &["what is done about the dead", "got all", "after", "longest pause"],
        rows.collect(),
    );
    if let Some(last) = found.last() {
        section.plot(plot(last));
    }
    section
}

fn plot(found: &Outcome) -> Plot {
    let mib = f64::from(1 << 20);
    let labels = ["left the origin", "left the mirror that dies", "left the other mirror"];
    let mut series = vec![Series::line(
        "came to the readers",
        found.read.iter().map(|(seconds, bytes)| (*seconds, bytes / mib)).collect(),
    )];
    for (place, label) in labels.into_iter().enumerate() {
        let points = found.read.iter().zip(&found.held);
        let points = points.map(|((seconds, _), held)| (*seconds, held[place] / mib));
        series.push(Series::line(label, points.collect()));
    }
    Plot {
        name: "mirrors".to_owned(),
        title: format!("Mirrors that join and die: {}", Remedy::Routing.label()),
        x: Axis::linear("seconds since the start"),
        y: Axis::linear("MiB since the start"),
        series,
    }
}
