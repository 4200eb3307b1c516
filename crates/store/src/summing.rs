//! Checksums of published files, for software that knows no BLAKE3: computed by a thread of its
//! own, after the root, kept in the state directory.
//!
//! Nobody waits for them and nobody is asked for them: a file that was looked up, whose root is
//! known and some of whose checksums are not, is read once more, in order, with the lowest priority
//! there is. Files take turns, a piece each, so that a large one does not hold up the others. One
//! that changes meanwhile is forgotten; it comes again when it is looked up again, and so does one
//! that finds no room here.
//!
//! Invariant: checksums are kept only of octets that have the root that is announced with them,
//! whatever a disk gives at the second reading.

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
        if is_here || self.files.len() >= FILES_MAX {
            return;
        }
        if let Some(root) = wanted(&self.state, &of, &self.algorithms) {
            self.files.push_back(PartlySummed::new(file, &self.algorithms, root));
        }
    }

    /// Reads a piece of the file whose turn it is.
    fn turn(&mut self, buffer: &mut Vec<u8>) {
        let Some(mut file) = self.files.pop_front() else { return };
        match file.turn(buffer) {
            Ok(None) => self.files.push_back(file),
            Ok(Some(record)) => keep(&self.state, record),
            // It has changed; see `PartlySummed::turn`.
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

/// The root of a file's state if it is known, and not all of these checksums are.
pub(crate) fn wanted(
    state: &StateDir,
    of: &FileState,
    algorithms: &[Algorithm],
) -> Option<[u8; 32]> {
    let known = state.digests(of)?;
    (!known.checksums.have_all(algorithms)).then_some(known.root)
}

/// A file of which a part has been read.
struct PartlySummed {
    file: Arc<dyn BackendFile>,
    of: FileState,
    /// What the octets must have.
    root: [u8; 32],
    at: u64,
    summing: Summing,
    hasher: Box<blake3::Hasher>,
}

impl PartlySummed {
    fn new(file: Arc<dyn BackendFile>, algorithms: &[Algorithm], root: [u8; 32]) -> Self {
        let of = file.stat().state;
        Self { file, of, root, at: 0, summing: Summing::new(algorithms), hasher: Box::default() }
    }

    /// Reads the next piece; the checksums if it was the last. A file that has changed is an
    /// unexpected end, as it is where it has become shorter.
    fn turn(&mut self, buffer: &mut Vec<u8>) -> std::io::Result<Option<ChecksumRecord>> {
        let left = self.of.size - self.at;
        buffer.resize(left.min(PIECE_BYTES as u64) as usize, 0);
        self.file.read_exact_at(buffer, self.at)?;
        self.summing.update(buffer);
        self.hasher.update(buffer);
        self.at += buffer.len() as u64;
        if self.at < self.of.size {
            return Ok(None);
        }
        if !self.file.is_unchanged() {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        if *self.hasher.finalize().as_bytes() != self.root {
            return Err(std::io::Error::new(ErrorKind::InvalidData, "it is not what was hashed"));
        }
        let summing = std::mem::replace(&mut self.summing, Summing::new(&[]));
        let checksums = summing.finish();
        Ok(Some(ChecksumRecord { fingerprint: self.of.fingerprint, checksums }))
    }
}

/// Reads a whole file with this root; `None` if it changed, cannot be read, or the caller stops.
pub(crate) fn sum(
    file: &Arc<dyn BackendFile>,
    algorithms: &[Algorithm],
    root: [u8; 32],
    is_over: &dyn Fn() -> bool,
) -> Option<Checksums> {
    let mut buffer = Vec::new();
    let mut partly = PartlySummed::new(file.clone(), algorithms, root);
    while !is_over() {
        if let Some(record) = partly.turn(&mut buffer).ok()? {
            return Some(record.checksums);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Exposure;
    use crate::backend::posix::Posix;
    use crate::backend::{Backend, Found};

    #[test]
    fn octets_without_the_announced_root_have_no_checksums() {
        let directory = tempfile::TempDir::new().unwrap();
        std::fs::write(directory.path().join("f"), b"123456789").unwrap();
        let backend = Posix::new(directory.path(), Exposure::default(), (0, 0)).unwrap();
        let Found::File(file) = backend.locate(b"f").unwrap() else { panic!() };
        let sum = |root| sum(&file, &[Algorithm::Adler32], root, &|| false);
        let root = *blake3::hash(b"123456789").as_bytes();
        assert_eq!(sum(root).unwrap().adler32, Some([0x09, 0x1e, 0x01, 0xde]));
        assert_eq!(sum(*blake3::hash(b"what was hashed").as_bytes()), None);
    }
}
