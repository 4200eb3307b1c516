//! The flow and the fetch over links of any kind, in virtual time: how much of a path is used,
//! how full its queue gets, and who gets how much. `--nocapture` prints the tables.

#[allow(dead_code, unreachable_pub)]
mod link_model {
    pub mod queue;
    pub mod random;
    pub mod world;
}

use byname_transfer::congestion::Congestion;
use byname_transfer::fetch::Class;
use link_model::queue::{Discipline, QueueConfig};
use link_model::world::{ConsumerConfig, Faults, MS, SECOND, World};

const GBIT: u64 = 1_000_000_000;
/// Payload is this share of what the line carries.
const PAYLOAD_SHARE: f64 = 8192.0 / 8292.0;

/// One bandwidth-delay product, as routers are equipped.
fn link(bits_per_s: u64, rtt_ns: u64, products: f64) -> QueueConfig {
    let product = bits_per_s as f64 / 8.0 * rtt_ns as f64 / 1e9;
    QueueConfig {
        bits_per_s,
        buffer_bytes: ((product * products) as u64).max(64 * 8192),
        discipline: Discipline::DropTail,
    }
}

struct Figures {
    /// Share of the line's payload rate that was used, after the start.
    share: f64,
    delay_mean_ms: f64,
    delay_max_ms: f64,
    drop_share: f64,
    repeated: f64,
}

fn measure(world: &mut World, from_ns: u64, to_ns: u64, bits_per_s: u64) -> Figures {
    world.run_until(from_ns);
    let before: u64 = world.consumers.iter().map(|one| one.received_bytes()).sum();
    world.queue.clear_figures();
    world.run_until(to_ns);
    let after: u64 = world.consumers.iter().map(|one| one.received_bytes()).sum();
    let seconds = (to_ns - from_ns) as f64 / 1e9;
    let requested: u64 = world.consumers.iter().map(|one| one.requested).sum();
    let in_flight: usize = world.consumers.iter().map(|one| one.flow.in_flight()).sum();
    let queue = &world.queue;
    Figures {
        share: (after - before) as f64 * 8.0 / seconds / bits_per_s as f64 / PAYLOAD_SHARE,
        delay_mean_ms: queue.delay_mean_ns() as f64 / 1e6,
        delay_max_ms: queue.delay_max_ns as f64 / 1e6,
        drop_share: queue.drop_count as f64 / (queue.drop_count + queue.packet_count) as f64,
        repeated: (requested - in_flight as u64) as f64 * 8192.0 / after as f64 - 1.0,
    }
}

fn single(congestion: Congestion, queue: QueueConfig, rtt_ns: u64, loss: f64) -> World {
    let faults = Faults { loss, burst: 1, ..Faults::default() };
    let mut world = World::new(queue, faults, 7);
    let consumer = world.add_consumer(ConsumerConfig::at(rtt_ns).with(congestion));
    world.add_transfer(consumer, None, Class::Bulk);
    world
}

fn print(title: &str, figures: &Figures) {
    println!(
        "{title:<44} {:>6.1} % of the line, queue {:>6.2} ms (max {:>6.2}), dropped {:>5.2} %, \
         asked again {:>5.2} %",
        100.0 * figures.share,
        figures.delay_mean_ms,
        figures.delay_max_ms,
        100.0 * figures.drop_share,
        100.0 * figures.repeated
    );
}

#[test]
fn ten_gigabit_over_100_ms_with_a_loss_in_ten_thousand_is_filled() {
    let queue = link(10 * GBIT, 100 * MS, 1.0);
    let mut world = single(Congestion::Bdp, queue, 100 * MS, 1e-4);
    let figures = measure(&mut world, 2 * SECOND, 5 * SECOND, 10 * GBIT);
    print("bdp 10 Gbit/s 100 ms 0.01 %", &figures);
    assert!(figures.share >= 0.9, "{}", figures.share);
}

#[test]
fn one_gigabit_is_filled_at_any_distance_and_loss() {
    for rtt_ms in [1, 5, 20, 50, 100, 200] {
        for loss in [0.0, 1e-4, 1e-3, 1e-2] {
            let queue = link(GBIT, rtt_ms * MS, 1.0);
            let mut world = single(Congestion::Bdp, queue, rtt_ms * MS, loss);
            let from_ns = SECOND + 20 * rtt_ms * MS;
            let figures = measure(&mut world, from_ns, from_ns + 4 * SECOND, GBIT);
            print(&format!("bdp 1 Gbit/s {rtt_ms} ms loss {} %", loss * 100.0), &figures);
            assert!(figures.share >= 0.9 * (1.0 - loss), "{rtt_ms} ms, {loss}: {}", figures.share);
        }
    }
}
