//! Open files behind the handles, and reads into the caller's buffers.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use byname_client::{Pending, RangesRead, ReadCounters, RemoteFile};
use byname_io::loan::Loan;

use crate::abi;
use crate::call::{Returned, Work};
use crate::fault::Fault;
use crate::handles::{Kind, Table};
use crate::memory::Place;
use crate::session::{ActiveCall, SessionState};

/// The open files of this process.
pub(crate) static FILES: Table<FileState> =
    Table::new(Kind::File, (abi::BYNAME_FILES_MAX * abi::BYNAME_SESSIONS_MAX) as usize);

/// An open file.
pub(crate) struct FileState {
    pub(crate) file: RemoteFile,
    pub(crate) session: Arc<SessionState>,
}

impl Drop for FileState {
    fn drop(&mut self) {
        self.session.note_closed(self.file.counters());
    }
}

/// The call that opens a file; it ends with the handle.
pub(crate) fn open(active: ActiveCall, pending: Pending<RemoteFile>) -> Work<RemoteFile> {
    let session = Arc::clone(&active);
    Work::new(active, pending, move |file| {
        session.totals.files_opened.fetch_add(1, Ordering::Relaxed);
        session.totals.files_open.fetch_add(1, Ordering::Relaxed);
        FILES.insert(Arc::new(FileState { file, session }))
    })
}

/// Counts of a file or session as the interface has them.
pub(crate) fn counters(read: ReadCounters) -> abi::Counters {
    abi::Counters {
        asked_bytes: read.asked_bytes,
        received_bytes: read.received_bytes,
        requests: read.requests,
        cached_bytes: read.cached_bytes,
        prefetched_bytes: read.prefetched_bytes,
        prefetch_useful_bytes: read.prefetch_useful_bytes,
        prefetch_wasted_bytes: read.prefetch_wasted_bytes,
        ..crate::memory::zeroed()
    }
}

/// The ranges of a call: where each begins, its buffer, and where its count goes.
pub(crate) struct Ranges {
    wanted: Vec<(u64, usize)>,
    buffers: Vec<(NonNull<u8>, usize)>,
    counts: Vec<Place<u64>>,
}

impl Ranges {
    /// The ranges of an array.
    ///
    /// # Safety
    /// A pointer that is not NULL leads to `count` initialised ranges; they and their buffers are
    /// valid for writes, and nobody else reaches them, until the call has ended.
    pub(crate) unsafe fn new(ranges: *mut abi::Range, count: u64) -> Result<Self, Fault> {
        let max = abi::BYNAME_RANGES_MAX;
        if count > max {
            return Err(Fault::Ranges { count, max });
        }
        if ranges.is_null() && count > 0 {
            return Err(Fault::Null { argument: "ranges" });
        }
        let mut made = Ranges::with_capacity(count as usize);
        for index in 0..count as usize {
            // SAFETY: there are so many, initialised and valid for writes.
            let (range, count) = unsafe {
                let range = ranges.add(index);
                (range.read_unaligned(), Place::new(&raw mut (*range).filled_bytes, "ranges")?)
            };
            made.push(range.offset, (range.buffer, range.buffer_bytes))?;
            made.counts.push(count);
        }
        Ok(made)
    }

    /// One range whose count is not wanted.
    ///
    /// # Safety
    /// A buffer that is not NULL has so many octets, is valid for writes, and nobody else reaches
    /// it, until the call has ended.
    pub(crate) unsafe fn one(offset: u64, buffer: (*mut c_void, u64)) -> Result<Self, Fault> {
        let mut made = Ranges::with_capacity(1);
        made.push(offset, buffer)?;
        Ok(made)
    }

    fn with_capacity(count: usize) -> Self {
        let (wanted, buffers) = (Vec::with_capacity(count), Vec::with_capacity(count));
        Ranges { wanted, buffers, counts: Vec::with_capacity(count) }
    }

    fn push(&mut self, offset: u64, (buffer, bytes): (*mut c_void, u64)) -> Result<(), Fault> {
        if bytes > isize::MAX as u64 {
            return Err(Fault::Buffer { bytes });
        }
        let length = bytes as usize;
        let buffer = match NonNull::new(buffer.cast::<u8>()) {
            Some(buffer) => buffer,
            None if length == 0 => NonNull::dangling(),
            None => return Err(Fault::Null { argument: "buffer" }),
        };
        self.wanted.push((offset, length));
        self.buffers.push((buffer, length));
        Ok(())
    }

    /// The call that reads them; it ends with the number of octets.
    pub(crate) fn read(
        self,
        active: ActiveCall,
        file: &RemoteFile,
    ) -> Result<Work<RangesRead>, Fault> {
        let Ranges { wanted, buffers, counts } = self;
        let returned = Arc::new(Returned::default());
        let noted = Arc::clone(&returned);
        let on_return = Box::new(move || noted.note());
        // SAFETY: `new` and `one` were promised that the buffers are valid until the call has
        // ended, and it does not end before `returned` was noted.
        let loan = unsafe { Loan::until_returned(buffers.into_boxed_slice(), on_return) };
        let pending = file.read_lent_later(loan, &wanted)?;
        let finish = move |read: RangesRead| {
            let filled = read.filled.iter().map(|count| *count as u64);
            counts.iter().zip(filled.clone()).for_each(|(place, count)| place.write(count));
            Ok(i64::try_from(filled.sum::<u64>()).unwrap_or(i64::MAX))
        };
        Ok(Work::new(active, pending, finish).lending(returned))
    }
}
