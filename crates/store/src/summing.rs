//! Checksums of published files, for software that knows no BLAKE3: computed by a thread of its
//! own, after the root, kept in the state directory.
//!
//! Nobody waits for them and nobody is asked for them: a file that was looked up, whose root is
//! known and some of whose checksums are not, is read once more, in order, with the lowest priority
//! there is. Files take turns, a piece each, so that a large one does not hold up the others. One
//! that changes meanwhile is forgotten; it comes again when it is looked up again, and so does one
//! that finds no room here.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

use byname_transfer::attributes::Checksums;
use byname_transfer::checksums::{Algorithm, Summing};
use byname_transfer::server::FileState;

use crate::backend::BackendFile;
use crate::error::StoreError;
use crate::state::{ChecksumRecord, StateDir};

/// Files that wait to be looked at.
const QUEUE_MAX: usize = 64;
/// Files being read.
const FILES_MAX: usize = 64;
/// Octets of a file in one turn.
const PIECE_BYTES: usize = 2 << 20;
/// Niceness of the thread: the lowest.
const SUMMING_NICE: i32 = 19;

/// The thread. Dropping stops it.
pub(crate) struct SummingThread {
    files: Option<SyncSender<Arc<dyn BackendFile>>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl SummingThread {
    pub(crate) fn start(
        state: Arc<StateDir>,
        algorithms: Vec<Algorithm>,
    ) -> Result<Self, StoreError> {
        let (files, incoming) = sync_channel(QUEUE_MAX);
        let is_over = Arc::new(AtomicBool::new(false));
        let mut queue = Queue { state, algorithms, files: VecDeque::new(), over: is_over.clone() };
        let body = move || {
            // Not allowed: it then reads as eagerly as others.
            let _ = rustix::process::setpriority_process(None, SUMMING_NICE);
            queue.work(&incoming);
        };
        let thread = Builder::new().name("byname-sums".to_owned()).spawn(body);
        let thread = Some(thread.map_err(StoreError::Thread)?);
        Ok(Self { files: Some(files), is_over, thread })
    }

    /// Considers a file that was looked up. Never waits.
    pub(crate) fn consider(&self, file: &Arc<dyn BackendFile>) {
        if let Some(files) = &self.files {
            // Without room it is considered when it is looked up again.
            let _ = files.try_send(file.clone());
        }
    }
}

impl Drop for SummingThread {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.files = None;
        if let Some(thread) = self.thread.take() {
            // One that panicked has said so.
            let _ = thread.join();
        }
    }
}

struct Queue {
    state: Arc<StateDir>,
    algorithms: Vec<Algorithm>,
    files: VecDeque<PartlySummed>,
    over: Arc<AtomicBool>,
}

impl Queue {
    fn work(&mut self, incoming: &Receiver<Arc<dyn BackendFile>>) {
        let mut buffer = Vec::new();
        loop {
            if self.files.is_empty() {
                let Ok(file) = incoming.recv() else { return };
                self.take(file);
            }
            while let Ok(file) = incoming.try_recv() {
                self.take(file);
            }
            if self.over.load(Ordering::Relaxed) {
                return;
            }
            self.turn(&mut buffer);
        }
    }

    fn take(&mut self, file: Arc<dyn BackendFile>) {
        let of = file.stat().state;
        let is_here = self.files.iter().any(|it| it.of == of);
        if is_here
            || self.files.len() >= FILES_MAX
            || !is_wanted(&self.state, &of, &self.algorithms)
        {
            return;
        }
        self.files.push_back(PartlySummed::new(file, &self.algorithms));
    }

    /// Reads a piece of the file whose turn it is.
    fn turn(&mut self, buffer: &mut Vec<u8>) {
        let Some(mut file) = self.files.pop_front() else { return };
        match file.turn(buffer) {
            Ok(None) => self.files.push_back(file),
            Ok(Some(record)) => keep(&self.state, record),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {}
            Err(error) => tracing::warn!(%error, "cannot read a file for its checksums"),
        }
    }
}

fn keep(state: &StateDir, record: ChecksumRecord) {
    if let Err(error) = state.keep_checksums(&[record]) {
        tracing::error!(%error, "cannot keep checksums");
    }
}

/// True if the root of a file's state is known, and not all of these checksums.
pub(crate) fn is_wanted(state: &StateDir, of: &FileState, algorithms: &[Algorithm]) -> bool {
    let known = state.digests(of);
    known.is_some_and(|known| !known.checksums.have_all(algorithms))
}

/// A file of which a part has been read.
struct PartlySummed {
    file: Arc<dyn BackendFile>,
    of: FileState,
    at: u64,
    summing: Summing,
}

impl PartlySummed {
    fn new(file: Arc<dyn BackendFile>, algorithms: &[Algorithm]) -> Self {
        let of = file.stat().state;
        Self { file, of, at: 0, summing: Summing::new(algorithms) }
    }

    /// Reads the next piece; the checksums if it was the last.
    fn turn(&mut self, buffer: &mut Vec<u8>) -> std::io::Result<Option<ChecksumRecord>> {
        let left = self.of.size - self.at;
        buffer.resize(left.min(PIECE_BYTES as u64) as usize, 0);
        self.file.read_exact_at(buffer, self.at)?;
        self.summing.update(buffer);
        self.at += buffer.len() as u64;
        if self.at < self.of.size {
            return Ok(None);
        }
        if !self.file.is_unchanged() {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let summing = std::mem::replace(&mut self.summing, Summing::new(&[]));
        let checksums = summing.finish();
        Ok(Some(ChecksumRecord { fingerprint: self.of.fingerprint, checksums }))
    }
}

/// Reads a whole file; `None` if it changed, cannot be read, or the caller stops.
pub(crate) fn sum(
    file: &Arc<dyn BackendFile>,
    algorithms: &[Algorithm],
    is_over: &dyn Fn() -> bool,
) -> Option<Checksums> {
    let (mut partly, mut buffer) = (PartlySummed::new(file.clone(), algorithms), Vec::new());
    while !is_over() {
        if let Some(record) = partly.turn(&mut buffer).ok()? {
            return Some(record.checksums);
        }
    }
    None
}
