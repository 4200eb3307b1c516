//! A file being downloaded: written at offsets in any order, renamed into place when whole.
//!
//! While it grows it is `.NAME.byname-part` in the target's directory, readable by its owner only
//! and locked, so that two runs cannot write the same one. There is no journal: what an earlier
//! run left is found by asking the file system where data is, and counts only if it hashes to
//! what was signed. A torn part file is therefore harmless, and so is one of another version.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use byname_security::tree::{Hash, UNIT_BYTES};
use byname_transfer::verify::UnitSet;
use rustix::fs::{
    AtFlags, FileType, FlockOperation, Mode, OFlags, RenameFlags, SeekFrom, Timespec, Timestamps,
};
use rustix::io::Errno;

use crate::download::disk::{Disk, DiskStep};
use crate::error::ClientError;

/// End of the names of part files.
pub(crate) const SUFFIX: &[u8] = b".byname-part";
const NAME_BYTES_MAX: usize = 255;
const LOCK_ATTEMPTS: usize = 8;
/// Files above this size get their place on the disk before they are written, so that they lie in
/// one piece although they are written in any order.
const PREALLOCATED_ABOVE: u64 = 1 << 20;
/// Place reserved at a time: for a file in memory it costs as much as the writing itself, and
/// nobody should wait for that before the first byte is asked for.
const STRIDE_BYTES: u64 = 32 << 20;

/// Where a file goes: an open directory, and a name in it.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) directory: Arc<OwnedFd>,
    pub(crate) name: OsString,
    /// For messages.
    pub(crate) shown: PathBuf,
    pub(crate) disk: Disk,
}

impl Target {
    /// The place that `path` names; its directory must exist.
    pub(crate) fn at(path: &Path, disk: &Disk) -> Result<Self, ClientError> {
        let name = path.file_name().ok_or_else(|| ClientError::InTheWay {
            path: path.to_owned(),
            obstacle: "a directory",
        })?;
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(parent, flags, Mode::empty())
            .map_err(|error| disk_error(parent, error))?;
        let target = Target {
            directory: Arc::new(directory),
            name: name.to_owned(),
            shown: path.to_owned(),
            disk: disk.clone(),
        };
        // Reported now and not after everything has travelled.
        let kind = target.stat()?.map(|stat| FileType::from_raw_mode(stat.st_mode));
        match kind {
            Some(FileType::Directory) => Err(in_the_way(target.shown, "a directory")),
            _ => Ok(target),
        }
    }

    /// Status of what stands there now, not following a symbolic link.
    pub(crate) fn stat(&self) -> Result<Option<rustix::fs::Stat>, ClientError> {
        match rustix::fs::statat(&*self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(self.error(error)),
        }
    }

    /// Opens the regular file that stands there, for reading.
    pub(crate) fn open(&self) -> Result<File, ClientError> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let opened = rustix::fs::openat(&*self.directory, &self.name, flags, Mode::empty());
        opened.map(File::from).map_err(|error| self.error(error))
    }

    pub(crate) fn error(&self, error: impl Into<io::Error>) -> ClientError {
        ClientError::LocalDisk { path: self.shown.clone(), source: error.into() }
    }

    fn part_shown(&self) -> PathBuf {
        self.shown.with_file_name(part_name(&self.name))
    }
}

/// The name of the part file of what will have this name.
pub(crate) fn part_name(target: &OsStr) -> OsString {
    let mut name = Vec::with_capacity(target.len() + SUFFIX.len() + 1);
    name.push(b'.');
    if target.len() + SUFFIX.len() < NAME_BYTES_MAX {
        name.extend_from_slice(target.as_bytes());
    } else {
        // The name itself may be as long as names can be.
        let digest = Hash::of(target.as_bytes()).to_string();
        name.extend_from_slice(&digest.as_bytes()[..32]);
    }
    name.extend_from_slice(SUFFIX);
    OsString::from_vec(name)
}

/// Attributes of the finished file.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Attributes {
    /// Permission bits; only the lowest nine are used.
    pub(crate) mode: Option<u16>,
    pub(crate) mtime_ns: Option<u64>,
}

/// Manner in which the finished file gets its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placement {
    /// Fail if the target exists.
    pub(crate) is_exclusive: bool,
    /// Survive a power cut.
    pub(crate) is_synced: bool,
}

/// The growing file, locked.
#[derive(Debug)]
pub(crate) struct PartFile {
    target: Target,
    name: OsString,
    file: File,
    size: u64,
    /// Up to where there is place on the disk; the size if nothing more is to be done.
    placed_bytes: u64,
}

