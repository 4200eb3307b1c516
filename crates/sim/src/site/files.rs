//! A disk's file system in memory, for `byname_disk`: what was not synced is lost when the power
//! fails, octets and names alike.
//!
//! Octets survive up to where the file was synced; of those behind it some pages are there, some
//! are zeros. Of what happened to the entries of a directory since it was synced, a beginning is
//! there, of any length. A killed process loses nothing: the system has it all.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use byname_disk::{FileFacts, Files, LockGuard, OpenFile};
use rustix::io::Errno;

use crate::random::Random;

const PAGE_BYTES: usize = 4096;

/// Faults of a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trouble {
    /// No room is left.
    pub is_full: bool,
    /// Nothing can be changed.
    pub is_read_only: bool,
    /// What is said to be synced is not.
    pub lies: bool,
}

#[derive(Clone, Debug, Default)]
struct Node {
    octets: Vec<u8>,
    synced_bytes: usize,
}

#[derive(Clone, Debug, Default)]
struct State {
    nodes: BTreeMap<u64, Node>,
    /// Names as every process sees them.
    entries: BTreeMap<PathBuf, u64>,
    /// Names as they are after a power cut, but for those below.
    durable: BTreeMap<PathBuf, u64>,
    /// Changes of names that are not synced, in their order.
    pending: Vec<(PathBuf, Option<u64>)>,
    directories: BTreeSet<PathBuf>,
    next_inode: u64,
    is_locked: bool,
    trouble: Trouble,
    /// Changes so far.
    changes: u64,
}

/// See the module. Clones are the same disk.
#[derive(Clone, Debug, Default)]
pub struct MemoryFiles(Arc<Mutex<State>>);

/// A disk at one moment.
#[derive(Clone, Debug)]
pub struct Moment(State);

impl MemoryFiles {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets it fail, or not.
    pub fn set_trouble(&self, trouble: Trouble) {
        self.state().trouble = trouble;
    }

    /// The disk as it is.
    pub fn moment(&self) -> Moment {
        Moment(self.state().clone())
    }

    /// True if nothing was changed since.
    pub fn is_as(&self, moment: &Moment) -> bool {
        self.state().changes == moment.0.changes
    }

    /// Puts it back to another moment.
    pub fn restore(&self, moment: Moment) {
        *self.state() = moment.0;
    }

    /// The process that had it open has ended.
    pub fn unlock(&self) {
        self.state().is_locked = false;
    }

    /// The power fails.
    pub fn cut_power(&self, random: &mut Random) {
        let mut state = self.state();
        let pending = std::mem::take(&mut state.pending);
        let mut left: BTreeMap<PathBuf, u64> = BTreeMap::new();
        for (path, _) in &pending {
            *left.entry(directory_of(path)).or_default() += 1;
        }
        left.values_mut().for_each(|count| *count = random.below(*count + 1));
        for (path, inode) in pending {
            let left = left.entry(directory_of(&path)).or_default();
            if *left > 0 {
                *left -= 1;
                set(&mut state.durable, path, inode);
            }
        }
        state.entries = state.durable.clone();
        let used: BTreeSet<u64> = state.entries.values().copied().collect();
        state.nodes.retain(|inode, _| used.contains(inode));
        for node in state.nodes.values_mut() {
            lose(node, random);
        }
    }

    /// Changes one bit of a file, as a disk does that goes bad; false if there is none or it is
    /// empty.
    pub fn corrupt(&self, path: &Path, random: &mut Random) -> bool {
        let mut state = self.state();
        let Some(inode) = state.entries.get(path).copied() else { return false };
        let Some(node) = state.nodes.get_mut(&inode) else { return false };
        let at = random.below(node.octets.len() as u64) as usize;
        node.octets.get_mut(at).is_some_and(|octet| {
            *octet ^= 1;
            true
        })
    }

