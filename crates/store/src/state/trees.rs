//! Hash trees on disk: one file per tree, written aside and renamed into place.
//!
//! ```text
//! "byname tree 1\n" zeros to 64 · state of the file (40) · root (32) · level 1 · level 2 · …
//! ```
//! Trees of files up to 2 MiB are not kept: computing them costs less than looking them up.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Error, ErrorKind, IoSliceMut, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use byname_io::files;
use byname_security::tree::{Folder, GROUP_BYTES, NODE_BYTES, Shape};
use byname_transfer::server::{FileState, Fingerprint};

use super::node_checks::NodeChecks;
use crate::content::Content;
use crate::error::{StateError, at};

const MAGIC: &[u8; 14] = b"byname tree 1\n";
/// Where level 1 starts.
pub const TREE_HEADER_BYTES: u64 = 136;
const STATE_AT: usize = 64;
const ROOT_AT: usize = 104;

/// True if the tree of a file of this size is computed whenever it is needed.
pub fn is_small(size: u64) -> bool {
    size <= GROUP_BYTES as u64
}

/// A tree that was checked.
#[derive(Debug)]
pub struct TreeFile {
    /// The file; level 1 starts at [`TREE_HEADER_BYTES`], the others follow.
    pub file: Arc<File>,
    checks: NodeChecks,
    is_damaged: AtomicBool,
}

impl TreeFile {
    /// Compares what was read with what it was when the tree was checked.
    fn check(&self, octets: &[u8], offset: u64) -> std::io::Result<()> {
        if self.checks.are_right(octets, offset, &self.file) {
            return Ok(());
        }
        self.is_damaged.store(true, Ordering::Relaxed);
        Err(Error::new(ErrorKind::InvalidData, "a kept hash tree is damaged"))
    }
}

