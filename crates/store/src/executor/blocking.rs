//! Threads that read what lies in no file of this system: a range at a time, however long it takes.
//!
//! They are started with the first read, so a server of directories has none. How many reads there
//! can be is bounded by whoever starts them ([`super::reading`]).

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

use byname_io::Waker;

use crate::content::Content;

/// Threads: reads that can be in flight at the same time.
const THREADS: usize = 8;

/// Octets of a content for gaps in a buffer, one gap after the other.
#[derive(Debug)]
pub(super) struct BlockingRead<T> {
    pub(super) content: Arc<dyn Content>,
    /// Where the octets of the first gap begin.
    pub(super) offset: u64,
    pub(super) buffer: Vec<u8>,
    /// Disjoint and in order, within the buffer.
    pub(super) gaps: Vec<Range<usize>>,
    /// Comes back with the read.
    pub(super) tag: T,
}

#[derive(Debug)]
struct Queue<T> {
    waiting: Mutex<Waiting<T>>,
    ready: Condvar,
    done: Mutex<VecDeque<(BlockingRead<T>, std::io::Result<()>)>>,
    waker: Waker,
}

#[derive(Debug)]
struct Waiting<T> {
    reads: VecDeque<BlockingRead<T>>,
    is_over: bool,
}

/// The threads. Dropping stops them.
#[derive(Debug)]
pub(super) struct BlockingReader<T> {
    queue: Arc<Queue<T>>,
    threads: Vec<JoinHandle<()>>,
    in_flight: usize,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T: Send + 'static> BlockingReader<T> {
    pub(super) fn new(waker: Waker) -> Self {
        let waiting = Mutex::new(Waiting { reads: VecDeque::new(), is_over: false });
        let (ready, done) = (Condvar::new(), Mutex::default());
        let queue = Arc::new(Queue { waiting, ready, done, waker });
        Self { queue, threads: Vec::new(), in_flight: 0 }
    }

    pub(super) fn start(&mut self, read: BlockingRead<T>) {
        self.in_flight += 1;
        if self.threads.len() < THREADS && self.in_flight > self.threads.len() {
            let queue = self.queue.clone();
            let thread = Builder::new().name("byname-fetch".to_owned());
            match thread.spawn(move || queue.work()) {
                Ok(thread) => self.threads.push(thread),
                Err(error) if self.threads.is_empty() => {
                    return locked(&self.queue.done).push_back((read, Err(error)));
                }
                // Those that are there do it.
                Err(_) => {}
            }
        }
        locked(&self.queue.waiting).reads.push_back(read);
        self.queue.ready.notify_one();
    }

    /// A read that is over.
    pub(super) fn take_done(&mut self) -> Option<(BlockingRead<T>, std::io::Result<()>)> {
        if self.in_flight == 0 {
            return None;
        }
        let done = locked(&self.queue.done).pop_front()?;
        self.in_flight -= 1;
        Some(done)
    }
}

impl<T> Drop for BlockingReader<T> {
    fn drop(&mut self) {
        let mut waiting = locked(&self.queue.waiting);
        waiting.is_over = true;
        waiting.reads.clear();
        drop(waiting);
        self.queue.ready.notify_all();
        for thread in self.threads.drain(..) {
            // One that panicked has said so; the others still end.
            let _ = thread.join();
        }
    }
}

impl<T> Queue<T> {
    fn next(&self) -> Option<BlockingRead<T>> {
        let mut waiting = locked(&self.waiting);
        loop {
            if waiting.is_over {
                return None;
            }
            match waiting.reads.pop_front() {
                Some(read) => return Some(read),
                None => {
                    waiting = self.ready.wait(waiting).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    fn work(&self) {
        let mut octets = Vec::new();
        while let Some(mut read) = self.next() {
            let result = fill(&mut read, &mut octets);
            locked(&self.done).push_back((read, result));
            self.waker.wake();
        }
    }
}

/// One ranged read for all gaps.
fn fill<T>(read: &mut BlockingRead<T>, octets: &mut Vec<u8>) -> std::io::Result<()> {
    octets.resize(read.gaps.iter().map(Range::len).sum(), 0);
    read.content.read_exact_at(octets, read.offset)?;
    let mut rest = octets.as_slice();
    for gap in &read.gaps {
        let (content, later) = rest.split_at(gap.len());
        read.buffer[gap.clone()].copy_from_slice(content);
        rest = later;
    }
    Ok(())
}
