//! Savings by caches in the network when files are asked for after Zipf's law.
//!
//! The catalogue is that of the field's tests of VIP caching at SC22 (N-DISE: 30 files of 4 GB,
//! Zipf(1), two forwarders with 20 GB each, two consumers, one producer), with files scaled down
//! and the stores in proportion. Beside every measured share stands what theory says of stores
//! that drop what was asked for longest ago ([`ideal`](crate::workload::ideal)).

use byname_forwarder::Config;

use super::{Effort, Section, on_all_processors};
use crate::plot::{Axis, Plot, Series};
use crate::random::Random;
use crate::topology::Topology;
use crate::workload::make::Arrivals;
use crate::workload::{Catalogue, Scene, ideal, make, plain_link};
use crate::world::{MS, SECOND, World};

/// For the list of studies.
pub const QUESTION: &str =
    "What do stores in the network save when files are asked for after Zipf's law?";

const FILES: usize = 30;
/// Stands for 4 GB.
const FILE_BYTES: u64 = 256 << 10;
/// Packets of a file in a store: segments, one of hashes, one description.
const FILE_PACKETS: f64 = 32.0 + 2.0;
const EXPONENT: f64 = 1.0;
const START_NS: u64 = 2 * SECOND;

/// Where the stores are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Two consumers, two forwarders in a row, a producer behind the second: stores at the two.
    Vip,
    /// A tree of nine sites: stores where the consumers are.
    Edge,
    /// The same tree: stores at the four routers between.
    Inside,
    /// The same tree: at both.
    Everywhere,
}

impl Placement {
    /// True if the host in this place has a store; consumers and origin of the SC22 test have none.
    fn has_store(self, place: usize) -> bool {
        match self {
            Placement::Vip => [1, 2].contains(&place),
            Placement::Edge => place >= 5,
            Placement::Inside => (1..5).contains(&place),
            Placement::Everywhere => place >= 1,
        }
    }

    /// Joined hosts, the origin first; the last ones have consumers.
    fn hosts(self) -> (usize, &'static [(usize, usize)], std::ops::Range<usize>) {
        match self {
            // Origin, second forwarder, first forwarder, a consumer at each.
            Placement::Vip => (5, &[(0, 1), (1, 2), (2, 3), (1, 4)], 3..5),
            // Origin, core, three regions, three sites each.
            _ => (
                14,
                &[
                    (0, 1),
                    (1, 2),
                    (1, 3),
                    (1, 4),
                    (2, 5),
                    (2, 6),
                    (2, 7),
                    (3, 8),
                    (3, 9),
                    (3, 10),
                    (4, 11),
                    (4, 12),
                    (4, 13),
                ],
                5..14,
            ),
        }
    }

    fn label(self) -> &'static str {
        match self {
            Placement::Vip => "SC22's",
            Placement::Edge => "at the sites",
            Placement::Inside => "at the routers",
            Placement::Everywhere => "everywhere",
        }
    }
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Case {
    /// Where the stores are.
    pub placement: Placement,
    /// Number of files that each holds.
    pub files: usize,
    /// Requests of each consumer that settle what is in the stores, after each has read everything
    /// once; and those that count.
    pub requests: (usize, usize),
    /// Seed of everything random.
    pub seed: u64,
}

/// Measurements after the stores were full, as shares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shares {
    /// Octets that left the origin, of those that without stores would have.
    pub origin: f64,
    /// Octets on all links, of those that there would have been.
    pub links: f64,
    /// Requests that were not fulfilled.
    pub unfulfilled: usize,
}

