//! Verification as one interface: (metadata, segment) → verified | needs object N | bad.
//!
//! Give every segment that comes, of the content or of a tree level, to
//! [`Verifier::handle_segment`]. Bytes come out only when they are proved to belong to the
//! signed root, in units of up to 8192 bytes, in whatever order the network allows. What is
//! missing for the proof is told by [`Verifier::poll_need`], what was wrong by
//! [`Verifier::poll_fault`]. Doors, mirrors and mounts share this; nobody else compares hashes.
//!
//! Invariants: no byte is handed out twice or unproved; memory is bounded by
//! [`BLOCKS_MAX`] blocks of 8 KiB, [`NODES_MAX`] nodes of 8 KiB and one bit per unit,
//! provided that the owner asks for no more segments than [`Verifier::room`] says.

mod assembler;
mod random;
mod units;

pub use assembler::{Assembler, SEGMENT_BYTES_MIN};
pub use units::{UNITS_PER_CHUNK, UnitSet};

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::RangeInclusive;

use byname_security::tree::{self, Check, Hash, NodeId, NodeRejected, UNIT_BYTES};

use crate::naming::Part;

/// Blocks that may be incomplete or wait for a node, together with the segments under way.
pub const BLOCKS_MAX: usize = 1024;
/// Verified nodes kept, each worth 2 MiB of content.
pub const NODES_MAX: usize = 64;

/// Takes verified bytes: `(offset in the object, bytes)`.
pub type Output<'a> = dyn FnMut(u64, &[u8]) + 'a;

/// Something that came and is not what was signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A unit of content or a node of a tree level does not belong to the root.
    Block {
        /// Content or tree level.
        part: Part,
        /// Index of the unit or node.
        block: u64,
    },
    /// A unit that the owner had is not the one that was signed.
    Local {
        /// Index of the unit.
        unit: u64,
    },
    /// No segment of this number has this length.
    Segment {
        /// Content or tree level.
        part: Part,
        /// Number of the segment.
        segment: u64,
    },
}

#[derive(Debug)]
struct Parked {
    bytes: Box<[u8]>,
    is_local: bool,
}

/// Checks one version of an object against its signed root.
///
/// * **handle**: [`handle_segment`](Verifier::handle_segment).
/// * **command**: [`prepare`](Verifier::prepare).
/// * **poll**: [`poll_need`](Verifier::poll_need), [`poll_fault`](Verifier::poll_fault),
///   [`room`](Verifier::room), [`verified`](Verifier::verified).
#[derive(Debug)]
pub struct Verifier {
    tree: tree::Verifier,
    content: Assembler,
    levels: Vec<Assembler>,
    verified: UnitSet,
    local_count: u64,
    parked_units: BTreeMap<u64, Parked>,
    parked_nodes: BTreeMap<NodeId, Box<[u8]>>,
    requested: BTreeSet<NodeId>,
    needs: VecDeque<NodeId>,
    prepared: Vec<u64>,
    faults: VecDeque<Fault>,
}

impl Verifier {
    /// For an object of `size` bytes with this signed root. `segment_bytes` is that of the
    /// content and of the tree levels; `verified` are units that need not come again.
    pub fn new(root: Hash, size: u64, segment_bytes: u64, verified: UnitSet) -> Self {
        let tree = tree::Verifier::new(root, size, NODES_MAX);
        let level_count = tree.shape().level_count();
        let levels = (1..=level_count)
            .map(|level| Assembler::new(tree.shape().level_bytes(level), segment_bytes))
            .collect();
        Verifier {
            tree,
            content: Assembler::new(size, segment_bytes),
            levels,
            verified,
            local_count: 0,
            parked_units: BTreeMap::new(),
            parked_nodes: BTreeMap::new(),
            requested: BTreeSet::new(),
            needs: VecDeque::new(),
            prepared: vec![0; usize::from(level_count)],
            faults: VecDeque::new(),
        }
    }

    /// Number of the last segment of a part; `None` if the tree has no such level.
    pub fn last_segment(&self, part: Part) -> Option<u64> {
        self.assembler(part).map(Assembler::last_segment)
    }

    /// The segments of a part that hold a block of it.
    pub fn segments_of(&self, part: Part, block: u64) -> Option<RangeInclusive<u64>> {
        self.assembler(part).map(|assembler| assembler.segments_of(block))
    }

    /// Levels of the tree.
    pub fn level_count(&self) -> u8 {
        self.levels.len() as u8
    }

    /// The units that are proved so far.
    pub fn verified(&self) -> &UnitSet {
        &self.verified
    }

    /// How many of the proved units the owner had already.
    pub fn local_count(&self) -> u64 {
        self.local_count
    }

    /// True when no unit waits for its proof. Units of which a part is missing do not count:
    /// their segments are still to come, or belong to what nobody asked for.
    pub fn is_idle(&self) -> bool {
        self.parked_units.is_empty()
    }

    /// How many content segments may be under way now; those asked for again do not count.
    pub fn room(&self) -> usize {
        let waiting = self.parked_units.len() + self.content.partial_count();
        BLOCKS_MAX.saturating_sub(waiting)
    }

    /// The content segment is about to be asked for: put the nodes that prove it in the list of
    /// needs, so that they are there first.
    pub fn prepare(&mut self, segment: u64) {
        self.prepare_unit(segment.saturating_mul(self.content.segment_bytes()) / UNIT_BYTES as u64);
    }

    /// The same for a unit that the owner has and wants to have checked.
    pub fn prepare_unit(&mut self, unit: u64) {
        let mut next = self.tree.shape().node_of_unit(unit);
        while let Some(node) = next {
            let prepared = &mut self.prepared[usize::from(node.level) - 1];
            // Each node once, in ascending order; what is forgotten later is asked for on demand.
            if node.index < *prepared {
                break;
            }
            *prepared = node.index + 1;
            next = self.tree.shape().parent(node);
            self.need(node);
        }
    }