    /// Paths of all files below a directory, with their octets.
    pub fn below(&self, directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
        let state = self.state();
        let is_below = |path: &Path| path.starts_with(directory);
        let entries = state.entries.iter().filter(|(path, _)| is_below(path));
        entries.map(|(path, inode)| (path.clone(), state.nodes[inode].octets.clone())).collect()
    }

    /// Octets of a file.
    pub fn octets(&self, path: &Path) -> Option<Vec<u8>> {
        self.read(path, u64::MAX - 1).ok()
    }
}

/// What was not synced is there or not, page by page.
fn lose(node: &mut Node, random: &mut Random) {
    let len = node.octets.len() - node.synced_bytes;
    let kept = node.synced_bytes + random.below(len as u64 + 1) as usize;
    node.octets.truncate(kept);
    let synced_bytes = node.synced_bytes;
    for page in node.octets[synced_bytes..].chunks_mut(PAGE_BYTES) {
        if random.chance(0.5) {
            page.fill(0);
        }
    }
    node.synced_bytes = node.octets.len();
}

fn directory_of(path: &Path) -> PathBuf {
    path.parent().unwrap_or(Path::new("/")).to_owned()
}

fn set(entries: &mut BTreeMap<PathBuf, u64>, path: PathBuf, inode: Option<u64>) {
    match inode {
        Some(inode) => entries.insert(path, inode),
        None => entries.remove(&path),
    };
}

impl State {
    fn change(&mut self) -> io::Result<()> {
        self.changes += 1;
        match self.trouble {
            Trouble { is_read_only: true, .. } => Err(Errno::ROFS.into()),
            Trouble { is_full: true, .. } => Err(Errno::NOSPC.into()),
            Trouble { .. } => Ok(()),
        }
    }

    fn name(&mut self, path: &Path, inode: Option<u64>) {
        set(&mut self.entries, path.to_owned(), inode);
        self.pending.push((path.to_owned(), inode));
    }

    fn inode(&self, path: &Path) -> io::Result<u64> {
        self.entries.get(path).copied().ok_or(ErrorKind::NotFound.into())
    }
}

impl Files for MemoryFiles {
    fn create(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        let mut state = self.state();
        state.change()?;
        if !state.directories.contains(&directory_of(path)) {
            return Err(ErrorKind::NotFound.into());
        }
        let inode = match state.inode(path) {
            Ok(inode) => inode,
            Err(_) => {
                state.next_inode += 1;
                let inode = state.next_inode;
                state.name(path, Some(inode));
                inode
            }
        };
        state.nodes.insert(inode, Node::default());
        Ok(Box::new(MemoryFile { files: self.clone(), inode }))
    }

    fn read(&self, path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
        let state = self.state();
        let octets = &state.nodes[&state.inode(path)?].octets;
        match octets.len() as u64 > bytes_max {
            true => Err(ErrorKind::FileTooLarge.into()),
            false => Ok(octets.clone()),
        }
    }

    fn read_at(&self, path: &Path, offset: u64, bytes_max: usize) -> io::Result<Vec<u8>> {
        let state = self.state();
        let octets = &state.nodes[&state.inode(path)?].octets;
        let from = octets.len().min(offset as usize);
        Ok(octets[from..].iter().copied().take(bytes_max).collect())
    }

    fn append(&self, path: &Path, len: u64) -> io::Result<Box<dyn OpenFile>> {
        let mut state = self.state();
        state.change()?;
        let inode = state.inode(path)?;
        let node = state.nodes.get_mut(&inode).ok_or(ErrorKind::NotFound)?;
        node.octets.truncate(len as usize);
        node.synced_bytes = node.synced_bytes.min(node.octets.len());
        Ok(Box::new(MemoryFile { files: self.clone(), inode }))
    }

