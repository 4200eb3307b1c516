//! A publisher, a few hops, and a client with a directory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use byname_client::{ClientConfig, DownloadOptions};
use byname_forwarder::Config;
use byname_packet::Name;
use byname_sim::disk::Disk;
use byname_sim::programs::{Client, ClientOrder, DiskTimes, Publisher, Tally};
use byname_sim::topology::Topology;
use byname_sim::world::START_UNIX_NS;
use byname_sim::{
    Crash, Discipline, Fault, Faults, Incident, LineConfig, LinkConfig, MS, ProgramId, QueueConfig,
    SECOND, World,
};

pub(crate) const FILE_SEED: u64 = 77;
pub(crate) const SIZE: u64 = 4 * 1024 * 1024 + 1;
pub(crate) const HOUR_AGO_NS: u64 = START_UNIX_NS - 3600 * SECOND;
pub(crate) const START_NS: u64 = 2 * SECOND;
const LIMIT_NS: u64 = 300 * SECOND;

pub(crate) fn name(uri: &str) -> Name {
    uri.parse().expect("a name")
}

/// Fast enough that the file takes about a third of a second.
pub(crate) fn link() -> LinkConfig {
    let queue = QueueConfig {
        bits_per_s: 100_000_000,
        buffer_bytes: 1 << 20,
        discipline: Discipline::DropTail,
    };
    let line = LineConfig { queue, delay_ns: 2 * MS, jitter_ns: 0, faults: Faults::default() };
    LinkConfig { line, mtu_bytes: None }
}

/// Forwarders that keep nothing, so that the publisher is asked for everything.
pub(crate) fn without_store() -> Config {
    Config { cs_entries_max: 0, cs_bytes_max: 0, ..Config::default() }
}

/// The file of the publisher, to be fetched under its own name.
pub(crate) fn order() -> ClientOrder {
    ClientOrder {
        name: name("/site/file"),
        // Replaced by the publisher's.
        anchor: (name("/site"), byname_security::key::KeyId([0; 32])),
        target: PathBuf::from("file"),
        is_tree: false,
        versions: BTreeMap::from([(PathBuf::from("file"), vec![(FILE_SEED, SIZE)])]),
        options: DownloadOptions::default(),
        config: ClientConfig { timeout: Duration::from_secs(4), ..ClientConfig::default() },
        start_ns: START_NS,
        again_ns: Some(SECOND),
    }
}

pub(crate) struct Scene {
    pub(crate) world: World,
    pub(crate) topology: Topology,
    pub(crate) publisher: ProgramId,
    pub(crate) client: ProgramId,
}

impl Scene {
    /// Three hosts in a row: a publisher of `disk` at `/site`, and a client at the other end.
    pub(crate) fn new(seed: u64, disk: Disk, mut order: ClientOrder) -> Self {
        let mut world = World::new(seed);
        let topology = Topology::chain(&mut world, 3, &without_store(), link());
        let (prefix, home) = (name("/site"), topology.hosts[0]);
        let publisher = Publisher::new(&prefix, 1, disk, DiskTimes::default());
        order.anchor = (prefix.clone(), publisher.key_id());
        let publisher = world.add_program(home, publisher);
        world.route_to(publisher, &prefix);
        topology.route(&mut world, &prefix, home);
        let client = world.add_program(topology.hosts[2], Client::new(order, seed));
        Scene { world, topology, publisher, client }
    }

    /// With one file.
    pub(crate) fn of_file(seed: u64, order: ClientOrder) -> Self {
        let mut disk = Disk::default();
        disk.put("file", FILE_SEED, SIZE, HOUR_AGO_NS);
        Scene::new(seed, disk, order)
    }

    pub(crate) fn client(&self) -> &Client {
        self.world.program(self.client).expect("a client")
    }

    pub(crate) fn tally(&self) -> Tally {
        self.client().tally()
    }

    /// A program is killed and comes back.
    pub(crate) fn kill(&mut self, program: ProgramId, at_ns: u64, how: Crash, away_ns: u64) {
        self.world.plan(at_ns, Incident::CrashProgram { program, how });
        self.world.plan(at_ns + away_ns, Incident::RestartProgram { program });
    }

    /// Runs until the client has everything, or time is over.
    pub(crate) fn run(&mut self) -> Result<(), Fault> {
        let client = self.client;
        let is_over = move |world: &World| {
            world.program::<Client>(client).is_some_and(|it| it.finished_ns().is_some())
        };
        self.world.run(LIMIT_NS, &is_over)
    }

    /// The same, and everything must be right.
    pub(crate) fn assert_finishes(&mut self) {
        let seed = self.world.seed();
        self.run().unwrap_or_else(|fault| panic!("seed {seed}: {fault:?}"));
        let client = self.client();
        let errors = client.errors();
        assert!(client.finished_ns().is_some(), "seed {seed}: not finished, {errors:?}");
        client.disk().check_targets();
        assert_eq!(client.disk().fault(), None, "seed {seed}");
    }

    pub(crate) fn assert_has(&self, path: &str, version: (u64, u64)) {
        let path = self.client().directory().join(Path::new(path));
        let seed = self.world.seed();
        assert!(self.client().disk().is_there(&path, version), "seed {seed}: {path:?}");
    }
}
