//! Beginning without the root, which the publisher still computes.

use byname_security::tree::{self, Hash, NodeId};

use super::{NODES_MAX, UnitSet, Verifier};
use crate::naming::Part;

impl Verifier {
    /// For an object whose root is not known yet. The owner proves each segment of level 1 before
    /// it gives it here, asks for no other level, and calls [`Verifier::set_root`] later.
    pub fn rootless(size: u64, segment_bytes: u64) -> Self {
        let tree = tree::Verifier::rootless(size, NODES_MAX);
        let verifier = Self::with(tree, (size, segment_bytes), UnitSet::default());
        Verifier { is_rootless: true, ..verifier }
    }

    /// The root is known now; what was verified before stays.
    pub fn set_root(&mut self, root: Hash) {
        self.tree.set_root(root);
        self.is_rootless = false;
    }

    /// The segments of level 1 whose nodes were reported as needed and have not come.
    pub fn segments_of_missing_nodes(&self) -> Vec<u64> {
        let nodes = self.requested.iter().filter(|node| node.level == 1);
        let missing = nodes.filter(|node| !self.parked_nodes.contains_key(node));
        missing.filter_map(|node| self.segments_of(Part::Tree(1), node.index)).flatten().collect()
    }

    /// The node that proves this one.
    pub(super) fn parent(&self, node: NodeId) -> Option<NodeId> {
        self.tree.shape().parent(node).filter(|_| !self.is_rootless)
    }
}
