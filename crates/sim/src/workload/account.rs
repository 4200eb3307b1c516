//! Traffic that crossed which link, and what a tree says should have.

use std::collections::{BTreeMap, BTreeSet};

use super::routing::shortest_path;
use crate::topology::Topology;
use crate::world::{HostId, LinkId, World};

/// Traffic that crossed one direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkBytes {
    /// The link.
    pub link: LinkId,
    /// Where it came from.
    pub from: HostId,
    /// Where it went.
    pub to: HostId,
    /// Frames handed to the line.
    pub frames: u64,
    /// Octets of these frames; Interests count like everything else.
    pub bytes: u64,
}

/// Both directions of all links, in the order of the links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The directions.
    pub lines: Vec<LinkBytes>,
}

impl Account {
    /// From the start of the world until now.
    pub fn of(world: &World, topology: &Topology) -> Self {
        let both = topology
            .links
            .iter()
            .flat_map(|(one, other, link)| [(*one, *other, *link), (*other, *one, *link)]);
        let line = |(from, to, link)| {
            let counters = world.line_counters(link, from);
            LinkBytes { link, from, to, frames: counters.frames, bytes: counters.bytes }
        };
        Account { lines: both.map(line).collect() }
    }

    /// Traffic after an earlier account.
    pub fn since(&self, earlier: &Account) -> Self {
        let lines = self.lines.iter().zip(&earlier.lines).map(|(now, then)| LinkBytes {
            frames: now.frames - then.frames,
            bytes: now.bytes - then.bytes,
            ..*now
        });
        Account { lines: lines.collect() }
    }

    /// The same with so many octets more for each frame: headers of the layers below.
    pub fn with_headers(&self, header_bytes: u64) -> Self {
        let lines = self
            .lines
            .iter()
            .map(|line| LinkBytes { bytes: line.bytes + line.frames * header_bytes, ..*line });
        Account { lines: lines.collect() }
    }

    /// Everything.
    pub fn total_bytes(&self) -> u64 {
        self.lines.iter().map(|line| line.bytes).sum()
    }

    /// Traffic that left a host.
    pub fn sent_bytes(&self, host: HostId) -> u64 {
        self.lines.iter().filter(|line| line.from == host).map(|line| line.bytes).sum()
    }

    /// Traffic that came to a host.
    pub fn received_bytes(&self, host: HostId) -> u64 {
        self.lines.iter().filter(|line| line.to == host).map(|line| line.bytes).sum()
    }

    /// Traffic beyond what `readers` of one object at `source` explain, if each link of the tree
    /// of shortest paths carries it once: in words, a line for each link. `margin` is the share
    /// that names, headers, Interests and descriptions may add.
    pub fn beyond_tree(
        &self,
        topology: &Topology,
        (source, readers): (HostId, &[HostId]),
        object_bytes: u64,
        margin: f64,
    ) -> Vec<String> {
        let tree = tree_links(topology, source, readers);
        let mut allowed: BTreeMap<(HostId, HostId), u64> = BTreeMap::new();
        let extra = (object_bytes as f64 * margin) as u64;
        for (from, to) in tree {
            *allowed.entry((from, to)).or_default() += object_bytes + extra;
            // The Interests.
            *allowed.entry((to, from)).or_default() += extra;
        }
        let over = self.lines.iter().filter_map(|line| {
            let most = allowed.get(&(line.from, line.to)).copied().unwrap_or(0);
            let (from, to, bytes) = (line.from, line.to, line.bytes);
            (bytes > most).then(|| format!("{from:?} to {to:?}: {bytes} octets, at most {most}"))
        });
        over.collect()
    }
}

/// The directions of the links that a tree of shortest paths from a source uses.
pub fn tree_links(
    topology: &Topology,
    source: HostId,
    readers: &[HostId],
) -> BTreeSet<(HostId, HostId)> {
    let mut links = BTreeSet::new();
    for reader in readers {
        let path = shortest_path(topology, source, *reader);
        links.extend(path.windows(2).map(|pair| (pair[0], pair[1])));
    }
    links
}
