//! Common parts of the studies of one bottleneck: how it is made, and what is measured on it.

use byname_transfer::fetch::Class;

use crate::bottleneck::{Bottleneck, ConsumerConfig, Faults, SEGMENT};
use crate::queue::{Discipline, QueueConfig};

pub(super) const GBIT: u64 = 1_000_000_000;
/// Payload is this share of what the line carries.
const PAYLOAD_SHARE: f64 = SEGMENT as f64 / (SEGMENT + crate::bottleneck::OVERHEAD) as f64;
/// No line has a buffer of fewer segments.
const BUFFER_MIN: u64 = 64;

/// A line with a buffer of so many products of rate and round trip.
pub(super) fn line(
    bits_per_s: u64,
    rtt_ns: u64,
    products: f64,
    discipline: Discipline,
) -> QueueConfig {
    let product = bits_per_s as f64 / 8.0 * rtt_ns as f64 / 1e9;
    let buffer_bytes = ((product * products) as u64).max(BUFFER_MIN * SEGMENT);
    QueueConfig { bits_per_s, buffer_bytes, discipline }
}

/// A line with consumers who all want more than there is.
pub(super) fn world(
    queue: QueueConfig,
    loss: f64,
    consumers: &[ConsumerConfig],
    seed: u64,
) -> Bottleneck {
    let mut world = Bottleneck::new(queue, Faults { loss, burst: 1, ..Faults::default() }, seed);
    for config in consumers {
        let consumer = world.add_consumer(*config);
        world.add_transfer(consumer, None, Class::Bulk);
    }
    world
}

/// Measurements of a line and its consumers over an interval.
#[derive(Clone, Debug)]
pub(super) struct Figures {
    /// Share of the line's payload rate that each consumer got.
    pub(super) shares: Vec<f64>,
    pub(super) delay_median_ms: f64,
    pub(super) delay_p99_ms: f64,
    pub(super) drop_share: f64,
}

impl Figures {
    pub(super) fn used(&self) -> f64 {
        self.shares.iter().sum()
    }

    /// 1 for equal shares, 1/n if one has everything.
    pub(super) fn jain(&self) -> f64 {
        let squares: f64 = self.shares.iter().map(|share| share * share).sum();
        self.used().powi(2) / (self.shares.len() as f64 * squares.max(f64::MIN_POSITIVE))
    }
}

/// Lets a world pass the first time and measures it in the second.
pub(super) fn measure(world: &mut Bottleneck, from_ns: u64, to_ns: u64) -> Figures {
    let received = |world: &Bottleneck| -> Vec<u64> {
        world.consumers.iter().map(|one| one.received_bytes()).collect()
    };
    world.run_until(from_ns);
    let before = received(world);
    world.delays_us.clear();
    world.queue.clear_figures();
    world.run_until(to_ns);
    let possible = world.line.bits_per_s as f64 / 8e9 * (to_ns - from_ns) as f64 * PAYLOAD_SHARE;
    let got = received(world);
    let shares = got.iter().zip(before).map(|(got, before)| (got - before) as f64 / possible);
    let (dropped, passed) = (world.queue.drop_count, world.queue.packet_count);
    Figures {
        shares: shares.collect(),
        delay_median_ms: world.delays_us.percentile_ms(50.0),
        delay_p99_ms: world.delays_us.percentile_ms(99.0),
        drop_share: dropped as f64 / (dropped + passed).max(1) as f64,
    }
}

/// The word for it in tables.
pub(super) fn discipline_name(discipline: Discipline) -> &'static str {
    match discipline {
        Discipline::DropTail => "drop-tail",
        Discipline::CodelMarks => "marks",
        Discipline::Codel => "CoDel drops",
    }
}

/// A share in per cent.
pub(super) fn percent(share: f64) -> String {
    format!("{:.1}", 100.0 * share)
}
