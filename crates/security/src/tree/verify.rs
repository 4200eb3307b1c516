//! Checking units against the root, in any order, with a bounded memory of verified nodes.
//!
//! A node is taken only if it folds to what its verified parent (or the root) says, so every
//! value held here is verified and a unit is checked by one hash and one comparison. When a node
//! is missing the caller gets the one to fetch: always the topmost missing one, because
//! that one can be checked at once. Forgetting a node is harmless: it is asked for again.

use std::collections::HashMap;

use super::{FANOUT, HASH_BYTES, Hash, NodeId, Shape, UNIT_BYTES, hash};

/// The answer to "does this unit belong to the root?".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// The bytes are exactly what was signed.
    Verified,
    /// This node is needed first; give it to [`Verifier::add_node`] and ask again.
    Need(NodeId),
    /// The bytes are not what was signed, or the file has no such unit of this length.
    Bad,
}

/// The answer for a run of units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanCheck {
    /// All units belong to the root.
    Verified,
    /// This node is needed first; give it to [`Verifier::add_node`] and ask again.
    Need(NodeId),
    /// The first unit that does not belong to it (or the first of a run of impossible length).
    Bad {
        /// Index of that unit.
        unit_index: u64,
    },
}

/// Why a node was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NodeRejected {
    /// The node cannot be checked before this one is known.
    #[error("node {} of tree level {} is needed first", .0.index, .0.level)]
    Need(NodeId),
    /// The node does not belong to the signed root, or has an impossible place or length.
    #[error("the hash-tree node does not belong to the signed root")]
    Bad,
}

/// Units that are hashed in one call where they are aligned neighbours: the widest vector units
/// are full from two on, and more would not fit the fastest cache.
pub const RUN_UNITS_MAX: usize = 16;

#[derive(Debug)]
struct Node {
    values: Box<[u8]>,
    used: u64,
}

/// Checks the units of one file version against its root.
#[derive(Debug)]
pub struct Verifier {
    root: Hash,
    /// The root is not known yet: only nodes verified otherwise are there, and any is a start.
    is_rootless: bool,
    shape: Shape,
    nodes: HashMap<NodeId, Node>,
    nodes_max: usize,
    /// Advances with each use; the node with the smallest value was used longest ago.
    tick: u64,
}

impl Verifier {
    /// A verifier for a file of `size` bytes whose signed root is `root`.
    ///
    /// It holds at most `nodes_max` nodes of 8 KiB, but room for one path from the top to a unit
    /// in any case (at most seven nodes). 512 nodes (4 MiB) cover 1 GiB of content.
    pub fn new(root: Hash, size: u64, nodes_max: usize) -> Self {
        let shape = Shape::new(size);
        let nodes_max = nodes_max.max(shape.level_count() as usize);
        Self { root, is_rootless: false, shape, nodes: HashMap::new(), nodes_max, tick: 0 }
    }

    /// A verifier for a file whose root is not known yet: nodes of level 1 come by
    /// [`Verifier::accept_verified_node`] until [`Verifier::set_root`].
    pub fn rootless(size: u64, nodes_max: usize) -> Self {
        Self { is_rootless: true, ..Self::new(Hash([0; HASH_BYTES]), size, nodes_max) }
    }

    /// The root is known now. What was verified before stays.
    pub fn set_root(&mut self, root: Hash) {
        self.root = root;
        self.is_rootless = false;
    }

    /// The signed root.
    pub fn root(&self) -> Hash {
        self.root
    }

    /// The shape of the tree.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Nodes held at the moment.
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// True if the node is held.
    pub fn has_node(&self, id: NodeId) -> bool {
        self.nodes.contains_key(&id)
    }

    /// The values of a node, if it is held; does not count as use.
    pub fn node(&self, id: NodeId) -> Option<&[u8]> {
        self.nodes.get(&id).map(|node| &*node.values)
    }

