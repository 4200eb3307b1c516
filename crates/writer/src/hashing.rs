//! The hash tree of a local file; several threads hash a large one.
//!
//! Groups of 2 MiB are independent of each other. They are taken a window at a time, so that what
//! is kept of the level above the octets is bounded whatever the size, and a wish to stop is heard.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::slice::ChunksMut;
use std::sync::{Mutex, PoisonError};
use std::thread;

use byname_security::tree::{
    BuildError, Folder, GROUP_BYTES, HASH_BYTES, NODE_BYTES, Shape, Tree, UNIT_BYTES,
};

/// Octets of level 1 that are kept; of larger files each node is computed when asked for.
const LEVEL_BYTES_MAX: u64 = 16 << 20;
/// Octets that are hashed before the values of others are folded.
const WINDOW_BYTES: u64 = 64 << 20;
/// Octets that are read together: they stay in the processor's own cache until they are hashed.
const PIECE_BYTES: usize = 256 << 10;
/// Threads for one file: more would wait for memory.
const THREADS_MAX: usize = 4;

/// Why a file has no tree.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HashError {
    /// It cannot be read; `UnexpectedEof` if it is shorter than it was.
    #[error(transparent)]
    Read(#[from] io::Error),
    /// Not reached unless the values are too few or too many.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// It is not wanted any more.
    #[error("stopped")]
    Stopped,
}

/// Root and levels of the first `size` octets of a file. Level 1 is empty if it is too long to be
/// kept.
pub(crate) fn tree_of(
    file: &File,
    size: u64,
    is_stopped: &dyn Fn() -> bool,
) -> Result<Tree, HashError> {
    if size <= GROUP_BYTES as u64 {
        let mut content = vec![0; size as usize];
        file.read_exact_at(&mut content, 0)?;
        return Ok(Tree::of(&content));
    }
    let threads = thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    let shape = Shape::new(size);
    let mut folder = Folder::new(shape);
    let mut levels = vec![Vec::new(); usize::from(shape.level_count())];
    let keeps_first = shape.level_bytes(1) <= LEVEL_BYTES_MAX;
    let mut at = 0;
    while at < size {
        if is_stopped() {
            return Err(HashError::Stopped);
        }
        let window = at..size.min(at + WINDOW_BYTES);
        at = window.end;
        let values = Window { file, shape, range: window }.values(threads)?;
        folder.push_values(&values, |id, node| {
            if id.level > 1 || keeps_first {
                levels[usize::from(id.level) - 1].extend_from_slice(node);
            }
        })?;
    }
    Ok(Tree { root: folder.finish()?, levels })
}

/// A part of a file, which begins with a group.
struct Window<'a> {
    file: &'a File,
    shape: Shape,
    range: Range<u64>,
}

impl Window<'_> {
    /// The values of its units.
    fn values(&self, threads: usize) -> io::Result<Vec<u8>> {
        let units = (self.range.end - self.range.start).div_ceil(UNIT_BYTES as u64);
        let mut values = vec![0; units as usize * HASH_BYTES];
        // The values of a group fill a node.
        let groups = Mutex::new(values.chunks_mut(NODE_BYTES).enumerate());
        thread::scope(|scope| {
            let others = 1..threads.min(units as usize * HASH_BYTES / NODE_BYTES);
            let others = others.map(|_| scope.spawn(|| self.hash_groups(&groups)));
            let others: Vec<_> = others.collect();
            let mut outcome = self.hash_groups(&groups);
            for other in others {
                let hashed = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                outcome = outcome.and(hashed);
            }
            outcome
        })?;
        Ok(values)
    }

    /// Hashes groups until there are none left, or it fails.
    fn hash_groups(
        &self,
        groups: &Mutex<std::iter::Enumerate<ChunksMut<'_, u8>>>,
    ) -> io::Result<()> {
        let mut piece = vec![0; PIECE_BYTES];
        let mut values = Vec::with_capacity(NODE_BYTES);
        loop {
            let next = groups.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((index, into)) = next else { return Ok(()) };
            values.clear();
            let start = self.range.start + (index * GROUP_BYTES) as u64;
            let end = self.range.end.min(start + GROUP_BYTES as u64);
            for at in (start..end).step_by(PIECE_BYTES) {
                let piece = &mut piece[..PIECE_BYTES.min((end - at) as usize)];
                self.file.read_exact_at(piece, at)?;
                let first_unit = at / UNIT_BYTES as u64;
                let hashed = self.shape.hash_units(first_unit, piece, &mut values);
                hashed.map_err(io::Error::other)?;
            }
            into.copy_from_slice(&values);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Around the ends of units, groups and windows; by as many threads as there are.
    #[test]
    fn a_tree_is_that_of_the_octets_whoever_hashed_them() {
        let octets = (0..WINDOW_BYTES as u32 + (5 << 20) + 77).map(|at| (at * 7 + at / 251) as u8);
        let content: Vec<u8> = octets.collect();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        std::fs::write(&path, &content).unwrap();
        let file = File::open(&path).unwrap();
        let (group, window) = (GROUP_BYTES, WINDOW_BYTES as usize);
        let unit = UNIT_BYTES;
        let sizes = [
            0,
            1,
            unit,
            unit + 1,
            group,
            group + 1,
            3 * group - unit,
            window,
            window + 1,
            content.len(),
        ];
        for size in sizes {
            let found = tree_of(&file, size as u64, &|| false).unwrap();
            assert_eq!(found, Tree::of(&content[..size]), "{size}");
        }
        for threads in [1, 2, 7] {
            let shape = Shape::new(content.len() as u64);
            let window = Window { file: &file, shape, range: 0..5 << 20 };
            let tree = Tree::of(&content);
            let expected = &tree.levels[0][..(5 << 20) / unit * HASH_BYTES];
            assert_eq!(window.values(threads).unwrap(), expected, "{threads}");
        }
    }

    #[test]
    fn a_file_that_is_shorter_than_said_or_not_wanted_any_more_has_no_tree() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(5 << 20).unwrap();
        for size in [(5 << 20) + 1, 9 << 20] {
            let Err(HashError::Read(error)) = tree_of(&file, size, &|| false) else {
                panic!("{size} octets were hashed")
            };
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        }
        let stopped = tree_of(&file, 5 << 20, &|| true);
        assert!(matches!(stopped, Err(HashError::Stopped)));
    }
}
