//! Ways through a network: the shortest by delay, and ways around.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use byname_packet::Name;

use crate::topology::Topology;
use crate::world::{HostId, LinkId, World};

/// What a way costs more that begins with going back.
const BACK_COST: u64 = 1_000_000_000;
/// Delays are counted in this, and a hop costs one at least.
const COST_NS: u64 = 1_000;

/// Time from every host to the nearest of some hosts.
#[derive(Clone, Debug)]
pub struct Distances {
    /// In microseconds, a hop one at least; `None`: there is no way.
    cost: BTreeMap<HostId, u64>,
}

impl Distances {
    /// Shortest ways to the nearest of `targets` over all links but those in `without`.
    pub fn new(topology: &Topology, world: &World, targets: &[HostId], without: &[LinkId]) -> Self {
        let near = neighbours(topology, world, without);
        let mut cost: BTreeMap<HostId, u64> = BTreeMap::new();
        let mut next: BinaryHeap<_> = targets.iter().map(|host| Reverse((0, *host))).collect();
        while let Some(Reverse((so_far, host))) = next.pop() {
            if cost.contains_key(&host) {
                continue;
            }
            cost.insert(host, so_far);
            for (there, step) in near.get(&host).into_iter().flatten() {
                if !cost.contains_key(there) {
                    next.push(Reverse((so_far + step, *there)));
                }
            }
        }
        Distances { cost }
    }

    /// From a host, in microseconds; `None` if there is no way.
    pub fn from(&self, host: HostId) -> Option<u64> {
        self.cost.get(&host).copied()
    }
}

fn neighbours(
    topology: &Topology,
    world: &World,
    without: &[LinkId],
) -> BTreeMap<HostId, Vec<(HostId, u64)>> {
    let mut near: BTreeMap<HostId, Vec<(HostId, u64)>> = BTreeMap::new();
    for (one, other, link) in topology.links.iter().filter(|it| !without.contains(&it.2)) {
        let step = step_cost(world, *link);
        near.entry(*one).or_default().push((*other, step));
        near.entry(*other).or_default().push((*one, step));
    }
    near
}

fn step_cost(world: &World, link: LinkId) -> u64 {
    (world.link_delay_ns(link) / COST_NS).max(1)
}

impl Topology {
    /// Leads a prefix on every host towards the nearest of `targets` by delay: over each link that
    /// comes nearer, at the delay of the whole way; and, dearer, over the others, as ways around.
    pub fn route_by_delay(&self, world: &mut World, prefix: &Name, targets: &[HostId]) {
        self.route_without(world, prefix, targets, &[]);
    }

    /// The same as if some links were not there: what a routing protocol knows after a while. If
    /// there are such, the routes that hosts had for the prefix are taken back first.
    pub fn route_without(
        &self,
        world: &mut World,
        prefix: &Name,
        targets: &[HostId],
        without: &[LinkId],
    ) {
        let distances = Distances::new(self, world, targets, without);
        for host in self.hosts.iter().filter(|_| !without.is_empty()) {
            world.unroute(*host, prefix);
        }
        for (one, other, link) in self.links.iter().filter(|it| !without.contains(&it.2)) {
            let step = step_cost(world, *link);
            for (from, to) in [(*one, *other), (*other, *one)] {
                let (Some(here), Some(there)) = (distances.from(from), distances.from(to)) else {
                    continue;
                };
                if targets.contains(&from) {
                    continue;
                }
                let back = if there < here { 0 } else { BACK_COST };
                world.route_over(from, prefix, *link, back + there + step);
            }
        }
    }
}
