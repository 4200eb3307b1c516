//! A map of paths to octets, with a version number for every change.
//!
//! Files are replaced whole, as in an object store, so a state that is seen is complete: there is
//! no ctime, and nothing has to become quiet. Directories are what the paths imply. A replaced file
//! is not served to its end: what was opened before has changed.

use std::collections::{BTreeMap, HashMap};
use std::io::{ErrorKind, IoSliceMut};
use std::ops::Bound;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use byname_io::Clock;
use byname_transfer::naming::is_safe_entry;
use byname_transfer::server::{FileStat, FileState, Fingerprint, ListFailure};

use super::{
    Backend, BackendFile, Content, Directory, DirectoryEntry, Found, LocateError, TakeEntry,
};
use crate::content::{copy_exact, copy_ready};

const MODE_FILE: u16 = 0o100_644;
const MODE_DIRECTORY: u16 = 0o040_755;

/// Files in memory. Clones are the same files.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    files: Arc<RwLock<Files>>,
    is_remote: bool,
}

#[derive(Debug, Default)]
struct Files {
    by_path: BTreeMap<Vec<u8>, Stored>,
    /// Last change beneath each directory; the topmost one is always there.
    changed: HashMap<Vec<u8>, u64>,
    last_version: u64,
}

#[derive(Debug, Clone)]
struct Stored {
    content: Arc<[u8]>,
    stat: FileStat,
}

/// Reason why nothing can be kept under a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// A component is empty, `.` or `..`, or longer than 255 octets.
    #[error("not a path that can be published")]
    Malformed,
    /// A file and a directory would have one path.
    #[error("a file cannot be a directory, too")]
    Taken,
}

impl Memory {
    /// No files yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same files as a store across a network would give them: nothing can be had without
    /// waiting.
    pub fn remote(&self) -> Self {
        Self { files: self.files.clone(), is_remote: true }
    }

    /// Puts a file in place of what is there, changed now.
    ///
    /// # Errors
    /// [`PathError`].
    pub fn put(&self, path: &str, content: &[u8]) -> Result<(), PathError> {
        self.put_changed(path, content, Clock::new().unix_ns())
    }

    /// The same, with a time of last change.
    ///
    /// # Errors
    /// [`PathError`].
    pub fn put_changed(&self, path: &str, content: &[u8], mtime_ns: u64) -> Result<(), PathError> {
        let path = path.as_bytes();
        if !path.split(|octet| *octet == b'/').all(is_safe_entry) {
            return Err(PathError::Malformed);
        }
        let mut files = self.write();
        let is_taken = files.changed.contains_key(path)
            || ancestors(path).any(|above| files.by_path.contains_key(above));
        if is_taken {
            return Err(PathError::Taken);
        }
        let version = files.next_version();
        let size = content.len() as u64;
        let state = FileState { fingerprint: fingerprint(path, [version, size, mtime_ns]), size };
        let stat = FileStat { state, mode: MODE_FILE, mtime_ns, ctime_ns: None };
        files.by_path.insert(path.to_vec(), Stored { content: content.into(), stat });
        files.touch(path, version);
        Ok(())
    }

    /// Removes a file, and the directories that are empty then; false if there was none.
    pub fn remove(&self, path: &str) -> bool {
        let path = path.as_bytes();
        let mut files = self.write();
        if files.by_path.remove(path).is_none() {
            return false;
        }
        let version = files.next_version();
        files.touch(path, version);
        for above in ancestors(path) {
            if !above.is_empty() && files.beneath(above).next().is_none() {
                files.changed.remove(above);
            }
        }
        true
    }

