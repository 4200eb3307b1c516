//! The files in `topologies/`: that they are what they say, and that files cross them.

use std::collections::BTreeSet;
use std::path::PathBuf;

use byname_forwarder::Config;
use byname_sim::topology::plan::{link, plain_link};
use byname_sim::topology::routes::Distances;
use byname_sim::topology::{Plan, Topology, run, shapes, sites};
use byname_sim::traffic::{FetchJob, Sink, ZeroSource};
use byname_sim::{HostId, Incident, MS, SECOND, World};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("topologies")
}

fn read(name: &str) -> Plan {
    let text = std::fs::read_to_string(folder().join(name)).expect("the file is there");
    Plan::parse(&text).unwrap_or_else(|problem| panic!("{name}: {problem}"))
}

/// Network described by a file, without publishers and readers.
fn shape(name: &str) -> Plan {
    Plan { files: Vec::new(), reads: Vec::new(), ..read(name) }
}

#[test]
fn the_files_are_what_the_shapes_make() {
    let gigabit = link(1_000_000_000, 50_000);
    let narrow = link(100_000_000, 20 * MS);
    let expected = [
        ("chain-5.txt", shapes::chain(5, plain_link())),
        ("ring-6.txt", shapes::ring(6, plain_link())),
        ("tree-2-3.txt", shapes::tree(2, 3, plain_link())),
        ("dumbbell.txt", shapes::dumbbell(4, link(1_000_000_000, MS), narrow)),
        ("fat-tree-4.txt", shapes::fat_tree(4, gigabit)),
        ("cluster-16.txt", shapes::cluster16()),
        ("cluster-128.txt", shapes::cluster128()),
        ("lhc.txt", sites::lhc()),
        ("a-f-b-local.txt", sites::a_f_b("local").expect("a known distance")),
        ("a-f-b-near.txt", sites::a_f_b("near").expect("a known distance")),
        ("a-f-b-far.txt", sites::a_f_b("far").expect("a known distance")),
    ];
    for (name, plan) in &expected {
        let (found, wanted) = (shape(name).to_string(), plan.to_string());
        assert_eq!(found, wanted, "{name} is not what its shape makes");
    }
    let known: BTreeSet<_> = expected.iter().map(|(name, _)| (*name).to_owned()).collect();
    let there = std::fs::read_dir(folder()).expect("a folder");
    let there = there.map(|entry| entry.expect("an entry").file_name().into_string());
    assert_eq!(there.collect::<Result<BTreeSet<_>, _>>(), Ok(known));
}

#[test]
fn what_the_files_read_comes() {
    for name in ["chain-5.txt", "ring-6.txt", "dumbbell.txt", "cluster-16.txt", "lhc.txt"] {
        let plan = read(name);
        assert!(!plan.reads.is_empty(), "{name} reads nothing");
        let done = run::run(&plan, 1, run::LIMIT_NS).expect("no promise is broken");
        for read in &done.reads {
            assert_eq!(read.problem, None, "{name}: {} at {}", read.name, read.host);
            let file = plan.files.iter().find(|file| file.name == read.name);
            assert_eq!(Some(read.bytes), file.map(|file| file.size), "{name}");
        }
    }
}

#[test]
fn shapes_have_as_many_hosts_and_links_as_they_should() {
    let counts = |plan: &Plan| (plan.hosts.len(), plan.links.len());
    // k = 4: 4 core, 8 aggregation and 8 edge switches, 16 hosts; k³/4 links at each level.
    assert_eq!(counts(&shapes::fat_tree(4, plain_link())), (36, 48));
    assert_eq!(counts(&shapes::fat_tree(8, plain_link())), (208, 384));
    assert_eq!(counts(&shapes::cluster16()), (21, 20));
    assert_eq!(counts(&shapes::cluster128()), (137, 136));
    assert_eq!(counts(&shapes::dumbbell(3, plain_link(), plain_link())), (8, 7));
    // Every port of a switch is used.
    let plan = shapes::fat_tree(6, plain_link());
    for (place, host) in plan.hosts.iter().enumerate() {
        let ends = plan.links.iter().filter(|it| it.ends.0 == place || it.ends.1 == place);
        let expected = if host.name.starts_with('h') { 1 } else { 6 };
        assert_eq!(ends.count(), expected, "{}", host.name);
    }
}

