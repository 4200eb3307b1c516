//! Workloads on small networks: everything that is asked for comes, and costs what it should.

use byname_forwarder::Config;
use byname_packet::Name;
use byname_sim::random::Random;
use byname_sim::study::flash::{self, crowd};
use byname_sim::study::kinds::{Kind, work};
use byname_sim::study::mirrors::{self, Remedy, reading};
use byname_sim::study::replicas::{self, Mode, nodes, pull};
use byname_sim::study::zipf::{self, Placement, measure, theory};
use byname_sim::topology::Topology;
use byname_sim::workload::make::{self, VectorShape};
use byname_sim::workload::{Catalogue, Consumer, Part, Request, Scene, plain_link};
use byname_sim::{Faults, MS, SECOND, World};

const START_NS: u64 = 2 * SECOND;
const LIMIT_NS: u64 = 600 * SECOND;

/// An origin, a router and two more hosts behind it, with the default stores.
fn scene(seed: u64, sizes: impl IntoIterator<Item = u64>) -> Scene {
    let mut world = World::new(seed);
    let link = plain_link(100, 2 * MS, None);
    let mut topology = Topology::chain(&mut world, 3, &Config::default(), link);
    topology.hosts.push(world.add_host("other", Config::default()));
    topology.join(&mut world, 1, 3, link);
    let prefix: Name = "/site".parse().expect("a name");
    Scene::new(world, topology, Catalogue::new(&prefix, sizes), 0)
}

fn assert_fulfilled(scene: &Scene) {
    for (request, record) in scene.records() {
        let name = &request.file.name;
        assert!(record.is_complete(), "{name}: {record:?}, seed {}", scene.world.seed());
        if request.part == Part::Whole {
            assert_eq!(record.bytes, request.file.size, "{name}");
        }
        assert!(record.begun_ns >= Some(request.start_ns), "{name}");
        assert!(request.file.size == 0 || record.first_ns <= record.ended_ns, "{name}");
    }
}

#[test]
fn files_read_at_once_all_get_their_share() {
    let mut scene = scene(1, [1 << 20; 6]);
    let requests = make::everything(&scene.catalogue, START_NS);
    let consumer = scene.add_consumer(2, requests, 6);
    let has_ended = |one: &Consumer| one.records().iter().any(|record| record.ended_ns.is_some());
    let mut at_ns = START_NS;
    while !has_ended(scene.consumer(consumer)) && at_ns < LIMIT_NS {
        at_ns += 5 * MS;
        scene.run(at_ns).expect("no promise is broken");
    }
    for record in scene.consumer(consumer).records() {
        assert!(record.bytes > 1 << 19, "one of six is done, another has {} octets", record.bytes);
    }
    scene.run(LIMIT_NS).expect("no promise is broken");
    assert_fulfilled(&scene);
}

#[test]
fn many_small_files_come_one_like_the_other() {
    let sizes = make::small_sizes(120, &mut Random::new(2));
    let mut scene = scene(2, sizes.into_iter().chain([0, 1, 8192, 8193]));
    let requests = make::everything(&scene.catalogue, START_NS);
    scene.add_consumer(2, requests, 16);
    scene.run(LIMIT_NS).expect("no promise is broken");
    assert_fulfilled(&scene);
    assert_eq!(scene.served_bytes(), scene.catalogue.bytes());
}

#[test]
fn small_files_wait_for_each_other_only_if_they_must() {
    let [one, many] = [1, 16].map(|parallel| work(Kind::Small { files: 30, parallel }, 12));
    assert_eq!((one.requests, many.requests), ((30, 0), (30, 0)));
    assert_eq!(one.wanted_bytes, many.wanted_bytes);
    // Two round trips of 20 ms each: description, content.
    assert!(one.took_ns >= 30 * 40 * MS, "{} ns", one.took_ns);
    assert!(many.took_ns * 4 < one.took_ns, "{} and {} ns", many.took_ns, one.took_ns);
}

#[test]
fn a_few_columns_cost_a_few_columns() {
    for loss in [0.0, 0.01] {
        let mut scene = scene(3, [16 << 20]);
        let link = scene.topology.links[1].2;
        scene.world.set_line(link, |line| line.faults = Faults { loss, ..Faults::default() });
        let file = scene.catalogue.files[0].clone();
        let shape = VectorShape { vectors: 3, ranges: 100, range_bytes: (500, 4000) };
        let vectors = make::vectors(file.size, shape, &mut Random::new(3));
        let part = Part::Vectors(vectors.clone());
        scene.add_consumer(2, vec![Request { start_ns: START_NS, file, part }], 1);
        scene.run(LIMIT_NS).expect("no promise is broken");
        assert_fulfilled(&scene);
        // Each range is in one unit or, if it lies across a border, in two.
        let bytes = scene.served_bytes();
        let units = vectors.iter().flatten().map(|it| it.end.div_ceil(8192) - it.start / 8192);
        let asked = units.sum::<u64>() * 8192;
        assert!(bytes <= asked + asked / 50, "{bytes} octets came, {asked} were asked for");
        let crossed = scene.account().received_bytes(scene.topology.hosts[2]);
        assert!(crossed < (16 << 20) / 4, "{crossed} octets crossed the link for {asked}");
    }
}