impl Content for TreeFile {
    fn read_ready(&self, places: &mut [IoSliceMut<'_>], offset: u64) -> std::io::Result<usize> {
        let read = files::read_cached(&self.file, places, TREE_HEADER_BYTES + offset)?;
        let (mut at, end) = (offset, offset + read as u64);
        for place in places {
            // What is not whole is read again.
            if at + place.len() as u64 > end {
                break;
            }
            self.check(place, at)?;
            at += place.len() as u64;
        }
        Ok(read)
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> std::io::Result<()> {
        self.file.read_exact_at(buffer, TREE_HEADER_BYTES + offset)?;
        self.check(buffer, offset)
    }

    fn is_unchanged(&self) -> bool {
        !self.is_damaged.load(Ordering::Relaxed)
    }

    fn accept(&self, octets: &[u8], offset: u64) -> std::io::Result<()> {
        self.check(octets, offset)
    }

    fn system_file(&self) -> Option<(&Arc<File>, u64)> {
        Some((&self.file, TREE_HEADER_BYTES))
    }
}

/// A tree being written.
#[derive(Debug)]
pub struct TreeWriter {
    /// The file, to be filled from [`TREE_HEADER_BYTES`] on.
    pub file: File,
    fingerprint: Fingerprint,
    path: PathBuf,
    is_kept: bool,
}

impl TreeWriter {
    /// It is the tree of this state.
    pub(crate) fn set_state(&mut self, of: &FileState) {
        self.fingerprint = of.fingerprint;
    }
}

impl Drop for TreeWriter {
    fn drop(&mut self) {
        if !self.is_kept {
            // Left over only if this fails too; removed at the next start.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[derive(Debug)]
pub(super) struct Trees {
    directory: PathBuf,
    bytes_max: u64,
    kept: Mutex<Kept>,
    next_temporary: AtomicU64,
}

#[derive(Debug, Default)]
struct Kept {
    trees: HashMap<String, KeptTree>,
    bytes: u64,
    clock: u64,
}

#[derive(Debug, Clone, Copy)]
struct KeptTree {
    bytes: u64,
    used: u64,
    root: [u8; 32],
}

impl Kept {
    fn touch(&mut self, name: &str) -> bool {
        self.clock += 1;
        let clock = self.clock;
        self.trees.get_mut(name).map(|tree| tree.used = clock).is_some()
    }

    fn add(&mut self, name: String, bytes: u64, root: [u8; 32]) {
        self.clock += 1;
        self.bytes += bytes;
        let used = self.clock;
        if let Some(old) = self.trees.insert(name, KeptTree { bytes, used, root }) {
            self.bytes -= old.bytes;
        }
    }

    fn remove(&mut self, name: &str) {
        if let Some(tree) = self.trees.remove(name) {
            self.bytes -= tree.bytes;
        }
    }

    /// The least recently used name, unless it is the only one.
    fn oldest(&self) -> Option<String> {
        if self.trees.len() < 2 {
            return None;
        }
        self.trees.iter().min_by_key(|(_, tree)| tree.used).map(|(name, _)| name.clone())
    }
}

impl Trees {
    pub(super) fn open(directory: &Path, bytes_max: u64) -> Result<Self, StateError> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .map_err(at(directory))?;
        let mut found: Vec<(SystemTime, String, u64)> = Vec::new();
        for entry in fs::read_dir(directory).map_err(at(directory))? {
            let entry = entry.map_err(at(directory))?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let Ok(about) = entry.metadata() else { continue };
            if name.ends_with(".tree") {
                let used = about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                found.push((used, name, about.len()));
            } else if name.ends_with(".part") {
                fs::remove_file(entry.path()).map_err(at(&entry.path()))?;
            }
        }
        found.sort();
        let mut kept = Kept::default();
        for (_, name, bytes) in found {
            // A tree without a header is found to be broken when it is opened.
            let root = header(&directory.join(&name)).map_or([0; 32], |(_, root)| root);
            kept.add(name, bytes, root);
        }
        let trees = Self {
            directory: directory.to_path_buf(),
            bytes_max,
            kept: Mutex::new(kept),
            next_temporary: AtomicU64::new(0),
        };
        trees.shrink();
        Ok(trees)
    }

    pub(super) fn has(&self, fingerprint: &Fingerprint) -> bool {
        self.kept().trees.contains_key(&file_name(fingerprint))
    }

    pub(super) fn create(&self, of: &FileState) -> Result<TreeWriter, StateError> {
        let number = self.next_temporary.fetch_add(1, Ordering::Relaxed);
        let path = self.directory.join(format!("{number}.part"));
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&path)
            .map_err(at(&path))?;
        Ok(TreeWriter { file, fingerprint: of.fingerprint, path, is_kept: false })
    }

    pub(super) fn keep(&self, mut tree: TreeWriter, root: &[u8; 32]) -> Result<(), StateError> {
        let mut header = [0; TREE_HEADER_BYTES as usize];
        header[..MAGIC.len()].copy_from_slice(MAGIC);
        header[STATE_AT..ROOT_AT].copy_from_slice(tree.fingerprint.as_bytes());
        header[ROOT_AT..].copy_from_slice(root);
        tree.file.write_all_at(&header, 0).map_err(at(&tree.path))?;
        let name = file_name(&tree.fingerprint);
        let path = self.directory.join(&name);
        fs::rename(&tree.path, &path).map_err(at(&path))?;
        tree.is_kept = true;
        let bytes = tree.file.metadata().map_err(at(&path))?.len();
        self.kept().add(name, bytes, *root);
        self.shrink();
        Ok(())
    }

    /// A copy of a tree with this root for another state of a file.
    pub(super) fn adopt(&self, of: &FileState, root: &[u8; 32]) -> bool {
        if self.has(&of.fingerprint) {
            return true;
        }
        let name = {
            let kept = self.kept();
            let mut same = kept.trees.iter().filter(|(_, tree)| tree.root == *root);
            same.next().map(|(name, _)| name.clone())
        };
        let Some(name) = name else { return false };
        match self.copy_to(&name, of, root) {
            Ok(is_done) => is_done,
            Err(error) => {
                tracing::warn!(%error, "cannot take over a hash tree");
                false
            }
        }
    }

    fn copy_to(&self, name: &str, of: &FileState, root: &[u8; 32]) -> Result<bool, StateError> {
        let path = self.directory.join(name);
        let Some((fingerprint, _)) = header(&path) else { return Ok(false) };
        let mut file = File::open(&path).map_err(at(&path))?;
        // A tree of another size has another length, or another root.
        if intact(&file, &FileState { fingerprint, size: of.size }, root).is_none() {
            return Ok(false);
        }
        let mut tree = self.create(of)?;
        let failed = |error| at(&path)(error);
        file.seek(SeekFrom::Start(TREE_HEADER_BYTES)).map_err(failed)?;
        tree.file.seek(SeekFrom::Start(TREE_HEADER_BYTES)).map_err(failed)?;
        std::io::copy(&mut file, &mut tree.file).map_err(failed)?;
        self.keep(tree, root)?;
        if fingerprint.object() == of.fingerprint.object() {
            self.drop_tree(name);
        }
        Ok(true)
    }

    pub(super) fn open_checked(&self, of: &FileState, root: &[u8; 32]) -> Option<TreeFile> {
        let name = file_name(&of.fingerprint);
        if !self.kept().touch(&name) {
            return None;
        }
        let path = self.directory.join(&name);
        let opened = File::open(&path).ok();
        let checked = opened.and_then(|file| Some((intact(&file, of, root)?, file)));
        match checked {
            Some((checks, file)) => {
                // The time of last use, for the next start.
                let _ = file.set_modified(SystemTime::now());
                let is_damaged = AtomicBool::new(false);
                Some(TreeFile { file: Arc::new(file), checks, is_damaged })
            }
            None => {
                tracing::warn!(path = %path.display(), "a kept hash tree is broken: dropped");
                self.drop_tree(&name);
                None
            }
        }
    }

    fn shrink(&self) {
        loop {
            let oldest = {
                let kept = self.kept();
                if kept.bytes > self.bytes_max { kept.oldest() } else { None }
            };
            let Some(name) = oldest else { return };
            self.drop_tree(&name);
        }
    }

    fn drop_tree(&self, name: &str) {
        self.kept().remove(name);
        let _ = fs::remove_file(self.directory.join(name));
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// State and root in a tree's file.
fn header(path: &Path) -> Option<(Fingerprint, [u8; 32])> {
    let mut octets = [0; TREE_HEADER_BYTES as usize];
    File::open(path).and_then(|file| file.read_exact_at(&mut octets, 0)).ok()?;
    let (state, root) = octets[STATE_AT..].split_at(ROOT_AT - STATE_AT);
    Some((Fingerprint::from_bytes(state.try_into().ok()?), root.try_into().ok()?))
}

fn file_name(fingerprint: &Fingerprint) -> String {
    format!("{}.tree", &blake3::hash(fingerprint.as_bytes()).to_hex()[..32])
}

/// The digests of a tree's nodes, if header and length are right and the levels fold to the root.
fn intact(file: &File, of: &FileState, root: &[u8; 32]) -> Option<NodeChecks> {
    let shape = Shape::new(of.size);
    let mut header = [0; TREE_HEADER_BYTES as usize];
    let levels_bytes: u64 = (1..=shape.level_count()).map(|level| shape.level_bytes(level)).sum();
    let is_right = file.read_exact_at(&mut header, 0).is_ok()
        && header.starts_with(MAGIC)
        && header[STATE_AT..ROOT_AT] == *of.fingerprint.as_bytes()
        && header[ROOT_AT..] == *root
        && file.metadata().is_ok_and(|about| about.len() == TREE_HEADER_BYTES + levels_bytes);
    if is_right { folded(file, &shape, root) } else { None }
}

/// Folds level 1 node by node and compares every node above with what is in the file.
fn folded(file: &File, shape: &Shape, root: &[u8; 32]) -> Option<NodeChecks> {
    let (mut folder, mut checks) = (Folder::new(*shape), NodeChecks::new(shape));
    let (mut node, mut above) = (vec![0; NODE_BYTES], vec![0; NODE_BYTES]);
    let mut is_same = true;
    let mut at = 0;
    while at < shape.level_bytes(1) {
        let len = (shape.level_bytes(1) - at).min(NODE_BYTES as u64) as usize;
        file.read_exact_at(&mut node[..len], TREE_HEADER_BYTES + at).ok()?;
        checks.set(1, at / NODE_BYTES as u64, &node[..len]);
        let folded = folder.push_values(&node[..len], |id, values| {
            if id.level > 1 {
                let offset = node_offset(shape, id.level, id.index);
                let kept = &mut above[..values.len()];
                checks.set(id.level, id.index, values);
                is_same &= file.read_exact_at(kept, offset).is_ok() && *kept == *values;
            }
        });
        if folded.is_err() || !is_same {
            return None;
        }
        at += len as u64;
    }
    folder.finish().is_ok_and(|found| found.as_bytes() == root).then_some(checks)
}

/// Where a node lies in a tree's file.
pub(crate) fn node_offset(shape: &Shape, level: u8, index: u64) -> u64 {
    let below: u64 = (1..level).map(|level| shape.level_bytes(level)).sum();
    TREE_HEADER_BYTES + below + index * NODE_BYTES as u64
}
