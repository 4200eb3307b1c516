//! Building a tree: values in order in, nodes and finally the root out.
//!
//! [`Folder`] does the folding and holds one incomplete node per level (at most 56 KiB), whatever
//! the file's size; it hands out each node when it is complete. [`TreeBuilder`] puts hashing in
//! front of it and keeps all nodes (size / 256 octets), for callers that want a [`Tree`].

use super::{
    FANOUT, Frontier, HASH_BYTES, Hash, LEVELS_MAX, NODE_BYTES, NodeId, Shape, UNIT_BYTES, hash,
};

/// Why a tree could not be built: the content did not have the announced size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// More content arrived than announced.
    #[error("content is longer than the announced {size} bytes")]
    TooLong {
        /// Announced size in bytes.
        size: u64,
    },
    /// Less content arrived than announced.
    #[error("content ended after {received} of {size} bytes")]
    TooShort {
        /// Announced size in bytes.
        size: u64,
        /// Bytes that arrived (whole units when values were given).
        received: u64,
    },
    /// Values were given that are no whole number of 32 octets.
    #[error("{length} octets are no whole number of chaining values")]
    Unaligned {
        /// Octets given.
        length: usize,
    },
}

/// Folds level-1 values, given in order, to the root of a file of more than one unit.
#[derive(Debug)]
pub struct Folder {
    shape: Shape,
    values_seen: u64,
    /// The incomplete node of each level.
    open: [Vec<u8>; LEVELS_MAX],
    nodes_done: [u64; LEVELS_MAX],
    root: Option<Hash>,
}

impl Folder {
    /// A folder for a file of the given shape.
    pub fn new(shape: Shape) -> Self {
        let (open, nodes_done) = Default::default();
        Self { shape, values_seen: 0, open, nodes_done, root: None }
    }

    /// A folder that goes on behind the units of a frontier, for a file of the given shape. Calls
    /// `emit` for each node that is now complete. `None` if the file has fewer units, or no levels.
    pub fn resume(
        shape: Shape,
        frontier: &Frontier,
        mut emit: impl FnMut(NodeId, &[u8]),
    ) -> Option<Self> {
        if shape.level_count() == 0 || shape.size() < frontier.bytes() {
            return None;
        }
        let values_seen = frontier.units();
        let (open, nodes_done) = (frontier.open.clone(), frontier.nodes_done);
        let mut folder = Self { shape, values_seen, open, nodes_done, root: None };
        // Whatever is open below a full node will add a value behind it.
        for level in (2..=shape.level_count()).rev() {
            if folder.open[level as usize - 1].len() == NODE_BYTES {
                folder.close(level, &mut emit);
            }
        }
        if !folder.open[0].is_empty() {
            folder.close_nodes(&mut emit);
        }
        Some(folder)
    }

    /// Takes the values of the next units (any number of them) and calls `emit` for each node
    /// that is now complete, children before parents.
    pub fn push_values(
        &mut self,
        values: &[u8],
        mut emit: impl FnMut(NodeId, &[u8]),
    ) -> Result<(), BuildError> {
        let (values, rest) = values.as_chunks::<HASH_BYTES>();
        if !rest.is_empty() {
            return Err(BuildError::Unaligned { length: values.len() * HASH_BYTES + rest.len() });
        }
        if values.len() as u64 > self.shape.entries(1) - self.values_seen {
            return Err(BuildError::TooLong { size: self.shape.size() });
        }
        for value in values {
            self.values_seen += 1;
            self.open[0].extend_from_slice(value);
            self.close_nodes(&mut emit);
        }
        Ok(())
    }

    /// The root, once all values were given.
    pub fn finish(self) -> Result<Hash, BuildError> {
        let received = self.values_seen.saturating_mul(UNIT_BYTES as u64);
        self.root.ok_or(BuildError::TooShort { size: self.shape.size(), received })
    }

    /// Closes the level-1 node if it is complete, and whatever that completes above it.
    fn close_nodes(&mut self, emit: &mut impl FnMut(NodeId, &[u8])) {
        for level in 1..=self.shape.level_count() {
            let slot = level as usize - 1;
            let entries_seen =
                self.nodes_done[slot] * FANOUT as u64 + (self.open[slot].len() / HASH_BYTES) as u64;
            let last = entries_seen == self.shape.entries(level);
            if !last && self.open[slot].len() < NODE_BYTES {
                return;
            }
            self.close(level, emit);
        }
    }

