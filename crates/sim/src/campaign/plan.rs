//! A random scenario, drawn from one seed: everything that will happen, before it does.

mod parts;
mod wider;

use byname_transfer::congestion::Congestion;

use crate::line::{Faults, LineConfig};
use crate::programs::DiskFaults;
use crate::queue::{Discipline, QueueConfig};
use crate::random::Random;
use crate::world::{LinkConfig, MS, SECOND};

pub use parts::Trouble;
pub(super) use parts::{
    ClientPlan, LinkPlan, ReaderPlan, Shape, SitePlan, TreePlan, TroublePlan, VersionPlan,
};

/// Readers begin and troubles happen from here on.
pub(super) const STORM_START_NS: u64 = 2 * SECOND;
const STORM_MIN_NS: u64 = 500 * MS;
const STORM_MAX_NS: u64 = 12 * SECOND;
/// So many storms last longer than anybody waits for an answer.
const LONG_SHARE: f64 = 0.1;
const LONG_STORM_NS: u64 = 80 * SECOND;
/// In so many a reader has seen a version when an older one is brought back.
const ROLLBACK_SHARE: f64 = 0.15;
const UNIT: u64 = 8192;
/// Octets covered by one level-1 node of the hash tree.
const GROUP: u64 = 256 * UNIT;

/// A scenario.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Seed it was drawn from.
    pub seed: u64,
    /// Topology of the hosts.
    pub shape: Shape,
    /// Number of hosts.
    pub hosts: usize,
    /// Packets that forwarders keep; 0 for none.
    pub store_entries: usize,
    /// Interests that may wait at a forwarder.
    pub pit_entries: usize,
    /// All links.
    pub links: Vec<LinkPlan>,
    /// All sites.
    pub sites: Vec<SitePlan>,
    /// All readers.
    pub readers: Vec<ReaderPlan>,
    /// All clients.
    pub clients: Vec<ClientPlan>,
    /// All troubles.
    pub troubles: Vec<TroublePlan>,
    /// No trouble and no change of a file after this.
    pub storm_end_ns: u64,
}

impl Plan {
    /// The scenario of a seed.
    pub fn draw(seed: u64) -> Self {
        let mut plan = Plan::draw_plain(seed);
        wider::widen(&mut plan);
        plan
    }

    /// The same without what scenarios did not have at first: what a seed found then, it finds
    /// for ever.
    pub fn draw_plain(seed: u64) -> Self {
        let random = &mut Random::new(seed);
        let shape = draw_shape(random);
        let edges = edges(shape, random);
        let hosts = edges.iter().map(|(one, other)| one.max(other) + 1).max().unwrap_or(1);
        let links: Vec<_> = edges.into_iter().map(|ends| draw_link(ends, random)).collect();
        let is_long = random.chance(LONG_SHARE);
        let storm_ns = match is_long {
            true => LONG_STORM_NS,
            false => STORM_MIN_NS + random.below(STORM_MAX_NS - STORM_MIN_NS),
        };
        let storm_end_ns = STORM_START_NS + storm_ns;
        let site_count = 1 + random.below(2) as usize;
        let slowest = links.iter().map(|link| link.config.line.queue.bits_per_s).min();
        let size_max = size_limit(slowest.unwrap_or(0));
        let mut sites: Vec<_> =
            (0..site_count).map(|_| draw_site(hosts, size_max, storm_end_ns, random)).collect();
        let mut readers = draw_readers(hosts, site_count, storm_ns.min(STORM_MAX_NS), random);
        let client_count = random.below(3);
        let clients = (0..client_count).map(|_| draw_client(hosts, site_count, storm_ns, random));
        let clients = clients.collect();
        let trouble_count = random.below(6) as usize;
        let mut troubles: Vec<_> = (0..trouble_count)
            .map(|_| draw_trouble((hosts, links.len(), site_count), storm_end_ns, random))
            .collect();
        if is_long {
            // A publisher that is gone for longer than anybody waits.
            let trouble = Trouble::Crash(sites[0].holders[0].0);
            let from_ns = STORM_START_NS + random.below(2 * SECOND);
            troubles.push(TroublePlan { from_ns, until_ns: storm_end_ns, trouble });
        }
        // Chance of its own, so that other scenarios stay what they were.
        let aside = &mut Random::new(!seed);
        if aside.chance(ROLLBACK_SHARE) {
            troubles.push(draw_rollback(&mut sites[0], &mut readers[0], storm_end_ns, aside));
        }
        let store_entries = pick(&[0, 0, 16, 4096], random);
        if store_entries > 0 {
            // A store that took a damaged packet would answer with it for ever after: forwarders
            // do not look into packets, and rely on links that recognise damage.
            troubles.iter_mut().for_each(|it| it.trouble.spare_content());
        }
        Plan {
            seed,
            shape,
            hosts,
            store_entries,
            pit_entries: pick(&[131_072, 131_072, 131_072, 256], random),
            links,
            sites,
            readers,
            clients,
            troubles,
            storm_end_ns,
        }
    }
}

