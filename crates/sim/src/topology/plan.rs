//! A network as data, before there is a world: made by a shape or read from a text.

use byname_forwarder::Config;
use byname_packet::Name;

use crate::line::{Faults, LineConfig};
use crate::queue::{Discipline, QueueConfig};
use crate::topology::Topology;
use crate::world::{LinkConfig, MS, World};

/// A host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedHost {
    /// One word, its own.
    pub name: String,
    /// Octets of its content store; `None`: what the forwarder has by default.
    pub store_bytes: Option<u64>,
    /// Name of its strategy, as `best-route` or `asf`; `None`: the forwarder's default.
    pub strategy: Option<String>,
}

/// A link; both directions alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlannedLink {
    /// Places of its hosts in the plan.
    pub ends: (usize, usize),
    /// Settings.
    pub config: LinkConfig,
}

/// A file that a host publishes; several hosts may have the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedFile {
    /// Its name, of two components at least.
    pub name: Name,
    /// Place of the host.
    pub host: usize,
    /// Octets.
    pub size: u64,
}

/// Somebody who reads a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedRead {
    /// Of the file.
    pub name: Name,
    /// Place of the host.
    pub host: usize,
    /// When it begins, after the start of the world.
    pub start_ns: u64,
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The hosts.
    pub hosts: Vec<PlannedHost>,
    /// The links between them.
    pub links: Vec<PlannedLink>,
    /// Names that are published.
    pub files: Vec<PlannedFile>,
    /// Names that are read.
    pub reads: Vec<PlannedRead>,
}

/// 1 Gbit/s, 1 ms, a megabyte of queue, a stream.
pub fn plain_link() -> LinkConfig {
    link(1_000_000_000, MS)
}

/// A link of this rate and delay without faults, over a stream. Its queue holds 25 ms at that
/// rate, but 64 frames of full size at least.
pub fn link(bits_per_s: u64, delay_ns: u64) -> LinkConfig {
    let buffer_bytes = (bits_per_s / 8 / 40).max(64 * 8800);
    let queue = QueueConfig { bits_per_s, buffer_bytes, discipline: Discipline::DropTail };
    let line = LineConfig { queue, delay_ns, jitter_ns: 0, faults: Faults::default() };
    LinkConfig { line, mtu_bytes: None }
}

impl Plan {
    /// Adds a host; its place.
    pub fn add_host(&mut self, name: impl Into<String>, store_bytes: Option<u64>) -> usize {
        self.hosts.push(PlannedHost { name: name.into(), store_bytes, strategy: None });
        self.hosts.len() - 1
    }

    /// Joins two hosts.
    pub fn join(&mut self, one: usize, other: usize, config: LinkConfig) {
        self.links.push(PlannedLink { ends: (one, other), config });
    }

    /// The place of a host.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.hosts.iter().position(|host| host.name == name)
    }

    /// Makes the hosts and links, in the order of the plan; forwarders are as `config` says but
    /// for what the plan says of them.
    pub fn build(&self, world: &mut World, config: &Config) -> Topology {
        let mut made = Topology::default();
        for host in &self.hosts {
            let mut config = config.clone();
            if let Some(bytes) = host.store_bytes {
                config.cs_bytes_max = usize::try_from(bytes).unwrap_or(usize::MAX);
                // Small packets take less than this, so that octets are the bound.
                config.cs_entries_max = config.cs_bytes_max / 512;
            }
            let id = world.add_host(&host.name, config);
            if let Some(strategy) = &host.strategy {
                // A plan from a text has only strategies that there are.
                world.set_strategy(id, &Name::default(), strategy);
            }
            made.hosts.push(id);
        }
        for link in &self.links {
            made.join(world, link.ends.0, link.ends.1, link.config);
        }
        made
    }
}