/// Origin and links, in octets for each octet that consumers got; and failures.
///
/// # Panics
/// If a promise of the code under test is broken.
pub fn measure(case: &Case) -> Shares {
    let mut world = World::new(case.seed);
    let (count, joints, sites) = case.placement.hosts();
    let mut topology = Topology::default();
    for place in 0..count {
        let entries = (case.files as f64 * FILE_PACKETS) as usize;
        let entries = if case.placement.has_store(place) { entries } else { 0 };
        // The number of packets is the limit.
        let bytes = entries * (16 << 10);
        let config = Config { cs_entries_max: entries, cs_bytes_max: bytes, ..Config::default() };
        topology.hosts.push(world.add_host(&format!("h{place}"), config));
    }
    for (one, other) in joints {
        topology.join(&mut world, *one, *other, plain_link(1000, MS, None));
    }
    let prefix = "/store".parse().expect("a name");
    let catalogue = Catalogue::new(&prefix, [FILE_BYTES; FILES]);
    let mut scene = Scene::new(world, topology, catalogue, 0);
    let mut random = Random::new(case.seed);
    // Once everything, so that no file is asked for the first time later on.
    for site in sites.clone().filter(|_| case.files > 0) {
        let mut requests = make::everything(&scene.catalogue, START_NS);
        requests.reverse();
        scene.add_consumer(site, requests, 1);
    }
    scene.run(36_000 * SECOND).unwrap_or_else(|fault| panic!("{fault:?}"));
    let mut play = |scene: &mut Scene, count: usize| {
        let start_ns = scene.world.now_ns();
        for site in sites.clone() {
            // One after the other: a consumer asks again when it has what it asked for.
            let arrivals = Arrivals { start_ns, mean_gap_ns: 0, count };
            let requests = make::popular(&scene.catalogue, EXPONENT, arrivals, &mut random);
            scene.add_consumer(site, requests, 1);
        }
        let limit_ns = start_ns + 36_000 * SECOND;
        scene.run(limit_ns).unwrap_or_else(|fault| panic!("{fault:?}"));
    };
    play(&mut scene, case.requests.0);
    let (account, served) = (scene.account(), scene.served_bytes());
    let origin = scene.origin_bytes();
    play(&mut scene, case.requests.1);
    let served = (scene.served_bytes() - served) as f64;
    Shares {
        origin: (scene.origin_bytes() - origin) as f64 / served,
        links: scene.account().since(&account).total_bytes() as f64 / served,
        unfulfilled: scene.unfulfilled_count(),
    }
}

/// Share of the requests that reach the origin in theory, if every store works alone and what one
/// passes on counts as independent again.
pub fn theory(placement: Placement, files: f64) -> f64 {
    let shares = ideal::zipf_shares(FILES, EXPONENT);
    let misses = |rates: &[f64]| ideal::lru_miss_rates(rates, files);
    let times = |rates: &[f64], factor: f64| -> Vec<f64> {
        rates.iter().map(|rate| rate * factor).collect()
    };
    let (at_origin, all) = match placement {
        Placement::Vip => {
            let first = misses(&shares);
            let second: Vec<f64> = first.iter().zip(&shares).map(|(one, two)| one + two).collect();
            (misses(&second), 2.0)
        }
        Placement::Edge => (times(&misses(&shares), 9.0), 9.0),
        Placement::Inside => {
            let region = misses(&times(&shares, 3.0));
            (misses(&times(&region, 3.0)), 9.0)
        }
        Placement::Everywhere => {
            let region = misses(&times(&misses(&shares), 3.0));
            (misses(&times(&region, 3.0)), 9.0)
        }
    };
    at_origin.iter().sum::<f64>() / all
}

/// See the module.
pub fn run(effort: &Effort) -> Section {
    let mut section = Section::new("What stores in the network save for Zipf requests");
    section.paragraph(format!(
        "{FILES} files, asked for independently with probabilities after Zipf(1). Each stands for \
         4 GB and has {} KiB, so 1 KiB stands for {:.1} MB; stores are in proportion. A consumer \
         asks for a file when it has the one before. Shares are of what there would be without \
         any store, after every consumer has read everything once and made some requests that do \
         not count. LRU: Che's approximation, level by level, what a store passes on taken for \
         independent. Best: a store of that size that always has the most popular files, and all \
         routers as one. With many requests, measured shares lie a few points above LRU's: \
         descriptions are asked for afresh each time and take room, too, and a file of which a \
         few packets had to go is lost whole when it is read in order.",
        FILE_BYTES >> 10,
        4e9 / 1e6 / (FILE_BYTES >> 10) as f64
    ));
    vip(&mut section, effort);
    placements(&mut section, effort);
    section
}

fn sizes(effort: &Effort) -> &'static [usize] {
    if effort.is_quick { &[0, 5, 30] } else { &[0, 1, 2, 3, 5, 8, 12, 20, 30] }
}

