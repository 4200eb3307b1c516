//! Windows, round trips, goodput and queues over time, as snapshots: a change of behaviour is a
//! diff in `snapshots/`. Where it is meant, `INSTA_UPDATE=always cargo test -p byname-sim traces`
//! accepts it, and the diff belongs in the same commit.

use byname_sim::bottleneck::{Bottleneck, ConsumerConfig, Faults};
use byname_sim::trace::Trace;
use byname_sim::{Discipline, MS, QueueConfig, SECOND};
use byname_transfer::congestion::Congestion;
use byname_transfer::fetch::Class;

const MBIT: u64 = 1_000_000;

/// A queue of one product of 100 Mbit/s and 50 ms.
fn world(discipline: Discipline, faults: Faults, consumers: &[ConsumerConfig]) -> Bottleneck {
    let queue = QueueConfig { bits_per_s: 100 * MBIT, buffer_bytes: 625_000, discipline };
    let mut world = Bottleneck::new(queue, faults, 1);
    for config in consumers {
        let consumer = world.add_consumer(*config);
        world.add_transfer(consumer, None, Class::Bulk);
    }
    world
}

fn check(name: &str, world: &mut Bottleneck, end_ns: u64, interval_ns: u64) {
    let text = Trace::record(world, end_ns, interval_ns).text();
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

#[test]
fn one_flow_alone() {
    let mut world = world(Discipline::DropTail, Faults::default(), &[ConsumerConfig::at(50 * MS)]);
    check("one_flow_alone", &mut world, 4 * SECOND, 50 * MS);
}

#[test]
fn one_flow_with_a_loss_in_a_hundred() {
    let faults = Faults { loss: 0.01, burst: 1, ..Faults::default() };
    let mut world = world(Discipline::DropTail, faults, &[ConsumerConfig::at(50 * MS)]);
    check("one_flow_with_loss", &mut world, 4 * SECOND, 100 * MS);
}

#[test]
fn one_flow_of_cubic() {
    let near = ConsumerConfig::at(50 * MS).with(Congestion::Cubic);
    let mut world = world(Discipline::DropTail, Faults::default(), &[near]);
    check("one_flow_of_cubic", &mut world, 10 * SECOND, 200 * MS);
}

#[test]
fn a_second_flow_comes_to_a_queue_that_marks() {
    let first = ConsumerConfig::at(50 * MS);
    let second = ConsumerConfig { start_ns: 2 * SECOND, ..first };
    let mut world = world(Discipline::CodelMarks, Faults::default(), &[first, second]);
    check("a_second_flow_with_marks", &mut world, 10 * SECOND, 200 * MS);
}

#[test]
fn near_and_far_share_a_queue_that_drops() {
    let flows = [10, 100].map(|rtt_ms| ConsumerConfig::at(rtt_ms * MS));
    let mut world = world(Discipline::DropTail, Faults::default(), &flows);
    check("near_and_far", &mut world, 20 * SECOND, 400 * MS);
}
