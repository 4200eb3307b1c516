//! Files that cross networks in virtual time, on good days and bad ones.

use byname_forwarder::Config;
use byname_packet::Name;
use byname_sim::disk::Disk;
use byname_sim::programs::{DiskTimes, Download, DownloadOrder, Publisher};
use byname_sim::topology::Topology;
use byname_sim::world::START_UNIX_NS;
use byname_sim::{
    Discipline, Fault, Faults, HostId, Incident, LineConfig, LinkConfig, MS, ProgramId,
    QueueConfig, SECOND, World,
};
use byname_transfer::congestion::Congestion;

const FILE_SEED: u64 = 77;
const SIZE: u64 = 4 * 1024 * 1024 + 1;
/// Long enough for any Interest to expire.
const AFTERMATH_NS: u64 = 10 * SECOND;

fn name(uri: &str) -> Name {
    uri.parse().expect("a name")
}

fn link(mbit_per_s: u64, delay_ns: u64, faults: Faults) -> LinkConfig {
    let queue = QueueConfig {
        bits_per_s: mbit_per_s * 1_000_000,
        buffer_bytes: 1 << 20,
        discipline: Discipline::DropTail,
    };
    LinkConfig { line: LineConfig { queue, delay_ns, jitter_ns: 0, faults }, mtu_bytes: None }
}

/// A forwarder that keeps nothing, so that the publisher is asked for everything.
fn without_store() -> Config {
    Config { cs_entries_max: 0, cs_bytes_max: 0, ..Config::default() }
}

struct Scene {
    world: World,
    topology: Topology,
    publisher: ProgramId,
    readers: Vec<ProgramId>,
}

/// A publisher of `/site/file` on the first host, and a reader on each host named.
fn scene(mut world: World, topology: Topology, readers: &[usize]) -> Scene {
    let (prefix, home) = (name("/site"), topology.hosts[0]);
    let mut disk = Disk::default();
    disk.put("file", FILE_SEED, SIZE, START_UNIX_NS - 3600 * SECOND);
    let publisher = Publisher::new(&prefix, 1, disk, DiskTimes::default());
    let anchor = (prefix.clone(), publisher.key_id());
    let publisher = world.add_program(home, publisher);
    world.route_to(publisher, &prefix);
    topology.route(&mut world, &prefix, home);
    let order = DownloadOrder {
        name: name("/site/file"),
        anchor,
        seeds: vec![FILE_SEED],
        congestion: Congestion::default(),
        start_ns: 2 * SECOND,
    };
    let readers = readers.iter().map(|host| {
        let reader = Download::new(order.clone(), *host as u64);
        world.add_program(topology.hosts[*host], reader)
    });
    let readers = readers.collect();
    Scene { world, topology, publisher, readers }
}

impl Scene {
    fn reader(&self, number: usize) -> &Download {
        self.world.program(self.readers[number]).expect("a reader")
    }

    /// Runs until all readers are done; then everything must come to rest.
    fn run(&mut self, limit_ns: u64) -> Result<(), Fault> {
        let readers = self.readers.clone();
        let is_over = move |world: &World| {
            readers
                .iter()
                .all(|it| world.program::<Download>(*it).is_some_and(|it| it.outcome().is_some()))
        };
        self.world.run(limit_ns, &is_over)?;
        let end_ns = self.world.now_ns() + AFTERMATH_NS;
        self.world.run(end_ns, &|_| false)
    }

    fn assert_all_read(&mut self, limit_ns: u64) {
        self.run(limit_ns).expect("no promise is broken");
        for number in 0..self.readers.len() {
            let reader = self.reader(number);
            let ended = reader.outcome().expect("it ends in time");
            assert_eq!(*ended, Ok(()), "seed {}", self.world.seed());
            assert_eq!(reader.bytes(), SIZE);
        }
        assert_eq!(self.world.pending_count(), 0, "no Interest outlives its lifetime");
    }
}

#[test]
fn a_file_crosses_five_hosts() {
    let mut world = World::new(1);
    let link = link(1000, 5 * MS, Faults::default());
    let topology = Topology::chain(&mut world, 5, &without_store(), link);
    scene(world, topology, &[4]).assert_all_read(60 * SECOND);
}

#[test]
fn bad_links_cost_time_and_nothing_else() {
    let faults = Faults {
        // Bursts of three, six fragments a packet, two links: a third of all packets is lost.
        loss: 0.02,
        burst: 3,
        duplication: 0.02,
        disorder: 0.05,
        late_ns: 3 * MS,
        corruption: 0.0005,
        ..Faults::default()
    };
    for seed in 0..8 {
        let mut world = World::new(seed);
        let config = LinkConfig { mtu_bytes: Some(1500), ..link(1000, 2 * MS, faults) };
        let topology = Topology::chain(&mut world, 3, &without_store(), config);
        scene(world, topology, &[2]).assert_all_read(300 * SECOND);
    }
}

/// Every second packet is lost, one way or the other.
#[test]
fn a_file_survives_five_frames_lost_in_a_hundred() {
    let faults = Faults {
        loss: 0.05,
        burst: 1,
        duplication: 0.02,
        disorder: 0.05,
        late_ns: 3 * MS,
        corruption: 0.0005,
        ..Faults::default()
    };
    // 2, 5, 7: a segment that was lost six times within 15 s ended the reading.
    for seed in [1, 2, 5, 7] {
        let mut world = World::new(seed);
        let config = LinkConfig { mtu_bytes: Some(1500), ..link(1000, 2 * MS, faults) };
        let topology = Topology::chain(&mut world, 3, &without_store(), config);
        scene(world, topology, &[2]).assert_all_read(600 * SECOND);
    }
}

