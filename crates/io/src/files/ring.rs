//! Reads by io_uring: one ring, used by one thread, with a poller's counter as its bell.
//!
//! The kernel writes into buffers and reads lists of places while a read is in flight, so both
//! belong to the ring until its completion has come. Whoever drops the ring waits for them; a disk
//! that does not answer in time costs the memory rather than the process.
//!
//! Invariant: an entry is in its slot from before its submission until after its completion.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::{Error, ErrorKind};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use io_uring::types::{CancelBuilder, Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, Probe, cqueue, opcode, squeue};

use super::reader::{FileRead, READS_MAX, ReaderRefusal};
use crate::poller::Waker;

/// Advice in flight; more is forgotten.
const ADVICE_MAX: usize = 64;

/// Attempts of a read that the system interrupts without having read anything.
const ATTEMPTS_MAX: u32 = 16;

/// Longest wait of a ring that is dropped for its reads.
const FAREWELL: Duration = Duration::from_secs(2);

/// Marks the completion of what asks other requests to end.
const CANCELLATION: u64 = u64::MAX;

#[derive(Debug)]
struct ReadUnderWay<T> {
    read: FileRead<T>,
    /// Places that are left to be filled; read by the kernel while the read is submitted.
    places: Vec<libc::iovec>,
    offset: u64,
    attempts: u32,
}

#[derive(Debug)]
enum Entry<T> {
    Read(Box<ReadUnderWay<T>>),
    /// Kept open until the kernel has taken the advice.
    Advice {
        _file: Arc<File>,
    },
}

// SAFETY: the pointers in `places` lead into the buffer of the same read, which moves along (its
// bytes do not), and nothing in them belongs to a thread.
unsafe impl<T: Send> Send for ReadUnderWay<T> {}

pub(super) struct Ring<T> {
    ring: IoUring,
    entries: Vec<Option<Entry<T>>>,
    free: Vec<usize>,
    advice: usize,
    /// The ring writes to its counter, which therefore may not be closed before it.
    waker: Waker,
}

impl<T> std::fmt::Debug for Ring<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring").field("free", &self.free.len()).finish_non_exhaustive()
    }
}

impl<T> Ring<T> {
    pub(super) fn new(waker: &Waker) -> Result<Self, ReaderRefusal> {
        let slots = READS_MAX + ADVICE_MAX;
        let entries_max = u32::try_from(slots.next_power_of_two()).expect("a small number");
        let ring = IoUring::new(entries_max).map_err(ReaderRefusal::Forbidden)?;
        let mut probe = Probe::new();
        let submitter = ring.submitter();
        submitter.register_probe(&mut probe).map_err(ReaderRefusal::Forbidden)?;
        let needed = [opcode::Readv::CODE, opcode::Fadvise::CODE];
        if !needed.iter().all(|code| probe.is_supported(*code)) {
            return Err(ReaderRefusal::TooOld);
        }
        submitter.register_eventfd(waker.as_raw_fd()).map_err(ReaderRefusal::Forbidden)?;
        let entries = (0..slots).map(|_| None).collect();
        let free = (0..slots).rev().collect();
        Ok(Self { ring, entries, free, advice: 0, waker: waker.clone() })
    }

    pub(super) fn start(&mut self, mut read: FileRead<T>) {
        let start = read.buffer.as_mut_ptr();
        let places = read.gaps.iter().filter(|gap| !gap.is_empty()).map(|gap| {
            // Within the buffer, as `Reader::start` has checked.
            let base = start.wrapping_add(gap.start).cast();
            libc::iovec { iov_base: base, iov_len: gap.end - gap.start }
        });
        let (places, offset) = (places.collect(), read.offset);
        let slot = self.free.pop().expect("there are as many slots as reads and advice");
        let under_way = Box::new(ReadUnderWay { read, places, offset, attempts: 0 });
        self.entries[slot] = Some(Entry::Read(under_way));
        self.push_read(slot);
    }

    fn push_read(&mut self, slot: usize) {
        let Some(Entry::Read(under_way)) = &self.entries[slot] else { return };
        let fd = Fd(under_way.read.file.as_raw_fd());
        let count = u32::try_from(under_way.places.len()).expect("at most 1024");
        let entry = opcode::Readv::new(fd, under_way.places.as_ptr(), count)
            .offset(under_way.offset)
            .build()
            .user_data(slot as u64);
        self.push(&entry);
    }

