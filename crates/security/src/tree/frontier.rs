//! The right edge of a tree: what content that only grows needs of what is already hashed.
//!
//! A [`Frontier`] takes the values of whole units and keeps one incomplete node per level, as a
//! [`Folder`](super::Folder) does. It knows no size: a full node stays open until a value follows
//! it, because until then it may be the top one of the file. A folder goes on from it for any size
//! that has at least its units ([`Folder::resume`](super::Folder::resume)).

use super::{HASH_BYTES, Hash, LEVELS_MAX, NODE_BYTES, UNIT_BYTES, hash};

/// See the module. At most 56 KiB.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Frontier {
    units: u64,
    /// The last node of each level: never empty below one that has values.
    pub(super) open: [Vec<u8>; LEVELS_MAX],
    /// Nodes before it.
    pub(super) nodes_done: [u64; LEVELS_MAX],
}

impl Frontier {
    /// Takes the next octets, which are whole units. `on_value` is told of the values of levels
    /// above the first that are complete now, in their order.
    ///
    /// # Panics
    /// If they are not whole units.
    pub fn push(&mut self, octets: &[u8], mut on_value: impl FnMut(u8, &[u8; HASH_BYTES])) {
        let (units, rest) = octets.as_chunks::<UNIT_BYTES>();
        assert!(rest.is_empty(), "a frontier takes whole units");
        let mut values = Vec::with_capacity(units.len() * HASH_BYTES);
        hash::units(self.units, units, &mut values);
        let (values, _) = values.as_chunks::<HASH_BYTES>();
        for value in values {
            self.add(0, value, &mut on_value);
            self.units += 1;
        }
    }

    /// Units that it has taken.
    pub fn units(&self) -> u64 {
        self.units
    }

    /// Octets that it has taken.
    pub fn bytes(&self) -> u64 {
        self.units * UNIT_BYTES as u64
    }

    /// True if `unit` are the octets of the last unit that it has taken.
    pub fn ends_with(&self, unit: &[u8; UNIT_BYTES]) -> bool {
        let value = self.open[0].last_chunk::<HASH_BYTES>();
        value.is_some_and(|value| hash::subtree(self.units - 1, unit) == *value)
    }

    /// The root, if there is nothing behind these units; `None` for a file of one unit or none,
    /// which has no tree.
    pub fn root(&self) -> Option<Hash> {
        let shape = super::Shape::new(self.bytes());
        super::Folder::resume(shape, self, |_, _| {})?.finish().ok()
    }

    fn add(
        &mut self,
        slot: usize,
        value: &[u8; HASH_BYTES],
        on_value: &mut impl FnMut(u8, &[u8; HASH_BYTES]),
    ) {
        if self.open[slot].len() == NODE_BYTES {
            let folded = hash::fold(&self.open[slot]);
            self.open[slot].clear();
            self.nodes_done[slot] += 1;
            let level = slot as u8 + 2;
            self.add(slot + 1, &folded, on_value);
            on_value(level, &folded);
        }
        self.open[slot].extend_from_slice(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{Folder, NodeId, Shape};

    fn value(unit: u64) -> [u8; HASH_BYTES] {
        *blake3::hash(&unit.to_be_bytes()).as_bytes()
    }

    fn frontier(units: u64) -> Frontier {
        let mut frontier = Frontier::default();
        for unit in 0..units {
            frontier.add(0, &value(unit), &mut |_, _| {});
            frontier.units += 1;
        }
        frontier
    }

    fn values(units: std::ops::Range<u64>) -> Vec<u8> {
        units.flat_map(value).collect()
    }

    #[test]
    fn a_folder_goes_on_as_one_that_began_at_the_beginning() {
        let counts = [2, 3, 255, 256, 257, 511, 512, 513, 65_535, 65_536, 65_537, 65_793];
        for all in counts {
            let shape = Shape::new(all * UNIT_BYTES as u64 - 7);
            let mut nodes = Vec::new();
            let mut whole = Folder::new(shape);
            whole.push_values(&values(0..all), |id, node| nodes.push((id, node.to_vec()))).unwrap();
            nodes.sort();
            let root = whole.finish().unwrap();
            for cut in counts.into_iter().chain([0, 1]).filter(|cut| *cut < all) {
                let frontier = frontier(cut);
                let mut later: Vec<(NodeId, Vec<u8>)> = Vec::new();
                let mut emit = |id, node: &[u8]| later.push((id, node.to_vec()));
                let mut folder = Folder::resume(shape, &frontier, &mut emit).unwrap();
                folder.push_values(&values(cut..all), &mut emit).unwrap();
                assert_eq!(folder.finish(), Ok(root), "{cut} of {all}");
                later.sort();
                let done = |id: &NodeId| id.index < frontier.nodes_done[id.level as usize - 1];
                let before = nodes.iter().filter(|(id, _)| done(id)).cloned();
                let mut together: Vec<_> = before.chain(later).collect();
                together.sort();
                assert_eq!(together, nodes, "{cut} of {all}");
            }
        }
    }

    #[test]
    fn a_frontier_has_the_root_of_what_it_has_taken() {
        let content: Vec<u8> = (0..300 * UNIT_BYTES as u32).map(|at| (at / 77) as u8).collect();
        for units in [2, 3, 255, 256, 257, 300] {
            let mut frontier = Frontier::default();
            let octets = &content[..units * UNIT_BYTES];
            let (first, rest) = octets.split_at(UNIT_BYTES);
            frontier.push(first, |_, _| {});
            frontier.push(rest, |_, _| {});
            assert_eq!(frontier.root(), Some(Hash::of(octets)), "{units}");
            let last = octets.last_chunk().unwrap();
            assert!(frontier.ends_with(last) && !frontier.ends_with(&[1; UNIT_BYTES]));
        }
        let one = frontier(1);
        assert_eq!((one.root(), Frontier::default().root()), (None, None));
        assert!(!Frontier::default().ends_with(&[0; UNIT_BYTES]));
        let shorter = Shape::new(2 * UNIT_BYTES as u64);
        assert!(Folder::resume(shorter, &frontier(3), |_, _| {}).is_none());
    }
}
