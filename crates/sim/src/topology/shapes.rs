//! Plans of networks that are often asked about.

use crate::topology::plan::{Plan, link};
use crate::world::LinkConfig;

/// Gigabit Ethernet.
const GIGABIT: u64 = 1_000_000_000;
/// From a machine through a switch's port to the next: cables and switching.
const RACK_DELAY_NS: u64 = 20_000;
/// The same between racks of a machine room.
const ROOM_DELAY_NS: u64 = 50_000;

/// Hosts in a row: `h0` to `h(n-1)`.
pub fn chain(count: usize, config: LinkConfig) -> Plan {
    let mut plan = Plan::default();
    for place in 0..count {
        plan.add_host(format!("h{place}"), None);
        if place > 0 {
            plan.join(place - 1, place, config);
        }
    }
    plan
}

/// Hosts in a ring.
pub fn ring(count: usize, config: LinkConfig) -> Plan {
    let mut plan = chain(count, config);
    plan.join(count - 1, 0, config);
    plan
}

/// A tree in which each host but the leaves has `arity` below it; the first host is the root.
pub fn tree(arity: usize, depth: u32, config: LinkConfig) -> Plan {
    let mut plan = Plan::default();
    for place in 0..(0..=depth).map(|level| arity.pow(level)).sum() {
        plan.add_host(format!("h{place}"), None);
        if place > 0 {
            plan.join((place - 1) / arity, place, config);
        }
    }
    plan
}

/// `left` and `right` in the middle, and so many hosts on either side of them.
pub fn dumbbell(pairs: usize, access: LinkConfig, middle: LinkConfig) -> Plan {
    let mut plan = Plan::default();
    let (left, right) = (plan.add_host("left", None), plan.add_host("right", None));
    plan.join(left, right, middle);
    for number in 0..pairs {
        for (side, hub) in [("l", left), ("r", right)] {
            let host = plan.add_host(format!("{side}{number}"), None);
            plan.join(hub, host, access);
        }
    }
    plan
}

/// A fat tree of switches with `k` ports (Al-Fares, Loukissas and Vahdat, SIGCOMM 2008): k pods of
/// k/2 edge and k/2 aggregation switches, (k/2)² core switches, k³/4 hosts. `k` is even.
pub fn fat_tree(k: usize, config: LinkConfig) -> Plan {
    let (mut plan, half) = (Plan::default(), k / 2);
    let cores: Vec<usize> =
        (0..half * half).map(|number| plan.add_host(format!("core{number}"), None)).collect();
    for pod in 0..k {
        let aggregates: Vec<usize> =
            (0..half).map(|place| plan.add_host(format!("agg{pod}-{place}"), None)).collect();
        for (place, aggregate) in aggregates.iter().enumerate() {
            for core in &cores[place * half..(place + 1) * half] {
                plan.join(*core, *aggregate, config);
            }
        }
        for place in 0..half {
            let edge = plan.add_host(format!("edge{pod}-{place}"), None);
            aggregates.iter().for_each(|aggregate| plan.join(*aggregate, edge, config));
            for number in 0..half {
                let host = plan.add_host(format!("h{pod}-{place}-{number}"), None);
                plan.join(edge, host, config);
            }
        }
    }
    plan
}

/// Two levels: a root router `r0`, below it `racks` routers `r1`…, below each `per_rack` machines;
/// the machines are `h1`… through all racks. Machines have links of 1 Gbit/s.
fn two_levels(racks: usize, per_rack: usize, uplink_bits_per_s: u64) -> Plan {
    let mut plan = Plan::default();
    let root = plan.add_host("r0", None);
    let routers: Vec<usize> =
        (1..=racks).map(|number| plan.add_host(format!("r{number}"), None)).collect();
    for router in &routers {
        plan.join(root, *router, link(uplink_bits_per_s, ROOM_DELAY_NS));
    }
    for number in 0..racks * per_rack {
        let host = plan.add_host(format!("h{}", number + 1), None);
        plan.join(routers[number / per_rack], host, link(GIGABIT, RACK_DELAY_NS));
    }
    plan
}

/// The 16-node cluster of Gibbens and others, "Hadoop on Named Data Networking" (2017), Fig. 5:
/// four routers with five Gigabit ports each have four machines and the way to the fifth router.
pub fn cluster16() -> Plan {
    two_levels(4, 4, GIGABIT)
}

/// As many machines as the larger cluster there, which was rented and of which only the number is
/// told: here eight racks of 16 with Gigabit ports and 10 Gbit/s to the root.
pub fn cluster128() -> Plan {
    two_levels(8, 16, 10 * GIGABIT)
}
