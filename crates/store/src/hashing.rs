//! Computing roots: small files in one go, large ones by several threads in groups of 2 MiB.
//!
//! A large file's level-1 values go straight to their places in the tree's file, so memory is
//! bounded by one group per thread whatever the size. A thread gives up its turn after some
//! group, so that a large file does not keep small ones waiting, nor readers who ask for a group's
//! values before its turn ([`LargeFile::values`]). Content is read, never mapped:
//! a file cut short while mapped would kill the process. The file's state is compared after the
//! last read.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use byname_security::tree::{Folder, GROUP_BYTES, NODE_BYTES, NodeId, Shape, Tree, UNIT_BYTES};
use byname_transfer::server::{FileState, Hashed, OpId};

use crate::backend::BackendFile;
use crate::state::{RootRecord, StateDir, TREE_HEADER_BYTES, TreeWriter};

/// A file above this is not served: its root would take weeks. Holes cost nothing, so anybody can
/// make one of 8 EiB.
pub(crate) const FILE_BYTES_MAX: u64 = 1 << 50;

fn failure(error: &std::io::Error) -> Hashed {
    match error.kind() {
        ErrorKind::UnexpectedEof => Hashed::Changed,
        _ => Hashed::Failed,
    }
}

/// The tree of a file of at most 2 MiB.
pub(crate) fn small_tree(file: &dyn BackendFile) -> Result<Tree, Hashed> {
    // The size was checked to be small, so this allocates at most one group.
    let mut content = vec![0; file.stat().state.size as usize];
    file.read_exact_at(&mut content, 0).map_err(|error| failure(&error))?;
    match file.is_unchanged() {
        true => Ok(Tree::of(&content)),
        false => Err(Hashed::Changed),
    }
}

/// The levels of a tree, one after the other, as they lie in a tree's file.
pub(crate) fn flat(tree: Tree) -> Vec<u8> {
    tree.levels.concat()
}

/// A file of more than 2 MiB being hashed.
#[derive(Debug)]
pub(crate) struct LargeFile {
    pub(crate) op: OpId,
    file: Arc<dyn BackendFile>,
    state: FileState,
    shape: Shape,
    tree: TreeWriter,
    next_group: AtomicU64,
    /// Groups that some thread has hashed or is hashing.
    claimed: Bits,
    /// Groups whose values are in the tree's file.
    written: Bits,
    /// Threads that still work on it.
    parts: AtomicUsize,
    /// Some thread met an error; the others stop early.
    is_over: AtomicBool,
    has_changed: AtomicBool,
}

/// One bit a group, in chunks that are made when they are needed: memory follows what was hashed,
/// not what a file with holes says of its size.
#[derive(Debug)]
pub(crate) struct Bits(Box<[OnceLock<BitChunk>]>);

type BitChunk = Box<[AtomicU64; CHUNK_WORDS]>;

/// A chunk has a page; its groups have 64 GiB.
const CHUNK_WORDS: usize = 512;
const CHUNK_BITS: u64 = CHUNK_WORDS as u64 * 64;

impl Bits {
    pub(crate) fn new(count: u64) -> Self {
        Self((0..count.div_ceil(CHUNK_BITS)).map(|_| OnceLock::new()).collect())
    }

    /// Sets a bit; true if it was not set before.
    pub(crate) fn set(&self, at: u64) -> bool {
        let chunk = self.0[(at / CHUNK_BITS) as usize]
            .get_or_init(|| Box::new([const { AtomicU64::new(0) }; CHUNK_WORDS]));
        let (word, bit) = place_in_chunk(at);
        chunk[word].fetch_or(bit, Ordering::AcqRel) & bit == 0
    }

    pub(crate) fn get(&self, at: u64) -> bool {
        let (word, bit) = place_in_chunk(at);
        let chunk = self.0[(at / CHUNK_BITS) as usize].get();
        chunk.is_some_and(|chunk| chunk[word].load(Ordering::Acquire) & bit != 0)
    }
}

/// The word of a bit in its chunk, and the bit in its word.
fn place_in_chunk(at: u64) -> (usize, u64) {
    ((at % CHUNK_BITS / 64) as usize, 1 << (at % 64))
}

/// State of a large file after a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// More groups: queue this part again.
    More,
    /// This part is done, others are not.
    PartDone,
    /// All parts are done: call [`LargeFile::finish`].
    AllDone,
}

impl LargeFile {
    pub(crate) fn new(
        op: OpId,
        file: Arc<dyn BackendFile>,
        tree: TreeWriter,
        parts: usize,
    ) -> Self {
        let state = file.stat().state;
        let group_count = state.size.div_ceil(GROUP_BYTES as u64);
        Self {
            op,
            file,
            state,
            shape: Shape::new(state.size),
            claimed: Bits::new(group_count),
            written: Bits::new(group_count),
            tree,
            next_group: AtomicU64::new(0),
            parts: AtomicUsize::new(parts),
            is_over: AtomicBool::new(false),
            has_changed: AtomicBool::new(false),
        }
    }

