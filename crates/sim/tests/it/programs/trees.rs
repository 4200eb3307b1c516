//! Directories, mirrors, and clients that may ask several sources.

use std::collections::BTreeMap;
use std::path::PathBuf;

use byname_sim::Now;
use byname_sim::disk::Disk;
use byname_sim::programs::{Client, ClientOrder, DiskTimes, Publisher};
use byname_sim::random::Random;
use byname_sim::topology::Topology;
use byname_sim::world::START_UNIX_NS;
use byname_sim::{Crash, Incident, MS, SECOND, World};

use super::scene::{
    FILE_SEED, HOUR_AGO_NS, SIZE, START_NS, Scene, link, name, order, without_store,
};

/// Sixty small files, three larger ones, in four directories.
fn tree() -> (Disk, ClientOrder) {
    let mut disk = Disk::default();
    let mut versions = BTreeMap::new();
    for number in 0..63_u64 {
        let path = match number % 4 {
            0 => format!("run/{number:02}"),
            1 => format!("run/a/{number:02}"),
            2 => format!("run/a/b/{number:02}"),
            _ => format!("run/c/{number:02}"),
        };
        let size = if number % 21 == 0 { 600_000 + number } else { number * 37 };
        disk.put(&path, 1000 + number, size, HOUR_AGO_NS);
        versions.insert(PathBuf::from(&path), vec![(1000 + number, size)]);
    }
    let target = PathBuf::from("run");
    let mut order = ClientOrder { is_tree: true, target, versions, ..order() };
    order.name = name("/site/run");
    (disk, order)
}

#[test]
fn a_tree_is_fetched_through_crashes_and_power_cuts() {
    for seed in 1..=6 {
        let (disk, mut order) = tree();
        order.options.sync = seed % 2 == 0;
        let versions = order.versions.clone();
        let mut scene = Scene::new(seed, disk, order);
        let mut random = Random::new(seed);
        for life in 0..4 {
            let at_ns = START_NS + life * 150 * MS + random.below(100 * MS);
            let how = if random.chance(0.5) { Crash::Power } else { Crash::Process };
            scene.kill(scene.client, at_ns, how, 20 * MS);
        }
        scene.assert_finishes();
        for (path, version) in versions {
            scene.assert_has(&path.to_string_lossy(), version[0]);
        }
        assert!(scene.tally().crashes > 0, "seed {seed}: {:?}", scene.tally());
    }
}

/// Two forwarders, one of which leads to a mirror and not to the publisher. The client asks the
/// publisher's first; when its forwarder is gone, the other.
#[test]
fn a_client_goes_over_to_a_mirror_when_its_source_is_gone() {
    for seed in 1..=4 {
        let mut world = World::new(seed);
        let topology = Topology::chain(&mut world, 3, &without_store(), link());
        let (prefix, mut disk) = (name("/site"), Disk::default());
        disk.put("file", FILE_SEED, SIZE, HOUR_AGO_NS);
        let mut publisher = Publisher::new(&prefix, 1, disk, DiskTimes::default());
        let now = Now { now_ns: SECOND, unix_ns: START_UNIX_NS - 600 * SECOND };
        let mirror = publisher.mirror(&["file"], DiskTimes::default(), now);
        let mut order = order();
        order.anchor = (prefix.clone(), publisher.key_id());
        order.config.asks_all = true;
        let [near, home, far] = [0, 1, 2].map(|host| topology.hosts[host]);
        for (host, server) in [(home, publisher), (far, mirror)] {
            let server = world.add_program(host, server);
            world.route_to(server, &prefix);
        }
        topology.route(&mut world, &prefix, home);
        let mut seats = Client::seats(order, 2, seed).into_iter();
        let first = world.add_program(near, seats.next().expect("two seats"));
        world.add_program(far, seats.next().expect("two seats"));
        world.plan(START_NS + 40 * MS + seed * 40 * MS, Incident::Crash { host: near });
        let is_over = move |world: &World| {
            world.program::<Client>(first).is_some_and(|it| it.finished_ns().is_some())
        };
        world.run(60 * SECOND, &is_over).unwrap_or_else(|fault| panic!("seed {seed}: {fault:?}"));
        let client = world.program::<Client>(first).expect("a client");
        let (tally, errors) = (client.tally(), client.errors());
        assert!(client.finished_ns().is_some(), "seed {seed}: {tally:?}, {errors:?}");
        assert_eq!((client.active_seat(), tally.failed), (1, 0), "seed {seed}: {errors:?}");
        assert_eq!(tally.fetched, SIZE, "seed {seed}: what was verified stays verified");
        let target = client.directory().join("file");
        assert!(client.disk().is_there(&target, (FILE_SEED, SIZE)), "seed {seed}");
    }
}