fn pick<T: Copy>(of: &[T], random: &mut Random) -> T {
    of[random.below(of.len() as u64) as usize]
}

fn draw_shape(random: &mut Random) -> Shape {
    let small = 1 + random.below(3) as usize;
    match random.below(6) {
        0 => Shape::Chain(1 + small),
        1 => Shape::Ring(2 + small),
        2 => Shape::Tree(2, 1 + random.below(2) as u32),
        3 => Shape::Dumbbell(small, 1 + random.below(3) as usize),
        4 => Shape::Star(1 + small),
        _ => Shape::Mesh(3 + small, 1 + random.below(3) as usize),
    }
}

/// Pairs of hosts that are joined; never the same pair twice.
fn edges(shape: Shape, random: &mut Random) -> Vec<(usize, usize)> {
    let chain = |count: usize| (1..count).map(|place| (place - 1, place)).collect::<Vec<_>>();
    match shape {
        Shape::Chain(count) => chain(count),
        Shape::Ring(count) => {
            let mut edges = chain(count);
            edges.push((0, count - 1));
            edges
        }
        Shape::Tree(arity, depth) => {
            let count = (0..=depth).map(|level| arity.pow(level)).sum();
            (1..count).map(|place| ((place - 1) / arity, place)).collect()
        }
        Shape::Dumbbell(left, right) => {
            let far = (0..right).map(|place| (1, 2 + left + place));
            (0..left).map(|place| (0, 2 + place)).chain([(0, 1)]).chain(far).collect()
        }
        Shape::Star(count) => (1..=count).map(|place| (0, place)).collect(),
        Shape::Mesh(count, more) => {
            let mut edges: Vec<_> =
                (1..count).map(|place| (random.below(place as u64) as usize, place)).collect();
            for _ in 0..more {
                let one = random.below(count as u64) as usize;
                let other = random.below(count as u64) as usize;
                let edge = (one.min(other), one.max(other));
                if one != other && !edges.contains(&edge) {
                    edges.push(edge);
                }
            }
            edges
        }
    }
}

fn draw_link(ends: (usize, usize), random: &mut Random) -> LinkPlan {
    let bits_per_s = pick(&[5, 20, 100, 1000, 10_000], random) * 1_000_000;
    let queue = QueueConfig {
        bits_per_s,
        buffer_bytes: pick(&[64 << 10, 256 << 10, 1 << 20], random),
        discipline: Discipline::DropTail,
    };
    let line = LineConfig {
        queue,
        delay_ns: pick(&[10_000, 200_000, MS, 5 * MS, 30 * MS], random),
        jitter_ns: pick(&[0, 0, 100_000, MS], random),
        faults: Faults::default(),
    };
    let mtu_bytes = pick(&[None, None, Some(9000), Some(1500), Some(1500), Some(600)], random);
    let is_reliable = mtu_bytes.is_some() && random.chance(0.3);
    LinkPlan { ends, config: LinkConfig { line, mtu_bytes }, is_reliable }
}

/// Size that crosses the slowest link in about two seconds and an unoptimised build moves fast.
fn size_limit(bits_per_s: u64) -> u64 {
    (bits_per_s / 4).clamp(UNIT * 2, GROUP * 2 + UNIT)
}

/// Sizes at which something begins or ends: nothing, units, nodes of the hash tree.
fn draw_size(size_max: u64, random: &mut Random) -> u64 {
    let edge = match random.below(8) {
        0 => 0,
        1 => UNIT,
        2 => UNIT * (1 + random.below(8)),
        3 => GROUP,
        4 => GROUP * 2,
        _ => 1 + random.below(size_max),
    };
    let size = match random.below(4) {
        0 => edge + 1,
        1 => edge.saturating_sub(1),
        _ => edge,
    };
    if size > size_max + 1 { random.below(size_max) } else { size }
}

fn draw_site(hosts: usize, size_max: u64, end_ns: u64, random: &mut Random) -> SitePlan {
    let first = random.below(hosts as u64) as usize;
    let mut holders = vec![(first, 0)];
    if hosts > 1 && random.chance(0.3) {
        let second = (first + 1 + random.below(hosts as u64 - 1) as usize) % hosts;
        holders.push((second, pick(&[0, 500 * MS, 5 * SECOND], random)));
    }
    let mut at_ns = 0;
    let count = pick(&[1, 1, 1, 2, 3], random);
    let mut versions = Vec::new();
    for _ in 0..count {
        let seed = random.draw();
        versions.push(VersionPlan { at_ns, seed, size: draw_size(size_max, random) });
        at_ns = at_ns.max(STORM_START_NS);
        at_ns += random.below(end_ns.saturating_sub(at_ns).max(1));
    }
    SitePlan { holders, versions, tree: None, has_state_directory: false }
}

