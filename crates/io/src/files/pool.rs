//! Reads by threads, for where io_uring is forbidden.
//!
//! One queue, bounded by whoever starts reads; advice that finds the queue long is forgotten.

use std::collections::VecDeque;
use std::fs::File;
use std::io::IoSliceMut;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

use rustix::fs::Advice;

use super::read_waiting;
use super::reader::FileRead;
use crate::poller::Waker;

/// Tasks that wait, beyond which advice about reads to come is dropped.
const ADVICE_QUEUE_MAX: usize = 64;

type Done<T> = (FileRead<T>, std::io::Result<()>);

#[derive(Debug)]
enum Task<T> {
    Read(FileRead<T>),
    Advise(Arc<File>, Range<u64>),
}

#[derive(Debug)]
struct Queue<T> {
    tasks: VecDeque<Task<T>>,
    is_over: bool,
}

#[derive(Debug)]
struct Shared<T> {
    queue: Mutex<Queue<T>>,
    ready: Condvar,
    done: Mutex<VecDeque<Done<T>>>,
    waker: Waker,
}

/// The threads. Dropping waits for reads that have begun and forgets the others.
#[derive(Debug)]
pub(super) struct Pool<T> {
    shared: Arc<Shared<T>>,
    threads: Vec<JoinHandle<()>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T: Send + 'static> Pool<T> {
    pub(super) fn new(threads: usize, waker: Waker) -> std::io::Result<Self> {
        let queue = Mutex::new(Queue { tasks: VecDeque::new(), is_over: false });
        let shared =
            Arc::new(Shared { queue, ready: Condvar::new(), done: Mutex::default(), waker });
        let mut pool = Self { shared: shared.clone(), threads: Vec::new() };
        for _ in 0..threads {
            let shared = shared.clone();
            let thread = Builder::new().name("byname-read".to_owned());
            pool.threads.push(thread.spawn(move || work(&shared))?);
        }
        Ok(pool)
    }

    pub(super) fn start(&mut self, read: FileRead<T>) {
        locked(&self.shared.queue).tasks.push_back(Task::Read(read));
        self.shared.ready.notify_one();
    }

    pub(super) fn advise(&mut self, file: Arc<File>, part: Range<u64>) {
        let mut queue = locked(&self.shared.queue);
        if queue.tasks.len() < ADVICE_QUEUE_MAX {
            queue.tasks.push_back(Task::Advise(file, part));
            self.shared.ready.notify_one();
        }
    }

    pub(super) fn take_done(&mut self) -> Option<Done<T>> {
        locked(&self.shared.done).pop_front()
    }
}

impl<T> Drop for Pool<T> {
    fn drop(&mut self) {
        let mut queue = locked(&self.shared.queue);
        queue.is_over = true;
        queue.tasks.clear();
        drop(queue);
        self.shared.ready.notify_all();
        for thread in self.threads.drain(..) {
            // One that panicked has said so; the others still end.
            let _ = thread.join();
        }
    }
}

impl<T> Shared<T> {
    fn next(&self) -> Option<Task<T>> {
        let mut queue = locked(&self.queue);
        loop {
            if queue.is_over {
                return None;
            }
            match queue.tasks.pop_front() {
                Some(task) => return Some(task),
                None => queue = self.ready.wait(queue).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

fn work<T>(shared: &Shared<T>) {
    while let Some(task) = shared.next() {
        match task {
            Task::Read(mut read) => {
                let result = fill(&mut read);
                locked(&shared.done).push_back((read, result));
                shared.waker.wake();
            }
            Task::Advise(file, part) => {
                let len = std::num::NonZeroU64::new(part.end.saturating_sub(part.start));
                // Advice: whoever does not take it reads a little later.
                let _ = rustix::fs::fadvise(&file, part.start, len, Advice::WillNeed);
            }
        }
    }
}

fn fill<T>(read: &mut FileRead<T>) -> std::io::Result<()> {
    let mut places = Vec::with_capacity(read.gaps.len());
    let (mut rest, mut at) = (&mut read.buffer[..], 0);
    for gap in &read.gaps {
        let (place, behind) = rest[gap.start - at..].split_at_mut(gap.end - gap.start);
        places.push(IoSliceMut::new(place));
        (rest, at) = (behind, gap.end);
    }
    read_waiting(&read.file, &mut places, read.offset)
}
