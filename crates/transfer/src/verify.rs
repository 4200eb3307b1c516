//! Verification as one interface: (metadata, segment) → verified | needs object N | bad.
//!
//! Give every segment that comes, of the content or of a tree level, to
//! [`Verifier::handle_segment`]. Bytes come out only when they are verified to belong to the
//! signed root, in units of up to 8192 bytes, in whatever order the network allows. What is
//! missing for the proof is reported by [`Verifier::poll_need`], what was wrong by
//! [`Verifier::poll_fault`]. Doors, mirrors and mounts share this; nobody else compares hashes.
//!
//! An owner that says so ([`Verifier::buffer_spans`]) gets neighbouring units checked and handed
//! out together; it must call [`Verifier::settle`] when nothing more comes for a while.
//!
//! Invariants: no byte is handed out twice or unverified; memory is bounded by
//! [`BLOCKS_MAX`] blocks of 8 KiB, [`NODES_MAX`] nodes of 8 KiB, [`SPANS_MAX`] spans of
//! [`SPAN_UNITS`] units and one bit per unit, provided that the owner asks for no more segments
//! than [`Verifier::segments_room`] says. What is verified when it comes takes no memory, so the
//! number of segments in flight is bounded by [`SEGMENTS_MAX`] only, once their nodes are here.

mod assembler;
mod parked;
mod random;
mod rootless;
mod span_buffer;
mod spans;
mod units;
mod whole;

pub use assembler::{Assembler, SEGMENT_BYTES_MIN};
pub use span_buffer::{SPAN_UNITS, SPANS_MAX};
pub use units::{UNITS_PER_CHUNK, UnitSet};
pub use whole::WHOLE_BYTES_MAX;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::{Range, RangeInclusive};

use byname_security::tree::{self, Check, FANOUT, Hash, NodeId, NodeRejected, UNIT_BYTES};

use crate::naming::Part;

use parked::{Origin, Parked};
use span_buffer::SpanBuffer;

/// Blocks that may be incomplete or wait for a node, together with the segments in flight whose
/// node is not here.
pub const BLOCKS_MAX: usize = 1024;
/// Verified nodes kept, each worth 2 MiB of content: for all segments in flight, and as many that
/// are prefetched.
pub const NODES_MAX: usize = 160;
/// Content segments in flight.
pub const SEGMENTS_MAX: usize = 16_384;

/// Units below a node of level 1, and nodes below one of a higher level.
const CHILDREN: u64 = FANOUT as u64;

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

/// Checks one version of an object against its signed root.
///
/// * **handle**: [`handle_segment`](Verifier::handle_segment),
///   [`handle_local`](Verifier::handle_local),
///   [`handle_candidate`](Verifier::handle_candidate).
/// * **command**: [`prepare`](Verifier::prepare), [`settle`](Verifier::settle).
/// * **poll**: [`poll_need`](Verifier::poll_need), [`poll_fault`](Verifier::poll_fault),
///   [`room`](Verifier::room), [`verified`](Verifier::verified).
#[derive(Debug)]
pub struct Verifier {
    tree: tree::Verifier,
    /// No root yet: segments of level 1 are given here only if their own signature counts.
    is_rootless: bool,
    /// All units together prove themselves: no node is asked for yet.
    is_whole: bool,
    content: Assembler,
    levels: Vec<Assembler>,
    verified: UnitSet,
    local_count: u64,
    candidate_bytes: u64,
    /// Neighbouring units that wait for each other; `None` if each unit is checked when it comes.
    span_buffer: Option<SpanBuffer>,
    parked_units: BTreeMap<u64, Parked>,
    /// Number of those that come from the owner.
    parked_local_count: usize,
    /// Segments asked for whose node was not here, by node, and their sum.
    awaiting_node: BTreeMap<u64, usize>,
    awaiting_node_count: usize,
    /// With who sent them.
    parked_nodes: BTreeMap<NodeId, (usize, Box<[u8]>)>,
    /// Number of the source that sends what comes now.
    sender: usize,
    requested: BTreeSet<NodeId>,
    needs: VecDeque<NodeId>,
    /// A level-1 node that is here, and the first that was not prefetched.
    present_node: Option<u64>,
    prefetch_node: u64,
    /// With who sent it.
    faults: VecDeque<(Fault, usize)>,
    /// Nodes that came and were verified, for owners that share them; the last few.
    arrived_nodes: VecDeque<NodeId>,
}

