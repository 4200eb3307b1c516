//! Nodes that prove what is brought to a service: kept by whoever brings, for a while.
//!
//! A service keeps what is proved, and readers hand on a node once. One that was lost (a connection
//! broke, the service was away or has removed the entry) would leave all units below it refused for
//! as long as a program reads. So the last nodes stay here, each with the connection that it was
//! brought on, and go before the units that they prove.

use std::collections::VecDeque;
use std::sync::Arc;

use byname_security::tree::{NodeId, Shape};

use crate::layout::ContentKey;

/// Nodes that are kept, of 8 KiB: those of 512 MiB of content.
const KEPT_MAX: usize = 256;

#[derive(Debug)]
struct Proof {
    key: ContentKey,
    node: NodeId,
    bytes: Arc<[u8]>,
    /// Number of the connection that it was brought on; 0 for none.
    brought_on: u64,
}

/// See the module. The one used last is the last.
#[derive(Debug, Default)]
pub(crate) struct Proofs {
    kept: VecDeque<Proof>,
}

impl Proofs {
    /// Keeps a node, if it is not kept yet.
    pub(crate) fn keep(&mut self, key: &ContentKey, node: NodeId, bytes: &[u8]) {
        if self.place(key, node).is_some() {
            return;
        }
        if self.kept.len() >= KEPT_MAX {
            self.kept.pop_front();
        }
        let (key, bytes) = (*key, Arc::from(bytes));
        self.kept.push_back(Proof { key, node, bytes, brought_on: 0 });
    }

    /// True if a node is kept.
    pub(crate) fn has(&self, key: &ContentKey, node: NodeId) -> bool {
        self.place(key, node).is_some()
    }

    /// A node that is kept and was not brought on this connection; from now on it was.
    pub(crate) fn take_missing(
        &mut self,
        key: &ContentKey,
        node: NodeId,
        line: u64,
    ) -> Option<Arc<[u8]>> {
        let mut proof = self.kept.remove(self.place(key, node)?)?;
        let is_missing = std::mem::replace(&mut proof.brought_on, line) != line;
        let bytes = is_missing.then(|| Arc::clone(&proof.bytes));
        self.kept.push_back(proof);
        bytes
    }

    /// The service does not have this node any more.
    pub(crate) fn note_lost(&mut self, key: &ContentKey, node: NodeId) {
        if let Some(place) = self.place(key, node) {
            self.kept[place].brought_on = 0;
        }
    }

    fn place(&self, key: &ContentKey, node: NodeId) -> Option<usize> {
        let is_it = |proof: &Proof| proof.node == node && proof.key == *key;
        self.kept.iter().rposition(is_it)
    }
}

/// The nodes that prove some neighbouring units, from the top down.
pub(crate) fn nodes_above(key: &ContentKey, first: u64, unit_count: u64) -> Vec<NodeId> {
    let shape = Shape::new(key.size);
    let last = first.saturating_add(unit_count.saturating_sub(1));
    let mut nodes = Vec::new();
    for unit in [first, last] {
        let mut next = shape.node_of_unit(unit);
        while let Some(node) = next {
            if !nodes.contains(&node) {
                nodes.push(node);
            }
            next = shape.parent(node);
        }
    }
    nodes.sort_by_key(|node| std::cmp::Reverse(node.level));
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;
    use byname_security::tree::{GROUP_BYTES, Hash};

    const KEY: ContentKey = ContentKey { root: Hash([1; 32]), size: 1 << 40 };

    fn node(index: u64) -> NodeId {
        NodeId { level: 1, index }
    }

    #[test]
    fn a_node_goes_once_on_each_connection_and_again_when_it_was_lost() {
        let mut proofs = Proofs::default();
        assert!(proofs.take_missing(&KEY, node(0), 1).is_none(), "never seen");
        proofs.keep(&KEY, node(0), b"it");
        proofs.keep(&KEY, node(0), b"it");
        let is_sent = |proofs: &mut Proofs, line| proofs.take_missing(&KEY, node(0), line);
        assert_eq!(is_sent(&mut proofs, 1).as_deref(), Some(&b"it"[..]));
        assert!(is_sent(&mut proofs, 1).is_none());
        assert!(is_sent(&mut proofs, 2).is_some());
        proofs.note_lost(&KEY, node(0));
        proofs.note_lost(&KEY, node(7));
        assert!(is_sent(&mut proofs, 2).is_some());
        let other = ContentKey { size: 9, ..KEY };
        assert!(proofs.take_missing(&other, node(0), 3).is_none());
    }

    #[test]
    fn what_is_used_stays_and_the_rest_is_bounded() {
        let mut proofs = Proofs::default();
        for index in 0..10 * KEPT_MAX as u64 {
            proofs.keep(&KEY, node(index), &[0; 32]);
            assert_eq!(proofs.take_missing(&KEY, node(0), index + 1).map(|_| ()), Some(()));
        }
        assert_eq!(proofs.kept.len(), KEPT_MAX);
        assert!(proofs.take_missing(&KEY, node(1), 1).is_none());
    }

    #[test]
    fn the_nodes_above_units_come_from_the_top_down() {
        let units_per_node = (GROUP_BYTES / 8192) as u64;
        let levels = Shape::new(KEY.size).level_count();
        let nodes = nodes_above(&KEY, units_per_node - 1, 2);
        let (first, last) = (nodes[nodes.len() - 2], nodes[nodes.len() - 1]);
        assert_eq!((first, last), (node(0), node(1)));
        assert_eq!(nodes.len(), usize::from(levels) + 1);
        assert!(nodes.is_sorted_by_key(|node| levels - node.level));
        assert!(nodes_above(&ContentKey { size: 1, ..KEY }, 0, 1).is_empty());
        assert!(nodes_above(&KEY, u64::MAX, 2).is_empty());
    }
}
