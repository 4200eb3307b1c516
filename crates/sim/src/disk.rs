//! A disk and a state directory in memory. Files have no bytes: octet i of a file is a function of
//! its seed, so that a file may be of any size. What is durable survives a crash of the program.

use std::collections::{BTreeMap, HashMap};

use byname_security::tree::{Tree, TreeBuilder};
use byname_transfer::server::{FileStat, Identity, Record, RecordKey};

use crate::random::Random;

const MODE_FILE: u16 = 0o100_644;
const BLOCK_BYTES: usize = 8;

/// A file on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct File {
    /// What its octets are made from.
    pub seed: u64,
    /// Octets.
    pub size: u64,
    /// Number that no other file ever had.
    pub inode: u64,
    /// Last change, of content and inode, nanoseconds since the Unix epoch.
    pub changed_ns: u64,
}

impl File {
    /// Its state.
    pub fn stat(&self) -> FileStat {
        let identity = Identity {
            device: 1,
            inode: self.inode,
            size: self.size,
            mtime_ns: self.changed_ns,
            ctime_ns: self.changed_ns,
        };
        FileStat { identity, mode: MODE_FILE }
    }

    /// Its octets from an offset on; all of `buffer` must lie within the file.
    pub fn read(&self, offset: u64, buffer: &mut [u8]) {
        content(self.seed, offset, buffer);
    }

    /// Its hash tree.
    pub fn tree(&self) -> Tree {
        let mut builder = TreeBuilder::new(self.size);
        let mut buffer = vec![0; 1 << 16];
        let mut offset = 0;
        while offset < self.size {
            let len = (self.size - offset).min(buffer.len() as u64) as usize;
            self.read(offset, &mut buffer[..len]);
            builder.push(&buffer[..len]).expect("as many octets as announced");
            offset += len as u64;
        }
        builder.finish().expect("as many octets as announced")
    }
}

/// Octets of the file made from `seed`, from `offset` on.
pub fn content(seed: u64, offset: u64, buffer: &mut [u8]) {
    let mut at = 0;
    while at < buffer.len() {
        let place = offset + at as u64;
        let block = Random::new(seed ^ (place / BLOCK_BYTES as u64)).draw().to_le_bytes();
        let from = (place % BLOCK_BYTES as u64) as usize;
        let len = (BLOCK_BYTES - from).min(buffer.len() - at);
        buffer[at..at + len].copy_from_slice(&block[from..from + len]);
        at += len;
    }
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Disk {
    files: BTreeMap<Vec<u8>, File>,
    records: HashMap<RecordKey, Record>,
    trees: HashMap<Identity, Tree>,
    next_inode: u64,
}

impl Disk {
    /// Puts a file in place of what is there, as a rename does.
    pub fn put(&mut self, path: &str, seed: u64, size: u64, unix_ns: u64) -> File {
        self.next_inode += 1;
        let file = File { seed, size, inode: self.next_inode, changed_ns: unix_ns };
        self.files.insert(path.as_bytes().to_vec(), file);
        file
    }

    /// Removes a file.
    pub fn remove(&mut self, path: &str) {
        self.files.remove(path.as_bytes());
    }

    /// What stands at a path now.
    pub fn find(&self, path: &[u8]) -> Option<File> {
        self.files.get(path).copied()
    }

    /// Whether a file is still what it was when it was opened.
    pub fn is_unchanged(&self, file: &File) -> bool {
        // An open file that was replaced or removed keeps its content, but its inode changes.
        self.files.values().any(|now| now == file)
    }

    /// The record under a name.
    pub fn record(&self, key: &RecordKey) -> Option<Record> {
        self.records.get(key).copied()
    }

    /// Makes a record durable.
    pub fn announce(&mut self, key: RecordKey, record: Record) {
        self.records.insert(key, record);
    }

    /// The tree that was kept for a state.
    pub fn tree(&self, identity: &Identity) -> Option<&Tree> {
        self.trees.get(identity)
    }

    /// Keeps a tree.
    pub fn keep_tree(&mut self, identity: Identity, tree: Tree) {
        self.trees.insert(identity, tree);
    }
}
