//! Costs of replication on the links: replicas that pull from each other's caches against a
//! pipeline from node to node.
//!
//! The network is the 16-node cluster of "Hadoop on Named Data Networking" (Gibbens and others,
//! POMACS 1(1), 2017, Fig. 5): a root router, four routers, four hosts at each, links of 1 Gbit/s.
//! Ours is simulated; the pipeline is computed from shortest paths, since TCP sends every octet
//! once over each link of a path if nothing is lost.

use byname_forwarder::Config;

use super::{Effort, Section, on_all_processors};
use crate::plot::{Axis, Plot, Series};
use crate::random::Random;
use crate::topology::{Topology, shapes};
use crate::workload::{Account, Catalogue, Scene, make, shortest_path, tree_links};
use crate::world::{HostId, SECOND, World};

/// UDP payload that fits an Ethernet frame of 1500 octets.
/// For the list of studies.
pub const QUESTION: &str = "What do pulled replicas cost on every link, against a pipeline?";

const MTU_BYTES: usize = 1472;
/// Ethernet, IPv4, UDP.
const HEADERS_BYTES: u64 = 14 + 20 + 8;
/// Octets on the links for one of a file in a pipeline: Ethernet, IPv4 and TCP with time stamps
/// for each 1448 octets, an acknowledgement of the same headers for every second packet, and
/// HDFS's checksums of 4 octets for each 512.
const PIPELINE_FACTOR: f64 = (1448.0 + 66.0 + 33.0) / 1448.0 * (1.0 + 4.0 / 512.0);
const ROUTERS: usize = 5;
const HOSTS: usize = 16;
const START_NS: u64 = 2 * SECOND;

/// The cluster, with links that carry datagrams.
fn cluster(world: &mut World, config: &Config) -> Topology {
    let mut plan = shapes::cluster16();
    for link in &mut plan.links {
        link.config.mtu_bytes = Some(MTU_BYTES);
    }
    plan.build(world, config)
}

/// Where host `number` is (1 to 16) among the hosts of the topology: behind the routers.
fn place_of(number: usize) -> usize {
    ROUTERS + number - 1
}

/// The nodes of a pipeline, by number: the three of the paper's Table 2, then others by chance.
pub fn nodes(count: usize, seed: u64) -> Vec<usize> {
    let mut random = Random::new(seed);
    let mut left: Vec<usize> = (1..=HOSTS).filter(|host| ![3, 5, 13].contains(host)).collect();
    let mut nodes = vec![3, 5, 13];
    while nodes.len() < count {
        nodes.push(left.swap_remove(random.below(left.len() as u64) as usize));
    }
    nodes.truncate(count);
    nodes
}

/// Pull mode of the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// All at once; content stores as large as by default.
    Together,
    /// All at once; no content stores.
    TogetherWithoutStores,
    /// Each when the one before has half of it; content stores hold the object.
    Staggered,
    /// Each when the one before has half of it; no content stores.
    StaggeredWithoutStores,
}

impl Mode {
    const ALL: [Mode; 4] = [
        Mode::Together,
        Mode::TogetherWithoutStores,
        Mode::Staggered,
        Mode::StaggeredWithoutStores,
    ];

    fn label(self) -> &'static str {
        match self {
            Mode::Together => "pulled at once",
            Mode::TogetherWithoutStores => "pulled at once, no stores",
            Mode::Staggered => "pulled staggered",
            Mode::StaggeredWithoutStores => "pulled staggered, no stores",
        }
    }

    fn config(self) -> Config {
        match self {
            Mode::Together | Mode::Staggered => Config::default(),
            Mode::TogetherWithoutStores | Mode::StaggeredWithoutStores => {
                Config { cs_entries_max: 0, cs_bytes_max: 0, ..Config::default() }
            }
        }
    }

    fn gap_ns(self, object_bytes: u64) -> u64 {
        match self {
            Mode::Together | Mode::TogetherWithoutStores => 0,
            // Half of the time that 1 Gbit/s takes.
            Mode::Staggered | Mode::StaggeredWithoutStores => object_bytes * 8 / 2,
        }
    }
}

/// Traffic that crossed the links of the cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Sent and received by the sixteen hosts, headers of all layers included.
    pub host_bytes: u64,
    /// On all links, both directions.
    pub link_bytes: u64,
    /// The hosts' part, in the order of their numbers.
    pub by_host: Vec<u64>,
    /// Nodes that did not get all of it.
    pub unfulfilled: usize,
    /// Links that carried more than the object once, or any that should have carried nothing.
    pub beyond_tree: Vec<String>,
    /// Until the last had it.
    pub took_ns: u64,
}