impl PartFile {
    /// Opens or creates the part file for `target`, with room for `size` bytes (sparse).
    pub(crate) fn open(target: Target, size: Option<u64>) -> Result<Self, ClientError> {
        let name = part_name(&target.name);
        let shown = target.part_shown();
        let announced = target.disk.announce(DiskStep::Open { target: &target.shown });
        announced.map_err(|error| disk_error(&shown, error))?;
        for _ in 0..LOCK_ATTEMPTS {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mode = Mode::RUSR | Mode::WUSR;
            let file = match rustix::fs::openat(&*target.directory, &name, flags, mode) {
                Ok(file) => File::from(file),
                Err(Errno::LOOP) => return Err(in_the_way(shown, "a symbolic link")),
                Err(Errno::ISDIR) => return Err(in_the_way(shown, "a directory")),
                Err(error) => return Err(disk_error(&shown, error)),
            };
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => return Err(ClientError::Busy { path: shown }),
                Err(error) => return Err(disk_error(&shown, error)),
            }
            // Whoever held the lock may have renamed the file into place meanwhile.
            let opened = rustix::fs::fstat(&file).map_err(|error| disk_error(&shown, error))?;
            let named = rustix::fs::statat(&*target.directory, &name, AtFlags::SYMLINK_NOFOLLOW);
            if !named.is_ok_and(|it| (it.st_dev, it.st_ino) == (opened.st_dev, opened.st_ino)) {
                continue;
            }
            check_own(&opened, &shown)?;
            let size_known = size.unwrap_or(0);
            let placed_bytes = if size_known > PREALLOCATED_ABOVE { 0 } else { size_known };
            let part = PartFile { target, name, file, size: size_known, placed_bytes };
            part.prepare(size).map_err(|error| disk_error(&shown, error))?;
            return Ok(part);
        }
        Err(ClientError::Busy { path: shown })
    }

    fn prepare(&self, size: Option<u64>) -> io::Result<()> {
        rustix::fs::fchmod(&self.file, Mode::RUSR | Mode::WUSR)?;
        self.resize(size.unwrap_or(0))
    }

    fn resize(&self, size: u64) -> io::Result<()> {
        let Target { disk, shown, .. } = &self.target;
        disk.announce(DiskStep::Resize { target: shown, size })?;
        Ok(rustix::fs::ftruncate(&self.file, size)?)
    }

    /// The units for which the file has data. Nothing is known about their content.
    pub(crate) fn claimed_units(&self, size: u64) -> UnitSet {
        let unit_bytes = UNIT_BYTES as u64;
        let mut claimed = UnitSet::default();
        let mut at = 0;
        while at < size {
            let Ok(start) = rustix::fs::seek(&self.file, SeekFrom::Data(at)) else { break };
            let end = rustix::fs::seek(&self.file, SeekFrom::Hole(start)).unwrap_or(size);
            let end = end.min(size);
            let last = if end == size { end.div_ceil(unit_bytes) } else { end / unit_bytes };
            for unit in start.div_ceil(unit_bytes)..last {
                claimed.insert(unit);
            }
            at = end.max(start + 1);
        }
        claimed
    }

    /// Writes verified bytes.
    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let end = offset.saturating_add(bytes.len() as u64);
        if self.placed_bytes < end.min(self.size) {
            self.make_place(end);
        }
        let Target { disk, shown, .. } = &self.target;
        disk.write_all_at(&self.file, shown, bytes, offset)
    }

    /// Reserves the next strides of the file, so far that `end` lies in them. What is reserved
    /// still counts as a hole, so it is not taken for something that an earlier run has left.
    fn make_place(&mut self, end: u64) {
        let start = self.placed_bytes;
        let end = end.next_multiple_of(STRIDE_BYTES).min(self.size);
        let flags = rustix::fs::FallocateFlags::empty();
        let placed = rustix::fs::fallocate(&self.file, flags, start, end - start);
        // Not all file systems can; a disk that is full is reported by the writing itself.
        self.placed_bytes = if placed.is_ok() { end } else { self.size };
    }

    /// Removes the file: nothing in it is worth keeping.
    pub(crate) fn discard(self) {
        if let Err(error) = self.unlink() {
            tracing::debug!(%error, path = %self.target.part_shown().display(), "not removed");
        }
    }

    fn unlink(&self) -> Result<(), Errno> {
        rustix::fs::unlinkat(&*self.target.directory, &self.name, AtFlags::empty())
    }

    /// Gives the whole file its length and attributes; what is left is to place it.
    pub(crate) fn seal(&self, size: u64, attributes: Attributes) -> Result<(), ClientError> {
        self.resize(size).map_err(|error| self.target.error(error))?;
        set_attributes(&self.file, attributes).map_err(|error| self.target.error(error))
    }

    /// Gives the sealed file its name, alone.
    pub(crate) fn place(self, placement: Placement) -> Result<(), ClientError> {
        if placement.is_synced {
            // The content first: a name must never point to a file that is not there yet.
            self.sync(&self.file)?;
        }
        self.rename(placement.is_exclusive)?;
        if placement.is_synced {
            self.sync(&*self.target.directory)?;
        }
        Ok(())
    }

    fn sync(&self, file: impl AsFd) -> Result<(), ClientError> {
        let Target { disk, shown, .. } = &self.target;
        let announced = disk.announce(DiskStep::Sync { target: shown });
        let synced = announced.and_then(|()| Ok(rustix::fs::fsync(file)?));
        synced.map_err(|error| self.target.error(error))
    }

    /// Moves the file to its name; whether that survives a power cut is the caller's affair.
    pub(crate) fn rename(&self, is_exclusive: bool) -> Result<(), ClientError> {
        let Target { disk, shown, .. } = &self.target;
        let announced = disk.announce(DiskStep::Name { target: shown, file: &self.file });
        announced.map_err(|error| self.target.error(error))?;
        let directory = &*self.target.directory;
        let flags = if is_exclusive { RenameFlags::NOREPLACE } else { RenameFlags::empty() };
        match rustix::fs::renameat_with(directory, &self.name, directory, &self.target.name, flags)
        {
            Ok(()) => Ok(()),
            Err(Errno::EXIST) if is_exclusive => {
                Err(ClientError::Exists { path: self.target.shown.clone() })
            }
            Err(Errno::ISDIR) => Err(in_the_way(self.target.shown.clone(), "a directory")),
            Err(error) => Err(self.target.error(error)),
        }
    }

    /// The device that holds the file.
    pub(crate) fn device(&self) -> Option<u64> {
        rustix::fs::fstat(&self.file).ok().map(|stat| stat.st_dev)
    }

    /// Writes everything on the file's device to the disk.
    pub(crate) fn sync_device(&self) -> io::Result<()> {
        let Target { disk, shown, .. } = &self.target;
        disk.announce(DiskStep::SyncAll { target: shown })?;
        Ok(rustix::fs::syncfs(&self.file)?)
    }

    /// The file itself.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Where it goes.
    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    /// The target, for messages.
    pub(crate) fn shown(&self) -> &Path {
        &self.target.shown
    }
}