#[test]
fn a_ring_survives_a_cut_that_nobody_notices() {
    let mut world = World::new(3);
    let topology =
        Topology::ring(&mut world, 6, &without_store(), link(200, 2 * MS, Faults::default()));
    let first = topology.links[0].2;
    let mut scene = scene(world, topology, &[2, 3]);
    scene.world.plan(2 * SECOND + 60 * MS, Incident::Cut { link: first, is_noticed: false });
    scene.assert_all_read(120 * SECOND);
}

/// A time-out that is the same each time would meet the same moment of each second.
#[test]
fn a_link_that_fails_once_a_second_does_not_meet_every_repetition() {
    for (seed, down_ns) in (0..4).zip([650 * MS, 700 * MS, 750 * MS, 800 * MS]) {
        let mut world = World::new(seed);
        let topology =
            Topology::chain(&mut world, 2, &without_store(), link(40, 2 * MS, Faults::default()));
        let link = topology.links[0].2;
        let mut scene = scene(world, topology, &[1]);
        let (up_ns, until_ns) = (SECOND - down_ns, 120 * SECOND);
        let flap = Incident::Flap { link, down_ns, up_ns, until_ns, is_noticed: false };
        scene.world.plan(2 * SECOND + 200 * MS, flap);
        scene.assert_all_read(120 * SECOND);
    }
}

#[test]
fn a_forwarder_that_dies_and_comes_back_is_no_end() {
    let mut world = World::new(4);
    let topology =
        Topology::chain(&mut world, 3, &without_store(), link(200, 2 * MS, Faults::default()));
    let host: HostId = topology.hosts[1];
    let mut scene = scene(world, topology, &[2]);
    scene.world.plan(2 * SECOND + 60 * MS, Incident::Crash { host });
    scene.world.plan(2 * SECOND + 900 * MS, Incident::Restart { host });
    scene.assert_all_read(120 * SECOND);
}

#[test]
fn what_many_read_crosses_the_last_link_once() {
    let mut world = World::new(5);
    let topology =
        Topology::tree(&mut world, 2, 3, &Config::default(), link(1000, MS, Faults::default()));
    let mut scene = scene(world, topology, &[7, 8, 9, 10, 11, 12, 13, 14]);
    scene.assert_all_read(120 * SECOND);
    // The root of the tree has two links; each carries the file once, whoever asks below.
    for (one, _, link) in &scene.topology.links[..2] {
        let bytes = scene.world.line_counters(*link, *one).bytes;
        assert!(bytes > SIZE && bytes < SIZE * 11 / 10, "{bytes} octets for a file of {SIZE}");
    }
}

#[test]
fn a_file_replaced_on_the_way_is_never_mixed() {
    for seed in 0..4 {
        let mut world = World::new(seed);
        let topology =
            Topology::chain(&mut world, 2, &without_store(), link(100, 5 * MS, Faults::default()));
        let mut scene = scene(world, topology, &[1]);
        scene.world.run(2 * SECOND + (100 + 40 * seed) * MS, &|_| false).expect("all is well");
        let now_ns = START_UNIX_NS + scene.world.now_ns();
        let publisher = scene.publisher;
        let publisher = scene.world.program_mut::<Publisher>(publisher).expect("a publisher");
        publisher.disk_mut().put("file", 78, SIZE, now_ns);
        // Octets of the new version under the old name would be a fault.
        scene.run(120 * SECOND).expect("no octet of another version");
        let reader = scene.reader(0);
        let ended = reader.outcome().expect("it ends in time");
        assert!(ended.is_err() && reader.bytes() < SIZE, "{ended:?} after {}", reader.bytes());
    }
}

#[test]
fn a_seed_gives_one_history() {
    let history = |seed| {
        let mut world = World::new(seed);
        let faults = Faults { loss: 0.05, duplication: 0.05, ..Faults::default() };
        let topology = Topology::chain(&mut world, 3, &without_store(), link(500, MS, faults));
        let mut scene = scene(world, topology, &[2]);
        scene.assert_all_read(120 * SECOND);
        (scene.world.event_count(), scene.reader(0).finished_ns())
    };
    assert_eq!(history(9), history(9));
    assert_ne!(history(9), history(10));
}

#[test]
fn a_publisher_out_of_reach_is_reported() {
    for is_noticed in [false, true] {
        let mut world = World::new(6);
        let topology =
            Topology::chain(&mut world, 3, &without_store(), link(200, 2 * MS, Faults::default()));
        let first = topology.links[0].2;
        let mut scene = scene(world, topology, &[2]);
        scene.world.plan(2 * SECOND + 60 * MS, Incident::Cut { link: first, is_noticed });
        scene.run(60 * SECOND).expect("no promise is broken");
        let reader = scene.reader(0);
        let ended = reader.outcome().expect("it does not go on for ever");
        assert!(ended.is_err(), "{ended:?} after {} octets", reader.bytes());
    }
}
