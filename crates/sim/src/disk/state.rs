//! State that a publisher keeps for its next life: in memory, or in a real state directory, as
//! production has it. A crash finds the directory as it was at that moment: nothing is closed
//! properly.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::rc::Rc;

use byname_security::tree::Tree;
use byname_store::state::{RootRecord, StateDir, TREE_HEADER_BYTES, is_small};
use byname_transfer::server::{FileState, Recalled, Record, RecordKey};
use tempfile::TempDir;

/// Octets of trees that a state directory keeps.
const TREE_BYTES_MAX: u64 = 64 << 20;

#[derive(Clone, Debug)]
pub(super) enum KeptState {
    Memory { records: HashMap<RecordKey, Record>, trees: HashMap<FileState, Tree> },
    Directory { state: Rc<StateDir>, place: Rc<TempDir> },
}

impl Default for KeptState {
    fn default() -> Self {
        KeptState::Memory { records: HashMap::new(), trees: HashMap::new() }
    }
}

impl KeptState {
    /// A new state directory in a temporary place.
    pub(super) fn directory() -> std::io::Result<Self> {
        Self::open(tempfile::tempdir()?)
    }

    fn open(place: TempDir) -> std::io::Result<Self> {
        let state = StateDir::open(place.path(), TREE_BYTES_MAX).map_err(std::io::Error::other)?;
        Ok(KeptState::Directory { state: Rc::new(state), place: Rc::new(place) })
    }

    /// Replaces the state by the one that a program killed now finds when it starts again.
    pub(super) fn crash(&mut self) -> std::io::Result<()> {
        if let KeptState::Directory { place, .. } = self {
            let found = tempfile::tempdir()?;
            copy(place.path(), found.path())?;
            *self = Self::open(found)?;
        }
        Ok(())
    }

    pub(super) fn recall(&self, key: &RecordKey, of: Option<&FileState>) -> Recalled {
        match self {
            KeptState::Memory { records, trees } => Recalled {
                record: records.get(key).copied(),
                root: of.and_then(|it| trees.get(it)).map(|tree| *tree.root.as_bytes()),
                ..Recalled::default()
            },
            KeptState::Directory { state, .. } => state.recall(key, of),
        }
    }

    pub(super) fn announce(&mut self, key: RecordKey, record: Record) -> bool {
        match self {
            KeptState::Memory { records, .. } => {
                records.insert(key, record);
                true
            }
            KeptState::Directory { state, .. } => {
                let kept = state.commit(&[(key, record)], &[]);
                kept.is_ok_and(|kept| kept.iter().all(|it| *it))
            }
        }
    }

    pub(super) fn keep_tree(&mut self, of: FileState, tree: Tree) -> bool {
        match self {
            KeptState::Memory { trees, .. } => {
                trees.insert(of, tree);
                true
            }
            KeptState::Directory { state, .. } => {
                let root = *tree.root.as_bytes();
                let is_written = is_small(of.size)
                    || state.create_tree(&of).is_ok_and(|writer| {
                        let levels = tree.levels.concat();
                        let written = writer.file.write_all_at(&levels, TREE_HEADER_BYTES);
                        written.is_ok() && state.keep_tree(writer, &root).is_ok()
                    });
                is_written
                    && state
                        .commit(&[], &[RootRecord { fingerprint: of.fingerprint, root }])
                        .is_ok()
            }
        }
    }

    /// The levels of a tree that is kept, one behind the other. Those of small files are computed
    /// whenever they are needed.
    pub(super) fn levels(
        &self,
        of: &FileState,
        compute: impl FnOnce() -> Option<Tree>,
    ) -> Option<Vec<u8>> {
        match self {
            KeptState::Memory { trees, .. } => trees.get(of).map(|tree| tree.levels.concat()),
            KeptState::Directory { .. } if is_small(of.size) => Some(compute()?.levels.concat()),
            KeptState::Directory { state, .. } => {
                let file = state.open_tree(of)?.file;
                let len = file.metadata().ok()?.len().checked_sub(TREE_HEADER_BYTES)?;
                let mut levels = vec![0; usize::try_from(len).ok()?];
                file.read_exact_at(&mut levels, TREE_HEADER_BYTES).ok()?;
                Some(levels)
            }
        }
    }
}

/// Copies everything below a directory.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            fs::create_dir(&target)?;
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}