#[test]
fn octets_that_were_never_published_are_a_fault() {
    let mut scene = scene(4, [100_000]);
    let mut request = make::whole(&scene.catalogue.files[0], START_NS);
    request.file.seed += 1;
    scene.add_consumer(2, vec![request], 1);
    let fault = scene.run(LIMIT_NS).expect_err("the consumer looks at what it gets");
    assert!(fault.what.contains("/site/f0"), "{fault:?}");
}

#[test]
fn stores_save_what_theory_says() {
    let placement = Placement::Vip;
    let shares = |files| {
        let case = zipf::Case { placement, files, requests: (60, 150), seed: 5 };
        let shares = measure(&case);
        assert_eq!(shares.unfulfilled, 0);
        shares
    };
    let (none, some, all) = (shares(0), shares(5), shares(31));
    // Now and then both consumers read the same file at the same time.
    assert!(none.origin > 0.9, "without stores, {} comes from the origin", none.origin);
    let (share, expected) = (some.origin / none.origin, theory(placement, 5.0));
    assert!((share - expected).abs() < 0.1, "{share} from the origin, in theory {expected}");
    assert!(all.origin < 0.05 * none.origin, "{} although all fits", all.origin);
    assert!(some.links < 0.9 * none.links && all.links < some.links);
}

#[test]
fn replicas_pulled_at_once_cross_each_link_once() {
    let size = 1 << 20;
    let nodes = nodes(6, 6);
    let together = pull(&nodes, size, Mode::Together, 6);
    assert_eq!((together.unfulfilled, &together.beyond_tree[..]), (0, &[][..]));
    let ideal = nodes.len() as u64 * size;
    assert!(together.host_bytes > ideal, "{} octets at the hosts", together.host_bytes);
    assert!(together.host_bytes < ideal * 11 / 10, "{} octets at the hosts", together.host_bytes);
    let staggered = pull(&nodes, size, Mode::Staggered, 6);
    assert_eq!((staggered.unfulfilled, &staggered.beyond_tree[..]), (0, &[][..]));
    let bare = pull(&nodes, size, Mode::StaggeredWithoutStores, 6);
    assert_eq!(bare.unfulfilled, 0);
    assert!(!bare.beyond_tree.is_empty(), "without stores, those who come later cost more");
}

#[test]
fn trips_are_counted_as_on_paper() {
    // H3 to H5 and H5 to H13: up, up, down, down each. As a tree: H3 up to the root once.
    assert_eq!(replicas::trips(&[3, 5, 13]), (8, 6));
    assert_eq!(replicas::trips(&[1, 2]), (2, 2));
}

#[test]
fn a_crowd_costs_the_origin_one_copy() {
    let case =
        flash::Case { arity: 4, depth: 2, object_bytes: 256 << 10, has_stores: true, seed: 7 };
    let stored = crowd(&case);
    assert_eq!(stored.had_it_ns.len(), 16);
    assert!(stored.origin_bytes < case.object_bytes * 115 / 100, "{}", stored.origin_bytes);
    let bare = crowd(&flash::Case { has_stores: false, ..case });
    assert_eq!(bare.had_it_ns.len(), 16);
    assert!(bare.origin_bytes > 3 * case.object_bytes, "{}", bare.origin_bytes);
}

#[test]
fn readers_outlive_mirrors() {
    for remedy in Remedy::ALL {
        let case = mirrors::Case { object_bytes: 2 << 20, mbit_per_s: 50, remedy, seed: 8 };
        let found = reading(&case);
        // Whom nobody tells, and who does not measure, may give up; but all must end.
        let least = if remedy == Remedy::Nothing { 0 } else { 6 };
        assert!(found.readers.1 >= least, "{remedy:?}: {:?}", found.readers);
        assert!(found.took_ns > case.last_death_ns(), "all was over before the deaths");
        let last = found.held.last().expect("it took some time");
        assert!(last.iter().all(|bytes| *bytes > 100_000.0), "every holder served: {last:?}");
    }
}

#[test]
fn a_seed_gives_one_outcome() {
    let case =
        flash::Case { arity: 3, depth: 2, object_bytes: 64 << 10, has_stores: true, seed: 10 };
    assert_eq!(crowd(&case), crowd(&case));
    assert_ne!(crowd(&case).had_it_ns, crowd(&flash::Case { seed: 11, ..case }).had_it_ns);
}
