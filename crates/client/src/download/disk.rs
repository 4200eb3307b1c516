//! The local disk as downloads use it, and the one place where a simulated disk gets between.
//!
//! Without a hook (as everywhere outside of tests) every operation is the system call and nothing
//! else. With one, each is announced first: it may fail undone, or read and write less than asked.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::download::part_file::part_name;

/// Step that is about to happen to a file being downloaded. The path is always that of the target,
/// which most of these do not touch.
#[derive(Clone, Copy, Debug)]
pub enum DiskStep<'a> {
    /// The part file is opened or made, or a file without a name.
    Open {
        /// Where the file goes.
        target: &'a Path,
    },
    /// Part file or target are read.
    Read {
        /// Where the file goes.
        target: &'a Path,
        /// From where on.
        offset: u64,
        /// Bytes wanted.
        len: usize,
    },
    /// Verified bytes are written.
    Write {
        /// Where the file goes.
        target: &'a Path,
        /// From where on.
        offset: u64,
        /// Bytes left to be written.
        len: usize,
    },
    /// A length is given to the part file.
    Resize {
        /// Where the file goes.
        target: &'a Path,
        /// Bytes.
        size: u64,
    },
    /// The content is made durable.
    Sync {
        /// Where the file goes.
        target: &'a Path,
    },
    /// Everything on the disk is made durable, names as well.
    SyncAll {
        /// Where one of the files goes.
        target: &'a Path,
    },
    /// The file gets the name of the target.
    Name {
        /// That name.
        target: &'a Path,
        /// The file, as the whole that it must be.
        file: &'a File,
    },
}

/// Gets between a client and its disk.
pub trait DiskHook: Send + Sync {
    /// Called before a step. Returns how many bytes it may read or write (0 reads as the end of the
    /// file), which only counts for those.
    ///
    /// # Errors
    /// The error that the step fails with; it is then not carried out.
    fn before(&self, step: DiskStep<'_>) -> io::Result<usize>;
}

/// The disk of a client: the real one, perhaps with a hook.
#[derive(Clone, Default)]
pub struct Disk(Option<Arc<dyn DiskHook>>);

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Disk(hooked)" } else { "Disk" })
    }
}

impl Disk {
    /// A disk whose steps can fail.
    pub fn hooked(hook: Arc<dyn DiskHook>) -> Self {
        Disk(Some(hook))
    }

    /// Announces a step that is no reading or writing.
    pub(crate) fn announce(&self, step: DiskStep<'_>) -> io::Result<()> {
        match &self.0 {
            None => Ok(()),
            Some(hook) => hook.before(step).map(drop),
        }
    }

    /// Writes everything, or fails.
    pub(crate) fn write_all_at(
        &self,
        file: &File,
        target: &Path,
        bytes: &[u8],
        offset: u64,
    ) -> io::Result<()> {
        let Some(hook) = &self.0 else { return file.write_all_at(bytes, offset) };
        let mut done = 0;
        while done < bytes.len() {
            let (len, offset) = (bytes.len() - done, offset + done as u64);
            let allowed = hook.before(DiskStep::Write { target, offset, len })?;
            match file.write_at(&bytes[done..done + allowed.min(len)], offset)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                count => done += count,
            }
        }
        Ok(())
    }

    /// Reads some of what is there; nothing at the end of the file.
    pub(crate) fn read_at(
        &self,
        file: &File,
        target: &Path,
        buffer: &mut [u8],
        offset: u64,
    ) -> io::Result<usize> {
        let Some(hook) = &self.0 else { return file.read_at(buffer, offset) };
        let len = buffer.len();
        let allowed = hook.before(DiskStep::Read { target, offset, len })?;
        file.read_at(&mut buffer[..allowed.min(len)], offset)
    }
}

/// Where a file lies until it gets the name of its target.
pub fn part_path(target: &Path) -> PathBuf {
    target.with_file_name(part_name(target.file_name().unwrap_or_default()))
}
