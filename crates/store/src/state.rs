//! The state directory: what must survive a restart, and what would be dear to compute again.
//!
//! | file | content |
//! |---|---|
//! | `lock` | locked while a server runs; holds its process id |
//! | `records.redb` | highest version of every name; roots and checksums by object |
//! | `highest-version` | a bound of all versions, should the records be lost whole |
//! | `trees/` | hash trees of files above 2 MiB, bounded in size, least recently used go first |
//!
//! Nothing here is believed blindly. A record carries a checksum; one that does not match counts as
//! lost, and so does a database that cannot be opened, or is empty (it is moved aside), or missing.
//! Since the versions announced before are then unknown, no version below the wall clock of that
//! moment, or below the bound of all versions, is given out afterwards. A tree is folded up to its
//! root when it is opened, and its nodes are compared with what they were then; one that does not
//! match is computed anew.

mod highest_version;
mod node_checks;
mod records;
mod trees;

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use byname_transfer::attributes::Checksums;
use byname_transfer::server::{FileState, Recalled, Record, RecordKey};
use rustix::fs::FlockOperation;

pub use records::{ChecksumRecord, RootRecord};
pub(crate) use trees::node_offset;
pub use trees::{TREE_HEADER_BYTES, TreeFile, TreeWriter, is_small};

use crate::error::{StateError, at};
use records::Records;
use trees::Trees;

/// Octets of hash trees kept on disk unless configured otherwise: those of 256 GiB of files.
pub(crate) const TREE_BYTES_MAX: u64 = 1 << 30;

/// Hashes of the content of a file's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digests {
    /// The BLAKE3 root.
    pub root: [u8; 32],
    /// Checksums, those that are known.
    pub checksums: Checksums,
}

/// An open state directory.
#[derive(Debug)]
pub struct StateDir {
    directory: PathBuf,
    identity: (u64, u64),
    records: Records,
    trees: Trees,
    /// Held for its lock.
    _lock: File,
}

impl StateDir {
    /// Opens or makes a state directory; trees may take `tree_bytes_max` octets of disk.
    ///
    /// # Errors
    /// [`StateError::Locked`] if another server uses it; others name the file.
    pub fn open(directory: &Path, tree_bytes_max: u64) -> Result<Self, StateError> {
        let directory = std::path::absolute(directory).map_err(at(directory))?;
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&directory)
            .map_err(at(&directory))?;
        let lock = lock(&directory)?;
        let about = fs::metadata(&directory).map_err(at(&directory))?;
        let records = Records::open(&directory.join("records.redb"))?;
        let trees = Trees::open(&directory.join("trees"), tree_bytes_max)?;
        let identity = (about.dev(), about.ino());
        Ok(Self { directory, identity, records, trees, _lock: lock })
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Its device and inode.
    pub fn identity(&self) -> (u64, u64) {
        self.identity
    }

    /// Record of a name, and the root of a file's state if its tree can be had.
    pub fn recall(&self, key: &RecordKey, of: Option<&FileState>) -> Recalled {
        let (record, version_floor) = self.records.name(key);
        let known = of.and_then(|of| self.digests(of));
        let root = known.map(|known| known.root);
        let checksums = known.map(|known| known.checksums).unwrap_or_default();
        Recalled { record, version_floor, root, checksums }
    }

    /// Root and checksums of a file's state, if its root is known and its tree can be had.
    pub fn digests(&self, of: &FileState) -> Option<Digests> {
        let root = self.root(of)?;
        Some(Digests { root, checksums: self.records.checksums(&of.fingerprint) })
    }

    /// The root of a file's state, unless its tree would have to be kept and is not.
    fn root(&self, of: &FileState) -> Option<[u8; 32]> {
        let root = self.records.root(&of.fingerprint)?;
        (is_small(of.size) || self.trees.has(&of.fingerprint)).then_some(root)
    }

    /// The same for many names at once.
    pub fn recall_all(&self, asked: &[(RecordKey, FileState)]) -> Vec<Recalled> {
        let mut all = self.records.all(asked);
        for (recalled, (_, of)) in all.iter_mut().zip(asked) {
            let is_kept = is_small(of.size) || self.trees.has(&of.fingerprint);
            recalled.root = recalled.root.filter(|_| is_kept);
        }
        all
    }

    /// Makes records and roots durable together. False for each record that is not above what was
    /// announced under its name meanwhile: that one is not kept.
    ///
    /// # Errors
    /// [`StateError`] of the disk; nothing may be announced then.
    pub fn commit(
        &self,
        names: &[(RecordKey, Record)],
        roots: &[RootRecord],
    ) -> Result<Vec<bool>, StateError> {
        self.records.commit(names, roots)
    }

    /// Makes a root known at once; it becomes durable with the next commit that contains it.
    pub fn remember(&self, root: RootRecord) {
        self.records.remember(root);
    }

    /// Makes checksums durable, and known.
    ///
    /// # Errors
    /// [`StateError`] of the disk; they are computed again then.
    pub fn keep_checksums(&self, kept: &[ChecksumRecord]) -> Result<(), StateError> {
        self.records.keep_checksums(kept)
    }

    /// A file for the tree of a file that is being hashed.
    ///
    /// # Errors
    /// [`StateError`] of the disk.
    pub fn create_tree(&self, of: &FileState) -> Result<TreeWriter, StateError> {
        self.trees.create(of)
    }

    /// Puts a complete tree in its place.
    ///
    /// # Errors
    /// [`StateError`] of the disk.
    pub fn keep_tree(&self, tree: TreeWriter, root: &[u8; 32]) -> Result<(), StateError> {
        self.trees.keep(tree, root)
    }

    /// Takes the tree of another state, with the same content, for that of this one; false if none
    /// is kept. The other is forgotten if it was of the same inode.
    pub fn adopt_tree(&self, of: &FileState, root: &[u8; 32]) -> bool {
        self.trees.adopt(of, root)
    }

    /// Opens the tree of a file's state if it is kept and folds to the root that is known.
    pub fn open_tree(&self, of: &FileState) -> Option<TreeFile> {
        let root = self.records.root(&of.fingerprint)?;
        self.trees.open_checked(of, &root)
    }
}

fn lock(directory: &Path) -> Result<File, StateError> {
    let path = directory.join("lock");
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .map_err(at(&path))?;
    if let Err(error) = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        if error != rustix::io::Errno::WOULDBLOCK {
            return Err(at(&path)(error.into()));
        }
        let mut text = String::new();
        // The owner is only reported; a lock file without a number changes nothing.
        let _ = (&file).take(16).read_to_string(&mut text);
        let pid = text.trim().parse().ok();
        return Err(StateError::Locked { directory: directory.to_path_buf(), pid });
    }
    let pid = std::process::id().to_string();
    file.set_len(0)
        .and_then(|()| file.seek(SeekFrom::Start(0)))
        .and_then(|_| file.write_all(pid.as_bytes()))
        .map_err(at(&path))?;
    Ok(file)
}
