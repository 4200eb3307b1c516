//! Resolving a published path without ever leaving its root.
//!
//! The path is walked component by component on descriptors, and symbolic links are followed by
//! hand: a target is pushed onto the components still to walk, `..` goes back to a descriptor
//! that was passed on the way, an absolute target or a `..` above the root ends the walk.
//! `openat2` would stay beneath the root too, but could not tell whether a link led through a
//! directory that is hidden, and its absence (old kernels, system-call filters) would need this
//! walk anyway.
//!
//! Links can close a circle (`ln -s . again`), in which a tree would have no end. So the
//! directories that the components of the *named* path lead to must all be different ones, the root
//! included; a component that leads back to an earlier one is not published.
//!
//! Nothing is opened before it is known to be a regular file or a directory, so that no device is
//! touched and no FIFO blocks. What is opened is compared with what was seen.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use byname_transfer::naming::is_safe_entry;
use byname_transfer::server::{FileStat, FileState, Fingerprint};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use crate::backend::LocateError;

/// Links followed in one walk, as in the kernel.
const LINKS_MAX: usize = 40;
/// Attempts when a file is replaced between looking and opening.
const ATTEMPTS_MAX: usize = 4;

/// Published part of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Exposure {
    /// Names that start with a dot are published too.
    pub hidden: bool,
    /// Files that only their owner can read are published too.
    pub private: bool,
}

/// A published directory.
#[derive(Debug, Clone)]
pub(crate) struct Root {
    path: PathBuf,
    exposure: Exposure,
    /// The state directory, which is never published.
    state: [u8; 16],
}

/// Target of a path.
#[derive(Debug)]
pub(crate) enum Walked {
    /// A regular file, open for reading.
    File {
        /// The open file.
        file: File,
        /// Its state and attributes.
        stat: FileStat,
    },
    /// A directory.
    Directory(WalkedDirectory),
}

/// A directory that a path leads to.
#[derive(Debug)]
pub(crate) struct WalkedDirectory {
    /// A descriptor that names it (`O_PATH`).
    pub(crate) fd: OwnedFd,
    /// Its state and attributes.
    pub(crate) stat: FileStat,
    /// The directories that its path names, from the root to itself.
    pub(super) lineage: Lineage,
}

/// Device and inode of each directory that a path names.
#[derive(Debug, Default)]
pub(crate) struct Lineage(Vec<[u8; 16]>);

impl Lineage {
    /// True if a directory is one of them, so that it cannot be published beneath them.
    pub(super) fn contains(&self, directory: &FileState) -> bool {
        self.0.contains(directory.fingerprint.object())
    }
}

/// Why a path leads to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WalkError {
    /// It does not exist, or it is not published.
    #[error("not found, or not published")]
    NotFound,
    /// It exists, but this process may not read it.
    #[error("permission denied")]
    NoPermission,
    /// The system failed.
    #[error("cannot read: {0}")]
    Failed(Errno),
}

impl From<Errno> for WalkError {
    fn from(error: Errno) -> Self {
        match error {
            Errno::ACCESS | Errno::PERM => Self::NoPermission,
            Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NAMETOOLONG | Errno::INVAL => {
                Self::NotFound
            }
            // A FIFO or socket took the file's place between looking and opening.
            Errno::NXIO | Errno::NODEV => Self::NotFound,
            other => Self::Failed(other),
        }
    }
}

impl From<WalkError> for LocateError {
    fn from(error: WalkError) -> Self {
        match error {
            WalkError::NotFound => Self::NotFound,
            WalkError::NoPermission => Self::NoPermission,
            WalkError::Failed(errno) => Self::Failed(errno.into()),
        }
    }
}

/// The state that `stat` shows.
pub(super) fn file_stat(stat: &Stat) -> FileStat {
    let nanoseconds = |seconds: i64, fraction: u64| {
        u64::try_from(seconds).unwrap_or(0).saturating_mul(1_000_000_000).saturating_add(fraction)
    };
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    let mtime_ns = nanoseconds(stat.st_mtime, stat.st_mtime_nsec);
    let ctime_ns = nanoseconds(stat.st_ctime, stat.st_ctime_nsec);
    let mut state = [0; 24];
    for (place, number) in state.chunks_exact_mut(8).zip([size, mtime_ns, ctime_ns]) {
        place.copy_from_slice(&number.to_be_bytes());
    }
    let fingerprint = Fingerprint::new(inode_key(stat.st_dev, stat.st_ino), state);
    FileStat {
        state: FileState { fingerprint, size },
        mode: (stat.st_mode & 0xFFFF) as u16,
        mtime_ns,
        ctime_ns: Some(ctime_ns),
    }
}

