//! Reads in the background, whoever carries them out.

use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

use super::pool::Pool;
use super::ring::Ring;
use crate::error::IoError;
use crate::poller::Waker;

/// Reads that can be in flight at the same time.
pub const READS_MAX: usize = 256;

/// Octets of a file for gaps in a buffer, one gap after the other.
#[derive(Debug)]
pub struct FileRead<T> {
    /// The file.
    pub file: Arc<File>,
    /// Where in the file the octets of the first gap begin.
    pub offset: u64,
    /// Whatever stands between the gaps is left as it is.
    pub buffer: Vec<u8>,
    /// Disjoint and in order, within the buffer, at most 1024 of them.
    pub gaps: Vec<Range<usize>>,
    /// Comes back with the read.
    pub tag: T,
}

/// The kind of reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReaderKind {
    /// io_uring if the system lets us, threads otherwise.
    #[default]
    Auto,
    /// io_uring or nothing.
    Ring,
    /// This many threads.
    Threads(usize),
}

/// Threads where io_uring is forbidden: what a disk needs to be busy.
pub const THREADS: usize = 8;

/// Why io_uring is not used.
#[derive(Debug, thiserror::Error)]
pub enum ReaderRefusal {
    /// The system does not give us a ring, for instance by a seccomp filter or a sysctl.
    #[error("io_uring is not to be had: {0}")]
    Forbidden(#[source] std::io::Error),
    /// The kernel is too old.
    #[error("this kernel's io_uring cannot read into a list of places")]
    TooOld,
}

/// Reads files in the background and wakes a poller when something is done.
#[derive(Debug)]
pub struct Reader<T> {
    inner: Inner<T>,
    under_way: usize,
}

#[derive(Debug)]
enum Inner<T> {
    Ring(Box<Ring<T>>),
    Pool(Pool<T>),
}

impl<T: Send + 'static> Reader<T> {
    /// A reader of this kind, and why it is not a ring if it could have been one.
    ///
    /// # Errors
    /// [`IoError`] if threads, or the ring that alone would do, cannot be had.
    pub fn new(kind: ReaderKind, waker: Waker) -> Result<(Self, Option<ReaderRefusal>), IoError> {
        let (threads, refusal) = match kind {
            ReaderKind::Threads(threads) => (threads.max(1), None),
            ReaderKind::Auto | ReaderKind::Ring => match Ring::new(&waker) {
                Ok(ring) => {
                    return Ok((Self { inner: Inner::Ring(Box::new(ring)), under_way: 0 }, None));
                }
                Err(refusal) if kind == ReaderKind::Ring => {
                    return Err(IoError::new("io_uring_setup", std::io::Error::other(refusal)));
                }
                Err(refusal) => (THREADS, Some(refusal)),
            },
        };
        let pool = Pool::new(threads, waker).map_err(|error| IoError::new("clone", error))?;
        Ok((Self { inner: Inner::Pool(pool), under_way: 0 }, refusal))
    }

    /// True if io_uring reads.
    pub fn is_ring(&self) -> bool {
        matches!(self.inner, Inner::Ring(_))
    }

    /// Reads in flight.
    pub fn under_way(&self) -> usize {
        self.under_way
    }

    /// True if [`Reader::start`] takes another read.
    pub fn has_room(&self) -> bool {
        self.under_way < READS_MAX
    }

    /// Takes a read. It may begin with the next [`Reader::submit`] only.
    ///
    /// # Panics
    /// If there is no room, or the gaps are not as they must be.
    pub fn start(&mut self, read: FileRead<T>) {
        assert!(self.has_room(), "the caller asks first");
        let mut at = 0;
        for gap in &read.gaps {
            assert!(at <= gap.start && gap.start <= gap.end && gap.end <= read.buffer.len());
            at = gap.end;
        }
        assert!(read.gaps.len() <= 1024, "no system call takes more");
        self.under_way += 1;
        match &mut self.inner {
            Inner::Ring(ring) => ring.start(read),
            Inner::Pool(pool) => pool.start(read),
        }
    }

    /// Asks for a part of a file to be brought into the page cache, if there is time for it.
    pub fn advise(&mut self, file: Arc<File>, part: Range<u64>) {
        match &mut self.inner {
            Inner::Ring(ring) => ring.advise(file, part),
            Inner::Pool(pool) => pool.advise(file, part),
        }
    }

    /// Lets everything that was started begin.
    pub fn submit(&mut self) {
        if let Inner::Ring(ring) = &mut self.inner {
            ring.submit();
        }
    }

    /// A read that is over. Its gaps are full, or the error says why not;
    /// [`std::io::ErrorKind::UnexpectedEof`] is a file that ended before.
    pub fn take_done(&mut self) -> Option<(FileRead<T>, std::io::Result<()>)> {
        let done = match &mut self.inner {
            Inner::Ring(ring) => ring.take_done(),
            Inner::Pool(pool) => pool.take_done(),
        };
        self.under_way -= usize::from(done.is_some());
        done
    }
}
