//! File operations of a disk's directory, as a seam: those of this system, or of a simulated one
//! that forgets at a crash what was not synced.
//!
//! Nothing in this crate touches the directory in another way, but for the file server, and for the
//! thread that reads stored contents anew (`rereads`).

use std::any::Any;
use std::fmt::Debug;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use byname_io::begin_writeback;
use rustix::fs::{FallocateFlags, FlockOperation, StatVfsMountFlags};
use rustix::io::Errno;

use crate::error::StoreFailure;

/// Facts about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileFacts {
    /// Octets.
    pub len: u64,
    /// Its number, which no other file of this file system has.
    pub inode: u64,
}

/// Operations on names. Errors are those of the system.
pub trait Files: Debug + Send + Sync {
    /// Makes an empty file, in place of what is there.
    fn create(&self, path: &Path) -> io::Result<Box<dyn OpenFile>>;
    /// Reads a file; fails with `FileTooLarge` above so many octets.
    fn read(&self, path: &Path, bytes_max: u64) -> io::Result<Vec<u8>>;
    /// Octets of a file from a place in it, at most so many; none behind its end.
    fn read_at(&self, path: &Path, offset: u64, bytes_max: usize) -> io::Result<Vec<u8>>;
    /// Opens a file to write behind its first `len` octets; what is behind them is cut off.
    fn append(&self, path: &Path, len: u64) -> io::Result<Box<dyn OpenFile>>;
    /// Facts about a file, links not followed.
    fn facts(&self, path: &Path) -> io::Result<FileFacts>;
    /// Paths of all entries of a directory.
    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>>;
    /// Makes a directory, and what is missing above it.
    fn create_directory(&self, path: &Path) -> io::Result<()>;
    /// Moves a file in place of what is there.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes what happened to the entries of a directory durable.
    fn sync_directory(&self, path: &Path) -> io::Result<()>;
    /// Makes everything durable that anybody did in the file system of a directory.
    fn sync_all(&self, path: &Path) -> io::Result<()>;
    /// Octets that are free and octets in all.
    fn room(&self, path: &Path) -> io::Result<(u64, u64)>;
    /// True if nothing in this file system can be changed.
    fn is_read_only(&self, path: &Path) -> io::Result<bool>;
    /// Takes the lock that a file stands for, until the guard is dropped. `WouldBlock` if another
    /// process has it. It can be taken where nothing can be changed, or there is no room, too.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn LockGuard>>;
}

/// A lock that is held.
pub trait LockGuard: Any + Debug + Send + Sync {}

/// A file being written.
pub trait OpenFile: Debug + Send {
    /// Asks for room. Where the file system cannot promise it, the outcome shows when it is
    /// written.
    fn reserve(&mut self, bytes: u64) -> io::Result<()>;
    /// Appends octets.
    fn write(&mut self, octets: &[u8]) -> io::Result<()>;
    /// Appends octets of another file, from a place in it that is a whole number of units; shared
    /// with it where the file system can do that. Fails if they are not all there.
    fn take(&mut self, from: &Path, offset: u64, bytes: u64) -> io::Result<()>;
    /// Begins to write a part of it to stable storage, where that is possible, so that there is
    /// less to do for [`OpenFile::sync`]. Promises nothing.
    fn begin_sync(&mut self, _offset: u64, _bytes: u64) {}
    /// Makes all octets durable; the name is not.
    fn sync(&mut self) -> io::Result<()>;
    /// Facts about it.
    fn facts(&self) -> io::Result<FileFacts>;
}

/// Operations of this system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemFiles;

impl LockGuard for File {}

impl Files for SystemFiles {
    fn create(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        Ok(Box::new(File::create(path)?))
    }

    fn read(&self, path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
        let mut octets = Vec::new();
        File::open(path)?.take(bytes_max.saturating_add(1)).read_to_end(&mut octets)?;
        match octets.len() as u64 > bytes_max {
            true => Err(io::ErrorKind::FileTooLarge.into()),
            false => Ok(octets),
        }
    }

    fn read_at(&self, path: &Path, offset: u64, bytes_max: usize) -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(offset))?;
        let mut octets = Vec::new();
        file.take(bytes_max as u64).read_to_end(&mut octets)?;
        Ok(octets)
    }

    fn append(&self, path: &Path, len: u64) -> io::Result<Box<dyn OpenFile>> {
        let mut file = File::options().write(true).open(path)?;
        file.set_len(len)?;
        file.seek(SeekFrom::End(0))?;
        Ok(Box::new(file))
    }

    fn facts(&self, path: &Path) -> io::Result<FileFacts> {
        let metadata = fs::symlink_metadata(path)?;
        Ok(FileFacts { len: metadata.len(), inode: metadata.ino() })
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        fs::read_dir(directory)?.map(|entry| entry.map(|entry| entry.path())).collect()
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn sync_all(&self, path: &Path) -> io::Result<()> {
        Ok(rustix::fs::syncfs(File::open(path)?)?)
    }

    fn room(&self, path: &Path) -> io::Result<(u64, u64)> {
        let room = rustix::fs::statvfs(path)?;
        let octets = |blocks: u64| blocks.saturating_mul(room.f_frsize);
        Ok((octets(room.f_bavail), octets(room.f_blocks)))
    }

    fn is_read_only(&self, path: &Path) -> io::Result<bool> {
        Ok(rustix::fs::statvfs(path)?.f_flag.contains(StatVfsMountFlags::RDONLY))
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn LockGuard>> {
        let file = match File::create(path) {
            // One that was never served has no such file: its directory stands for it.
            Err(error)
                if matches!(
                    StoreFailure::of(&error),
                    StoreFailure::Full | StoreFailure::ReadOnly
                ) =>
            {
                File::open(path).or_else(|_| File::open(path.parent().unwrap_or(path)))?
            }
            created => created?,
        };
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Box::new(file))
    }
}

impl OpenFile for File {
    fn reserve(&mut self, bytes: u64) -> io::Result<()> {
        match rustix::fs::fallocate(&*self, FallocateFlags::empty(), 0, bytes) {
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    fn write(&mut self, octets: &[u8]) -> io::Result<()> {
        self.write_all(octets)
    }

    fn take(&mut self, from: &Path, offset: u64, bytes: u64) -> io::Result<()> {
        let mut from = File::open(from)?;
        from.seek(SeekFrom::Start(offset))?;
        // Between files that is one call of the kernel, which shares blocks if it can.
        match io::copy(&mut from.take(bytes), self)? == bytes {
            true => Ok(()),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    fn begin_sync(&mut self, offset: u64, bytes: u64) {
        begin_writeback(self, offset, bytes);
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }

    fn facts(&self) -> io::Result<FileFacts> {
        let metadata = self.metadata()?;
        Ok(FileFacts { len: metadata.len(), inode: metadata.ino() })
    }
}

/// Writes a file whose octets are on stable storage when this returns; its name is not.
pub(crate) fn write_durably(files: &dyn Files, path: &Path, octets: &[u8]) -> io::Result<()> {
    let mut file = files.create(path)?;
    file.write(octets)?;
    file.sync()
}
