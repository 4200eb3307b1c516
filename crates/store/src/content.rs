//! Octets that segments are cut from: a published file, a kept hash tree, or one in memory.
//!
//! Everything is called once for a whole run of neighbouring segments, never for each of them.

use std::fmt::Debug;
use std::fs::File;
use std::io::{Error, ErrorKind, IoSliceMut};
use std::sync::Arc;

/// Octets that are read in ranges.
pub trait Content: Debug + Send + Sync {
    /// Fills `places`, one after the other, with what can be had without waiting; says how many
    /// octets that is.
    ///
    /// # Errors
    /// [`ErrorKind::WouldBlock`] if nothing can; otherwise what keeps it from being read.
    fn read_ready(&self, places: &mut [IoSliceMut<'_>], offset: u64) -> std::io::Result<usize>;

    /// Fills `buffer`, however long that takes.
    ///
    /// # Errors
    /// [`ErrorKind::UnexpectedEof`] if there is not so much; otherwise what keeps it from being
    /// read.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> std::io::Result<()>;

    /// True if everything that was read belongs to the state in which it was opened. Asked after
    /// reading and before anything leaves. May look (`fstat`), or remember what conditional reads
    /// came back with (`If-Match`); must not wait.
    fn is_unchanged(&self) -> bool;

    /// The file of this system that the octets lie in, and where they begin there, if there is one:
    /// the kernel then reads in the background what has to come from a disk, and ahead of readers.
    fn system_file(&self) -> Option<(&Arc<File>, u64)> {
        None
    }

    /// Takes note of what the kernel has read from [`Content::system_file`].
    ///
    /// # Errors
    /// [`ErrorKind::InvalidData`] if it cannot be right.
    fn accept(&self, _octets: &[u8], _offset: u64) -> std::io::Result<()> {
        Ok(())
    }
}

/// Octets in memory that never change.
#[derive(Debug)]
pub(crate) struct InMemory(pub(crate) Vec<u8>);

impl Content for InMemory {
    fn read_ready(&self, places: &mut [IoSliceMut<'_>], offset: u64) -> std::io::Result<usize> {
        Ok(copy_ready(&self.0, places, offset))
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> std::io::Result<()> {
        copy_exact(&self.0, buffer, offset)
    }

    fn is_unchanged(&self) -> bool {
        true
    }
}

/// Copies octets from `offset` on to `places`; says how many there were.
pub(crate) fn copy_ready(octets: &[u8], places: &mut [IoSliceMut<'_>], offset: u64) -> usize {
    let start = usize::try_from(offset).unwrap_or(usize::MAX).min(octets.len());
    let mut rest = &octets[start..];
    for place in places {
        let (now, later) = rest.split_at(rest.len().min(place.len()));
        place[..now.len()].copy_from_slice(now);
        rest = later;
    }
    octets.len() - start - rest.len()
}

/// Copies exactly as many octets as `buffer` takes.
pub(crate) fn copy_exact(octets: &[u8], buffer: &mut [u8], offset: u64) -> std::io::Result<()> {
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    let found = octets.get(start..).and_then(|rest| rest.get(..buffer.len()));
    buffer.copy_from_slice(found.ok_or_else(|| Error::from(ErrorKind::UnexpectedEof))?);
    Ok(())
}
