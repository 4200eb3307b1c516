//! Short digests of a tree's nodes, to notice what is damaged after the tree was checked.
//!
//! A tree is folded to its root once, when it is opened. Its file may be damaged later, so every
//! node is compared with what it was then, whenever it is read: 8 octets in memory for 8 KiB on
//! disk.

use std::fs::File;
use std::os::unix::fs::FileExt;

use byname_security::tree::{NODE_BYTES, Shape};

use super::trees::TREE_HEADER_BYTES;

/// The digests, level 1 first.
#[derive(Debug)]
pub(super) struct NodeChecks {
    levels: Vec<Level>,
    digests: Vec<u64>,
}

#[derive(Debug)]
struct Level {
    /// Where it begins among the levels.
    start: u64,
    bytes: u64,
    /// Place of its first node's digest.
    first: usize,
}

/// A node, by its digest's place.
struct Node {
    place: usize,
    start: u64,
    len: usize,
}

fn digest(values: &[u8]) -> u64 {
    let digest = blake3::hash(values);
    u64::from_le_bytes(*digest.as_bytes().first_chunk().expect("a digest has 32 octets"))
}

impl NodeChecks {
    pub(super) fn new(shape: &Shape) -> Self {
        let (mut levels, mut start, mut first) = (Vec::new(), 0, 0);
        for level in 1..=shape.level_count() {
            let bytes = shape.level_bytes(level);
            levels.push(Level { start, bytes, first });
            start += bytes;
            first += bytes.div_ceil(NODE_BYTES as u64) as usize;
        }
        Self { levels, digests: vec![0; first] }
    }

    pub(super) fn set(&mut self, level: u8, index: u64, values: &[u8]) {
        let first = self.levels[usize::from(level) - 1].first;
        self.digests[first + index as usize] = digest(values);
    }

    /// The node that an octet lies in.
    fn node_at(&self, offset: u64) -> Option<Node> {
        let level = self.levels.iter().rfind(|level| level.start <= offset)?;
        if offset - level.start >= level.bytes {
            return None;
        }
        let index = (offset - level.start) / NODE_BYTES as u64;
        let within = index * NODE_BYTES as u64;
        let len = (level.bytes - within).min(NODE_BYTES as u64) as usize;
        let place = level.first + index as usize;
        Some(Node { place, start: level.start + within, len })
    }

    /// True if octets that were read from `offset` on are what they were when the tree was checked.
    /// Of nodes that are not whole in them, the rest is read, too.
    pub(super) fn are_right(&self, octets: &[u8], offset: u64, file: &File) -> bool {
        let mut at = 0;
        while at < octets.len() {
            let Some(node) = self.node_at(offset + at as u64) else { return false };
            let skipped = (offset + at as u64 - node.start) as usize;
            let rest = &octets[at..];
            let given = &rest[..rest.len().min(node.len - skipped)];
            let is_right = match given.len() == node.len {
                true => digest(given) == self.digests[node.place],
                false => self.is_part_of(given, skipped, &node, file),
            };
            if !is_right {
                return false;
            }
            at += given.len();
        }
        true
    }

    fn is_part_of(&self, given: &[u8], skipped: usize, node: &Node, file: &File) -> bool {
        let mut whole = vec![0; node.len];
        file.read_exact_at(&mut whole, TREE_HEADER_BYTES + node.start).is_ok()
            && digest(&whole) == self.digests[node.place]
            && whole[skipped..].starts_with(given)
    }
}

#[cfg(test)]
mod tests {
    use byname_security::tree::Tree;

    use super::*;

    #[test]
    fn every_damaged_octet_is_noticed_however_it_is_read() {
        // Two levels, the last node of the lower one not full.
        let content: Vec<u8> = (0..5_000_000usize).map(|at| (at / 9) as u8).collect();
        let (tree, shape) = (Tree::of(&content), Shape::new(content.len() as u64));
        let mut checks = NodeChecks::new(&shape);
        for (level, values) in (1u8..).zip(&tree.levels) {
            for (index, node) in (0..).zip(values.chunks(NODE_BYTES)) {
                checks.set(level, index, node);
            }
        }
        let levels = tree.levels.concat();
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&levels, TREE_HEADER_BYTES).unwrap();
        for size in [NODE_BYTES, 4096, 1000, levels.len()] {
            for (at, part) in (0..).step_by(size).zip(levels.chunks(size)) {
                assert!(checks.are_right(part, at, &file), "{size} from {at}");
                let mut damaged = part.to_vec();
                *damaged.last_mut().unwrap() ^= 1;
                assert!(!checks.are_right(&damaged, at, &file), "{size} from {at}");
            }
        }
        assert!(!checks.are_right(&[0], levels.len() as u64, &file), "beyond the end");
    }
}