/// Reads what a file has of a unit, up to the length of `buffer`; less at the file's end or after
/// an error, which is the same as having nothing. The file is the part file of `target`, or what
/// stands there.
pub(crate) fn read_unit<'a>(
    target: &Target,
    file: &File,
    unit: u64,
    buffer: &'a mut [u8],
) -> &'a [u8] {
    let mut filled = 0;
    while filled < buffer.len() {
        let offset = unit * UNIT_BYTES as u64 + filled as u64;
        match target.disk.read_at(file, &target.shown, &mut buffer[filled..], offset) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    &buffer[..filled]
}

/// Sets permission bits (never set-user-id and the like) and modification time.
pub(crate) fn set_attributes(file: &impl AsFd, attributes: Attributes) -> Result<(), Errno> {
    if let Some(mode) = attributes.mode {
        rustix::fs::fchmod(file, Mode::from_raw_mode(u32::from(mode) & 0o777))?;
    }
    if let Some(mtime_ns) = attributes.mtime_ns {
        let last_modification = Timespec {
            tv_sec: i64::try_from(mtime_ns / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: (mtime_ns % 1_000_000_000) as _,
        };
        let last_access = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT };
        rustix::fs::futimens(file, &Timestamps { last_access, last_modification })?;
    }
    Ok(())
}

/// A part file that somebody else put there could be read or changed by them.
fn check_own(stat: &rustix::fs::Stat, shown: &Path) -> Result<(), ClientError> {
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(in_the_way(shown.to_owned(), "something that is no regular file"));
    }
    if stat.st_uid != rustix::process::geteuid().as_raw() || stat.st_nlink != 1 {
        return Err(in_the_way(shown.to_owned(), "a file of another user, or one with two names"));
    }
    Ok(())
}

fn in_the_way(path: PathBuf, obstacle: &'static str) -> ClientError {
    ClientError::InTheWay { path, obstacle }
}

pub(crate) fn disk_error(path: &Path, error: impl Into<io::Error>) -> ClientError {
    ClientError::LocalDisk { path: path.to_owned(), source: error.into() }
}

/// True if a name is one that part files have.
pub(crate) fn is_part_name(name: &[u8]) -> bool {
    name.starts_with(b".") && name.ends_with(SUFFIX)
}

/// A name as the operating system has it.
pub(crate) fn os_name(name: &[u8]) -> &OsStr {
    OsStr::from_bytes(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_that_is_reserved_is_not_taken_for_content() {
        let directory = tempfile::tempdir().expect("a directory");
        let target = Target::at(&directory.path().join("f"), &Disk::default()).expect("a place");
        let size = 3 * STRIDE_BYTES + 100;
        let mut part = PartFile::open(target.clone(), Some(size)).expect("a file");
        let unit = [7; UNIT_BYTES];
        part.write(STRIDE_BYTES + UNIT_BYTES as u64, &unit).expect("it is written");
        part.write(0, &unit).expect("it is written");
        drop(part);
        let part = PartFile::open(target, Some(size)).expect("the same file");
        let claimed: Vec<u64> = part.claimed_units(size).iter().collect();
        assert_eq!(claimed, [0, STRIDE_BYTES / UNIT_BYTES as u64 + 1]);
        assert_eq!(part.file().metadata().expect("its size").len(), size);
    }
}
