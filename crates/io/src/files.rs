//! Reading files into many places at once, without ever waiting for a disk.
//!
//! [`read_cached`] takes what the page cache has, at once, into a list of places. What it leaves
//! is read in the background ([`Reader`]): by io_uring, or by a few threads where the system
//! forbids it. Both read into memory that they own meanwhile, and wake a poller when they are done.

use std::fs::File;
use std::io::{Error, ErrorKind, IoSliceMut};
use std::os::fd::AsFd;

use rustix::io::{Errno, ReadWriteFlags};

mod pool;
mod reader;
mod ring;
#[cfg(test)]
mod tests;

pub use reader::{FileRead, READS_MAX, Reader, ReaderKind, ReaderRefusal, THREADS};

/// `f_type` of file systems that have no disk behind them.
const TMPFS_MAGIC: u64 = 0x0102_1994;
const RAMFS_MAGIC: u64 = 0x8584_58F6;

/// Fills the places one after the other with what the page cache has from `offset` on; says how
/// many octets that were, before something would have had to wait or the file ended.
///
/// Zero octets of a non-empty list mean the end of the file. File systems that cannot tell are read
/// only if the file [is in memory](is_in_memory) anyway. Who calls says that: to ask the file
/// system may hang, if it is another process or another machine.
///
/// # Errors
/// [`ErrorKind::WouldBlock`] if the first octet is not there; that is also the answer for file
/// systems that cannot tell. Others as from the system.
pub fn read_nowait(
    file: &File,
    is_in_memory: bool,
    places: &mut [IoSliceMut<'_>],
    offset: u64,
) -> std::io::Result<usize> {
    read_what_is_there(file, || is_in_memory, places, offset)
}

/// As [`read_nowait`], but asks the file system whether the file is in memory.
///
/// # Errors
/// As [`read_nowait`].
pub fn read_cached(
    file: &File,
    places: &mut [IoSliceMut<'_>],
    offset: u64,
) -> std::io::Result<usize> {
    read_what_is_there(file, || is_in_memory(file), places, offset)
}

fn read_what_is_there(
    file: &File,
    is_in_memory: impl FnOnce() -> bool,
    places: &mut [IoSliceMut<'_>],
    offset: u64,
) -> std::io::Result<usize> {
    let read = || rustix::io::preadv2(file, &mut *places, offset, ReadWriteFlags::NOWAIT);
    match rustix::io::retry_on_intr(read) {
        Err(Errno::OPNOTSUPP) if is_in_memory() => Ok(rustix::io::preadv(file, places, offset)?),
        Err(Errno::OPNOTSUPP | Errno::AGAIN) => Err(ErrorKind::WouldBlock.into()),
        read => Ok(read?),
    }
}

/// True if the file lies on a file system that has no disk behind it. That asks the file system.
pub fn is_in_memory(file: impl AsFd) -> bool {
    rustix::fs::fstatfs(file).is_ok_and(|about| {
        let magic = about.f_type as u64;
        magic == TMPFS_MAGIC || magic == RAMFS_MAGIC
    })
}

/// Fills the places one after the other, waiting for the disk.
///
/// # Errors
/// [`ErrorKind::UnexpectedEof`] if the file ends before they are full. Others as from the system.
fn read_waiting(
    file: &File,
    places: &mut [IoSliceMut<'_>],
    mut offset: u64,
) -> std::io::Result<()> {
    let mut left = places;
    IoSliceMut::advance_slices(&mut left, 0);
    while !left.is_empty() {
        match rustix::io::preadv(file, left, offset) {
            Ok(0) => return Err(Error::from(ErrorKind::UnexpectedEof)),
            Ok(count) => {
                offset += count as u64;
                IoSliceMut::advance_slices(&mut left, count);
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
