//! A directory of this system.
//!
//! A fingerprint is device, inode, size, mtime and ctime: `fstat` after reading says whether what
//! was read may leave. Files are read, never mapped: one cut short must not kill the server.

mod attributes;
mod directory;
mod path_walk;

use std::cell::Cell;
use std::ffi::OsStr;
use std::fs::File;
use std::io::IoSliceMut;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use byname_io::{Attachments, files};
use byname_transfer::server::{FileStat, FileState};

pub use attributes::ROOT_ATTRIBUTE;
pub use path_walk::Exposure;

use super::{Backend, BackendFile, Content, Found, LocateError};
use crate::error::StoreError;
use crate::watch::Watch;
use crate::watch::ahead::NewFiles;
use directory::PosixDirectory;
use path_walk::stat_open;
pub(crate) use path_walk::{Root, Walked, WalkedDirectory};

/// A published directory.
#[derive(Debug)]
pub struct Posix {
    root: Arc<Root>,
    attachments: Option<Arc<Attachments>>,
    watch: Option<Watch>,
}

/// An open regular file.
#[derive(Debug)]
struct PosixFile {
    file: Arc<File>,
    stat: FileStat,
    attachments: Option<Arc<Attachments>>,
}

impl Posix {
    /// The directory at `path`; `state` is device and inode of the state directory, which is never
    /// published.
    ///
    /// # Errors
    /// The error of the current directory.
    pub fn new(path: &Path, exposure: Exposure, state: (u64, u64)) -> std::io::Result<Self> {
        let root = Arc::new(Root::new(path, exposure, state)?);
        Ok(Self { root, attachments: None, watch: None })
    }

    /// Copies were made there, and what file systems did not keep with them lies in `directory`.
    pub fn with_attachments(self, directory: PathBuf) -> Self {
        Self { attachments: Some(Arc::new(Attachments::new(directory))), ..self }
    }
}

impl Posix {
    /// Hears of changes from now on. `mount` is handed on to `new_files`.
    ///
    /// # Errors
    /// [`StoreError`] if the system does not tell of changes; then nothing is different.
    pub(crate) fn watch(
        &mut self,
        mount: usize,
        new_files: Arc<NewFiles>,
    ) -> Result<(), StoreError> {
        self.watch = Some(Watch::start(self.root.clone(), mount, new_files)?);
        Ok(())
    }
}

impl Backend for Posix {
    fn is_ready(&self, path: &[u8]) -> bool {
        self.root.is_cached(path)
    }

    fn locate(&self, path: &[u8]) -> Result<Found, LocateError> {
        let attachments = self.attachments.clone();
        match self.root.find(path)? {
            Walked::File { file, stat } => {
                let file = PosixFile { file: Arc::new(file), stat, attachments };
                Ok(Found::File(Arc::new(file)))
            }
            Walked::Directory(found) => {
                let (root, path) = (self.root.clone(), path.to_vec());
                let key = found.stat.state.fingerprint.object();
                let changes = self.watch.as_ref().and_then(|watch| watch.changes(key));
                let changes = Cell::new(changes);
                let directory = PosixDirectory { root, path, found, attachments, changes };
                Ok(Found::Directory(Box::new(directory)))
            }
        }
    }

    fn describe(&self, path: &[u8]) -> String {
        self.root.path().join(OsStr::from_bytes(path)).display().to_string()
    }
}

impl Content for PosixFile {
    fn read_ready(&self, places: &mut [IoSliceMut<'_>], offset: u64) -> std::io::Result<usize> {
        files::read_cached(&self.file, places, offset)
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> std::io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }

    fn is_unchanged(&self) -> bool {
        stat_open(&self.file).is_ok_and(|stat| stat.state == self.stat.state)
    }

    fn system_file(&self) -> Option<(&Arc<File>, u64)> {
        Some((&self.file, 0))
    }
}

impl BackendFile for PosixFile {
    fn stat(&self) -> FileStat {
        self.stat
    }

    fn stored_root(&self) -> Option<[u8; 32]> {
        attributes::read(&self.file, &self.stat)
    }

    fn store_root(&self, root: &[u8; 32]) -> Option<FileState> {
        attributes::write(&self.file, &self.stat, root)
    }

    fn attachment(&self, slot: &str, bytes_max: usize) -> std::io::Result<Option<Vec<u8>>> {
        let attachments = self.attachments.as_ref();
        attachments.map_or(Ok(None), |found| found.get(&*self.file, slot, bytes_max))
    }
}