    fn read(&self) -> RwLockReadGuard<'_, Files> {
        self.files.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Files> {
        self.files.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The directories above a path, the topmost one last.
fn ancestors(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let slashes = path.iter().enumerate().rev().filter(|(_, octet)| **octet == b'/');
    slashes.map(|(at, _)| &path[..at]).chain([&path[..0]])
}

/// Common prefix of the paths beneath a directory.
fn prefix(directory: &[u8]) -> Vec<u8> {
    match directory {
        [] => Vec::new(),
        path => [path, b"/"].concat(),
    }
}

fn fingerprint(path: &[u8], numbers: [u64; 3]) -> Fingerprint {
    let (mut object, mut state) = ([0; 16], [0; 24]);
    object.copy_from_slice(&blake3::hash(path).as_bytes()[..16]);
    for (place, number) in state.chunks_exact_mut(8).zip(numbers) {
        place.copy_from_slice(&number.to_be_bytes());
    }
    Fingerprint::new(object, state)
}

impl Files {
    /// Above all earlier ones, those of an earlier life of the program included.
    fn next_version(&mut self) -> u64 {
        self.last_version = Clock::new().unix_ns().max(self.last_version + 1);
        self.last_version
    }

    fn touch(&mut self, path: &[u8], version: u64) {
        for above in ancestors(path) {
            self.changed.insert(above.to_vec(), version);
        }
    }

    /// The files beneath a directory, sorted.
    fn beneath(&self, directory: &[u8]) -> impl Iterator<Item = (&Vec<u8>, &Stored)> {
        let prefix = prefix(directory);
        let from = (Bound::Included(prefix.clone()), Bound::Unbounded);
        let files = self.by_path.range::<Vec<u8>, _>(from);
        files.take_while(move |(path, _)| path.starts_with(&prefix))
    }

    fn directory(&self, path: &[u8]) -> Option<FileStat> {
        let changed = self.changed.get(path).copied();
        let changed = changed.or_else(|| path.is_empty().then_some(0))?;
        let state = FileState { fingerprint: fingerprint(&prefix(path), [changed, 0, 0]), size: 0 };
        Some(FileStat { state, mode: MODE_DIRECTORY, mtime_ns: changed, ctime_ns: None })
    }
}

impl Backend for Memory {
    fn is_ready(&self, _path: &[u8]) -> bool {
        !self.is_remote
    }

    fn locate(&self, path: &[u8]) -> Result<Found, LocateError> {
        let files = self.read();
        let (memory, path) = (self.clone(), path.to_vec());
        if let Some(stored) = files.by_path.get(&path) {
            let stored = stored.clone();
            return Ok(Found::File(Arc::new(MemoryFile { memory, path, stored })));
        }
        let stat = files.directory(&path).ok_or(LocateError::NotFound)?;
        Ok(Found::Directory(Box::new(MemoryDirectory { memory, path, stat })))
    }

    fn describe(&self, path: &[u8]) -> String {
        format!("memory:{}", String::from_utf8_lossy(path))
    }
}

#[derive(Debug)]
struct MemoryFile {
    memory: Memory,
    path: Vec<u8>,
    stored: Stored,
}

impl Content for MemoryFile {
    fn read_ready(&self, places: &mut [IoSliceMut<'_>], offset: u64) -> std::io::Result<usize> {
        match self.memory.is_remote {
            true => Err(ErrorKind::WouldBlock.into()),
            false => Ok(copy_ready(&self.stored.content, places, offset)),
        }
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> std::io::Result<()> {
        copy_exact(&self.stored.content, buffer, offset)
    }

    fn is_unchanged(&self) -> bool {
        let files = self.memory.read();
        files.by_path.get(&self.path).is_some_and(|now| now.stat == self.stored.stat)
    }
}

impl BackendFile for MemoryFile {
    fn stat(&self) -> FileStat {
        self.stored.stat
    }
}

#[derive(Debug)]
struct MemoryDirectory {
    memory: Memory,
    path: Vec<u8>,
    stat: FileStat,
}

impl Directory for MemoryDirectory {
    fn stat(&self) -> FileStat {
        self.stat
    }

    fn list(&self, wants_stat: bool, take: &mut TakeEntry<'_>) -> Result<(), ListFailure> {
        let files = self.memory.read();
        let start = prefix(&self.path).len();
        let mut last: &[u8] = b"";
        for (path, stored) in files.beneath(&self.path) {
            let rest = &path[start..];
            let name = rest.split(|octet| *octet == b'/').next().unwrap_or_default();
            let is_directory = name.len() < rest.len();
            if is_directory && name == last {
                continue;
            }
            last = name;
            let stat = match is_directory {
                true => files.directory(&path[..start + name.len()]),
                false => Some(stored.stat),
            };
            let stat = stat.filter(|_| wants_stat);
            take(DirectoryEntry { name, is_directory, stat, link_target: None })?;
        }
        Ok(())
    }

    fn is_unchanged(&self) -> bool {
        self.memory.read().directory(&self.path) == Some(self.stat)
    }

    fn open(&self, name: &[u8]) -> Option<Arc<dyn BackendFile>> {
        match self.memory.locate(&[&prefix(&self.path), name].concat()) {
            Ok(Found::File(file)) => Some(file),
            _ => None,
        }
    }
}