    /// Hashes a group that nobody has hashed yet.
    pub(crate) fn turn(&self, buffer: &mut Vec<u8>) -> Turn {
        loop {
            let group = self.next_group.fetch_add(1, Ordering::Relaxed);
            let is_beyond = group.saturating_mul(GROUP_BYTES as u64) >= self.state.size;
            if is_beyond || self.is_over.load(Ordering::Relaxed) {
                let was_last = self.parts.fetch_sub(1, Ordering::AcqRel) == 1;
                return if was_last { Turn::AllDone } else { Turn::PartDone };
            }
            if self.claimed.set(group) {
                // An error has ended the hashing, and is reported when all parts are done.
                let _ = self.hash_group(group, buffer);
                return Turn::More;
            }
        }
    }

    /// Ends early; what was hashed of the file is lost.
    pub(crate) fn give_up(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// The values of a group, before the root is there. They count towards the root: whoever holds
    /// a reference delays the end of the hashing, so nothing claimed here can be missing then.
    pub(crate) fn values(&self, group: u64) -> std::io::Result<Vec<u8>> {
        if group >= self.state.size.div_ceil(GROUP_BYTES as u64) {
            return Err(ErrorKind::InvalidInput.into());
        }
        if self.written.get(group) {
            let left = self.shape.level_bytes(1) - group * NODE_BYTES as u64;
            let mut values = vec![0; left.min(NODE_BYTES as u64) as usize];
            let at = TREE_HEADER_BYTES + group * NODE_BYTES as u64;
            self.tree.file.read_exact_at(&mut values, at)?;
            return Ok(values);
        }
        // If another thread is at it, doing it twice is quicker than waiting.
        self.claimed.set(group);
        self.hash_group(group, &mut Vec::new())
    }

    fn hash_group(&self, group: u64, buffer: &mut Vec<u8>) -> std::io::Result<Vec<u8>> {
        let hashed = self.try_hash_group(group, buffer);
        match &hashed {
            Ok(_) => {
                self.written.set(group);
            }
            Err(error) => {
                if failure(error) == Hashed::Changed {
                    self.has_changed.store(true, Ordering::Relaxed);
                }
                self.is_over.store(true, Ordering::Relaxed);
            }
        }
        hashed
    }

    fn try_hash_group(&self, group: u64, buffer: &mut Vec<u8>) -> std::io::Result<Vec<u8>> {
        let offset = group * GROUP_BYTES as u64;
        let len = (self.state.size - offset).min(GROUP_BYTES as u64) as usize;
        buffer.resize(len, 0);
        self.file.read_exact_at(buffer, offset)?;
        let mut values = Vec::with_capacity(NODE_BYTES);
        self.shape
            .hash_units(offset / UNIT_BYTES as u64, buffer, &mut values)
            .map_err(|error| std::io::Error::new(ErrorKind::InvalidData, error))?;
        let at = TREE_HEADER_BYTES + group * NODE_BYTES as u64;
        self.tree.file.write_all_at(&values, at)?;
        Ok(values)
    }

    /// Folds level 1 to the root and puts the tree in its place.
    pub(crate) fn finish(self, state_dir: &StateDir) -> (Hashed, Option<RootRecord>) {
        if self.has_changed.load(Ordering::Relaxed) || !self.file.is_unchanged() {
            return (Hashed::Changed, None);
        }
        if self.is_over.load(Ordering::Relaxed) {
            return (Hashed::Failed, None);
        }
        let root = match fold(&self.shape, &self.tree.file) {
            Ok(root) => root,
            Err(error) => {
                tracing::error!(%error, "cannot write a hash tree");
                return (Hashed::Failed, None);
            }
        };
        if let Err(error) = state_dir.keep_tree(self.tree, &root) {
            tracing::error!(%error, "cannot keep a hash tree");
            return (Hashed::Failed, None);
        }
        let record = RootRecord { fingerprint: self.state.fingerprint, root };
        state_dir.remember(record);
        (Hashed::Root(root), Some(record))
    }
}

/// Folds level 1 in a tree's file to the root, and writes the levels above.
pub(crate) fn fold(shape: &Shape, tree: &File) -> std::io::Result<[u8; 32]> {
    let invalid = |error| std::io::Error::new(ErrorKind::InvalidData, error);
    let mut folder = Folder::new(*shape);
    let mut node = vec![0; NODE_BYTES];
    let mut written = Ok(());
    let mut at = 0;
    let level_bytes = shape.level_bytes(1);
    while at < level_bytes {
        let len = (level_bytes - at).min(NODE_BYTES as u64) as usize;
        tree.read_exact_at(&mut node[..len], TREE_HEADER_BYTES + at)?;
        let emit = |id: NodeId, values: &[u8]| {
            if id.level > 1 && written.is_ok() {
                let offset = crate::state::node_offset(shape, id.level, id.index);
                written = tree.write_all_at(values, offset);
            }
        };
        folder.push_values(&node[..len], emit).map_err(invalid)?;
        at += len as u64;
    }
    written?;
    folder.finish().map(|root| *root.as_bytes()).map_err(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_told_apart_and_cost_what_was_set() {
        let bits = Bits::new(FILE_BYTES_MAX / GROUP_BYTES as u64);
        let places = [0, 1, 63, 64, CHUNK_BITS - 1, CHUNK_BITS, (1 << 29) - 1];
        for (count, at) in places.into_iter().enumerate() {
            assert!(!bits.get(at) && bits.set(at) && !bits.set(at) && bits.get(at), "{at}");
            assert_eq!(places.iter().filter(|at| bits.get(**at)).count(), count + 1);
        }
        assert_eq!(bits.0.iter().filter(|chunk| chunk.get().is_some()).count(), 3);
    }
}