    /// Holds at most `nodes_max` nodes from now on; those used longest ago go first.
    pub fn keep_nodes(&mut self, nodes_max: usize) {
        self.nodes_max = nodes_max.max(self.shape.level_count() as usize);
        while self.nodes.len() > self.nodes_max {
            self.remove_oldest();
        }
    }

    /// Checks one unit. An empty file is checked as unit 0 with no bytes.
    pub fn check(&mut self, unit_index: u64, bytes: &[u8]) -> Check {
        match self.check_span(unit_index, bytes) {
            _ if bytes.len() > UNIT_BYTES => Check::Bad,
            SpanCheck::Verified => Check::Verified,
            SpanCheck::Need(id) => Check::Need(id),
            SpanCheck::Bad { .. } => Check::Bad,
        }
    }

    /// Checks a run of whole units that lie one after the other in memory.
    ///
    /// Aligned neighbours, up to [`RUN_UNITS_MAX`] of them, are hashed in one call, which fills
    /// the widest vector units; when that does not match, halves are checked until the first
    /// bad unit is found.
    pub fn check_span(&mut self, first_unit: u64, bytes: &[u8]) -> SpanCheck {
        if self.shape.level_count() == 0 {
            return self.check_whole(first_unit, bytes);
        }
        if self.shape.check_span(first_unit, bytes.len()).is_err() {
            return SpanCheck::Bad { unit_index: first_unit };
        }
        let (mut unit_index, mut rest) = (first_unit, bytes);
        while !rest.is_empty() {
            let unit_count = aligned_run(unit_index, rest.len().div_ceil(UNIT_BYTES));
            let (head, tail) = rest.split_at(rest.len().min(unit_count * UNIT_BYTES));
            match self.check_run(unit_index, unit_count, head) {
                SpanCheck::Verified => {}
                other => return other,
            }
            unit_index += unit_count as u64;
            rest = tail;
        }
        SpanCheck::Verified
    }

    /// A file of at most one unit, against the root itself.
    fn check_whole(&self, unit_index: u64, bytes: &[u8]) -> SpanCheck {
        let whole = !self.is_rootless && unit_index == 0 && bytes.len() as u64 == self.shape.size();
        if whole && Hash::of(bytes) == self.root {
            return SpanCheck::Verified;
        }
        SpanCheck::Bad { unit_index }
    }

    /// A power of two of units that starts at a multiple of itself, so all are in one node.
    fn check_run(&mut self, unit_index: u64, unit_count: usize, bytes: &[u8]) -> SpanCheck {
        let id = self.shape.node_of_unit(unit_index).expect("check_span checked the index");
        let Some(values) = self.touch(id) else {
            return SpanCheck::Need(self.topmost_missing(id));
        };
        let start = (unit_index % FANOUT as u64) as usize * HASH_BYTES;
        match first_bad(unit_index, &values[start..start + unit_count * HASH_BYTES], bytes) {
            None => SpanCheck::Verified,
            Some(unit_index) => SpanCheck::Bad { unit_index },
        }
    }

    /// Takes a node that was fetched, if it belongs to the root.
    pub fn add_node(&mut self, id: NodeId, bytes: &[u8]) -> Result<(), NodeRejected> {
        if self.is_rootless || self.shape.node_len(id) != Some(bytes.len()) {
            return Err(NodeRejected::Bad);
        }
        let is_valid = match self.shape.parent(id) {
            None => hash::fold_root(bytes) == self.root,
            Some(parent) => {
                let Some(values) = self.touch(parent) else {
                    return Err(NodeRejected::Need(self.topmost_missing(parent)));
                };
                hash::fold(bytes) == value(values, (id.index % FANOUT as u64) as usize)
            }
        };
        if !is_valid {
            return Err(NodeRejected::Bad);
        }
        self.insert(id, bytes);
        Ok(())
    }

    /// Takes a node that was verified elsewhere, by a signature of its own for instance. The
    /// caller answers for it: units and nodes below count as verified by it from now on.
    pub fn accept_verified_node(&mut self, id: NodeId, bytes: &[u8]) -> Result<(), NodeRejected> {
        if self.shape.node_len(id) != Some(bytes.len()) {
            return Err(NodeRejected::Bad);
        }
        self.insert(id, bytes);
        Ok(())
    }

