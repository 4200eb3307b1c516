//! The flow and the fetch over links of any kind, in virtual time: how much of a path is used,
//! how full its queue gets, and who gets how much. `--nocapture` prints the tables.

use byname_sim::bottleneck::{Bottleneck, ConsumerConfig, Faults};
use byname_sim::queue::{Discipline, QueueConfig};
use byname_sim::{MS, SECOND};
use byname_transfer::congestion::Congestion;
use byname_transfer::fetch::Class;

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

fn measure(world: &mut Bottleneck, from_ns: u64, to_ns: u64, bits_per_s: u64) -> Figures {
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

fn single(congestion: Congestion, queue: QueueConfig, rtt_ns: u64, loss: f64) -> Bottleneck {
    let faults = Faults { loss, burst: 1, ..Faults::default() };
    let mut world = Bottleneck::new(queue, faults, 7);
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

/// 1 for equal shares, 1/n if one has everything.
fn jain(values: &[f64]) -> f64 {
    let sum: f64 = values.iter().sum();
    let squares: f64 = values.iter().map(|value| value * value).sum();
    sum * sum / (values.len() as f64 * squares.max(f64::MIN_POSITIVE))
}

/// Bytes that each consumer received between two times.
fn shares(world: &mut Bottleneck, from_ns: u64, to_ns: u64) -> Vec<f64> {
    let received = |world: &Bottleneck| -> Vec<u64> {
        world.consumers.iter().map(|one| one.received_bytes()).collect()
    };
    world.run_until(from_ns);
    let before = received(world);
    world.queue.clear_figures();
    world.run_until(to_ns);
    received(world).iter().zip(before).map(|(after, before)| (after - before) as f64).collect()
}

fn consumers(world: &mut Bottleneck, configs: &[ConsumerConfig]) {
    for config in configs {
        let consumer = world.add_consumer(*config);
        world.add_transfer(consumer, None, Class::Bulk);
    }
}

#[test]
fn cubic_gets_what_its_formula_says() {
    // The formula is for losses at equal distances; by chance they allow somewhat more.
    let faults = Faults { loss_every: 10_000, ..Faults::default() };
    let mut world = Bottleneck::new(link(10 * GBIT, 100 * MS, 1.0), faults, 7);
    consumers(&mut world, &[ConsumerConfig::at(100 * MS).with(Congestion::Cubic)]);
    let figures = measure(&mut world, 100 * SECOND, 300 * SECOND, 10 * GBIT);
    let mbit = figures.share * 10_000.0 * PAYLOAD_SHARE;
    println!("cubic 10 Gbit/s 100 ms 0.01 %: {mbit:.0} Mbit/s");
    assert!((110.0..136.0).contains(&mbit), "{mbit}");
}

#[test]
fn flows_of_one_bottleneck_share_it_and_its_queue_stays_short() {
    for (title, discipline) in
        [("drop tail", Discipline::DropTail), ("CoDel marks", Discipline::CodelMarks)]
    {
        for rtt_ms in [5, 20, 100] {
            for count in [2, 4, 16] {
                let queue = QueueConfig { discipline, ..link(GBIT, rtt_ms * MS, 1.0) };
                let mut world = Bottleneck::new(queue, Faults::default(), 3);
                // Each comes while the others are at full speed.
                let configs: Vec<_> = (0..count)
                    .map(|place| ConsumerConfig {
                        start_ns: place * 300 * MS,
                        ..ConsumerConfig::at(rtt_ms * MS)
                    })
                    .collect();
                consumers(&mut world, &configs);
                // Sixteen come within 5 s, and what one had is a claim for 15 s more.
                let got = shares(&mut world, 25 * SECOND, 35 * SECOND);
                let used = got.iter().sum::<f64>() * 8.0 / 10.0 / GBIT as f64 / PAYLOAD_SHARE;
                let index = jain(&got);
                println!(
                    "{count:>2} flows, {rtt_ms:>3} ms, {title:<11}: Jain {index:.3}, {:>5.1} % of \
                     the line, queue {:>6.2} ms, dropped {}",
                    100.0 * used,
                    world.queue.delay_mean_ns() as f64 / 1e6,
                    world.queue.drop_count
                );
                assert!(used > 0.9, "{count} flows at {rtt_ms} ms, {title}: {used}");
                let least = if discipline == Discipline::DropTail { 0.6 } else { 0.85 };
                assert!(index > least, "{count} flows at {rtt_ms} ms, {title}: {index} {got:?}");
            }
        }
    }
}

#[test]
fn flows_of_different_distance_all_get_something() {
    let mut world = Bottleneck::new(link(GBIT, 50 * MS, 1.0), Faults::default(), 3);
    consumers(&mut world, &[10, 30, 100].map(|rtt_ms| ConsumerConfig::at(rtt_ms * MS)));
    let got = shares(&mut world, 15 * SECOND, 35 * SECOND);
    println!("10, 30, 100 ms share: {got:.0?}, Jain {:.3}", jain(&got));
    let sum: f64 = got.iter().sum();
    assert!(got.iter().all(|one| *one > sum * 0.03), "{got:?}");
}

#[test]
fn the_default_and_cubic_live_side_by_side() {
    for products in [0.5, 1.0, 2.0] {
        let mut world = Bottleneck::new(link(GBIT, 20 * MS, products), Faults::default(), 3);
        let near = ConsumerConfig::at(20 * MS);
        consumers(&mut world, &[near, near.with(Congestion::Cubic)]);
        let got = shares(&mut world, 10 * SECOND, 40 * SECOND);
        let share = got[0] / (got[0] + got[1]);
        println!("bdp beside cubic, buffer {products} products: {:.0} %", 100.0 * share);
        assert!((0.15..0.85).contains(&share), "{products}: {share}");
    }
}

#[test]
fn a_shallow_buffer_is_not_flooded() {
    for products in [0.05, 0.1, 0.25] {
        let mut world = single(Congestion::Bdp, link(GBIT, 50 * MS, products), 50 * MS, 0.0);
        let figures = measure(&mut world, 3 * SECOND, 8 * SECOND, GBIT);
        print(&format!("bdp 1 Gbit/s 50 ms, buffer {products} products"), &figures);
        assert!(figures.share > 0.85, "{}", figures.share);
        assert!(figures.drop_share < 0.03, "{}", figures.drop_share);
    }
}

#[test]
fn bursts_of_loss_disorder_and_duplicates_cost_little() {
    let bursts = Faults { loss: 1e-4, burst: 20, ..Faults::default() };
    let disorder = Faults { disorder: 0.02, late_ns: 10 * MS, ..Faults::default() };
    let duplicates = Faults { duplication: 0.05, ..Faults::default() };
    let all = [("bursts", bursts), ("disorder", disorder), ("duplicates", duplicates)];
    for (title, faults) in all {
        let mut world = Bottleneck::new(link(GBIT, 20 * MS, 1.0), faults, 5);
        consumers(&mut world, &[ConsumerConfig::at(20 * MS)]);
        let figures = measure(&mut world, 2 * SECOND, 7 * SECOND, GBIT);
        print(&format!("bdp 1 Gbit/s 20 ms, {title}"), &figures);
        assert!(figures.share > 0.9, "{title}: {}", figures.share);
        assert!(figures.repeated < 0.02, "{title}: {}", figures.repeated);
    }
}

#[test]
fn an_outage_is_survived_and_the_rate_comes_back() {
    let outage_ns = (3 * SECOND, 5 * SECOND);
    let faults = Faults { outage_ns, ..Faults::default() };
    let mut world = Bottleneck::new(link(GBIT, 20 * MS, 1.0), faults, 5);
    consumers(&mut world, &[ConsumerConfig::at(20 * MS)]);
    world.run_until(4 * SECOND);
    let before = world.consumers[0].requested;
    world.run_until(5 * SECOND);
    let asked = world.consumers[0].requested - before;
    assert!(asked <= 64, "{asked} requests into nothing");
    let figures = measure(&mut world, 7 * SECOND, 9 * SECOND, GBIT);
    print("bdp 1 Gbit/s 20 ms, after an outage of 2 s", &figures);
    assert!(figures.share > 0.85, "{}", figures.share);
}

#[test]
fn a_machine_that_pauses_fills_a_long_path_in_time() {
    let (rtt_ns, rate, count) = (100 * MS, 6 * GBIT, 131_072);
    for (every_ms, pause_ms) in [(0, 0), (130, 15), (70, 20), (97, 30)] {
        let faults = Faults { pause_ns: (every_ms * MS, pause_ms * MS), ..Faults::default() };
        let mut world = Bottleneck::new(link(rate, rtt_ns, 1.0), faults, 5);
        let consumer = world.add_consumer(ConsumerConfig::at(rtt_ns));
        world.add_transfer(consumer, Some(count), Class::Bulk);
        world.run_until(20 * SECOND);
        let ended_ns = world.consumers[0].transfers[0].finished_ns.unwrap_or(20 * SECOND);
        let title = format!("1 GiB, 6 Gbit/s, 100 ms, {pause_ms} of {every_ms} ms paused");
        println!("{title}: {} ms", ended_ns / MS);
        // 1.5 s at the rate of the line and ten round trips to get there; the rest is for pauses.
        assert!(ended_ns < 3500 * MS, "{title}: {ended_ns} ns");
    }
}

#[test]
fn a_start_that_losses_ended_is_made_up_for() {
    for (from_ms, to_ms) in [(350, 420), (450, 490), (650, 700)] {
        let faults = Faults { outage_ns: (from_ms * MS, to_ms * MS), ..Faults::default() };
        let mut world = Bottleneck::new(link(6 * GBIT, 100 * MS, 1.0), faults, 1);
        let consumer = world.add_consumer(ConsumerConfig::at(100 * MS));
        world.add_transfer(consumer, Some(131_072), Class::Bulk);
        world.run_until(20 * SECOND);
        let ended_ns = world.consumers[0].transfers[0].finished_ns.unwrap_or(20 * SECOND);
        println!("1 GiB, 6 Gbit/s, 100 ms, cut from {from_ms} to {to_ms} ms: {} ms", ended_ns / MS);
        // A quarter more at a time would take 5 to 9 s.
        assert!(ended_ns < 4200 * MS, "cut from {from_ms} to {to_ms} ms: {ended_ns} ns");
    }
}

#[test]
fn caches_on_the_way_do_not_confuse_it() {
    for cached in [0.1, 0.5, 0.9] {
        let mut world = Bottleneck::new(link(GBIT, 50 * MS, 1.0), Faults::default(), 5);
        consumers(&mut world, &[ConsumerConfig { cached, ..ConsumerConfig::at(50 * MS) }]);
        let got = shares(&mut world, 4 * SECOND, 8 * SECOND)[0];
        // What the bottleneck carries is only the part that is not cached.
        let through = got * (1.0 - cached) * 8.0 / 4.0 / GBIT as f64 / PAYLOAD_SHARE;
        println!(
            "bdp 1 Gbit/s 50 ms, {:.0} % cached: {:.1} % of the line, queue {:.2} ms",
            100.0 * cached,
            100.0 * through,
            world.queue.delay_mean_ns() as f64 / 1e6
        );
        assert!(through > 0.75, "{cached}: {through}");
    }
}

#[test]
fn a_path_that_becomes_longer_is_noticed() {
    let mut world = Bottleneck::new(link(GBIT, 50 * MS, 1.0), Faults::default(), 5);
    consumers(&mut world, &[ConsumerConfig::at(2 * MS)]);
    world.run_until(3 * SECOND);
    world.consumers[0].config.rtt_ns = 80 * MS;
    let figures = measure(&mut world, 6 * SECOND, 9 * SECOND, GBIT);
    print("bdp 1 Gbit/s, from 2 ms to 80 ms", &figures);
    assert!(figures.share > 0.8, "{}", figures.share);
}

#[test]
fn many_files_of_one_flow_get_the_same() {
    let mut world = Bottleneck::new(link(GBIT, 20 * MS, 1.0), Faults::default(), 5);
    let consumer = world.add_consumer(ConsumerConfig::at(20 * MS));
    (0..8).for_each(|_| {
        world.add_transfer(consumer, None, Class::Bulk);
    });
    world.run_until(2 * SECOND);
    // One more, when all the room is taken.
    world.add_transfer(consumer, None, Class::Bulk);
    world.run_until(3 * SECOND);
    let received = |world: &Bottleneck| -> Vec<u64> {
        world.consumers[0].transfers.iter().map(|transfer| transfer.received).collect()
    };
    let before = received(&world);
    world.run_until(5 * SECOND);
    let got: Vec<f64> = received(&world)
        .iter()
        .zip(before)
        .map(|(after, before)| (after - before) as f64)
        .collect();
    let index = jain(&got);
    println!("9 files of one flow: Jain {index:.4}");
    assert!(index > 0.99, "{got:?}");
}

#[test]
fn what_a_person_waits_for_passes_the_bulk_and_does_not_stop_it() {
    let mut world = Bottleneck::new(link(GBIT, 20 * MS, 1.0), Faults::default(), 5);
    let consumer = world.add_consumer(ConsumerConfig::at(20 * MS));
    (0..16).for_each(|_| {
        world.add_transfer(consumer, None, Class::Bulk);
    });
    world.run_until(3 * SECOND);
    let (mut slowest_ns, before) = (0, world.consumers[0].received_bytes());
    for _ in 0..20 {
        let asked_ns = world.now_ns;
        let place = world.add_transfer(consumer, Some(4), Class::Prompt);
        world.run_until(asked_ns + 100 * MS);
        let finished_ns = world.consumers[0].transfers[place].finished_ns;
        slowest_ns = slowest_ns.max(finished_ns.map_or(u64::MAX, |at_ns| at_ns - asked_ns));
    }
    let bulk = (world.consumers[0].received_bytes() - before) as f64 * 8.0 / 2.0 / GBIT as f64;
    println!("4 segments beside 16 files: {:.1} ms at most", slowest_ns as f64 / 1e6);
    assert!(slowest_ns < 30 * MS, "{slowest_ns}");
    assert!(bulk / PAYLOAD_SHARE > 0.95, "{bulk}");
    // A greedy one takes its share and no more.
    let greedy = world.add_transfer(consumer, None, Class::Prompt);
    world.run_until(world.now_ns + SECOND);
    let count = |world: &Bottleneck| world.consumers[0].transfers[greedy].received;
    let (all_before, before) = (world.consumers[0].received_bytes(), count(&world));
    world.run_until(world.now_ns + 2 * SECOND);
    let all = (world.consumers[0].received_bytes() - all_before) / 8192;
    let share = (count(&world) - before) as f64 / all as f64;
    println!("a greedy prompt one beside 16 files: {:.0} %", 100.0 * share);
    assert!((0.1..0.7).contains(&share), "{share}");
}

#[test]
fn the_last_segments_are_not_left_to_the_time_out() {
    let mut slowest_ns = 0;
    for seed in 0..200 {
        let faults = Faults { loss: 0.02, burst: 1, ..Faults::default() };
        let mut world = Bottleneck::new(link(GBIT, 10 * MS, 1.0), faults, seed);
        let consumer = world.add_consumer(ConsumerConfig::at(10 * MS));
        world.add_transfer(consumer, Some(64), Class::Bulk);
        world.run_until(2 * SECOND);
        let finished_ns = world.consumers[0].transfers[0].finished_ns.expect("it arrives");
        slowest_ns = slowest_ns.max(finished_ns);
    }
    println!("64 segments, 10 ms, 2 % loss: {:.0} ms at most", slowest_ns as f64 / 1e6);
    assert!(slowest_ns < 500 * MS, "{slowest_ns}");
}

#[test]
fn refusals_of_full_forwarders_slow_it_down_and_nothing_is_lost() {
    let mut world = Bottleneck::new(link(GBIT, 10 * MS, 1.0), Faults::default(), 5);
    world.refusal = 0.05;
    let consumer = world.add_consumer(ConsumerConfig::at(10 * MS));
    let place = world.add_transfer(consumer, Some(2000), Class::Bulk);
    world.run_until(30 * SECOND);
    let transfer = &world.consumers[0].transfers[place];
    assert_eq!((transfer.received, transfer.duplicate_count), (2000, 0));
}
