//! What waits to be read, and the threads that read it.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use byname_security::tree::NodeId;

use crate::content::Found;
use crate::counters::add;
use crate::health::Direction;
use crate::state::{ContentState, Shared, lock};

/// Threads that read: so many requests the disk has at once.
const THREADS_MAX: usize = 4;
/// Requests that may wait; more are not taken.
const WAITING_MAX: usize = 4096;

/// A request.
pub(crate) struct ReadWork {
    pub(crate) content: Arc<ContentState>,
    pub(crate) units: Range<u64>,
    pub(crate) nodes: Vec<NodeId>,
    pub(crate) answer: Box<dyn FnOnce(Found) + Send>,
}

impl fmt::Debug for ReadWork {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ReadWork").field("units", &self.units).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct QueueState {
    work: VecDeque<ReadWork>,
    thread_count: usize,
    idle_count: usize,
    is_over: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct ReadQueue {
    state: Mutex<QueueState>,
    has_work: Condvar,
}

impl ReadQueue {
    /// Takes a request; false if there is no room for it.
    pub(crate) fn push(&self, shared: &Arc<Shared>, work: ReadWork) -> bool {
        let mut state = lock(&self.state);
        if state.is_over || state.work.len() >= WAITING_MAX {
            return false;
        }
        state.work.push_back(work);
        if state.work.len() > state.idle_count && state.thread_count < THREADS_MAX {
            // Number 0 is the writer.
            let (shared, caller) = (Arc::clone(shared), state.thread_count + 1);
            let thread = std::thread::Builder::new().name(format!("byname-cache-{caller}"));
            match thread.spawn(move || shared.reads.run(&shared, caller)) {
                Ok(_) => state.thread_count += 1,
                Err(error) => tracing::debug!(%error, "no thread to read the cache"),
            }
        }
        let has_thread = state.thread_count > 0;
        if !has_thread {
            state.work.clear();
        }
        self.has_work.notify_one();
        has_thread
    }

    /// Nothing more comes.
    pub(crate) fn end(&self) {
        let mut state = lock(&self.state);
        state.is_over = true;
        let work = std::mem::take(&mut state.work);
        drop(state);
        drop(work);
        self.has_work.notify_all();
    }

    fn run(&self, shared: &Shared, caller: usize) {
        while let Some(work) = self.next() {
            carry_out(shared, work, caller);
        }
    }

    fn next(&self) -> Option<ReadWork> {
        let mut state = lock(&self.state);
        loop {
            if let Some(work) = state.work.pop_front() {
                return Some(work);
            }
            if state.is_over {
                return None;
            }
            state.idle_count += 1;
            state = self.has_work.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle_count -= 1;
        }
    }
}

fn carry_out(shared: &Shared, work: ReadWork, caller: usize) {
    let ReadWork { content, units, nodes, answer } = work;
    let mut found = Found { units, ..Found::default() };
    let call = shared.health.begin(caller);
    match fill(shared, &content, &nodes, &mut found) {
        Ok(()) => shared.health.note_success(Direction::Read),
        Err(error) => {
            add(&shared.counts.failed_reads, 1);
            shared.health.note_error(Direction::Read, &error, &shared.counts);
        }
    }
    drop(call);
    answer(found);
}

/// Reads what is there; what was read before an error counts.
fn fill(
    shared: &Shared,
    content: &ContentState,
    nodes: &[NodeId],
    found: &mut Found,
) -> io::Result<()> {
    let Some(entry) = content.refresh(shared)? else { return Ok(()) };
    for node in nodes {
        if let Some(bytes) = entry.read_node(*node)? {
            found.nodes.push((*node, bytes));
        }
    }
    for run in present_runs(content, found.units.clone()) {
        let bytes = entry.read_units(run.clone())?;
        add(&shared.counts.read_bytes, bytes.len() as u64);
        found.runs.push((run.start, bytes));
    }
    Ok(())
}

fn present_runs(content: &ContentState, units: Range<u64>) -> Vec<Range<u64>> {
    let known = lock(&content.units);
    let end = units.end.min(content.shape.unit_count());
    let mut runs = Vec::new();
    let mut at = units.start;
    for missing in known.present.missing(at..end) {
        if at < missing.start {
            runs.push(at..missing.start);
        }
        at = missing.end;
    }
    if at < end {
        runs.push(at..end);
    }
    runs
}
