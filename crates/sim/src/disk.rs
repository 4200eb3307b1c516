//! A disk in memory, and a publisher's state beside it, in memory or in a real directory. Files
//! have no bytes: octet i of a file is a function of its seed, so that a file may be of any size.
//! Durable data survives a crash of the program.

mod state;

use std::collections::BTreeMap;

use byname_security::tree::{Tree, TreeBuilder};
use byname_transfer::server::{FileStat, FileState, Fingerprint, Recalled, Record, RecordKey};

use crate::random::Random;
use state::KeptState;

const MODE_FILE: u16 = 0o100_644;
const MODE_DIRECTORY: u16 = 0o040_755;
const BLOCK_BYTES: usize = 8;

/// A file on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct File {
    /// Seed of its octets.
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
        stat((self.inode, self.size), self.changed_ns, MODE_FILE)
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

/// Faults on a disk, as the chance of each operation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Trouble {
    /// Content cannot be read, or not all of it.
    pub read_error: f64,
    /// Files cannot be opened, directories not read, trees not found.
    pub other_error: f64,
    /// An operation takes `slow_ns` longer.
    pub slow: f64,
    /// Additional time.
    pub slow_ns: u64,
    /// Nothing more can be made durable.
    pub is_full: bool,
}

/// An entry of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Child {
    /// A file.
    File(File),
    /// A directory, with its state.
    Directory(FileStat),
}

/// When a directory changed last, and its number.
#[derive(Clone, Copy, Debug)]
struct Directory {
    inode: u64,
    changed_ns: u64,
}

impl Directory {
    fn stat(&self) -> FileStat {
        stat((self.inode, 0), self.changed_ns, MODE_DIRECTORY)
    }
}

/// Metadata of a file or directory with this number and size.
fn stat((inode, size): (u64, u64), changed_ns: u64, mode: u16) -> FileStat {
    let (mut object, mut state) = ([0; 16], [0; 24]);
    object[8..].copy_from_slice(&inode.to_be_bytes());
    state[..8].copy_from_slice(&size.to_be_bytes());
    state[8..16].copy_from_slice(&changed_ns.to_be_bytes());
    let state = FileState { fingerprint: Fingerprint::new(object, state), size };
    FileStat { state, mode, mtime_ns: changed_ns, ctime_ns: Some(changed_ns) }
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Disk {
    /// Faults.
    pub trouble: Trouble,
    files: BTreeMap<Vec<u8>, File>,
    /// By path; the topmost has an empty one. What is above a file is there as long as the disk.
    directories: BTreeMap<Vec<u8>, Directory>,
    state: KeptState,
    next_inode: u64,
}

impl Disk {
    /// Puts a file in place of what is there, as a rename does.
    pub fn put(&mut self, path: &str, seed: u64, size: u64, unix_ns: u64) -> File {
        self.next_inode += 1;
        let file = File { seed, size, inode: self.next_inode, changed_ns: unix_ns };
        self.files.insert(path.as_bytes().to_vec(), file);
        self.touch_above(path.as_bytes(), unix_ns);
        file
    }

    /// Writes another content into a file that is there, as an editor does that keeps the inode.
    pub fn rewrite(&mut self, path: &str, seed: u64, size: u64, unix_ns: u64) {
        if let Some(file) = self.files.get_mut(path.as_bytes()) {
            *file = File { seed, size, inode: file.inode, changed_ns: unix_ns };
        }
    }

    /// Removes a file.
    pub fn remove(&mut self, path: &str) {
        if let Some(file) = self.files.remove(path.as_bytes()) {
            self.touch_above(path.as_bytes(), file.changed_ns + 1);
        }
    }

    /// Makes what is missing above a path; the innermost directory has changed.
    fn touch_above(&mut self, path: &[u8], unix_ns: u64) {
        let mut above = parent(path);
        let mut is_changed = true;
        while let Some(directory) = above {
            let known = self.directories.get_mut(directory);
            let is_new = known.is_none();
            match known {
                Some(known) if is_changed => {
                    known.changed_ns = unix_ns.max(known.changed_ns + 1);
                }
                Some(_) => {}
                None => {
                    self.next_inode += 1;
                    let made = Directory { inode: self.next_inode, changed_ns: unix_ns };
                    self.directories.insert(directory.to_vec(), made);
                }
            }
            is_changed = is_new;
            above = parent(directory);
        }
    }

    /// The state of a directory.
    pub fn find_directory(&self, path: &[u8]) -> Option<FileStat> {
        self.directories.get(path).map(Directory::stat)
    }

    /// The entries of a directory, sorted.
    pub fn children(&self, path: &[u8]) -> Vec<(Vec<u8>, Child)> {
        let is_in = |other: &Vec<u8>| parent(other) == Some(path);
        let files = self.files.iter().filter(|(other, _)| is_in(other));
        let files = files.map(|(other, file)| (last(other), Child::File(*file)));
        let directories = self.directories.iter().filter(|(other, _)| is_in(other));
        let directories = directories.map(|(other, it)| (last(other), Child::Directory(it.stat())));
        let children: BTreeMap<_, _> = files.chain(directories).collect();
        children.into_iter().collect()
    }

    /// File at a path now.
    pub fn find(&self, path: &[u8]) -> Option<File> {
        self.files.get(path).copied()
    }

    /// True if a file is still what it was when it was opened.
    pub fn is_unchanged(&self, file: &File) -> bool {
        // An open file that was replaced or removed keeps its content, but its inode changes.
        self.files.values().any(|now| now == file)
    }

    /// From now on records and trees are kept in a real state directory, as production has it.
    ///
    /// # Errors
    /// Of the file system.
    pub fn use_state_directory(&mut self) -> std::io::Result<()> {
        self.state = KeptState::directory()?;
        Ok(())
    }

    /// Contents left to a program that is killed now.
    ///
    /// # Errors
    /// Of the file system, if there is a real state directory.
    pub fn crash(&mut self) -> std::io::Result<()> {
        self.state.crash()
    }

    /// Record kept under a name, and the root of a state.
    pub fn recall(&self, key: &RecordKey, of: Option<&FileState>) -> Recalled {
        self.state.recall(key, of)
    }

    /// Makes a record durable; false if there is no room.
    pub fn announce(&mut self, key: RecordKey, record: Record) -> bool {
        !self.trouble.is_full && self.state.announce(key, record)
    }

    /// The levels of the tree that was kept for a state, one behind the other.
    pub fn levels(&self, of: &FileState) -> Option<Vec<u8>> {
        let is_it = |file: &&File| file.stat().state == *of;
        self.state.levels(of, || self.files.values().find(is_it).map(File::tree))
    }

    /// Keeps a tree; false if there is no room.
    pub fn keep_tree(&mut self, of: FileState, tree: Tree) -> bool {
        !self.trouble.is_full && self.state.keep_tree(of, tree)
    }
}

/// The directory of a path; the topmost has none.
fn parent(path: &[u8]) -> Option<&[u8]> {
    if path.is_empty() {
        return None;
    }
    let end = path.iter().rposition(|octet| *octet == b'/').unwrap_or(0);
    Some(&path[..end])
}

fn last(path: &[u8]) -> Vec<u8> {
    let start = path.iter().rposition(|octet| *octet == b'/').map_or(0, |at| at + 1);
    path[start..].to_vec()
}