    /// Closes the open node of a level.
    fn close(&mut self, level: u8, emit: &mut impl FnMut(NodeId, &[u8])) {
        let slot = level as usize - 1;
        let node = std::mem::take(&mut self.open[slot]);
        emit(NodeId { level, index: self.nodes_done[slot] }, &node);
        self.nodes_done[slot] += 1;
        if level == self.shape.level_count() {
            self.root = Some(hash::fold_root(&node));
        } else {
            self.open[slot + 1].extend_from_slice(&hash::fold(&node));
        }
    }
}

/// A file's root and all its chaining values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// The root: what `b3sum` prints.
    pub root: Hash,
    /// `levels[k-1]` is the object of level k: its values, concatenated.
    pub levels: Vec<Vec<u8>>,
}

impl Tree {
    /// The tree of content that is already in memory.
    pub fn of(content: &[u8]) -> Self {
        let mut builder = TreeBuilder::new(content.len() as u64);
        builder.push(content).expect("the size is the content's length");
        builder.finish().expect("all content was pushed")
    }

    /// The values of a node, or `None` if the tree has no such node.
    pub fn node(&self, id: NodeId) -> Option<&[u8]> {
        let level = self.levels.get((id.level as usize).checked_sub(1)?)?;
        let start = usize::try_from(id.index).ok()?.checked_mul(NODE_BYTES)?;
        let node = level.get(start..)?;
        (!node.is_empty()).then(|| &node[..node.len().min(NODE_BYTES)])
    }
}

/// Builds a [`Tree`] from content pushed in pieces of any length.
#[derive(Debug)]
pub struct TreeBuilder {
    shape: Shape,
    folder: Folder,
    levels: Vec<Vec<u8>>,
    received: u64,
    /// The start of a unit whose end has not arrived.
    partial: Vec<u8>,
    values: Vec<u8>,
}

impl TreeBuilder {
    /// A builder for content of exactly `size` bytes.
    pub fn new(size: u64) -> Self {
        let shape = Shape::new(size);
        Self {
            shape,
            folder: Folder::new(shape),
            levels: vec![Vec::new(); shape.level_count() as usize],
            received: 0,
            partial: Vec::new(),
            values: Vec::new(),
        }
    }

    /// Takes the next piece of content. Whole units are hashed where they lie.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<(), BuildError> {
        let size = self.shape.size();
        if bytes.len() as u64 > size - self.received {
            return Err(BuildError::TooLong { size });
        }
        if !self.partial.is_empty() {
            let room = UNIT_BYTES - self.partial.len();
            let (head, tail) = bytes.split_at(room.min(bytes.len()));
            self.partial.extend_from_slice(head);
            self.received += head.len() as u64;
            bytes = tail;
            if self.partial.len() < UNIT_BYTES && self.received < size {
                return Ok(());
            }
            let unit = std::mem::take(&mut self.partial);
            self.hash_run(self.received - unit.len() as u64, &unit);
        }
        let last = self.received + bytes.len() as u64 == size;
        let whole = if last { bytes.len() } else { bytes.len() / UNIT_BYTES * UNIT_BYTES };
        let (whole, rest) = bytes.split_at(whole);
        let start = self.received;
        self.received += bytes.len() as u64;
        self.partial.extend_from_slice(rest);
        self.hash_run(start, whole);
        Ok(())
    }

    /// Hashes whole units that start at byte `offset`.
    fn hash_run(&mut self, offset: u64, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if self.shape.level_count() == 0 {
            // A file of one unit: kept for the ordinary hash in `finish`.
            self.partial.extend_from_slice(bytes);
            return;
        }
        self.values.clear();
        self.shape
            .hash_units(offset / UNIT_BYTES as u64, bytes, &mut self.values)
            .expect("push hands over whole units within the size");
        let levels = &mut self.levels;
        self.folder
            .push_values(&self.values, |id, node| {
                levels[id.level as usize - 1].extend_from_slice(node);
            })
            .expect("one value per unit of the shape");
    }

    /// The tree, if exactly the announced number of bytes was pushed.
    pub fn finish(self) -> Result<Tree, BuildError> {
        let (size, received) = (self.shape.size(), self.received);
        if received < size {
            return Err(BuildError::TooShort { size, received });
        }
        let root = match self.shape.level_count() {
            0 => Hash::of(&self.partial),
            _ => self.folder.finish()?,
        };
        Ok(Tree { root, levels: self.levels })
    }
}