    /// The next node to ask for, told once until it has come.
    pub fn poll_need(&mut self) -> Option<NodeId> {
        self.needs.pop_front()
    }

    /// What was wrong with what came; its segments must be asked for again.
    pub fn poll_fault(&mut self) -> Option<Fault> {
        self.faults.pop_front()
    }

    /// Takes a segment and hands out what is proved by it.
    pub fn handle_segment(&mut self, part: Part, segment: u64, bytes: &[u8], out: &mut Output<'_>) {
        match part {
            Part::Content => self.handle_content(segment, bytes, out),
            Part::Tree(level) => self.handle_level(level, segment, bytes, out),
        }
    }

    /// Takes a unit that the owner had already. It is not handed out; whether it is genuine is
    /// told by [`Verifier::verified`] or a [`Fault::Local`], perhaps after a node has come.
    pub fn handle_local(&mut self, unit: u64, bytes: &[u8]) {
        match self.tree.check(unit, bytes) {
            Check::Verified => self.local_count += u64::from(self.verified.insert(unit)),
            Check::Need(node) => {
                self.parked_units.insert(unit, Parked { bytes: bytes.into(), is_local: true });
                self.need(node);
            }
            Check::Bad => self.faults.push_back(Fault::Local { unit }),
        }
    }

    fn assembler(&self, part: Part) -> Option<&Assembler> {
        match part {
            Part::Content => Some(&self.content),
            Part::Tree(level) => self.levels.get(usize::from(level).checked_sub(1)?),
        }
    }

    fn need(&mut self, node: NodeId) {
        if self.requested.insert(node) {
            self.needs.push_back(node);
        }
    }

    fn handle_content(&mut self, segment: u64, bytes: &[u8], out: &mut Output<'_>) {
        let Verifier { content, tree, verified, parked_units, .. } = self;
        let (mut bad, mut needed) = (None, None);
        let exists = content.take(segment, bytes, &mut |unit, bytes| {
            if verified.contains(unit) {
                return;
            }
            match tree.check(unit, bytes) {
                Check::Verified => {
                    verified.insert(unit);
                    out(unit * UNIT_BYTES as u64, bytes);
                }
                Check::Need(node) => {
                    parked_units.insert(unit, Parked { bytes: bytes.into(), is_local: false });
                    needed = Some(node);
                }
                Check::Bad => bad = Some(unit),
            }
        });
        // A segment that comes again for the sake of one unit must not start its other one anew.
        for unit in content.blocks_of(segment) {
            if verified.contains(unit) || parked_units.contains_key(&unit) {
                content.forget(unit);
            }
        }
        if let Some(node) = needed {
            self.need(node);
        }
        if let Some(block) = bad {
            self.faults.push_back(Fault::Block { part: Part::Content, block });
        }
        if !exists {
            self.faults.push_back(Fault::Segment { part: Part::Content, segment });
        }
    }

    fn handle_level(&mut self, level: u8, segment: u64, bytes: &[u8], out: &mut Output<'_>) {
        let place = usize::from(level).wrapping_sub(1);
        let Some(assembler) = self.levels.get_mut(place) else { return };
        let parked_nodes = &mut self.parked_nodes;
        let requested = &self.requested;
        let exists = assembler.take(segment, bytes, &mut |index, bytes| {
            let node = NodeId { level, index };
            // Only nodes that are waited for, so that nobody can fill the memory with others.
            if requested.contains(&node) {
                parked_nodes.insert(node, bytes.into());
            }
        });
        if !exists {
            let part = Part::Tree(level);
            return self.faults.push_back(Fault::Segment { part, segment });
        }
        if self.add_parked_nodes() {
            self.check_parked_units(out);
        }
    }

    /// Adds the nodes whose parents are known by now, topmost first. True if any was added.
    fn add_parked_nodes(&mut self) -> bool {
        let mut was_added = false;
        let waiting: Vec<NodeId> = self.parked_nodes.keys().rev().copied().collect();
        for node in waiting {
            let Some(bytes) = self.parked_nodes.get(&node) else { continue };
            match self.tree.add_node(node, bytes) {
                Ok(()) => was_added = true,
                Err(NodeRejected::Need(parent)) => {
                    self.need(parent);
                    continue;
                }
                Err(NodeRejected::Bad) => {
                    let part = Part::Tree(node.level);
                    self.faults.push_back(Fault::Block { part, block: node.index });
                    self.parked_nodes.remove(&node);
                    continue;
                }
            }
            self.parked_nodes.remove(&node);
            self.requested.remove(&node);
        }
        was_added
    }

    fn check_parked_units(&mut self, out: &mut Output<'_>) {
        let waiting: Vec<u64> = self.parked_units.keys().copied().collect();
        for unit in waiting {
            let Some(Parked { bytes, is_local }) = self.parked_units.get(&unit) else { continue };
            match self.tree.check(unit, bytes) {
                Check::Verified => {
                    let is_new = self.verified.insert(unit);
                    if is_new && *is_local {
                        self.local_count += 1;
                    } else if is_new {
                        out(unit * UNIT_BYTES as u64, bytes);
                    }
                }
                Check::Need(node) => {
                    self.need(node);
                    continue;
                }
                Check::Bad if *is_local => self.faults.push_back(Fault::Local { unit }),
                Check::Bad => {
                    self.faults.push_back(Fault::Block { part: Part::Content, block: unit });
                }
            }
            self.parked_units.remove(&unit);
        }
    }
}

#[cfg(test)]
mod tests;
