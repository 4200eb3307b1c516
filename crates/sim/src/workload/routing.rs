//! Ways through a topology, and routes to whoever holds a file.

use std::collections::{BTreeMap, VecDeque};

use byname_packet::Name;

use crate::topology::Topology;
use crate::world::{HostId, LinkId, World};

type Neighbours = BTreeMap<HostId, Vec<(HostId, LinkId)>>;

/// Leads a prefix on every host over each of its links: the cost is the number of links to the
/// nearest holder that path, without coming back. Links over which no holder can be reached get no
/// route, so in a tree with one holder there is one path from everywhere.
pub(super) fn route(world: &mut World, topology: &Topology, prefix: &Name, holders: &[HostId]) {
    let neighbours = neighbours(topology);
    for (host, links) in &neighbours {
        for (next, link) in links {
            let distances = distances(&neighbours, &[*next], Some(*host));
            let nearest = holders.iter().filter_map(|holder| distances.get(holder)).min();
            if let Some(nearest) = nearest {
                world.route_over(*host, prefix, *link, 1 + *nearest as u64);
            }
        }
    }
}

/// Number of links between each host and the nearest of `from`.
pub fn hop_counts(topology: &Topology, from: &[HostId]) -> BTreeMap<HostId, usize> {
    distances(&neighbours(topology), from, None)
}

/// The hosts of a shortest path, both ends included; empty if there is none.
pub fn shortest_path(topology: &Topology, from: HostId, to: HostId) -> Vec<HostId> {
    let neighbours = neighbours(topology);
    let left = distances(&neighbours, &[to], None);
    let Some(mut hops) = left.get(&from).copied() else { return Vec::new() };
    let mut path = vec![from];
    let mut here = from;
    while hops > 0 {
        hops -= 1;
        let nearer = neighbours[&here].iter().find(|(next, _)| left.get(next) == Some(&hops));
        let Some((next, _)) = nearer else { return Vec::new() };
        path.push(*next);
        here = *next;
    }
    path
}

fn neighbours(topology: &Topology) -> Neighbours {
    let mut found: Neighbours = topology.hosts.iter().map(|host| (*host, Vec::new())).collect();
    for (one, other, link) in &topology.links {
        found.entry(*one).or_default().push((*other, *link));
        found.entry(*other).or_default().push((*one, *link));
    }
    found
}

fn distances(
    neighbours: &Neighbours,
    from: &[HostId],
    without: Option<HostId>,
) -> BTreeMap<HostId, usize> {
    let mut found: BTreeMap<HostId, usize> = from.iter().map(|host| (*host, 0)).collect();
    let mut next: VecDeque<HostId> = from.iter().copied().collect();
    while let Some(host) = next.pop_front() {
        let far = found[&host] + 1;
        for (neighbour, _) in neighbours.get(&host).into_iter().flatten() {
            if Some(*neighbour) != without && !found.contains_key(neighbour) {
                found.insert(*neighbour, far);
                next.push_back(*neighbour);
            }
        }
    }
    found
}