/// An object on the first of the nodes, pulled by the others.
///
/// # Panics
/// If a promise of the code under test is broken.
pub fn pull(nodes: &[usize], object_bytes: u64, mode: Mode, seed: u64) -> Outcome {
    let mut world = World::new(seed);
    let topology = cluster(&mut world, &mode.config());
    let prefix = "/blocks".parse().expect("a name");
    let catalogue = Catalogue::new(&prefix, [object_bytes]);
    let mut scene = Scene::new(world, topology, catalogue, place_of(nodes[0]));
    for (order, node) in nodes[1..].iter().enumerate() {
        let start_ns = START_NS + order as u64 * mode.gap_ns(object_bytes);
        let request = make::whole(&scene.catalogue.files[0], start_ns);
        scene.add_consumer(place_of(*node), vec![request], 1);
    }
    scene.run(START_NS + 3600 * SECOND).unwrap_or_else(|fault| panic!("{fault:?}"));
    outcome(&scene, nodes, object_bytes)
}

fn outcome(scene: &Scene, nodes: &[usize], object_bytes: u64) -> Outcome {
    let bare = scene.account();
    let host = |number: usize| scene.topology.hosts[place_of(number)];
    let readers: Vec<HostId> = nodes[1..].iter().map(|node| host(*node)).collect();
    let beyond_tree =
        bare.beyond_tree(&scene.topology, (host(nodes[0]), &readers), object_bytes, MARGIN);
    let account: Account = bare.with_headers(HEADERS_BYTES);
    let both = |number| account.sent_bytes(host(number)) + account.received_bytes(host(number));
    let by_host: Vec<u64> = (1..=HOSTS).map(both).collect();
    Outcome {
        host_bytes: by_host.iter().sum(),
        link_bytes: account.total_bytes(),
        by_host,
        unfulfilled: scene.unfulfilled_count(),
        beyond_tree,
        took_ns: scene.took_ns(),
    }
}

/// Share that names, headers of packets and fragments, Interests and the tree of hashes may add.
pub const MARGIN: f64 = 0.04;

/// Object-sized trips over links, of a pipeline through these nodes and of the tree from the first
/// to the others.
pub fn trips(nodes: &[usize]) -> (usize, usize) {
    let mut world = World::new(0);
    let topology = cluster(&mut world, &Config::default());
    let host = |number: usize| topology.hosts[place_of(number)];
    let hops = |pair: &[usize]| shortest_path(&topology, host(pair[0]), host(pair[1])).len() - 1;
    let readers: Vec<HostId> = nodes[1..].iter().map(|node| host(*node)).collect();
    let tree = tree_links(&topology, host(nodes[0]), &readers).len();
    (nodes.windows(2).map(hops).sum(), tree)
}

/// See the module.
pub fn run(effort: &Effort) -> Section {
    let mut section = Section::new("Replicas pulled, against a pipeline");
    let (object_bytes, counts) = match effort.is_quick {
        true => (1 << 20, vec![1, 3, 6]),
        false => (32 << 20, (1..=10).collect()),
    };
    section.paragraph(format!(
        "The 16-node tree of Gibbens and others (POMACS 2017, Fig. 5), all links 1 Gbit/s. One \
         object of {} MiB lies on one host and is pulled by R − 1 others, through real forwarders \
         over UDP with an MTU of 1500. Octets count with all headers down to Ethernet. The \
         pipeline is a calculation: each hop of the shortest path from node to node carries the \
         object once, times {PIPELINE_FACTOR:.3} for headers, acknowledgements and HDFS's \
         checksums; nothing for lost packets or set-up. The paper measures 1 GB (its Fig. 6); \
         what counts here are multiples of the object's size B.",
        object_bytes >> 20
    ));
    by_count(&mut section, object_bytes, &counts, effort.seed);
    by_node(&mut section, effort);
    section
}