fn measured(effort: &Effort, placement: Placement, requests: (usize, usize)) -> Vec<Shares> {
    let case = |files: &usize| Case { placement, files: *files, requests, seed: effort.seed };
    let cases: Vec<Case> = sizes(effort).iter().map(case).collect();
    on_all_processors(&cases, measure)
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn vip(section: &mut Section, effort: &Effort) {
    let requests = if effort.is_quick { (10, 40) } else { (100, 500) };
    let found = measured(effort, Placement::Vip, requests);
    let shares = ideal::zipf_shares(FILES, EXPONENT);
    let base = found[0];
    let rows = sizes(effort).iter().zip(&found).map(|(files, one)| {
        vec![
            format!("{} GB", files * 4),
            percent(*files as f64 / FILES as f64),
            percent(one.origin / base.origin),
            percent(theory(Placement::Vip, *files as f64)),
            percent(1.0 - ideal::best_hit_share(&shares, *files as f64)),
            percent(one.links / base.links),
        ]
    });
    section.paragraph(format!(
        "The test of SC22 (ndise.net/sc-22): two consumers, two forwarders with stores of 20 GB \
         each, one producer; the page does not give the links, we take consumer – forwarder – \
         forwarder – producer with the second consumer at the second forwarder. {} requests of \
         each consumer count, after {} that do not. VIP and ARC, which that test \
         compared, are not implemented here: our stores drop what was asked for longest ago.",
        requests.1, requests.0
    ));
    let head = ["store each", "of catalogue", "from origin", "LRU", "best", "on links"];
    section.table(&head, rows.collect());
    let failed: usize = found.iter().map(|one| one.unfulfilled).sum();
    section.paragraph(format!("{failed} requests failed."));
    let share = |files: &usize| *files as f64 / FILES as f64 * 100.0;
    let line = |value: &dyn Fn(usize, &Shares) -> f64| -> Vec<(f64, f64)> {
        let both = sizes(effort).iter().zip(&found);
        both.map(|(files, one)| (share(files), 100.0 * value(*files, one))).collect()
    };
    let measured = line(&|_, one| one.origin / base.origin);
    let lru = line(&|files, _| theory(Placement::Vip, files as f64));
    let best = line(&|files, _| 1.0 - ideal::best_hit_share(&shares, files as f64));
    let series = vec![
        Series::dots("measured", measured),
        Series::line("LRU, Che's approximation", lru),
        Series::line("best", best),
    ];
    let title = "SC22's test: what still comes from the origin";
    section.plot(share_plot("zipf-sc22", title, "octets from the origin, %", series));
}

fn placements(section: &mut Section, effort: &Effort) {
    let requests = if effort.is_quick { (5, 15) } else { (40, 100) };
    let all = [Placement::Edge, Placement::Inside, Placement::Everywhere];
    let found = all.map(|placement| measured(effort, placement, requests));
    section.paragraph(format!(
        "A tree: origin – core – three regions – three sites each, a consumer at every site with \
         {} requests that count after {} that do not. All stores of a row have the same size.",
        requests.1, requests.0
    ));
    let rows = sizes(effort).iter().enumerate().map(|(place, files)| {
        let mut row = vec![format!("{} GB", files * 4)];
        for (placement, found) in all.iter().zip(&found) {
            row.push(percent(found[place].origin / found[0].origin));
            row.push(percent(theory(*placement, *files as f64)));
            row.push(percent(found[place].links / found[0].links));
        }
        row
    });
    let head = [
        "store each",
        "sites: origin",
        "LRU",
        "links",
        "routers: origin",
        "LRU",
        "links",
        "everywhere: origin",
        "LRU",
        "links",
    ];
    section.table(&head, rows.collect());
    let failed: usize = found.iter().flatten().map(|one| one.unfulfilled).sum();
    section.paragraph(format!("{failed} requests failed."));
    let series = |value: fn(&Shares) -> f64| {
        let line = |(placement, found): (&Placement, &Vec<Shares>)| {
            let both = sizes(effort).iter().zip(found);
            let points = both.map(|(files, one)| {
                let x = *files as f64 / FILES as f64 * 100.0;
                (x, 100.0 * value(one) / value(&found[0]))
            });
            Series::dots(placement.label(), points.collect())
        };
        all.iter().zip(&found).map(line).collect::<Vec<_>>()
    };
    let title = "What still comes from the origin, by the place of the stores";
    let label = "octets from the origin, %";
    section.plot(share_plot("zipf-origin", title, label, series(|one| one.origin)));
    let title = "What still crosses links, by the place of the stores";
    section.plot(share_plot("zipf-links", title, "octets on all links, %", series(|it| it.links)));
}

fn share_plot(name: &str, title: &str, label: &str, series: Vec<Series>) -> Plot {
    Plot {
        name: name.to_owned(),
        title: title.to_owned(),
        x: Axis::linear("size of each store, % of the catalogue"),
        y: Axis::linear(label),
        series,
    }
}
