//! Ways through a network by delay, and which of them become routes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use byname_packet::Name;

use crate::topology::Topology;
use crate::world::{HostId, LinkId, World};

/// Delays are counted in this, and a hop costs one at least.
const COST_NS: u64 = 1_000;

/// Time from every host to the nearest of some hosts.
#[derive(Clone, Debug)]
pub struct Distances {
    /// In microseconds, a hop one at least; `None`: there is no path.
    cost: BTreeMap<HostId, u64>,
}

impl Distances {
    /// Shortest ways to the nearest of `targets` over all links but those in `without`.
    pub fn new(topology: &Topology, world: &World, targets: &[HostId], without: &[LinkId]) -> Self {
        Self::over(&neighbours(topology, world, without), targets, None)
    }

    /// The same, through all hosts but one.
    fn over(near: &Neighbours, targets: &[HostId], but: Option<HostId>) -> Self {
        let mut cost: BTreeMap<HostId, u64> = BTreeMap::new();
        let mut next: BinaryHeap<_> = targets.iter().map(|host| Reverse((0, *host))).collect();
        while let Some(Reverse((so_far, host))) = next.pop() {
            if cost.contains_key(&host) || but == Some(host) {
                continue;
            }
            cost.insert(host, so_far);
            for (there, _, step) in near.get(&host).into_iter().flatten() {
                if !cost.contains_key(there) {
                    next.push(Reverse((so_far + step, *there)));
                }
            }
        }
        Distances { cost }
    }

    /// From a host, in microseconds; `None` if there is no path.
    pub fn from(&self, host: HostId) -> Option<u64> {
        self.cost.get(&host).copied()
    }
}

/// Who is next to whom, over which link, at what cost.
type Neighbours = BTreeMap<HostId, Vec<(HostId, LinkId, u64)>>;

fn neighbours(topology: &Topology, world: &World, without: &[LinkId]) -> Neighbours {
    let mut near = Neighbours::new();
    for (one, other, link) in topology.links.iter().filter(|it| !without.contains(&it.2)) {
        let step = step_cost(world, *link);
        near.entry(*one).or_default().push((*other, *link, step));
        near.entry(*other).or_default().push((*one, *link, step));
    }
    near
}

fn step_cost(world: &World, link: LinkId) -> u64 {
    (world.link_delay_ns(link) / COST_NS).max(1)
}

/// Which neighbours get a route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ways {
    /// Those nearer to the producer than the host itself. Whatever strategies do, an Interest comes
    /// nearer with each hop: it cannot go in circles or run into a dead end. What has only one such
    /// neighbour has no way around.
    #[default]
    Nearer,
    /// All that reach the producer without coming back through the host. That is what a link-state
    /// protocol finds that tries every neighbour alone (NLSR, unless it is told a maximum of
    /// faces). Neighbours may point at each other, so circles are left to the forwarders.
    Around,
}

/// Findings of a routing protocol about a prefix.
#[derive(Clone, Copy, Debug)]
pub struct Routing<'a> {
    /// Which.
    pub prefix: &'a Name,
    /// Who produces it.
    pub targets: &'a [HostId],
    /// Which neighbours get a route.
    pub ways: Ways,
    /// Links that are known not to work.
    pub without: &'a [LinkId],
}

impl Topology {
    /// Leads a prefix on every host towards the nearest of `targets` by delay, over every link that
    /// comes nearer: [`Ways::Nearer`].
    pub fn route_by_delay(&self, world: &mut World, prefix: &Name, targets: &[HostId]) {
        let ways = Ways::Nearer;
        self.put_routes(world, &Routing { prefix, targets, ways, without: &[] });
    }

    /// Gives every host the routes that a routing protocol would, each at the delay of the whole
    /// way. If links are known not to work, the routes that hosts had are taken back first.
    pub fn put_routes(&self, world: &mut World, routing: &Routing<'_>) {
        let Routing { prefix, targets, ways, without } = *routing;
        for host in self.hosts.iter().filter(|_| !without.is_empty()) {
            world.unroute(*host, prefix);
        }
        let near = neighbours(self, world, without);
        let distances = Distances::over(&near, targets, None);
        for host in self.hosts.iter().filter(|host| !targets.contains(host)) {
            let Some(here) = distances.from(*host) else { continue };
            let around =
                (ways == Ways::Around).then(|| Distances::over(&near, targets, Some(*host)));
            for (there, link, step) in near.get(host).into_iter().flatten() {
                let nearer = distances.from(*there).filter(|left| *left < here);
                let left = around.as_ref().map_or(nearer, |around| around.from(*there));
                if let Some(left) = left {
                    world.route_over(*host, prefix, *link, left + step);
                }
            }
        }
    }
}
