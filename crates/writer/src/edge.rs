//! The right edge of the tree of a local file that grows: what its next version needs of it.

use byname_security::tree::{Folder, Frontier, Hash, NODE_BYTES, Shape, UNIT_BYTES};

/// See the module. About size / 65 536 octets, and 56 KiB.
#[derive(Debug, Clone, Default)]
pub struct Edge {
    pub(crate) frontier: Frontier,
    /// Values of level 2 and of those above it.
    upper: Vec<Vec<u8>>,
}

impl Edge {
    /// Takes the next octets, which are whole units.
    pub(crate) fn take(&mut self, units: &[u8]) {
        let upper = &mut self.upper;
        self.frontier.push(units, |level, value| {
            let slot = usize::from(level) - 2;
            if upper.len() <= slot {
                upper.resize_with(slot + 1, Vec::new);
            }
            upper[slot].extend_from_slice(value);
        });
    }

    /// Root and levels of all that was taken with `rest` behind it, less than a unit. Level 1 is
    /// empty: its nodes are computed when they are asked for. `None` if that is one unit at most.
    pub(crate) fn finish(&self, rest: &[u8]) -> Option<(Hash, Vec<Vec<u8>>)> {
        debug_assert!(rest.len() < UNIT_BYTES);
        let shape = Shape::new(self.frontier.bytes() + rest.len() as u64);
        let mut levels = vec![Vec::new(); usize::from(shape.level_count())];
        for (level, values) in levels.iter_mut().skip(1).zip(&self.upper) {
            level.clone_from(values);
        }
        let mut emit = |id: byname_security::tree::NodeId, node: &[u8]| {
            if id.level > 1 {
                let level = &mut levels[usize::from(id.level) - 1];
                level.truncate(id.index as usize * NODE_BYTES);
                level.extend_from_slice(node);
            }
        };
        let mut folder = Folder::resume(shape, &self.frontier, &mut emit)?;
        if !rest.is_empty() {
            let mut value = Vec::new();
            shape.hash_units(self.frontier.units(), rest, &mut value).ok()?;
            folder.push_values(&value, &mut emit).ok()?;
        }
        let root = folder.finish().ok()?;
        Some((root, levels))
    }
}