/// First part of a fingerprint: device and inode.
fn inode_key(device: u64, inode: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&device.to_be_bytes());
    key[8..].copy_from_slice(&inode.to_be_bytes());
    key
}

/// The state of an open file.
pub(super) fn stat_open(file: impl AsFd) -> Result<FileStat, Errno> {
    rustix::fs::fstat(file).map(|stat| file_stat(&stat))
}

impl Exposure {
    /// True if an entry of this name may be published.
    pub fn shows_name(&self, name: &[u8]) -> bool {
        self.hidden || !name.starts_with(b".")
    }

    /// True if something with this mode may be published.
    ///
    /// A file counts as private when neither group nor others can read it; a directory when neither
    /// can both list and enter it.
    pub fn shows_mode(&self, mode: u16) -> bool {
        let is_directory = mode & 0o170_000 == 0o040_000;
        let needed = if is_directory { 0o5 } else { 0o4 };
        let is_for = |shift: u16| (mode >> shift) & needed == needed;
        self.private || is_for(3) || is_for(0)
    }
}

struct Walk<'a> {
    root: &'a Root,
    /// The root and the directories from it to where the walk is, each with its state.
    passed: Vec<(OwnedFd, FileStat)>,
    lineage: Lineage,
    /// Components of the named path still to walk.
    named: VecDeque<Vec<u8>>,
    /// Components still to walk for the one before them: itself, then what links put in its place.
    pending: VecDeque<Vec<u8>>,
    links: usize,
}

impl Root {
    /// A root at `path`; `state` is the state directory's device and inode.
    pub(super) fn new(path: &Path, exposure: Exposure, state: (u64, u64)) -> std::io::Result<Self> {
        let state = inode_key(state.0, state.1);
        Ok(Self { path: std::path::absolute(path)?, exposure, state })
    }

    /// The published part.
    pub(crate) fn exposure(&self) -> Exposure {
        self.exposure
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// True if a directory is the one that is never published.
    pub(super) fn is_state(&self, directory: &FileState) -> bool {
        *directory.fingerprint.object() == self.state
    }

    /// True if [`Root::find`] would not have to wait for the disk: all that a path names is
    /// remembered by the system, as far as it can be asked. What it leads to does not matter here.
    pub(super) fn is_cached(&self, relative: &[u8]) -> bool {
        let path = self.path.join(OsStr::from_bytes(relative));
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let cached = ResolveFlags::CACHED;
        let opened = rustix::fs::openat2(CWD, &path, flags, Mode::empty(), cached);
        !matches!(opened, Err(Errno::AGAIN))
    }

    /// Resolves a relative path and opens it if it is a file.
    ///
    /// # Errors
    /// [`WalkError`] of the first component that ends the walk.
    pub(crate) fn find(&self, relative: &[u8]) -> Result<Walked, WalkError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::open(&self.path, flags, Mode::empty())?;
        let stat = stat_open(&fd)?;
        if self.is_state(&stat.state) {
            return Err(WalkError::NotFound);
        }
        let (lineage, pending) = (Lineage::default(), VecDeque::new());
        let named = components(relative).collect();
        let passed = vec![(fd, stat)];
        Walk { root: self, passed, lineage, named, pending, links: 0 }.run()
    }
}

fn components(path: &[u8]) -> impl DoubleEndedIterator<Item = Vec<u8>> {
    let components = path.split(|octet| *octet == b'/');
    components.filter(|component| !component.is_empty()).map(<[u8]>::to_vec)
}

