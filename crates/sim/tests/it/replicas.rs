//! Contents that lie elsewhere: readers reach replicas by forwarding hints, whatever strangers,
//! members of the site and dead disks do to that.

mod programs;

use byname_forwarder::Config;
use byname_packet::Name;
use byname_sim::disk::Disk;
use byname_sim::programs::{DiskTimes, Download, DownloadOrder, Publisher};
use byname_sim::topology::Topology;
use byname_sim::world::START_UNIX_NS;
use byname_sim::{
    Discipline, Faults, Incident, LineConfig, LinkConfig, MS, ProgramId, QueueConfig, SECOND, World,
};
use byname_transfer::congestion::Congestion;
use byname_transfer::naming::content_path;

use programs::{Asker, Catalog, Liar};

const SEED: u64 = 77;
const SIZE: u64 = 1024 * 1024 + 1;
const SEGMENTS: u64 = SIZE.div_ceil(8192);
const LIMIT_NS: u64 = 60 * SECOND;

fn name(uri: &str) -> Name {
    uri.parse().expect("a name")
}

fn link() -> LinkConfig {
    let queue = QueueConfig {
        bits_per_s: 1_000_000_000,
        buffer_bytes: 1 << 20,
        discipline: Discipline::DropTail,
    };
    let faults = Faults::default();
    LinkConfig {
        line: LineConfig { queue, delay_ns: 2 * MS, jitter_ns: 0, faults },
        mtu_bytes: None,
    }
}

/// Readers and strangers at the first host, the site at the last of three: a catalog, and two disks
/// with `/site/file`, which is content 5 in version 1.
struct Site {
    world: World,
    topology: Topology,
    disks: Vec<ProgramId>,
    reader: ProgramId,
}

fn disk_name(number: u64) -> Name {
    name(&format!("/site/32=disk/hall/seq={number}"))
}

fn site() -> Site {
    let mut world = World::new(1);
    let topology = Topology::chain(&mut world, 3, &Config::default(), link());
    let (edge, home) = (topology.hosts[0], topology.hosts[2]);
    topology.route(&mut world, &name("/site"), home);
    let mut disk = Disk::default();
    let path = String::from_utf8(content_path(5, 1)).expect("digits");
    disk.put(&path, SEED, SIZE, START_UNIX_NS - 3600 * SECOND);
    let root = *disk.find(path.as_bytes()).expect("it was put there").tree().root.as_bytes();
    let disks = [1, 2].map(|number| {
        let (prefix, key) = (name("/site"), number as u8);
        let server = Publisher::of_contents(&prefix, key, disk.clone(), DiskTimes::default());
        let server = world.add_program(home, server);
        world.route_to(server, &disk_name(number));
        server
    });
    let hints = vec![disk_name(1), disk_name(2)];
    let catalog = Catalog::new(&name("/site"), (SIZE, root), hints);
    let anchor = (name("/site"), catalog.key_id());
    let catalog = world.add_program(home, catalog);
    world.route_to(catalog, &name("/site"));
    let order = DownloadOrder {
        name: name("/site/file"),
        anchor,
        seeds: vec![SEED],
        congestion: Congestion::default(),
        start_ns: 10 * SECOND,
    };
    let reader = world.add_program(edge, Download::new(order, 9));
    Site { world, topology, disks: disks.to_vec(), reader }
}

impl Site {
    /// Somebody at the readers' host serves wrong octets under `delegation` and asks for the whole
    /// content by that.
    fn poison(&mut self, delegation: &str) -> ProgramId {
        let edge = self.topology.hosts[0];
        let liar = self.world.add_program(edge, Liar::default());
        self.world.route_to(liar, &name(delegation));
        let versioned = name("/site/32=file/seq=5/v=1");
        let asker = Asker::new(versioned, SEGMENTS, name(delegation), 2 * SECOND);
        self.world.add_program(edge, asker)
    }

    /// Runs until the reader ends; what it read is compared with what was published octet by octet.
    fn read(&mut self) -> u64 {
        let reader = self.reader;
        let is_over = move |world: &World| {
            world.program::<Download>(reader).is_some_and(|it| it.outcome().is_some())
        };
        self.world.run(LIMIT_NS, &is_over).expect("no promise is broken");
        let read: &Download = self.world.program(reader).expect("a reader");
        assert_eq!(read.outcome(), Some(&Ok(())));
        assert_eq!(read.bytes(), SIZE);
        read.finished_ns().expect("it ended") - read.start_ns()
    }

    fn lies(&self, asker: ProgramId) -> u64 {
        self.world.program::<Asker>(asker).expect("a program").answers()
    }

    fn answers_from_store(&self) -> u64 {
        let edge = self.world.host(self.topology.hosts[0]);
        edge.forwarder().expect("it is up").counters().cs_hits
    }
}

#[test]
fn a_reader_reaches_a_content_by_the_hints_of_its_metadata() {
    let mut site = site();
    site.read();
    assert_eq!(site.answers_from_store(), 0);
}

/// Scenario 13 of the design: a cache poisoned by a hint.
#[test]
fn a_strangers_hint_leaves_nothing_in_a_cache() {
    let mut site = site();
    let asker = site.poison("/stranger");
    site.read();
    assert_eq!(site.lies(asker), SEGMENTS, "the stranger was answered");
    assert_eq!(site.answers_from_store(), 0, "and nobody else by what came");
}

/// Scenario 13, by somebody who may have a prefix below the site's.
#[test]
fn a_reader_gets_past_a_cache_that_a_member_of_the_site_has_poisoned() {
    let mut site = site();
    let asker = site.poison("/site/32=user/mallory");
    site.read();
    assert_eq!(site.lies(asker), SEGMENTS);
    assert!(site.answers_from_store() > 0, "the store did have wrong octets");
    let hits = site.answers_from_store();
    let start_ns = site.world.now_ns();
    let reader: &mut Download = site.world.program_mut(site.reader).expect("a reader");
    reader.begin_again(start_ns);
    let reader = site.reader;
    site.world.wake(reader);
    site.read();
    assert!(site.answers_from_store() >= hits + SEGMENTS, "the store is mended for the next one");
}

#[test]
fn a_dead_disk_delays_a_reader_and_does_not_stop_it() {
    for dead in [0, 1] {
        let mut site = site();
        let program = site.disks[dead];
        let incident = Incident::CrashProgram { program, how: byname_sim::Crash::Power };
        site.world.plan(5 * SECOND, incident);
        let took_ns = site.read();
        assert!(took_ns < 15 * SECOND, "took {took_ns} ns");
    }
}
