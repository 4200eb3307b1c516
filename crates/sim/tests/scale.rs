//! Small versions of the studies of size: that they do what they measure, and that a seed gives
//! one history, here and everywhere.

use byname_sim::study::Effort;
use byname_sim::study::cluster::{self, Room, play};
use byname_sim::study::reroute::{Case, Learns, measure};
use byname_sim::study::scale::{Kept, names, racks, slope};
use byname_sim::topology::plan::link;
use byname_sim::topology::{Plan, run, shapes};
use byname_sim::{MS, SECOND};

fn small_room() -> Room {
    cluster::room(&Effort::QUICK)
}

#[test]
fn machines_read_all_their_blocks() {
    let outcome = play(&small_room()).expect("no promise is broken");
    assert_eq!((outcome.machines, outcome.hosts), (16, 21));
    assert!(outcome.blocks.0 > 16, "{} blocks were read", outcome.blocks.0);
    assert_eq!(outcome.blocks.1, 0);
    // 512 segments a block, each over two links at least, and an Interest for each.
    assert_eq!(outcome.segments, outcome.blocks.0 * 512);
    assert!(outcome.packets > 4 * outcome.segments * 9 / 10);
    assert!(outcome.saved > 0.0 && outcome.saved < 0.5, "{}", outcome.saved);
    // A block is 4 MiB; nothing is faster than 1 Gbit/s.
    assert!(outcome.block_ms.0 > 33.0, "{}", outcome.block_ms.0);
}

/// The same in every process, on every machine: if this fails after a change of the simulator or
/// of the code under test, a history has changed, and the number is to be set anew; if it fails
/// from run to run, something depends on chance that is not the seed's.
#[test]
fn a_seed_gives_one_history_in_every_process() {
    let room = Room { seed: 7, duration_ns: 3 * SECOND, ..small_room() };
    let (one, two) = (play(&room).expect("calm"), play(&room).expect("calm"));
    assert_eq!((one.digest, one.events), (two.digest, two.events));
    let other = play(&Room { seed: 8, ..room }).expect("calm");
    assert_ne!(one.digest, other.digest);
    let text = "host a b\nlink a b rate=100M delay=3ms jitter=1ms loss=1% disorder=2% late=2ms \
                duplication=1% corruption=0.1%\npublish /a/f at a size=1Mi\nread /a/f at b start=1s";
    let plan = Plan::parse(text).expect("a plan");
    let real = run::run(&plan, 7, run::LIMIT_NS).expect("no promise is broken");
    assert_eq!(real.reads[0].problem, None);
    assert_eq!(real, run::run(&plan, 7, run::LIMIT_NS).expect("no promise is broken"));
    insta::assert_snapshot!(format!(
        "traffic {:016x} after {} events\nfile {:016x} after {} events",
        one.digest, one.events, real.digest, real.events
    ));
}

#[test]
fn what_a_host_does_does_not_depend_on_how_many_there_are() {
    let plan = racks(100);
    assert_eq!((plan.hosts.len(), plan.links.len()), (100, 99));
    let machines = |hosts| {
        let outcome = byname_sim::study::scale::nodes(hosts, 5, 1);
        (outcome.machines, outcome.blocks.0 as f64 / outcome.machines as f64, outcome.blocks.1)
    };
    let (few, many) = (machines(10), machines(40));
    assert_eq!((few.0, many.0), (9, 36));
    assert_eq!((few.2, many.2), (0, 0));
    assert!((few.1 - many.1).abs() < 0.5, "{few:?} {many:?}");
}

#[test]
fn names_are_found_among_many() {
    for kept in [Kept::Routes, Kept::Packets, Kept::Pending] {
        let found = names(kept, 20_000, 2_000);
        assert_eq!(found.count, 20_000);
        assert!(found.lookup_ns > 0.0);
    }
    assert_eq!(slope(&[(1.0, 3.0), (2.0, 5.0), (4.0, 9.0)]), 2.0);
}

fn ring(strategy: &'static str, learns: Learns) -> Case {
    let plan = shapes::ring(6, link(100_000_000, 2 * MS));
    Case { plan, hosts: ["h0", "h2", "h1", "h2"], strategy, learns, seconds: 3, seed: 1 }
}

#[test]
fn a_cut_that_is_noticed_costs_little_more_than_the_way_around() {
    let outcome = measure(&ring("best-route", Learns::Ends)).expect("no promise is broken");
    // Two links of 2 ms are left where there were two; the way around has four.
    assert_eq!(outcome.way_ms, (4.0, 8.0));
    assert!(outcome.silence_ms < 50, "{} ms of silence", outcome.silence_ms);
    assert!(outcome.back_ms.is_some_and(|ms| ms < 1000), "{:?}", outcome.back_ms);
}

#[test]
fn only_a_strategy_that_measures_finds_a_way_around_what_nobody_noticed() {
    let measured = measure(&ring("asf", Learns::Nobody)).expect("no promise is broken");
    assert!(measured.back_ms.is_some_and(|ms| ms < 1000), "{:?}", measured.back_ms);
    assert!(measured.silence_ms < 100, "{} ms of silence", measured.silence_ms);
    let plain = measure(&ring("best-route", Learns::Nobody)).expect("no promise is broken");
    // Every Interest goes to the dead link first and the other way when it is repeated.
    assert_eq!(plain.back_ms, None);
    assert!(plain.share > 0.0, "nothing came at all");
    let learns = Learns::Routing { after_ns: 500 * MS };
    let routed = measure(&ring("best-route", learns)).expect("no promise is broken");
    assert!(routed.back_ms.is_some_and(|ms| ms > 500), "{:?}", routed.back_ms);
}