fn built(plan: &Plan) -> (World, Topology) {
    let mut world = World::new(1);
    let topology = plan.build(&mut world, &Config::default());
    (world, topology)
}

#[test]
fn ways_are_the_shortest_by_delay_and_know_cuts() {
    // a–b is long; a–c–b is two hops, but shorter.
    let text = "host a b c\nlink a b delay=10ms\nlink a c delay=2ms\nlink c b delay=3ms";
    let (world, topology) = built(&Plan::parse(text).expect("a plan"));
    let host = |name| topology.find(&world, name).expect("a host");
    let (a, b, c) = (host("a"), host("b"), host("c"));
    let way = |without: &[_]| Distances::new(&topology, &world, &[b], without).from(a);
    assert_eq!(way(&[]), Some(5_000));
    let short = topology.link(a, c).expect("a link");
    assert_eq!(way(&[short]), Some(10_000));
    assert_eq!(way(&[short, topology.link(b, a).expect("a link")]), None);
    // The nearer of two.
    assert_eq!(Distances::new(&topology, &world, &[b, c], &[]).from(a), Some(2_000));
}

#[test]
fn a_cut_loses_what_waits_in_the_queue() {
    for discipline in ["drop-tail", "codel-marks"] {
        // Somebody sends at 100 Mbit/s into a line of 10, whose queue holds 200 ms of it.
        let text = format!(
            "host a b c\nlink a b rate=100M delay=1ms\n\
             link b c rate=10M delay=5ms queue=250k discipline={discipline}"
        );
        let (mut world, topology) = built(&Plan::parse(&text).expect("a plan"));
        let prefix: byname_packet::Name = "/site".parse().expect("a name");
        let source = world.add_program(topology.hosts[0], ZeroSource::default());
        world.route_to(source, &prefix);
        topology.route_by_delay(&mut world, &prefix, &topology.hosts[..1]);
        let job = FetchJob { start_ns: SECOND, name: prefix, segments: 10_000 };
        world.add_program(topology.hosts[2], Sink::new([job], 1));
        let (thin, sender) = (topology.links[1].2, topology.hosts[1]);
        let at_ns = 2 * SECOND;
        world.plan(at_ns, Incident::Cut { link: thin, is_noticed: false });
        // What was on the wire has come by then.
        world.run(at_ns + 5 * MS, &|_| false).expect("calm");
        let lost = world.line_counters(thin, sender).losses;
        assert!(lost > 0, "{discipline}: nothing waited, so this tests nothing");
        let received = |world: &World| {
            let counters = world.line_counters(thin, sender);
            counters.frames - counters.losses - counters.overflows - counters.drops
        };
        let came = received(&world);
        world.run(at_ns + 100 * MS, &|_| false).expect("calm");
        assert_eq!(received(&world), came, "{discipline}");
        assert_eq!(world.in_flight().0, 0, "{discipline}");
    }
}

#[test]
fn a_partition_cuts_what_leaves_a_set_of_hosts() {
    let (world, topology) = built(&shapes::cluster16());
    let rack: Vec<HostId> =
        ["r1", "h1", "h2", "h3", "h4"].map(|name| topology.find(&world, name).expect(name)).into();
    let uplink = topology.link(rack[0], topology.find(&world, "r0").expect("the root"));
    assert_eq!(world.links_around(&rack), Vec::from_iter(uplink));
    assert_eq!(world.links_around(&rack[1..3]).len(), 2);
}