    pub(super) fn advise(&mut self, file: Arc<File>, part: Range<u64>) {
        if self.advice >= ADVICE_MAX {
            return;
        }
        let len = libc::off_t::try_from(part.end.saturating_sub(part.start)).unwrap_or(0);
        let Some(slot) = self.free.pop() else { return };
        let entry = opcode::Fadvise::new(Fd(file.as_raw_fd()), len, libc::POSIX_FADV_WILLNEED)
            .offset(part.start)
            .build()
            .user_data(slot as u64);
        self.entries[slot] = Some(Entry::Advice { _file: file });
        self.advice += 1;
        self.push(&entry);
    }

    fn push(&mut self, entry: &squeue::Entry) {
        loop {
            // SAFETY: files, buffers and lists of places that an entry names are owned by the slot
            // of its number until its completion has been seen.
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                return;
            }
            // The queue has a place for each slot: it is full of what was not submitted.
            self.submit();
        }
    }

    pub(super) fn submit(&mut self) {
        if self.ring.submission().is_empty() {
            return;
        }
        // What the kernel does not take now stays in the queue until the next time.
        if self.ring.submit().is_err() {
            self.waker.wake();
        }
    }

    pub(super) fn take_done(&mut self) -> Option<(FileRead<T>, std::io::Result<()>)> {
        loop {
            let Some(completion) = self.ring.completion().next() else {
                self.submit();
                return None;
            };
            if let Some(done) = self.complete(&completion) {
                return Some(done);
            }
        }
    }

    fn complete(&mut self, entry: &cqueue::Entry) -> Option<(FileRead<T>, std::io::Result<()>)> {
        let slot = usize::try_from(entry.user_data()).ok()?;
        match self.entries.get_mut(slot)?.as_mut()? {
            Entry::Advice { .. } => {
                self.advice -= 1;
                self.release(slot);
                None
            }
            Entry::Read(under_way) => match under_way.proceed(entry.result()) {
                None => {
                    self.push_read(slot);
                    None
                }
                Some(result) => match self.release(slot) {
                    Some(Entry::Read(under_way)) => Some((under_way.read, result)),
                    _ => None,
                },
            },
        }
    }

    fn release(&mut self, slot: usize) -> Option<Entry<T>> {
        self.free.push(slot);
        self.entries[slot].take()
    }
}

impl<T> ReadUnderWay<T> {
    /// Takes what the kernel said; `None` if there is more to be read.
    fn proceed(&mut self, result: i32) -> Option<std::io::Result<()>> {
        match result {
            0 if self.places.is_empty() => Some(Ok(())),
            0 => Some(Err(ErrorKind::UnexpectedEof.into())),
            errno if errno < 0 => {
                self.attempts += 1;
                let is_passing = matches!(-errno, libc::EINTR | libc::EAGAIN);
                match is_passing && self.attempts < ATTEMPTS_MAX {
                    true => None,
                    false => Some(Err(Error::from_raw_os_error(-errno))),
                }
            }
            count => {
                self.attempts = 0;
                self.advance(count.unsigned_abs() as usize);
                self.places.is_empty().then_some(Ok(()))
            }
        }
    }

    fn advance(&mut self, mut count: usize) {
        self.offset += count as u64;
        let mut whole = 0;
        for place in &mut self.places {
            if count < place.iov_len {
                place.iov_base = place.iov_base.cast::<u8>().wrapping_add(count).cast();
                place.iov_len -= count;
                break;
            }
            count -= place.iov_len;
            whole += 1;
        }
        self.places.drain(..whole);
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        let until = Instant::now() + FAREWELL;
        if self.free.len() < self.entries.len() {
            let all = opcode::AsyncCancel2::new(CancelBuilder::any());
            self.push(&all.build().user_data(CANCELLATION));
        }
        while self.free.len() < self.entries.len() && Instant::now() < until {
            let timeout = Timespec::new().nsec(50_000_000);
            let args = SubmitArgs::new().timespec(&timeout);
            let _ = self.ring.submitter().submit_with_args(1, &args);
            // A read that was cancelled, or came, is over either way.
            let over: Vec<u64> = self.ring.completion().map(|entry| entry.user_data()).collect();
            for number in over {
                let slot = usize::try_from(number).unwrap_or(usize::MAX);
                if slot < self.entries.len() && self.entries[slot].is_some() {
                    self.release(slot);
                }
            }
        }
        for entry in self.entries.drain(..).flatten() {
            // The kernel may still write there.
            std::mem::forget(entry);
        }
    }
}