    /// Forgets a node of which nothing more will be checked.
    pub fn forget_node(&mut self, id: NodeId) {
        self.nodes.remove(&id);
    }

    fn insert(&mut self, id: NodeId, bytes: &[u8]) {
        self.touch_path(id);
        if self.nodes.len() >= self.nodes_max && !self.nodes.contains_key(&id) {
            self.remove_oldest();
        }
        self.nodes.insert(id, Node { values: bytes.into(), used: self.tick });
    }

    fn remove_oldest(&mut self) {
        let oldest = self.nodes.iter().min_by_key(|(_, node)| node.used).map(|(id, _)| *id);
        if let Some(oldest) = oldest {
            self.nodes.remove(&oldest);
        }
    }

    /// Marks a node as used and returns its values.
    fn touch(&mut self, id: NodeId) -> Option<&[u8]> {
        self.tick += 1;
        let node = self.nodes.get_mut(&id)?;
        node.used = self.tick;
        Some(&node.values)
    }

    /// Marks the ancestors of a node as used, so that adding it cannot push out its own path.
    fn touch_path(&mut self, mut id: NodeId) {
        while let Some(parent) = self.shape.parent(id) {
            self.touch(parent);
            id = parent;
        }
        self.tick += 1;
    }

    fn topmost_missing(&self, mut id: NodeId) -> NodeId {
        if self.is_rootless {
            return id;
        }
        while let Some(parent) = self.shape.parent(id) {
            if self.nodes.contains_key(&parent) {
                break;
            }
            id = parent;
        }
        id
    }
}

/// Number of the `count` units from `unit_index` on that are a subtree of their own.
fn aligned_run(unit_index: u64, count: usize) -> usize {
    let aligned = 1 << unit_index.trailing_zeros().min(RUN_UNITS_MAX.ilog2());
    let whole = 1 << count.ilog2();
    usize::min(aligned, whole)
}

/// The first unit of a subtree that does not hash to its value.
fn first_bad(unit_index: u64, values: &[u8], bytes: &[u8]) -> Option<u64> {
    if hash::subtree(unit_index, bytes) == hash::fold(values) {
        return None;
    }
    let half = values.len() / HASH_BYTES / 2;
    if half == 0 {
        return Some(unit_index);
    }
    let (left, right) = bytes.split_at(half * UNIT_BYTES);
    let (left_values, right_values) = values.split_at(half * HASH_BYTES);
    first_bad(unit_index, left_values, left)
        .or_else(|| first_bad(unit_index + half as u64, right_values, right))
        // Not reached unless the hash is broken: the whole is bad although its halves are not.
        .or(Some(unit_index))
}

fn value(values: &[u8], slot: usize) -> [u8; HASH_BYTES] {
    let (values, _) = values.as_chunks::<HASH_BYTES>();
    values[slot]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Of two nodes used at the same time any would go first, and a run could not be repeated.
    #[test]
    fn no_two_nodes_were_used_at_the_same_time() {
        let mut verifier = Verifier::rootless(300 * UNIT_BYTES as u64, 8);
        for (level, index) in [(2, 0), (1, 0), (1, 1)] {
            let id = NodeId { level, index };
            let bytes = vec![0; verifier.shape.node_len(id).unwrap()];
            verifier.accept_verified_node(id, &bytes).unwrap();
        }
        let times: BTreeSet<u64> = verifier.nodes.values().map(|node| node.used).collect();
        assert_eq!(times.len(), 3);
    }

    /// Only speed depends on it, so that nothing else shows when it is wrong.
    #[test]
    fn aligned_neighbours_are_hashed_together() {
        let cases = [(0, 16, 16), (0, 100, 16), (0, 5, 4), (1, 16, 1), (2, 16, 2), (24, 16, 8)];
        for (unit_index, count, expected) in cases {
            assert_eq!(aligned_run(unit_index, count), expected, "{count} from {unit_index}");
        }
    }
}
