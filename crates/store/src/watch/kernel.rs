//! The kernel's watches: inotify.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;

/// Octets of events read at a time.
const BUFFER_BYTES: usize = 64 << 10;
/// Readings in a row; then it is the turn of what else there is to do.
const READS_MAX: usize = 16;

/// Number of a watch.
pub(super) type WatchId = i32;

/// What happened in a directory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Happened<'a> {
    pub(super) watch: WatchId,
    pub(super) flags: ReadFlags,
    /// The entry; empty if it is the directory itself.
    pub(super) name: &'a [u8],
}

/// An inotify instance.
#[derive(Debug)]
pub(super) struct Inotify(OwnedFd);

impl AsFd for Inotify {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Inotify {
    pub(super) fn new() -> std::io::Result<Self> {
        Ok(Self(inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?))
    }

    /// Watches an open directory; the same number again if it is watched already.
    pub(super) fn add(&self, directory: impl AsFd) -> Result<WatchId, Errno> {
        // inotify takes paths; this one is the directory that was opened, wherever it is by now.
        let path = format!("/proc/self/fd/{}", directory.as_fd().as_raw_fd());
        let what = WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVE
            | WatchFlags::MODIFY
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::ATTRIB
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF;
        let how = WatchFlags::ONLYDIR | WatchFlags::EXCL_UNLINK;
        inotify::add_watch(&self.0, path, what | how)
    }

    /// Ends a watch. One that has ended already is fine.
    pub(super) fn remove(&self, watch: WatchId) {
        let _ = inotify::remove_watch(&self.0, watch);
    }

    /// True if something happened that was not read yet.
    pub(super) fn has_events(&self) -> bool {
        // If that cannot be known, something may have.
        rustix::io::ioctl_fionread(&self.0).map_or(true, |bytes| bytes > 0)
    }

    /// Hands what happened to `take`, at most so much that other work has its turn.
    ///
    /// # Errors
    /// The error of reading.
    pub(super) fn read(&self, take: &mut dyn FnMut(Happened<'_>)) -> Result<(), Errno> {
        let mut buffer = vec![MaybeUninit::uninit(); BUFFER_BYTES];
        let mut reader = Reader::new(&self.0, &mut buffer);
        let mut reads = 0;
        loop {
            if reader.is_buffer_empty() {
                reads += 1;
                if reads > READS_MAX {
                    return Ok(());
                }
            }
            match reader.next() {
                Ok(event) => {
                    let name = event.file_name().map_or(&[][..], |name| name.to_bytes());
                    take(Happened { watch: event.wd(), flags: event.events(), name });
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }
}

/// Magic numbers of file systems that only this machine writes to, as `statfs` gives them.
const LOCAL: [u64; 12] = [
    0xEF53,      // ext2, ext3, ext4
    0x5846_5342, // XFS
    0x9123_683E, // Btrfs
    0xF2F5_2010, // F2FS
    0x2FC1_2FC1, // ZFS
    0xCA45_1A4E, // bcachefs
    0x0102_1994, // tmpfs
    0x8584_58F6, // ramfs
    0x794C_7630, // overlayfs
    0x4D44,      // FAT
    0x2011_BAB0, // exFAT
    0x7366_746E, // NTFS
];

/// True if whatever changes in an open directory is told to its watch. On a network file system
/// only what this machine changes is.
pub(super) fn tells_all(directory: impl AsFd) -> bool {
    rustix::fs::fstatfs(directory).is_ok_and(|found| LOCAL.contains(&(found.f_type as u64)))
}
