//! Directories of this system: their entries, without what is not published.

use std::cell::Cell;
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use byname_io::Attachments;
use byname_transfer::naming::is_safe_entry;
use byname_transfer::server::{FileStat, FileState, ListFailure};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::PosixFile;
use super::path_walk::{Root, WalkError, Walked, WalkedDirectory, file_stat, stat_open};
use crate::backend::{BackendFile, Directory, DirectoryEntry, TakeEntry};

/// A directory that a path led to.
#[derive(Debug)]
pub(super) struct PosixDirectory {
    pub(super) root: Arc<Root>,
    /// Relative path of the directory.
    pub(super) path: Vec<u8>,
    pub(super) found: WalkedDirectory,
    pub(super) attachments: Option<Arc<Attachments>>,
    /// See [`Directory::changes`].
    pub(super) changes: Cell<Option<u64>>,
}

/// A published entry.
struct SeenEntry {
    is_directory: bool,
    stat: Option<FileStat>,
    link_target: Option<Vec<u8>>,
}

impl SeenEntry {
    fn new(is_directory: bool, stat: Option<FileStat>) -> Self {
        SeenEntry { is_directory, stat, link_target: None }
    }
}

fn failure(error: WalkError) -> ListFailure {
    match error {
        WalkError::NotFound => ListFailure::NotFound,
        WalkError::NoPermission => ListFailure::NoPermission,
        WalkError::Failed(_) => ListFailure::Failed,
    }
}

impl Directory for PosixDirectory {
    fn stat(&self) -> FileStat {
        self.found.stat
    }

    /// In the order of the directory.
    fn list(&self, wants_stat: bool, take: &mut TakeEntry<'_>) -> Result<(), ListFailure> {
        let failed = |error: Errno| failure(error.into());
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let readable =
            rustix::fs::openat(&self.found.fd, ".", flags, Mode::empty()).map_err(failed)?;
        for entry in Dir::read_from(&readable).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_bytes();
            let kind = (entry.file_type(), wants_stat);
            if let Some(seen) = self.consider(&readable, name, kind)? {
                let SeenEntry { is_directory, stat, link_target } = seen;
                let link_target = link_target.as_deref();
                take(DirectoryEntry { name, is_directory, stat, link_target })?;
            }
        }
        Ok(())
    }

    fn is_unchanged(&self) -> bool {
        stat_open(&self.found.fd).is_ok_and(|stat| stat == self.found.stat)
    }

    fn changes(&self) -> Option<u64> {
        self.changes.get()
    }

    /// Opens the entry, or the target of the link that it is.
    fn open(&self, name: &[u8]) -> Option<Arc<dyn BackendFile>> {
        let (file, stat) =
            self.open_here(name).or_else(|| match self.root.find(&self.path_of(name)) {
                Ok(Walked::File { file, stat }) => Some((file, stat)),
                _ => None,
            })?;
        let attachments = self.attachments.clone();
        Some(Arc::new(PosixFile { file: Arc::new(file), stat, attachments }))
    }

    fn attachment(&self, slot: &str, bytes_max: usize) -> std::io::Result<Option<Vec<u8>>> {
        let attachments = self.attachments.as_ref();
        attachments.map_or(Ok(None), |kept| kept.get(&self.found.fd, slot, bytes_max))
    }
}

impl PosixDirectory {
    fn path_of(&self, name: &[u8]) -> Vec<u8> {
        [&self.path, &b"/"[..], name].concat()
    }

    fn open_here(&self, name: &[u8]) -> Option<(File, FileStat)> {
        // NONBLOCK matters if a FIFO took the place of the file that was seen.
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let path = Path::new(OsStr::from_bytes(name));
        let opened = rustix::fs::openat(&self.found.fd, path, flags, Mode::empty());
        let file = opened.ok().map(File::from)?;
        let stat = stat_open(&file).ok()?;
        Some((file, stat))
    }

    fn consider(
        &self,
        directory: impl AsFd,
        name: &[u8],
        (file_type, wants_stat): (FileType, bool),
    ) -> Result<Option<SeenEntry>, ListFailure> {
        let exposure = self.root.exposure();
        if !is_safe_entry(name) || !exposure.shows_name(name) {
            return Ok(None);
        }
        // With everything published the kernel's word for a regular file is enough.
        if file_type == FileType::RegularFile && exposure.private && !wants_stat {
            return Ok(Some(SeenEntry::new(false, None)));
        }
        self.look_at(directory, name, wants_stat)
    }

    /// Kind and state of an entry; `None` if it is not published.
    fn look_at(
        &self,
        directory: impl AsFd,
        name: &[u8],
        wants_stat: bool,
    ) -> Result<Option<SeenEntry>, ListFailure> {
        let path = Path::new(OsStr::from_bytes(name));
        let stat = match rustix::fs::statat(&directory, path, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            // Removed since; or a directory that may be listed but not entered.
            Err(Errno::NOENT | Errno::ACCESS) => return Ok(None),
            Err(error) => return Err(failure(error.into())),
        };
        let seen = file_stat(&stat);
        let kind = FileType::from_raw_mode(stat.st_mode);
        // What a link leads to, and a file with another name, may change elsewhere.
        if kind == FileType::Symlink || (kind == FileType::RegularFile && stat.st_nlink > 1) {
            self.changes.set(None);
        }
        let is_shown = self.root.exposure().shows_mode(seen.mode);
        Ok(match kind {
            FileType::RegularFile if is_shown => Some(SeenEntry::new(false, Some(seen))),
            FileType::Directory if is_shown && !self.is_hidden(&seen.state) => {
                Some(SeenEntry::new(true, Some(seen)))
            }
            FileType::Symlink => self.follow(name).map(|mut found| {
                let target = rustix::fs::readlinkat(&directory, path, Vec::new());
                if let (true, Ok(target)) = (wants_stat, target) {
                    found.link_target = Some(target.into_bytes());
                    found.stat = Some(seen);
                }
                found
            }),
            _ => None,
        })
    }

    /// As [`Root::find`] would find out: the state directory, or one that lies above (a mount).
    fn is_hidden(&self, directory: &FileState) -> bool {
        self.root.is_state(directory) || self.found.lineage.contains(directory)
    }

    /// A link is listed if what it leads to is published: as that, and with its target.
    fn follow(&self, name: &[u8]) -> Option<SeenEntry> {
        match self.root.find(&self.path_of(name)) {
            Ok(Walked::File { stat, .. }) => Some(SeenEntry::new(false, Some(stat))),
            Err(WalkError::NoPermission) => Some(SeenEntry::new(false, None)),
            Ok(Walked::Directory(found)) => Some(SeenEntry::new(true, Some(found.stat))),
            Err(_) => None,
        }
    }
}
