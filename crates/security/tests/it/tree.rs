//! The hash tree against BLAKE3 itself, against `b3sum`, and against hostile input.

mod build;
mod peer;
mod shape;
mod vectors;
mod verify;

use byname_security::tree::{GROUP_BYTES, NodeId, Tree, UNIT_BYTES};

/// Sizes around every boundary that a test can afford to hold in memory.
pub(crate) const SIZES: [usize; 23] = [
    0,
    1,
    1023,
    1024,
    1025,
    UNIT_BYTES - 1,
    UNIT_BYTES,
    UNIT_BYTES + 1,
    2 * UNIT_BYTES - 1,
    2 * UNIT_BYTES,
    2 * UNIT_BYTES + 1,
    3 * UNIT_BYTES,
    7 * UNIT_BYTES + 5,
    255 * UNIT_BYTES,
    GROUP_BYTES - 1,
    GROUP_BYTES,
    GROUP_BYTES + 1,
    257 * UNIT_BYTES,
    257 * UNIT_BYTES + 1,
    2 * GROUP_BYTES - 1,
    2 * GROUP_BYTES,
    2 * GROUP_BYTES + 1,
    3 * GROUP_BYTES + 5 * UNIT_BYTES + 17,
];

/// Content whose byte i is i modulo 251: no two units of a test file are alike.
pub(crate) fn content(size: usize) -> Vec<u8> {
    (0..size).map(|index| (index % 251) as u8).collect()
}

/// The nodes of a tree, parents before children.
pub(crate) fn nodes_downwards(tree: &Tree) -> Vec<NodeId> {
    let mut ids = Vec::new();
    for level in (1..=tree.levels.len() as u8).rev() {
        let nodes = (0..).map(|index| NodeId { level, index });
        ids.extend(nodes.take_while(|id| tree.node(*id).is_some()));
    }
    ids
}