    fn facts(&self, path: &Path) -> io::Result<FileFacts> {
        let state = self.state();
        let inode = state.inode(path)?;
        Ok(FileFacts { len: state.nodes[&inode].octets.len() as u64, inode })
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        let state = self.state();
        if !state.directories.contains(directory) {
            return Err(ErrorKind::NotFound.into());
        }
        let is_in = |path: &&PathBuf| path.parent() == Some(directory);
        let directories = state.directories.iter().filter(is_in);
        Ok(state.entries.keys().filter(is_in).chain(directories).cloned().collect())
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        self.state().directories.extend(path.ancestors().map(Path::to_owned));
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.change()?;
        let inode = state.inode(from)?;
        state.name(to, Some(inode));
        state.name(from, None);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.inode(path)?;
        // A full disk can be emptied.
        match state.change() {
            Err(error) if error.raw_os_error() != Some(Errno::NOSPC.raw_os_error()) => Err(error),
            _ => {
                state.name(path, None);
                Ok(())
            }
        }
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.changes += 1;
        if state.trouble.lies {
            return Ok(());
        }
        let pending = std::mem::take(&mut state.pending);
        for (entry, inode) in pending {
            match entry.parent() == Some(path) {
                true => set(&mut state.durable, entry, inode),
                false => state.pending.push((entry, inode)),
            }
        }
        Ok(())
    }

    fn sync_all(&self, _path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.changes += 1;
        if state.trouble.lies {
            return Ok(());
        }
        let State { nodes, entries, durable, pending, .. } = &mut *state;
        pending.clear();
        durable.clone_from(entries);
        nodes.values_mut().for_each(|node| node.synced_bytes = node.octets.len());
        Ok(())
    }

    fn room(&self, _path: &Path) -> io::Result<(u64, u64)> {
        let free_bytes = if self.state().trouble.is_full { 0 } else { 1 << 40 };
        Ok((free_bytes, 1 << 40))
    }

    fn is_read_only(&self, _path: &Path) -> io::Result<bool> {
        Ok(self.state().trouble.is_read_only)
    }

    fn lock(&self, _path: &Path) -> io::Result<Box<dyn LockGuard>> {
        match std::mem::replace(&mut self.state().is_locked, true) {
            true => Err(ErrorKind::WouldBlock.into()),
            false => Ok(Box::new(Lock(self.clone()))),
        }
    }
}

#[derive(Debug)]
struct Lock(MemoryFiles);

impl LockGuard for Lock {}

impl Drop for Lock {
    fn drop(&mut self) {
        self.0.unlock();
    }
}

#[derive(Debug)]
struct MemoryFile {
    files: MemoryFiles,
    inode: u64,
}

impl MemoryFile {
    fn with<T>(&self, with: impl FnOnce(&mut Node) -> T) -> io::Result<T> {
        let mut state = self.files.state();
        state.nodes.get_mut(&self.inode).map(with).ok_or(Errno::IO.into())
    }
}

impl OpenFile for MemoryFile {
    fn reserve(&mut self, _bytes: u64) -> io::Result<()> {
        self.files.state().change()
    }

    fn write(&mut self, octets: &[u8]) -> io::Result<()> {
        self.files.state().change()?;
        self.with(|node| node.octets.extend_from_slice(octets))
    }

    fn take(&mut self, from: &Path, offset: u64, bytes: u64) -> io::Result<()> {
        let octets = self.files.read_at(from, offset, bytes as usize)?;
        match octets.len() as u64 == bytes {
            true => self.write(&octets),
            false => Err(ErrorKind::UnexpectedEof.into()),
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        let lies = {
            let mut state = self.files.state();
            state.changes += 1;
            state.trouble.lies
        };
        match lies {
            true => Ok(()),
            false => self.with(|node| node.synced_bytes = node.octets.len()),
        }
    }

    fn facts(&self) -> io::Result<FileFacts> {
        let len = self.with(|node| node.octets.len() as u64)?;
        Ok(FileFacts { len, inode: self.inode })
    }
}
