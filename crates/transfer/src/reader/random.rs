//! Random access: one reader per open file, asked for pieces again and again.
//!
//! The ordinary selections of a [`Reader`] are read once, from front to back. Here the owner names
//! *granules*, the smallest pieces that can be verified alone, in any order and as often as it
//! likes; tree nodes that were verified for one of them serve the next.

use byname_security::tree::{Check, NodeId, UNIT_BYTES};

use super::{Body, Part, Reader};
use crate::flow::Flow;
use crate::verify::Output;

impl Reader {
    /// Octets of a granule: the unit of a tree, the segment of an object without one. `None` if
    /// offsets are known only in order; such an object cannot be read in pieces.
    pub fn granule_bytes(&self) -> Option<u64> {
        match &self.body {
            Body::Tree(_) => Some(UNIT_BYTES as u64),
            Body::Foreign(_) => self.plan.size.and(self.plan.segment_bytes),
        }
    }

    /// Ask for this granule too. It is handed out once per call, even if it was handed out
    /// before; calling again before it has come changes nothing.
    pub fn want(&mut self, granule: u64, now_ns: u64) {
        let segments = match &mut self.body {
            Body::Tree(verifier) => {
                verifier.want_unit(granule);
                verifier.segments_of(Part::Content, granule)
            }
            Body::Foreign(_) => Some(granule..=granule),
        };
        for segment in segments.into_iter().flatten() {
            self.parts[0].fetch.want(segment, now_ns, now_ns);
        }
        self.settle_needs(now_ns);
    }

    /// Takes back [`want`](Reader::want). Neighbours that lie in the same segments have to be
    /// wanted again.
    pub fn unwant(&mut self, granule: u64, flow: &mut Flow) {
        let segments = match &self.body {
            Body::Tree(verifier) => verifier.segments_of(Part::Content, granule),
            Body::Foreign(_) => Some(granule..=granule),
        };
        for segment in segments.into_iter().flatten() {
            self.parts[0].fetch.unwant(segment, flow);
        }
    }

    /// Keeps at most so many nodes of the tree (8 KiB each); those used longest ago go first.
    pub fn keep_nodes(&mut self, nodes_max: usize) {
        if let Body::Tree(verifier) = &mut self.body {
            verifier.keep_nodes(nodes_max);
        }
    }

    /// The nodes that prove a granule, are not here and were not asked for; from the top down.
    pub fn missing_nodes(&self, granule: u64) -> Vec<NodeId> {
        match &self.body {
            Body::Tree(verifier) => verifier.missing_nodes(granule),
            Body::Foreign(_) => Vec::new(),
        }
    }

    /// Takes a node that the owner kept, before [`want`](Reader::want) asks for it. It is checked
    /// like one that was fetched; false if it is of no use.
    pub fn offer_node(&mut self, node: NodeId, bytes: &[u8]) -> bool {
        match &mut self.body {
            Body::Tree(verifier) => verifier.offer_node(node, bytes),
            Body::Foreign(_) => false,
        }
    }

    /// Takes a unit that the owner found in a cache, before it is asked for. It is handed out if
    /// it is verified by nodes that are here; otherwise nothing happens, and the owner says
    /// [`want`](Reader::want).
    pub fn offer_unit(&mut self, unit: u64, bytes: &[u8], out: &mut Output<'_>) -> Check {
        match &mut self.body {
            Body::Tree(verifier) => verifier.offer_unit(unit, bytes, out),
            Body::Foreign(_) => Check::Bad,
        }
    }

    /// The next node that came and was verified since the last call, with its bytes, for owners
    /// that keep them. Only the last few are remembered.
    pub fn poll_arrived_node(&mut self) -> Option<(NodeId, &[u8])> {
        match &mut self.body {
            Body::Tree(verifier) => verifier.poll_arrived_node(),
            Body::Foreign(_) => None,
        }
    }

    /// Forgets everything that was asked for and did not come; verified nodes are kept.
    pub fn reset(&mut self, flow: &mut Flow) {
        self.abandon(flow);
        if let Body::Tree(verifier) = &mut self.body {
            verifier.reset();
        }
    }
}
