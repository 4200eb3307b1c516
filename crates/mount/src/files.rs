//! Open files and directories, by the handles that the kernel has.
//!
//! All who have one version open share one file of the session, and with it transfers and what was
//! read ahead. If the first of them lets the kernel read a file of the cache by itself, all do, and
//! otherwise none: the kernel wants one way for each inode as long as anybody has it open.

use std::collections::HashMap;
use std::sync::Arc;

use byname_client::RemoteFile;
use fuser::BackingId;

use crate::snapshot::Snapshot;

/// Directories that may be open at once.
pub(crate) const DIRECTORIES_OPEN_MAX: usize = 4096;

#[derive(Debug)]
struct Shared {
    open: OpenFile,
    handles: usize,
}

/// An open version.
#[derive(Clone, Debug)]
pub(crate) struct OpenFile {
    pub(crate) file: RemoteFile,
    /// The kernel's name of the file that it reads in place of this one.
    pub(crate) backing: Option<Arc<BackingId>>,
}

/// The tables.
#[derive(Debug, Default)]
pub(crate) struct Files {
    /// Inode by handle.
    handles: HashMap<u64, u64>,
    /// File by inode.
    files: HashMap<u64, Shared>,
    /// `None` until it is read.
    directories: HashMap<u64, Option<Arc<Snapshot>>>,
    last: u64,
}

impl Files {
    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// One more handle of a file that is open.
    pub(crate) fn share(&mut self, inode: u64) -> Option<(u64, OpenFile)> {
        let shared = self.files.get_mut(&inode)?;
        shared.handles += 1;
        let open = shared.open.clone();
        Some((self.insert_handle(inode), open))
    }

    fn insert_handle(&mut self, inode: u64) -> u64 {
        let handle = self.next();
        self.handles.insert(handle, inode);
        handle
    }

    /// A handle of a file that was opened now. If somebody was faster, theirs is used.
    pub(crate) fn insert(&mut self, inode: u64, open: OpenFile) -> (u64, OpenFile) {
        let shared = self.files.entry(inode).or_insert(Shared { open, handles: 0 });
        shared.handles += 1;
        let open = shared.open.clone();
        (self.insert_handle(inode), open)
    }

    /// The file of a handle.
    pub(crate) fn get(&self, handle: u64) -> Option<RemoteFile> {
        let inode = self.handles.get(&handle)?;
        self.files.get(inode).map(|shared| shared.open.file.clone())
    }

    /// A handle is closed. Returns the file if that was the last one.
    pub(crate) fn release(&mut self, handle: u64) -> Option<OpenFile> {
        let inode = self.handles.remove(&handle)?;
        let shared = self.files.get_mut(&inode)?;
        shared.handles -= 1;
        if shared.handles > 0 {
            return None;
        }
        self.files.remove(&inode).map(|shared| shared.open)
    }

    /// Open versions, and those of them that the kernel reads by itself.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let passed_through = self.files.values().filter(|shared| shared.open.backing.is_some());
        (self.files.len() as u64, passed_through.count() as u64)
    }

    /// True if the kernel reads an open version by itself.
    pub(crate) fn is_passed_through(&self, inode: u64) -> bool {
        self.files.get(&inode).is_some_and(|shared| shared.open.backing.is_some())
    }

    /// True if a version is open.
    pub(crate) fn is_open(&self, inode: u64) -> bool {
        self.files.contains_key(&inode)
    }

    /// A handle of a directory, of which nothing is known yet; `None` if too many are open.
    pub(crate) fn insert_directory(&mut self) -> Option<u64> {
        if self.directories.len() >= DIRECTORIES_OPEN_MAX {
            return None;
        }
        let handle = self.next();
        self.directories.insert(handle, None);
        Some(handle)
    }

    /// What an open directory shows, if it was read.
    pub(crate) fn directory(&self, handle: u64) -> Option<Arc<Snapshot>> {
        self.directories.get(&handle)?.clone()
    }

    /// What an open directory shows from now on.
    pub(crate) fn set_directory(&mut self, handle: u64, snapshot: Arc<Snapshot>) {
        if let Some(open) = self.directories.get_mut(&handle) {
            *open = Some(snapshot);
        }
    }

    /// A handle of a directory is closed.
    pub(crate) fn release_directory(&mut self, handle: u64) {
        self.directories.remove(&handle);
    }
}
