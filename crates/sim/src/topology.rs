//! Shapes of networks, with routes towards a publisher along the shortest paths.
//!
//! A [`Topology`] is in a world. A [`plan::Plan`] is a network as data: [`shapes`] and [`sites`]
//! make them, [`text`] reads and writes them.

pub mod plan;
pub mod routes;
pub mod run;
pub mod shapes;
pub mod sites;
pub mod text;

use std::collections::VecDeque;

use byname_forwarder::Config;
use byname_packet::Name;

use crate::world::{HostId, LinkConfig, LinkId, World};

pub use plan::Plan;

/// Additional cost of a path that does not come nearer.
const DETOUR_COST: u64 = 1000;

/// Hosts and links that were made together.
#[derive(Clone, Debug, Default)]
pub struct Topology {
    /// In the order of their making.
    pub hosts: Vec<HostId>,
    /// Both ends and the link.
    pub links: Vec<(HostId, HostId, LinkId)>,
}

impl Topology {
    /// So many hosts, not joined.
    pub fn hosts(world: &mut World, count: usize, config: &Config) -> Self {
        let hosts = (0..count).map(|number| world.add_host(&format!("h{number}"), config.clone()));
        Topology { hosts: hosts.collect(), links: Vec::new() }
    }

    /// Joins two of the hosts.
    pub fn join(
        &mut self,
        world: &mut World,
        one: usize,
        other: usize,
        config: LinkConfig,
    ) -> LinkId {
        let (one, other) = (self.hosts[one], self.hosts[other]);
        let link = world.add_link(one, other, config);
        self.links.push((one, other, link));
        link
    }

    /// The host with this name.
    pub fn find(&self, world: &World, name: &str) -> Option<HostId> {
        self.hosts.iter().copied().find(|host| world.host(*host).name == name)
    }

    /// The link between two hosts.
    pub fn link(&self, one: HostId, other: HostId) -> Option<LinkId> {
        let is_it = |ends: (HostId, HostId)| ends == (one, other) || ends == (other, one);
        self.links.iter().find(|link| is_it((link.0, link.1))).map(|link| link.2)
    }

    /// Hosts in a row.
    pub fn chain(world: &mut World, count: usize, forwarder: &Config, link: LinkConfig) -> Self {
        let mut made = Self::hosts(world, count, forwarder);
        for place in 1..count {
            made.join(world, place - 1, place, link);
        }
        made
    }

    /// Hosts in a ring.
    pub fn ring(world: &mut World, count: usize, forwarder: &Config, link: LinkConfig) -> Self {
        let mut made = Self::chain(world, count, forwarder, link);
        made.join(world, count - 1, 0, link);
        made
    }

    /// A tree in which each host but the leaves has `arity` below it; the first host is the root.
    pub fn tree(
        world: &mut World,
        arity: usize,
        depth: u32,
        forwarder: &Config,
        link: LinkConfig,
    ) -> Self {
        let count = (0..=depth).map(|level| arity.pow(level)).sum();
        let mut made = Self::hosts(world, count, forwarder);
        for place in 1..count {
            made.join(world, (place - 1) / arity, place, link);
        }
        made
    }

    /// Leads a prefix on every host towards `target`: over each link that comes nearer and, dearer,
    /// over the others, as paths around.
    pub fn route(&self, world: &mut World, prefix: &Name, target: HostId) {
        let distance = self.distances(world, target);
        for (one, other, link) in &self.links {
            for (from, to) in [(*one, *other), (*other, *one)] {
                let (here, there) = (distance[from.0], distance[to.0]);
                if from != target && there != usize::MAX {
                    let detour = if there < here { 0 } else { DETOUR_COST };
                    world.route_over(from, prefix, *link, detour + there as u64);
                }
            }
        }
    }

    fn distances(&self, world: &World, target: HostId) -> Vec<usize> {
        let mut distance = vec![usize::MAX; world.hosts().count()];
        let mut next = VecDeque::from([target]);
        distance[target.0] = 0;
        while let Some(host) = next.pop_front() {
            for (one, other, _) in &self.links {
                for (near, far) in [(*one, *other), (*other, *one)] {
                    if near == host && distance[far.0] == usize::MAX {
                        distance[far.0] = distance[host.0] + 1;
                        next.push_back(far);
                    }
                }
            }
        }
        distance
    }
}