impl Verifier {
    /// For an object of `size` bytes with this signed root. `segment_bytes` is that of the
    /// content and of the tree levels; `verified` are units that need not come again.
    pub fn new(root: Hash, size: u64, segment_bytes: u64, verified: UnitSet) -> Self {
        let tree = tree::Verifier::new(root, size, NODES_MAX);
        Self::with(tree, (size, segment_bytes), verified)
    }

    fn with(tree: tree::Verifier, (size, segment_bytes): (u64, u64), verified: UnitSet) -> Self {
        let level_count = tree.shape().level_count();
        let levels = (1..=level_count)
            .map(|level| Assembler::new(tree.shape().level_bytes(level), segment_bytes))
            .collect();
        Verifier {
            tree,
            is_rootless: false,
            is_whole: false,
            content: Assembler::new(size, segment_bytes),
            levels,
            verified,
            local_count: 0,
            candidate_bytes: 0,
            span_buffer: None,
            parked_units: BTreeMap::new(),
            parked_local_count: 0,
            awaiting_node: BTreeMap::new(),
            awaiting_node_count: 0,
            parked_nodes: BTreeMap::new(),
            sender: 0,
            requested: BTreeSet::new(),
            needs: VecDeque::new(),
            present_node: None,
            prefetch_node: 0,
            faults: VecDeque::new(),
            arrived_nodes: VecDeque::new(),
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

    /// The units that are verified so far.
    pub fn verified(&self) -> &UnitSet {
        &self.verified
    }

    /// Number of verified units that the owner had already.
    pub fn local_count(&self) -> u64 {
        self.local_count
    }

    /// Handed out bytes that the owner had somewhere else.
    pub fn candidate_bytes(&self) -> u64 {
        self.candidate_bytes
    }

    /// True when no unit waits for its proof. Units of which a part is missing do not count:
    /// their segments are still to come, or belong to what nobody asked for.
    pub fn is_idle(&self) -> bool {
        self.parked_units.is_empty() && self.span_buffer.as_ref().is_none_or(SpanBuffer::is_empty)
    }

    /// Number of blocks that may still begin to wait for a node or for their other parts.
    pub fn room(&self) -> usize {
        let remote_count = self.parked_units.len() - self.parked_local_count;
        let waiting = self.parked_local_count + remote_count.max(self.awaiting_node_count);
        BLOCKS_MAX.saturating_sub(waiting + self.content.partial_count())
    }

    /// The first of its tables that holds more than it may, with what it holds and may hold.
    pub fn overfull(&self) -> Option<(&'static str, usize, usize)> {
        let blocks = self.parked_units.len() + self.content.partial_count();
        let tables = [
            ("blocks that are not verified", blocks, BLOCKS_MAX),
            ("nodes that wait for others", self.parked_nodes.len(), NODES_MAX),
        ];
        tables.into_iter().find(|(_, held, max)| held > max)
    }

    /// Number of content segments that may be in flight now; those asked for again do not count.
    pub fn segments_room(&self) -> usize {
        match self.room() {
            // Each may be the first part of a block and then waits for the others.
            room if self.content.segment_bytes() != UNIT_BYTES as u64 => room,
            0 => 0,
            _ => SEGMENTS_MAX,
        }
    }

    /// The content segment is about to be asked for: put the nodes that prove it in the list of
    /// needs, so that they are there first.
    pub fn prepare(&mut self, segment: u64) {
        let unit = self.unit_of(segment);
        if let Some(node) = self.prepare_unit(unit) {
            *self.awaiting_node.entry(node.index).or_insert(0) += 1;
            self.awaiting_node_count += 1;
        }
    }

    /// The same for the nodes of what will be asked for soon: up to `count` units beyond the
    /// segment, but not beyond `last_unit`.
    pub fn prefetch_nodes(&mut self, segment: u64, count: u64, last_unit: u64) {
        let unit = self.unit_of(segment);
        let shape = self.tree.shape();
        let last = shape.node_of_unit(unit.saturating_add(count).min(last_unit));
        let Some((first, last)) = shape.node_of_unit(unit).zip(last) else { return };
        self.prefetch_node = self.prefetch_node.max(first.index + 1);
        while self.prefetch_node <= last.index && self.requested.len() < NODES_MAX / 2 {
            self.prepare_node(NodeId { level: 1, index: self.prefetch_node });
            self.prefetch_node += 1;
        }
    }

    /// A unit will have to be checked: asks for the nodes that prove it. Returns its node if that
    /// is not here.
    pub fn prepare_unit(&mut self, unit: u64) -> Option<NodeId> {
        let node = self.tree.shape().node_of_unit(unit).filter(|_| !self.is_whole)?;
        if self.present_node == Some(node.index) {
            return None;
        }
        if self.tree.has_node(node) {
            self.present_node = Some(node.index);
            return None;
        }
        self.prepare_node(node);
        Some(node)
    }

    fn prepare_node(&mut self, node: NodeId) {
        let mut next = Some(node);
        while let Some(node) = next.filter(|node| !self.tree.has_node(*node)) {
            self.need(node);
            next = self.parent(node);
        }
    }

    fn unit_of(&self, segment: u64) -> u64 {
        segment.saturating_mul(self.content.segment_bytes()) / UNIT_BYTES as u64
    }

    /// The next node to ask for, reported once until it has come.
    pub fn poll_need(&mut self) -> Option<NodeId> {
        self.needs.pop_front()
    }

    /// The next fault of what came, and the number of the source that sent it; its segments must
    /// be asked for again. Of a block whose segments came from several, who sent the last one.
    pub fn poll_fault(&mut self) -> Option<(Fault, usize)> {
        self.faults.pop_front()
    }

    /// What comes from now on is from the source of this number. It may be found out to be bad
    /// long after another one has taken its place.
    pub fn set_sender(&mut self, sender: usize) {
        self.sender = sender;
    }

    /// Takes a segment and hands out what is verified by it.
    pub fn handle_segment(&mut self, part: Part, segment: u64, bytes: &[u8], out: &mut Output<'_>) {
        match part {
            Part::Content => self.handle_content(segment, bytes, out),
            Part::Tree(level) => self.handle_level(level, segment, bytes, out),
        }
    }

    /// Takes a unit that the owner had already. It is not handed out; whether it is verified is
    /// reported by [`Verifier::verified`] or a [`Fault::Local`], perhaps after a node has come.
    pub fn handle_local(&mut self, unit: u64, bytes: &[u8]) {
        self.take_unit(unit, bytes, Origin::Local, &mut |_, _| {});
    }

    /// Takes a unit that the owner has somewhere else, in an older version for instance. It is
    /// handed out if it is verified, perhaps after a node has come.
    pub fn handle_candidate(&mut self, unit: u64, bytes: &[u8], out: &mut Output<'_>) {
        self.take_unit(unit, bytes, Origin::Candidate, out);
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
        if self.span_buffer.is_some() && self.is_unit(segment, bytes.len()) {
            return self.buffer_unit(segment, bytes, out);
        }
        let mut content = std::mem::take(&mut self.content);
        let exists = content.take(segment, bytes, &mut |unit, bytes| {
            self.take_unit(unit, bytes, Origin::Network(self.sender), out);
        });
        // A segment that comes again for the sake of one unit must not start its other one anew.
        for unit in content.blocks_of(segment) {
            if self.verified.contains(unit) || self.parked_units.contains_key(&unit) {
                content.forget(unit);
            }
        }
        self.content = content;
        if !exists {
            self.faults.push_back((Fault::Segment { part: Part::Content, segment }, self.sender));
        }
    }

    /// Checks a whole unit, or puts it aside until its node has come.
    fn take_unit(&mut self, unit: u64, bytes: &[u8], origin: Origin, out: &mut Output<'_>) {
        if self.verified.contains(unit) {
            return;
        }
        let check = self.tree.check(unit, bytes);
        if let Check::Need(node) = check {
            self.park(unit, Parked { bytes: bytes.into(), origin });
            return self.need_unless_whole(node, out);
        }
        self.take_checked(unit, bytes, (origin, check == Check::Verified), out);
    }

    fn take_checked(
        &mut self,
        unit: u64,
        bytes: &[u8],
        (origin, is_verified): (Origin, bool),
        out: &mut Output<'_>,
    ) {
        let is_local = origin.is_local();
        if !is_verified {
            let part = Part::Content;
            return self.faults.push_back(match origin {
                Origin::Network(sender) => (Fault::Block { part, block: unit }, sender),
                Origin::Local | Origin::Candidate => (Fault::Local { unit }, self.sender),
            });
        }
        if self.verified.insert(unit) {
            self.local_count += u64::from(is_local);
            if origin == Origin::Candidate {
                self.candidate_bytes += bytes.len() as u64;
            }
            if origin != Origin::Local {
                out(unit * UNIT_BYTES as u64, bytes);
            }
        }
    }

    fn park(&mut self, unit: u64, parked: Parked) {
        self.parked_local_count += usize::from(parked.origin.is_local());
        if let Some(before) = self.parked_units.insert(unit, parked) {
            self.parked_local_count -= usize::from(before.origin.is_local());
        }
    }

    fn handle_level(&mut self, level: u8, segment: u64, bytes: &[u8], out: &mut Output<'_>) {
        let place = usize::from(level).wrapping_sub(1);
        let Some(assembler) = self.levels.get_mut(place) else { return };
        let mut assembler = std::mem::take(assembler);
        let exists = assembler.take(segment, bytes, &mut |index, bytes| {
            self.take_node(NodeId { level, index }, bytes, self.sender, out);
        });
        self.levels[place] = assembler;
        if !exists {
            let part = Part::Tree(level);
            self.faults.push_back((Fault::Segment { part, segment }, self.sender));
        }
    }

    /// Adds a node if its parent is here; otherwise it waits for that.
    fn take_node(&mut self, node: NodeId, bytes: &[u8], sender: usize, out: &mut Output<'_>) {
        // Only nodes that are waited for, so that nobody can fill the memory with others.
        if !self.requested.contains(&node) {
            return;
        }
        let added = match self.is_rootless {
            true => self.tree.accept_verified_node(node, bytes),
            false => self.tree.add_node(node, bytes),
        };
        match added {
            Ok(()) => self.on_node(node, out),
            Err(NodeRejected::Need(parent)) => {
                self.parked_nodes.insert(node, (sender, bytes.into()));
                self.need(parent);
            }
            Err(NodeRejected::Bad) => {
                let part = Part::Tree(node.level);
                self.faults.push_back((Fault::Block { part, block: node.index }, sender));
            }
        }
    }

    /// A node was added: what waited for it goes on.
    fn on_node(&mut self, node: NodeId, out: &mut Output<'_>) {
        self.requested.remove(&node);
        if self.arrived_nodes.len() == NODES_MAX {
            self.arrived_nodes.pop_front();
        }
        self.arrived_nodes.push_back(node);
        if node.level == 1 {
            self.awaiting_node_count -= self.awaiting_node.remove(&node.index).unwrap_or(0);
            let first = node.index * CHILDREN;
            return self.check_parked_units(first..first + CHILDREN, out);
        }
        let below = |index| NodeId { level: node.level - 1, index };
        let first = node.index * CHILDREN;
        let children = self.parked_nodes.range(below(first)..below(first + CHILDREN));
        for child in children.map(|(child, _)| *child).collect::<Vec<_>>() {
            if let Some((sender, bytes)) = self.parked_nodes.remove(&child) {
                self.take_node(child, &bytes, sender, out);
            }
        }
        // Nodes on the way down may have been forgotten meanwhile, and are asked for again.
        self.check_parked_units(0..u64::MAX, out);
    }

    fn check_parked_units(&mut self, units: Range<u64>, out: &mut Output<'_>) {
        let waiting: Vec<u64> = self.parked_units.range(units).map(|(unit, _)| *unit).collect();
        for unit in waiting {
            let Some(parked) = self.parked_units.get(&unit) else { continue };
            let check = self.tree.check(unit, &parked.bytes);
            if let Check::Need(node) = check {
                self.need(node);
                continue;
            }
            let Some(Parked { bytes, origin }) = self.parked_units.remove(&unit) else { continue };
            self.parked_local_count -= usize::from(origin.is_local());
            self.take_checked(unit, &bytes, (origin, check == Check::Verified), out);
        }
    }
}

#[cfg(test)]
mod tests;
