//! Memory that two processes share.
//!
//! A peer's memory is mapped only if it cannot shrink under us, for touching what is no longer
//! there ends the process (SIGBUS): it must be ordinary shared memory, sealed against shrinking,
//! as libmemif, gomemif and DPDK make it. Only of our own user and of root, who can end us anyway,
//! other memory is taken as it is (DPDK's huge pages, for its zero-copy mode).
//!
//! Invariant: `base..base + bytes` is mapped, readable and writable, as long as the region lives.
#![allow(unsafe_code)]

use std::os::fd::{AsFd, OwnedFd};
use std::ptr::{self, NonNull};

use rustix::fs::{
    MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, fstatfs, ftruncate,
    memfd_create,
};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::error::{MemifError, RegionRefusal};

/// The most a peer may have mapped in one region: 2 × 16384 slots of 9216 bytes fit.
pub(super) const REGION_BYTES_MAX: u64 = 512 << 20;

/// Filesystem type that `fstatfs` reports for shared memory.
const TMPFS_MAGIC: u64 = 0x0102_1994;

/// A shared mapping, shared with another process that may change it at any time.
#[derive(Debug)]
pub(super) struct Region {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread, and a region gives out pointers
// only; whoever follows them answers for what else happens there.
unsafe impl Send for Region {}
// SAFETY: as above; a shared region can do nothing but compare bounds.
unsafe impl Sync for Region {}

impl Region {
    /// New memory of ours, zeroed, that nobody can shrink, and the descriptor to share it with.
    pub(super) fn create(bytes: usize) -> Result<(Self, OwnedFd), MemifError> {
        let sealable = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let made = memfd_create("byname-memif", sealable | MemfdFlags::NOEXEC_SEAL);
        let fd = match made {
            // Before Linux 6.3.
            Err(Errno::INVAL) => memfd_create("byname-memif", sealable),
            made => made,
        };
        let fd = fd.map_err(MemifError::failed("memfd_create"))?;
        ftruncate(&fd, bytes as u64).map_err(MemifError::failed("ftruncate"))?;
        fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)
            .map_err(MemifError::failed("fcntl(F_ADD_SEALS)"))?;
        let region = Self::map(&fd, bytes).map_err(MemifError::failed("mmap"))?;
        Ok((region, fd))
    }

    /// Memory of a peer, of which it says that it has so many bytes.
    pub(super) fn of_peer(
        fd: &OwnedFd,
        index: u16,
        bytes: u64,
        is_trusted: bool,
    ) -> Result<Self, MemifError> {
        let refused = |reason| MemifError::Region { index, reason };
        let file = fstat(fd).map_err(MemifError::failed("fstat"))?;
        let file_bytes = u64::try_from(file.st_size).unwrap_or(0);
        if bytes == 0 || bytes > REGION_BYTES_MAX || bytes > file_bytes {
            let reason = RegionRefusal::Size { bytes, file_bytes, max: REGION_BYTES_MAX };
            return Err(refused(reason));
        }
        // The size was read before the seal; a sealed file has at least that much for ever.
        if !is_trusted && !cannot_shrink(fd) {
            return Err(refused(RegionRefusal::NotSealed));
        }
        let file_bytes = fstat(fd).map_err(MemifError::failed("fstat"))?.st_size;
        if u64::try_from(file_bytes).unwrap_or(0) < bytes {
            return Err(refused(RegionRefusal::NotSealed));
        }
        Self::map(fd, bytes as usize).map_err(MemifError::failed("mmap"))
    }

    fn map(fd: &OwnedFd, bytes: usize) -> Result<Self, Errno> {
        // SAFETY: the kernel chooses an address where nothing is, so no memory of ours changes.
        let base = unsafe {
            let access = ProtFlags::READ | ProtFlags::WRITE;
            mmap(ptr::null_mut(), bytes, access, MapFlags::SHARED, fd, 0)?
        };
        let base = NonNull::new(base.cast()).ok_or(Errno::NOMEM)?;
        Ok(Region { base, bytes })
    }

    /// Where `bytes` bytes at `offset` lie, if they lie within.
    pub(super) fn at(&self, offset: usize, bytes: usize) -> Option<NonNull<u8>> {
        if offset.checked_add(bytes)? > self.bytes {
            return None;
        }
        // SAFETY: offset <= self.bytes, so the result is within the mapping or right behind it.
        Some(unsafe { self.base.add(offset) })
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and rings and buffers hold the region while they point
        // into it.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

/// True for ordinary shared memory with the seal. Huge pages are left out: a hole punched into
/// them is not filled again when there are none left.
fn cannot_shrink(fd: impl AsFd) -> bool {
    let is_tmpfs = fstatfs(&fd).is_ok_and(|found| found.f_type as u64 == TMPFS_MAGIC);
    is_tmpfs && fcntl_get_seals(&fd).is_ok_and(|seals| seals.contains(SealFlags::SHRINK))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memfd(bytes: u64, seals: SealFlags) -> OwnedFd {
        let fd = memfd_create("test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&fd, bytes).unwrap();
        fcntl_add_seals(&fd, seals).unwrap();
        fd
    }

    fn refusal(fd: &OwnedFd, bytes: u64, is_trusted: bool) -> RegionRefusal {
        match Region::of_peer(fd, 3, bytes, is_trusted) {
            Err(MemifError::Region { index: 3, reason }) => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn own_memory_cannot_change_its_size_and_is_accepted_by_strangers() {
        let (region, fd) = Region::create(8192).unwrap();
        assert!(ftruncate(&fd, 0).is_err());
        assert!(ftruncate(&fd, 1 << 20).is_err());
        let peer = Region::of_peer(&fd, 0, 8192, false).unwrap();
        // SAFETY: both lie within the mappings, and nobody else has them.
        unsafe {
            region.at(8191, 1).unwrap().write(42);
            assert_eq!(peer.at(8191, 1).unwrap().read(), 42);
        }
    }

    #[test]
    fn bounds_hold() {
        let (region, _fd) = Region::create(100).unwrap();
        assert!(region.at(0, 100).is_some());
        assert!(region.at(100, 0).is_some());
        assert!(region.at(1, 100).is_none());
        assert!(region.at(101, 0).is_none());
        assert!(region.at(usize::MAX, 2).is_none());
    }

    #[test]
    fn memory_that_may_shrink_is_taken_only_from_friends() {
        let open = memfd(4096, SealFlags::GROW);
        assert_eq!(refusal(&open, 4096, false), RegionRefusal::NotSealed);
        assert!(Region::of_peer(&open, 3, 4096, true).is_ok());
        let sealed = memfd(4096, SealFlags::SHRINK);
        assert!(Region::of_peer(&sealed, 3, 4096, false).is_ok());
        let file: OwnedFd = tempfile::tempfile().unwrap().into();
        ftruncate(&file, 4096).unwrap();
        assert_eq!(refusal(&file, 4096, false), RegionRefusal::NotSealed);
    }

    #[test]
    fn memory_that_is_not_there_is_refused() {
        let fd = memfd(4096, SealFlags::SHRINK);
        for bytes in [0, 4097, REGION_BYTES_MAX + 1, u64::MAX] {
            assert!(matches!(refusal(&fd, bytes, true), RegionRefusal::Size { .. }), "{bytes}");
        }
        let (pipe, _other) = rustix::pipe::pipe().unwrap();
        assert!(matches!(refusal(&pipe, 1, true), RegionRefusal::Size { .. }));
    }
}
