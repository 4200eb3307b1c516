//! Shape of a tree, from the file's size alone: units, levels, nodes and their lengths.

use super::{FANOUT, HASH_BYTES, UNIT_BYTES, hash};

/// Most levels a tree can have: that of a file of 2^64-1 bytes.
pub const LEVELS_MAX: usize = 7;

/// One node: an aligned slice of up to 256 chaining values of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId {
    /// Level, counted from 1 (the values of units).
    pub level: u8,
    /// Index of the node within its level.
    pub index: u64,
}

/// Why a run of bytes is no run of whole units of the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpanError {
    /// The first unit is beyond the end of the file.
    #[error("unit {unit_index} is beyond the file's {unit_count} units")]
    BeyondEnd {
        /// Unit asked for.
        unit_index: u64,
        /// Units the file has.
        unit_count: u64,
    },
    /// The bytes end inside a unit or after the end of the file.
    #[error("{length} bytes from unit {unit_index} do not end with a unit of the file")]
    Length {
        /// First unit of the run.
        unit_index: u64,
        /// Bytes given.
        length: usize,
    },
}

/// The shape of the tree of a file of a given size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    size: u64,
    unit_count: u64,
    level_count: u8,
    entries: [u64; LEVELS_MAX],
}

impl Shape {
    /// The shape for a file of `size` bytes.
    pub fn new(size: u64) -> Self {
        let unit_count = size.div_ceil(UNIT_BYTES as u64);
        let mut shape = Self { size, unit_count, level_count: 0, entries: [0; LEVELS_MAX] };
        if unit_count > 1 {
            shape.add_levels();
        }
        shape
    }

    fn add_levels(&mut self) {
        let mut count = self.unit_count;
        loop {
            self.entries[self.level_count as usize] = count;
            self.level_count += 1;
            if count <= FANOUT as u64 {
                return;
            }
            count = count.div_ceil(FANOUT as u64);
        }
    }

    /// The file's size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Units of the file: its size divided by 8192, rounded up; 0 for an empty file.
    pub fn unit_count(&self) -> u64 {
        self.unit_count
    }

    /// Levels of chaining values; 0 if the file is at most one unit.
    pub fn level_count(&self) -> u8 {
        self.level_count
    }

    /// Chaining values of `level` (counted from 1); 0 for a level the tree does not have.
    pub fn entries(&self, level: u8) -> u64 {
        match level {
            0 => 0,
            _ => self.entries.get(level as usize - 1).copied().unwrap_or(0),
        }
    }

    /// Octets of the object that holds `level`; 0 for a level the tree does not have.
    pub fn level_bytes(&self, level: u8) -> u64 {
        self.entries(level) * HASH_BYTES as u64
    }

    /// Nodes of `level`; 0 for a level the tree does not have.
    pub fn node_count(&self, level: u8) -> u64 {
        self.entries(level).div_ceil(FANOUT as u64)
    }

    /// Octets of a node, or `None` if the tree has no such node.
    pub fn node_len(&self, id: NodeId) -> Option<usize> {
        if id.index >= self.node_count(id.level) {
            return None;
        }
        let left = self.entries(id.level) - id.index * FANOUT as u64;
        Some(left.min(FANOUT as u64) as usize * HASH_BYTES)
    }

    /// Bytes of the unit, or `None` if the file has no such unit. An empty file has no unit.
    pub fn unit_len(&self, unit_index: u64) -> Option<usize> {
        if unit_index >= self.unit_count {
            return None;
        }
        let left = self.size - unit_index * UNIT_BYTES as u64;
        Some(left.min(UNIT_BYTES as u64) as usize)
    }

    /// The level-1 node that holds the value of a unit; `None` if there is no such unit or the
    /// file has no levels.
    pub fn node_of_unit(&self, unit_index: u64) -> Option<NodeId> {
        let exists = self.level_count > 0 && unit_index < self.unit_count;
        exists.then_some(NodeId { level: 1, index: unit_index / FANOUT as u64 })
    }

    /// The node that holds the folded value of `id`; `None` if `id` is the top node.
    pub fn parent(&self, id: NodeId) -> Option<NodeId> {
        let below_top = id.level < self.level_count;
        below_top.then_some(NodeId { level: id.level + 1, index: id.index / FANOUT as u64 })
    }

    /// True if `bytes` are exactly some whole units from `first_unit` (the file's last unit
    /// counts as whole although it may be short).
    pub fn check_span(&self, first_unit: u64, length: usize) -> Result<(), SpanError> {
        if first_unit >= self.unit_count {
            let (unit_index, unit_count) = (first_unit, self.unit_count);
            return Err(SpanError::BeyondEnd { unit_index, unit_count });
        }
        let left = self.size - first_unit * UNIT_BYTES as u64;
        let aligned = length > 0 && length.is_multiple_of(UNIT_BYTES);
        if length as u64 == left || (aligned && (length as u64) < left) {
            return Ok(());
        }
        Err(SpanError::Length { unit_index: first_unit, length })
    }

    /// Appends the level-1 value of each unit in `bytes` to `out`.
    ///
    /// `bytes` starts at unit `first_unit` and ends with a unit. A run of 256 units from a
    /// multiple of 256 is exactly a level-1 node. The call is pure, so runs can be hashed in
    /// parallel and their values given to a [`Folder`](super::Folder) in order. For a file of a
    /// single unit nothing is appended: it has no levels.
    pub fn hash_units(
        &self,
        first_unit: u64,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), SpanError> {
        self.check_span(first_unit, bytes.len())?;
        if self.level_count == 0 {
            return Ok(());
        }
        let (units, rest) = bytes.as_chunks::<UNIT_BYTES>();
        hash::units(first_unit, units, out);
        if !rest.is_empty() {
            out.extend_from_slice(&hash::subtree(first_unit + units.len() as u64, rest));
        }
        Ok(())
    }
}