fn draw_readers(
    hosts: usize,
    sites: usize,
    within_ns: u64,
    random: &mut Random,
) -> Vec<ReaderPlan> {
    let count = 1 + random.below(4);
    // Now and then all want the same at the same time.
    let crowd = random.chance(0.4).then(|| {
        let site = random.below(sites as u64) as usize;
        (site, STORM_START_NS + random.below(within_ns / 2))
    });
    let reader = |_| {
        let alone = (random.below(sites as u64) as usize, random.below(within_ns / 2));
        let (site, start_ns) = crowd.unwrap_or((alone.0, STORM_START_NS + alone.1));
        ReaderPlan {
            host: random.below(hosts as u64) as usize,
            site,
            start_ns,
            congestion: pick(&[Congestion::Bdp, Congestion::Bdp, Congestion::Cubic], random),
            times: 1 + random.below(4) as u32,
        }
    };
    (0..count).map(reader).collect()
}

fn draw_client(hosts: usize, sites: usize, storm_ns: u64, random: &mut Random) -> ClientPlan {
    let within_ns = storm_ns.min(STORM_MAX_NS);
    let start_ns = STORM_START_NS + random.below(within_ns / 2);
    let end_ns = STORM_START_NS + storm_ns;
    let crashes = (0..random.below(4)).map(|_| {
        // Soon after the start, when there is something to be lost.
        let within_ns = pick(&[200 * MS, SECOND, 4 * SECOND], random);
        let from_ns = start_ns + random.below(within_ns);
        let until_ns = from_ns + random.below(2 * SECOND);
        (from_ns.min(end_ns), until_ns.min(end_ns), random.chance(0.4))
    });
    let crashes = crashes.collect();
    let disk = DiskFaults {
        short_read: pick(&[0.0, 0.1], random),
        short_write: pick(&[0.0, 0.1], random),
        read_error: pick(&[0.0, 0.0, 0.01], random),
        write_error: pick(&[0.0, 0.0, 0.01], random),
        other_error: pick(&[0.0, 0.0, 0.1], random),
        name_error: pick(&[0.0, 0.0, 0.5], random),
        octets_free: pick(&[None, None, None, Some(100_000)], random),
    };
    ClientPlan {
        host: random.below(hosts as u64) as usize,
        site: random.below(sites as u64) as usize,
        start_ns,
        crashes,
        disk,
        sync: random.chance(0.5),
        is_tree: false,
    }
}

fn draw_trouble(
    (hosts, links, sites): (usize, usize, usize),
    end_ns: u64,
    random: &mut Random,
) -> TroublePlan {
    let from_ns = STORM_START_NS + random.below(end_ns - STORM_START_NS);
    let until_ns = from_ns + random.below(end_ns - from_ns + 1);
    let link = random.below(links as u64) as usize;
    let trouble = match random.below(7) {
        0 | 1 => Trouble::Cut(link, random.chance(0.5)),
        2 => Trouble::Crash(random.below(hosts as u64) as usize),
        3 => Trouble::Backup(random.below(sites as u64) as usize),
        _ => Trouble::Faults(link, draw_faults(random)),
    };
    TroublePlan { from_ns, until_ns, trouble }
}

/// A reader reads a small file again and again, while a new version comes and goes again.
fn draw_rollback(
    site: &mut SitePlan,
    reader: &mut ReaderPlan,
    end_ns: u64,
    random: &mut Random,
) -> TroublePlan {
    let mut version = |at_ns| {
        let (seed, size) = (random.draw(), random.below(3 * UNIT));
        VersionPlan { at_ns, seed, size }
    };
    site.versions = vec![version(0), version(STORM_START_NS)];
    (reader.site, reader.times, reader.start_ns) = (0, 30, STORM_START_NS + 200 * MS);
    let middle_ns = STORM_START_NS + (end_ns - STORM_START_NS) / 2;
    TroublePlan { from_ns: middle_ns, until_ns: end_ns, trouble: Trouble::Backup(0) }
}

fn draw_faults(random: &mut Random) -> Faults {
    Faults {
        loss: pick(&[0.0, 0.001, 0.01, 0.1, 0.5], random),
        burst: pick(&[1, 1, 3, 20], random),
        duplication: pick(&[0.0, 0.0, 0.02, 0.3], random),
        disorder: pick(&[0.0, 0.05, 0.5], random),
        late_ns: pick(&[MS, 10 * MS, 100 * MS], random),
        corruption: pick(&[0.0, 0.0, 0.001, 0.05], random),
        ..Faults::default()
    }
}
