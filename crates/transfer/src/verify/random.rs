//! Random access to a file that stays open: units come again after they were forgotten.

use byname_security::tree::{Check, NodeId, UNIT_BYTES};

use super::{Output, Verifier};

impl Verifier {
    /// The unit is about to be asked for, perhaps not for the first time: it may be handed out
    /// again, and the nodes that prove it and are not here are put in the list of needs.
    pub fn want_unit(&mut self, unit: u64) {
        self.verified.remove(unit);
        let mut next = self.tree.shape().node_of_unit(unit);
        while let Some(node) = next.filter(|node| !self.tree.has_node(*node)) {
            self.need(node);
            next = self.parent(node);
        }
    }

    /// The nodes that prove a unit, are not here and were not asked for; from the top down.
    pub fn missing_nodes(&self, unit: u64) -> Vec<NodeId> {
        let mut missing = Vec::new();
        let mut next = self.tree.shape().node_of_unit(unit);
        while let Some(node) = next.filter(|node| !self.tree.has_node(*node)) {
            if !self.requested.contains(&node) {
                missing.push(node);
            }
            next = self.parent(node);
        }
        missing.reverse();
        missing
    }

    /// Takes a node that the owner kept, before it is asked for. It is checked like any other;
    /// false if it is of no use.
    pub fn offer_node(&mut self, node: NodeId, bytes: &[u8]) -> bool {
        !self.requested.contains(&node) && self.tree.add_node(node, bytes).is_ok()
    }

    /// Takes a unit that the owner kept. It is handed out, perhaps not for the first time, if it is
    /// verified by nodes that are here; nothing waits for one that is not.
    pub fn offer_unit(&mut self, unit: u64, bytes: &[u8], out: &mut Output<'_>) -> Check {
        let check = self.tree.check(unit, bytes);
        if check == Check::Verified {
            self.verified.insert(unit);
            out(unit * UNIT_BYTES as u64, bytes);
        }
        check
    }

    /// The next node that came and was verified since the last call, with its bytes.
    pub fn poll_arrived_node(&mut self) -> Option<(NodeId, &[u8])> {
        let tree = &self.tree;
        loop {
            let node = self.arrived_nodes.pop_front()?;
            if let Some(bytes) = tree.node(node) {
                return Some((node, bytes));
            }
        }
    }

    /// Keeps at most so many verified nodes.
    pub fn keep_nodes(&mut self, nodes_max: usize) {
        self.tree.keep_nodes(nodes_max);
    }

    /// Forgets what waits for a proof and what was asked for; verified nodes are kept.
    pub fn reset(&mut self) {
        self.parked_units.clear();
        self.parked_local_count = 0;
        self.awaiting_node.clear();
        self.awaiting_node_count = 0;
        self.present_node = None;
        if let Some(buffer) = &mut self.span_buffer {
            buffer.clear();
        }
        self.parked_nodes.clear();
        self.requested.clear();
        self.needs.clear();
        self.faults.clear();
        self.content.clear();
        self.levels.iter_mut().for_each(super::Assembler::clear);
    }
}