fn by_count(section: &mut Section, object_bytes: u64, counts: &[usize], seed: u64) {
    let cells: Vec<(usize, Mode)> =
        counts.iter().flat_map(|count| Mode::ALL.map(|mode| (*count, mode))).collect();
    let outcomes = on_all_processors(&cells, |(count, mode)| {
        pull(&nodes(*count, seed), object_bytes, *mode, seed)
    });
    let times = |bytes: u64| bytes as f64 / object_bytes as f64;
    let mut host_rows = Vec::new();
    let mut link_rows = Vec::new();
    for (place, count) in counts.iter().enumerate() {
        let found = &outcomes[place * Mode::ALL.len()..][..Mode::ALL.len()];
        let (pipeline, tree) = trips(&nodes(*count, seed));
        let ideal = if *count > 1 { *count as f64 } else { 0.0 };
        let sent_twice = 2.0 * (*count as f64 - 1.0) * PIPELINE_FACTOR;
        let mut row = vec![count.to_string(), format!("{ideal:.0}"), format!("{sent_twice:.2}")];
        row.extend(found.iter().map(|one| format!("{:.2}", times(one.host_bytes))));
        host_rows.push(row);
        let piped = pipeline as f64 * PIPELINE_FACTOR;
        let mut row = vec![count.to_string(), tree.to_string(), format!("{piped:.2}")];
        row.extend(found.iter().map(|one| format!("{:.2}", times(one.link_bytes))));
        link_rows.push(row);
    }
    section.paragraph(
        "Sent and received by all hosts together, in multiples of B: what the paper's Fig. 6 \
         shows. The ideal is R·B: the first node sends once, each other receives once.",
    );
    let modes = Mode::ALL.map(Mode::label);
    section
        .table(&[&["R", "ideal", "pipeline (computed)"], &modes[..]].concat(), host_rows.clone());
    section.plot(plot("replicas-hosts", "Octets at the hosts, by replicas", &host_rows));
    section.paragraph(
        "On all links together, both directions, in multiples of B. The ideal is the number of \
         links of the tree of shortest paths from the first node to the others.",
    );
    section
        .table(&[&["R", "ideal", "pipeline (computed)"], &modes[..]].concat(), link_rows.clone());
    section.plot(plot("replicas-links", "Octets on all links, by replicas", &link_rows));
    let missing: usize = outcomes.iter().map(|one| one.unfulfilled).sum();
    let together = cells.iter().zip(&outcomes).filter(|((_, mode), _)| *mode == Mode::Together);
    let over: usize = together.map(|(_, one)| one.beyond_tree.len()).sum();
    section.paragraph(format!(
        "{missing} of {} pulls failed. Pulled at once with stores, {over} links carried more than \
         the object once and {:.0} % (names, packet headers, Interests, hashes).",
        cells.iter().map(|(count, _)| count - 1).sum::<usize>(),
        MARGIN * 100.0
    ));
}

/// The columns of a table as lines, the first column below.
fn plot(name: &str, title: &str, rows: &[Vec<String>]) -> Plot {
    let labels = ["ideal", "pipeline (computed)"].into_iter().chain(Mode::ALL.map(Mode::label));
    let number = |text: &String| text.parse::<f64>().unwrap_or(f64::NAN);
    let series = labels.enumerate().map(|(column, label)| {
        let points = rows.iter().map(|row| (number(&row[0]), number(&row[column + 1])));
        Series::dots(label, points.collect())
    });
    Plot {
        name: name.to_owned(),
        title: title.to_owned(),
        x: Axis::linear("replicas R"),
        y: Axis::linear("multiples of the object's size"),
        series: series.collect(),
    }
}

/// Table 2 of the paper: one block, three nodes and an idle one.
fn by_node(section: &mut Section, effort: &Effort) {
    let block_bytes: u64 = if effort.is_quick { 2 << 20 } else { 128 << 20 };
    let found = pull(&nodes(3, effort.seed), block_bytes, Mode::Together, effort.seed);
    let mib = |bytes: f64| format!("{:.2}", bytes * 128.0 / block_bytes as f64);
    let pipeline = |trips: f64| mib(trips * block_bytes as f64 * PIPELINE_FACTOR);
    let published = [
        (3, 1.0, "137.61", "140.24"),
        (5, 2.0, "268.21", "139.36"),
        (13, 1.0, "130.88", "139.39"),
        (12, 0.0, "0.02", "2.81"),
    ];
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (host, trips, tcp, ndn) in published {
        let ours = found.by_host[host - 1] as f64;
        let row = [format!("H{host}"), tcp.into(), ndn.into(), pipeline(trips), mib(ours)];
        rows.push(row.to_vec());
    }
    let sum: u64 = published.iter().map(|(host, ..)| found.by_host[host - 1]).sum();
    let total = ["all four", "536.72", "421.81"].map(str::to_owned).to_vec();
    rows.push([total, vec![pipeline(4.0), mib(sum as f64)]].concat());
    section.paragraph(format!(
        "A block of 128 MB between H3, H5 and H13, with H12 idle: Table 2 of the paper, whose \
         figures are in the first two columns of numbers (there in MB as its authors count them), \
         ours in MiB with all headers; simulated size {} MiB{}. Ours took {:.2} s of virtual time.",
        block_bytes >> 20,
        if effort.is_quick { ", scaled up in the table" } else { "" },
        found.took_ns as f64 / 1e9
    ));
    let head = ["node", "paper, TCP", "paper, NDN", "pipeline (computed)", "ours"];
    section.table(&head, rows);
}