impl Walk<'_> {
    fn run(mut self) -> Result<Walked, WalkError> {
        self.arrive()?;
        while let Some(name) = self.named.pop_front() {
            self.pending.push_back(name);
            while let Some(component) = self.pending.pop_front() {
                if let Some(found) = self.step(&component)? {
                    return Ok(found);
                }
            }
            self.arrive()?;
        }
        let (fd, stat) = self.passed.pop().ok_or(WalkError::NotFound)?;
        Ok(Walked::Directory(WalkedDirectory { fd, stat, lineage: self.lineage }))
    }

    /// The root, or the directory that a component of the named path leads to, is reached.
    fn arrive(&mut self) -> Result<(), WalkError> {
        let (_, stat) = self.passed.last().ok_or(WalkError::NotFound)?;
        if self.lineage.contains(&stat.state) {
            return Err(WalkError::NotFound);
        }
        self.lineage.0.push(*stat.state.fingerprint.object());
        Ok(())
    }

    fn step(&mut self, component: &[u8]) -> Result<Option<Walked>, WalkError> {
        match component {
            b"." => Ok(None),
            b".." => self.go_up().map(|()| None),
            name => self.enter(name),
        }
    }

    /// Only a link's target contains `..`.
    fn go_up(&mut self) -> Result<(), WalkError> {
        if self.passed.len() == 1 {
            return Err(WalkError::NotFound);
        }
        self.passed.pop();
        Ok(())
    }

    fn here(&self) -> BorrowedFd<'_> {
        self.passed.last().expect("the root is never popped").0.as_fd()
    }

    fn enter(&mut self, name: &[u8]) -> Result<Option<Walked>, WalkError> {
        if !is_safe_entry(name) || !self.root.exposure.shows_name(name) {
            return Err(WalkError::NotFound);
        }
        let path = Path::new(OsStr::from_bytes(name));
        for _ in 0..ATTEMPTS_MAX {
            let seen = rustix::fs::statat(self.here(), path, AtFlags::SYMLINK_NOFOLLOW)?;
            match FileType::from_raw_mode(seen.st_mode) {
                FileType::Symlink => return self.follow(path).map(|()| None),
                FileType::Directory => {
                    if self.enter_directory(path)? {
                        return Ok(None);
                    }
                }
                FileType::RegularFile => {
                    if let Some(found) = self.open(path, &seen)? {
                        return Ok(Some(found));
                    }
                }
                _ => return Err(WalkError::NotFound),
            }
        }
        Err(WalkError::Failed(Errno::AGAIN))
    }

    fn follow(&mut self, path: &Path) -> Result<(), WalkError> {
        self.links += 1;
        if self.links > LINKS_MAX {
            return Err(WalkError::NotFound);
        }
        let target = rustix::fs::readlinkat(self.here(), path, Vec::new())?;
        let target = target.as_bytes();
        if target.starts_with(b"/") {
            return Err(WalkError::NotFound);
        }
        for component in components(target).rev() {
            self.pending.push_front(component);
        }
        Ok(())
    }

    /// False if it is not a directory any more.
    fn enter_directory(&mut self, path: &Path) -> Result<bool, WalkError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = match rustix::fs::openat(self.here(), path, flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::NOTDIR | Errno::LOOP) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let stat = stat_open(&fd)?;
        if !self.root.exposure.shows_mode(stat.mode) || self.root.is_state(&stat.state) {
            return Err(WalkError::NotFound);
        }
        self.passed.push((fd, stat));
        Ok(true)
    }

    /// `None` if it is not the file seen any more.
    fn open(&mut self, path: &Path, seen: &Stat) -> Result<Option<Walked>, WalkError> {
        if !self.pending.is_empty() || !self.named.is_empty() {
            return Err(WalkError::NotFound);
        }
        if !self.root.exposure.shows_mode((seen.st_mode & 0xFFFF) as u16) {
            return Err(WalkError::NotFound);
        }
        // NONBLOCK has no effect on regular files; it matters if a FIFO took the place.
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let fd = match rustix::fs::openat(self.here(), path, flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::LOOP) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let file = File::from(fd);
        let stat = stat_open(&file)?;
        let is_same = *stat.state.fingerprint.object() == inode_key(seen.st_dev, seen.st_ino);
        let is_shown = self.root.exposure.shows_mode(stat.mode);
        Ok((is_same && is_shown).then_some(Walked::File { file, stat }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records and trees of earlier releases hold these octets: another order would lose them all.
    #[test]
    fn a_fingerprint_is_what_state_directories_already_hold() {
        let file = tempfile::tempfile().unwrap();
        let stat = rustix::fs::fstat(&file).unwrap();
        let seen = file_stat(&stat);
        let (mtime_ns, ctime_ns) = (seen.mtime_ns, seen.ctime_ns.unwrap());
        let numbers = [stat.st_dev, stat.st_ino, stat.st_size as u64, mtime_ns, ctime_ns];
        let expected: Vec<u8> = numbers.into_iter().flat_map(u64::to_be_bytes).collect();
        assert_eq!(seen.state.fingerprint.as_bytes().as_slice(), expected);
    }
}
