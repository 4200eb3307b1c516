//! Memory of huge pages, for what passes by in long pieces: the kernel looks its pages up once for
//! each two MiB and not for each 4 KiB, when a disk writes to it directly and when it is copied
//! from. Where there are no huge pages it is memory like any other.
#![allow(unsafe_code)]

use std::io;
use std::ops::{Deref, DerefMut};
use std::ptr::{self, NonNull};
use std::sync::Arc;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// Octets of a huge page; x86-64 has these, and aarch64 with pages of 4 KiB.
const HUGE_BYTES: usize = 2 << 20;
/// Octets of a half of one.
pub const HALF_BYTES: usize = HUGE_BYTES / 2;

/// Memory as long as a huge page, and aligned as one.
#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
}

// SAFETY: the memory belongs to the mapping alone, whichever thread has it; it is reached through
// its halves only, each of which has its own part.
unsafe impl Send for Mapping {}
// SAFETY: as above; the mapping itself reads and writes nothing.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn new() -> io::Result<Self> {
        // So much more that an aligned part is in it.
        let mapped_bytes = 2 * HUGE_BYTES;
        // SAFETY: a new mapping at a place that the kernel chooses touches no memory of others.
        let mapped = unsafe {
            let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
            mmap_anonymous(ptr::null_mut(), mapped_bytes, protection, flags)?
        };
        let before = mapped.cast::<u8>().align_offset(HUGE_BYTES).min(HUGE_BYTES);
        let after = mapped_bytes - HUGE_BYTES - before;
        // SAFETY: both ends lie within the mapping made above, of which nobody knows yet; they are
        // whole pages, since the mapping and huge pages begin with a page.
        unsafe {
            let start = mapped.byte_add(before);
            if before > 0 {
                let _ = munmap(mapped, before);
            }
            if after > 0 {
                let _ = munmap(start.byte_add(HUGE_BYTES), after);
            }
            // Without huge pages it is slower and nothing else.
            let _ = madvise(start, HUGE_BYTES, Advice::LinuxHugepage);
            Ok(Mapping { start: NonNull::new_unchecked(start.cast()) })
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is this long, and the halves that borrow from it are gone.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), HUGE_BYTES) };
    }
}

/// Half of a huge page, filled with zeros at first. The page is given back when both halves are
/// gone.
#[derive(Debug)]
pub struct HugeHalf {
    mapping: Arc<Mapping>,
    is_second: bool,
}

impl HugeHalf {
    /// Both halves of a new page.
    ///
    /// # Errors
    /// The kernel's, when there is no more memory.
    pub fn pair() -> io::Result<[Self; 2]> {
        let mapping = Arc::new(Mapping::new()?);
        let first = HugeHalf { mapping: Arc::clone(&mapping), is_second: false };
        Ok([first, HugeHalf { mapping, is_second: true }])
    }

    fn start(&self) -> *mut u8 {
        let offset = if self.is_second { HALF_BYTES } else { 0 };
        // SAFETY: both offsets lie within the mapping.
        unsafe { self.mapping.start.as_ptr().add(offset) }
    }
}

impl Deref for HugeHalf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the half is mapped and initialised as long as `self` is there, belongs to it
        // alone (of each page there is one first and one second half), and is borrowed with it.
        unsafe { std::slice::from_raw_parts(self.start(), HALF_BYTES) }
    }
}

impl DerefMut for HugeHalf {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start(), HALF_BYTES) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_zeroed_aligned_and_apart() {
        let [mut first, mut second] = HugeHalf::pair().unwrap();
        assert!(first.iter().chain(second.iter()).all(|octet| *octet == 0));
        assert_eq!(first.as_ptr().align_offset(HUGE_BYTES), 0);
        assert_eq!(second.as_ptr().addr() - first.as_ptr().addr(), HALF_BYTES);
        first.fill(1);
        second.fill(2);
        drop(first);
        assert!(second.iter().all(|octet| *octet == 2), "the page is there as long as a half is");
        std::thread::spawn(move || second.fill(3)).join().unwrap();
    }
}
