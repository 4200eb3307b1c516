//! Hash trees of contents that came with theirs: whoever has verified each unit by a node need not
//! hash the content again.
//!
//! Values of level 1 are written as they come; the levels above follow from them. A tree of which
//! something is missing is none, and its content is hashed as any other.

use std::os::unix::fs::FileExt;

use byname_security::tree::{NODE_BYTES, NodeId, Shape};
use byname_transfer::server::{FileState, Fingerprint};

use crate::backend::BackendFile;
use crate::hashing::{Bits, fold};
use crate::state::{RootRecord, StateDir, TREE_HEADER_BYTES, TreeWriter};

/// The tree of a content that is on its way.
#[derive(Debug)]
pub struct TreeDraft {
    tree: TreeWriter,
    size: u64,
    shape: Shape,
    root: [u8; 32],
    written: Bits,
    /// Nodes of level 1 that have not come.
    missing_count: u64,
}

impl TreeDraft {
    /// That of a content of this size, more than 2 MiB, with this root; `None` if the disk has no
    /// place for it.
    pub(crate) fn new(state: &StateDir, size: u64, root: [u8; 32]) -> Option<Self> {
        let fingerprint = Fingerprint::new([0; 16], [0; 24]);
        let tree = state.create_tree(&FileState { fingerprint, size });
        let tree = tree.inspect_err(|error| tracing::warn!(%error, "no hash tree is kept")).ok()?;
        let shape = Shape::new(size);
        let node_count = shape.level_bytes(1).div_ceil(NODE_BYTES as u64);
        let written = Bits::new(node_count);
        Some(Self { tree, size, shape, root, written, missing_count: node_count })
    }

    /// Takes the values of a node, which were verified.
    pub fn put(&mut self, node: NodeId, values: &[u8]) {
        let at = node.index.saturating_mul(NODE_BYTES as u64);
        let left = self.shape.level_bytes(1).saturating_sub(at).min(NODE_BYTES as u64);
        if node.level != 1 || values.len() as u64 != left || self.written.get(node.index) {
            return;
        }
        // What cannot be written is missing at the end.
        if self.tree.file.write_all_at(values, TREE_HEADER_BYTES + at).is_ok() {
            self.written.set(node.index);
            self.missing_count -= 1;
        }
    }

    /// Makes it the tree of this file, which has the content. The root counts at once, and is
    /// durable when it is committed.
    pub(crate) fn finish(mut self, file: &dyn BackendFile, state: &StateDir) -> Option<RootRecord> {
        let of = file.stat().state;
        if self.missing_count > 0 || of.size != self.size {
            return None;
        }
        let folded = fold(&self.shape, &self.tree.file);
        if !folded.is_ok_and(|root| root == self.root) {
            return None;
        }
        self.tree.set_state(&of);
        let kept = state.keep_tree(self.tree, &self.root);
        kept.inspect_err(|error| tracing::warn!(%error, "a hash tree is not kept")).ok()?;
        let record = RootRecord { fingerprint: of.fingerprint, root: self.root };
        state.remember(record);
        Some(record)
    }
}

#[cfg(test)]
mod tests {
    use byname_security::tree::{GROUP_BYTES, Tree};

    use super::*;
    use crate::backend::memory::Memory;
    use crate::backend::{Backend, Found};
    use crate::content::Content;

    const SIZE: usize = 2 * GROUP_BYTES + 5;

    fn octets(seed: usize) -> Vec<u8> {
        (0..SIZE).map(|at| (at * 7 + at / 251 + seed) as u8).collect()
    }

    fn state() -> (tempfile::TempDir, StateDir) {
        let directory = tempfile::tempdir().expect("a directory");
        let state = StateDir::open(&directory.path().join("state"), 1 << 30).expect("a state");
        (directory, state)
    }

    fn file(octets: &[u8]) -> std::sync::Arc<dyn BackendFile> {
        let files = Memory::new();
        files.put("f", octets).expect("a file");
        match files.locate(b"f") {
            Ok(Found::File(file)) => file,
            _ => panic!("it was put there"),
        }
    }

    fn nodes(tree: &Tree) -> impl Iterator<Item = (NodeId, &[u8])> {
        let nodes = tree.levels[0].chunks(NODE_BYTES).zip(0..);
        nodes.map(|(values, index)| (NodeId { level: 1, index }, values))
    }

    /// The file has other octets, so whatever is known of it was not computed.
    #[test]
    fn a_tree_that_came_is_that_of_the_file_and_nothing_is_hashed() {
        let (_directory, state) = state();
        let (tree, file) = (Tree::of(&octets(1)), file(&octets(2)));
        let root = *tree.root.as_bytes();
        let mut draft = TreeDraft::new(&state, SIZE as u64, root).expect("there is room");
        for (node, values) in nodes(&tree).collect::<Vec<_>>().into_iter().rev() {
            draft.put(node, values);
            draft.put(node, values);
            draft.put(NodeId { level: 2, ..node }, values);
            draft.put(NodeId { index: u64::MAX, ..node }, values);
        }
        let record = draft.finish(&*file, &state).expect("it is whole");
        assert_eq!(record.root, root);
        let of = file.stat().state;
        assert_eq!(state.digests(&of).map(|known| known.root), Some(root));
        let kept = state.open_tree(&of).expect("it folds to the root");
        let levels = tree.levels.concat();
        let mut found = vec![0; levels.len()];
        for (at, place) in found.chunks_mut(NODE_BYTES).enumerate() {
            kept.read_exact_at(place, (at * NODE_BYTES) as u64).expect("it is there");
        }
        assert!(found == levels);
    }

    #[test]
    fn a_tree_of_which_something_is_missing_or_wrong_is_none() {
        let (directory, state) = state();
        let (tree, file) = (Tree::of(&octets(1)), file(&octets(1)));
        let root = *tree.root.as_bytes();
        for (size, root, missing) in [
            (SIZE as u64, root, Some(1)),
            (SIZE as u64, [7; 32], None),
            (SIZE as u64 - 5, root, None),
        ] {
            let mut draft = TreeDraft::new(&state, size, root).expect("there is room");
            let came = nodes(&tree).filter(|(node, _)| Some(node.index) != missing);
            came.for_each(|(node, values)| draft.put(node, values));
            assert!(draft.finish(&*file, &state).is_none(), "{size} {missing:?}");
        }
        assert_eq!(state.digests(&file.stat().state).map(|known| known.root), None);
        let left = std::fs::read_dir(directory.path().join("state/trees")).expect("it is there");
        assert_eq!(left.count(), 0, "nothing of them is left");
    }
}
