//! Threads for what takes long: hashing, directories, checking trees; and one for durable records.
//!
//! Jobs wait in two queues, each with threads of its own: hashing large files gives way to whatever
//! somebody waits for. How many jobs there can be is bounded by the engine that asks for them. The
//! records' thread commits everything that has come meanwhile in one go, so that the cost of
//! reaching the disk is shared. Results are collected and the file server's thread is woken.

mod hash;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{Builder, JoinHandle};

use byname_io::Waker;
use byname_transfer::server::{
    Completion, FileState, ListFailure, OpId, Record, RecordKey, SignSegment,
};

use crate::backend::{Backend, BackendFile, Found, LocateError};
use crate::content::Content;
use crate::error::StoreError;
use crate::hashing::LargeFile;
use crate::mirror;
use crate::segment_signing::{self, SegmentSource};
use crate::snapshot::{self, manifest, manifest::ManifestOrder};
use crate::state::{RootRecord, StateDir};
use hash::{begin_hash, hash_large, hash_small, open_tree, store_root};

/// Records that wait for the disk; whoever brings more waits.
const COMMITS_MAX: usize = 4096;
/// Threads for what somebody waits for, besides those that hash large files.
const QUICK_THREADS: usize = 4;
/// Niceness of threads that hash.
const HASHING_NICE: i32 = 10;
/// Records in one transaction.
const COMMIT_BATCH_MAX: usize = 1024;

/// Something for a worker.
#[derive(Debug)]
pub(crate) enum WorkerJob {
    Locate {
        op: OpId,
        backend: Arc<dyn Backend>,
        path: Vec<u8>,
    },
    List {
        op: OpId,
        backend: Arc<dyn Backend>,
        path: Vec<u8>,
        bytes_max: usize,
    },
    Manifest {
        op: OpId,
        order: Box<ManifestOrder>,
    },
    Kept {
        op: OpId,
        order: Box<KeptOrder>,
    },
    Recall {
        op: OpId,
        key: RecordKey,
        state: Option<FileState>,
    },
    KeptFile {
        op: OpId,
        file: Arc<dyn BackendFile>,
        bytes_max: usize,
    },
    HashSmall {
        op: OpId,
        file: Arc<dyn BackendFile>,
    },
    /// A file that nobody reads any more, whose root may be stored with it.
    StoreRoot {
        file: Arc<dyn BackendFile>,
    },
    /// A large file, of which so many threads hash parts.
    BeginHash {
        op: OpId,
        file: Arc<dyn BackendFile>,
        parts: usize,
    },
    HashLarge(Arc<LargeFile>),
    /// A record or a root that found too many others waiting.
    Commit(Commit),
    OpenTree {
        op: OpId,
        file: Arc<dyn BackendFile>,
    },
    Sign {
        op: OpId,
        source: SegmentSource,
        order: Box<SignSegment>,
    },
}

/// Packets kept with a directory, to be read.
#[derive(Debug)]
pub(crate) struct KeptOrder {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) path: Vec<u8>,
    pub(crate) is_manifest: bool,
    pub(crate) bytes_max: usize,
}

/// Result of a job.
#[derive(Debug)]
pub(crate) enum WorkerResult {
    Completion(OpId, Completion),
    Located(OpId, Box<LocatedPath>),
    /// A large file is being hashed from now on.
    Hashing(FileState, Weak<LargeFile>),
    /// A tree to be read from.
    Tree(OpId, Option<Arc<dyn Content>>),
}

/// A path and where it leads.
#[derive(Debug)]
pub(crate) struct LocatedPath {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) path: Vec<u8>,
    pub(crate) found: Result<Found, LocateError>,
}

/// Records and roots to be kept together, and who waits for the news which were.
#[derive(Debug)]
pub(crate) struct Batch {
    names: Vec<(RecordKey, Record)>,
    roots: Vec<RootRecord>,
    reply: SyncSender<Vec<bool>>,
}

/// Something for the records' thread.
#[derive(Debug)]
pub(crate) enum Commit {
    Batch(Batch),
    Announce(OpId, RecordKey, Record),
    Root(RootRecord),
}

#[derive(Debug, Default)]
struct Queue {
    jobs: Mutex<VecDeque<WorkerJob>>,
    ready: Condvar,
}

struct Shared {
    state: Arc<StateDir>,
    /// Roots may be read from files' attributes, and are written there.
    attributes: bool,
    /// Jobs that somebody waits for.
    quick: Queue,
    /// Large files to be hashed.
    background: Queue,
    is_over: AtomicBool,
    done: Mutex<Vec<WorkerResult>>,
    waker: Waker,
}

/// The threads. Dropping stops them.
pub(crate) struct Workers {
    shared: Arc<Shared>,
    commits: Option<SyncSender<Commit>>,
    threads: Vec<JoinHandle<()>>,
    count: usize,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Workers {
    pub(crate) fn start(
        state: Arc<StateDir>,
        (count, attributes): (usize, bool),
        waker: Waker,
    ) -> Result<Self, StoreError> {
        let shared = Arc::new(Shared {
            state,
            attributes,
            quick: Queue::default(),
            background: Queue::default(),
            is_over: AtomicBool::new(false),
            done: Mutex::default(),
            waker,
        });
        let (commits, to_commit) = sync_channel(COMMITS_MAX);
        let mut workers =
            Self { shared: shared.clone(), commits: Some(commits.clone()), threads: vec![], count };
        let records = shared.clone();
        workers.spawn("byname-records", move || commit_all(&records, &to_commit))?;
        for _ in 0..count {
            let (shared, commits) = (shared.clone(), commits.clone());
            workers.spawn("byname-hash", move || {
                // Not allowed: it then hashes as eagerly as it serves.
                let _ = rustix::process::setpriority_process(None, HASHING_NICE);
                work(&shared, &shared.background, &commits);
            })?;
        }
        for _ in 0..QUICK_THREADS {
            let (shared, commits) = (shared.clone(), commits.clone());
            workers.spawn("byname-worker", move || work(&shared, &shared.quick, &commits))?;
        }
        Ok(workers)
    }

    fn spawn(
        &mut self,
        name: &str,
        body: impl FnOnce() + Send + 'static,
    ) -> Result<(), StoreError> {
        let thread = Builder::new().name(name.to_owned()).spawn(body);
        self.threads.push(thread.map_err(StoreError::Thread)?);
        Ok(())
    }

    /// True if roots are read from and written to files' attributes.
    pub(crate) fn uses_attributes(&self) -> bool {
        self.shared.attributes
    }

    /// Stores a file's root with it at once.
    pub(crate) fn store_root(&self, file: &dyn BackendFile) {
        if let Some(commits) = &self.commits {
            store_root(&self.shared, commits, file);
        }
    }

    /// Number of threads hash large files.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    pub(crate) fn push(&self, job: WorkerJob) {
        self.shared.push(job);
    }

    pub(crate) fn announce(&self, op: OpId, key: RecordKey, record: Record) {
        self.commit(Commit::Announce(op, key, record));
    }

    pub(crate) fn keep_root(&self, root: RootRecord) {
        self.shared.state.remember(root);
        self.commit(Commit::Root(root));
    }

    /// Never waits: that is left to a worker if the records' thread is far behind.
    fn commit(&self, commit: Commit) {
        let Some(commits) = &self.commits else { return };
        // The receiver lives as long as the threads, and they live as long as this.
        if let Err(TrySendError::Full(commit)) = commits.try_send(commit) {
            self.push(WorkerJob::Commit(commit));
        }
    }

    /// Results since the last call.
    pub(crate) fn take_done(&self) -> Vec<WorkerResult> {
        std::mem::take(&mut *locked(&self.shared.done))
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        self.commits = None;
        for queue in [&self.shared.quick, &self.shared.background] {
            // Taken once, so that no worker can be between its look at the flag and its wait.
            locked(&queue.jobs).clear();
            queue.ready.notify_all();
        }
        for thread in self.threads.drain(..) {
            // A worker that panicked has said so; the others still end.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn push(&self, job: WorkerJob) {
        let queue = match job {
            WorkerJob::HashLarge(_) => &self.background,
            _ => &self.quick,
        };
        locked(&queue.jobs).push_back(job);
        queue.ready.notify_one();
    }

    fn finish(&self, done: WorkerResult) {
        locked(&self.done).push(done);
        self.waker.wake();
    }

    fn next_job(&self, from: &Queue) -> Option<WorkerJob> {
        let mut queue = locked(&from.jobs);
        loop {
            if self.is_over.load(Ordering::Relaxed) {
                return None;
            }
            match queue.pop_front() {
                Some(job) => return Some(job),
                None => {
                    queue = from.ready.wait(queue).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}

fn work(shared: &Shared, from: &Queue, commits: &SyncSender<Commit>) {
    let mut buffer = Vec::new();
    while let Some(job) = shared.next_job(from) {
        match job {
            WorkerJob::Locate { op, backend, path } => {
                let found = backend.locate(&path);
                let located = Box::new(LocatedPath { backend, path, found });
                shared.finish(WorkerResult::Located(op, located));
            }
            WorkerJob::List { op, backend, path, bytes_max } => {
                let listed = snapshot::read(&*backend, &path, bytes_max);
                if let Err(ListFailure::TooLarge) = listed {
                    let directory = backend.describe(&path);
                    tracing::error!(directory, bytes_max, "a directory is too large to be listed");
                }
                shared.finish(WorkerResult::Completion(op, Completion::Listed(listed)));
            }
            WorkerJob::Manifest { op, order } => {
                let commit = |names, roots| commit_batch(commits, names, roots);
                let listed = manifest::read(&order, &shared.state, &commit);
                shared.finish(WorkerResult::Completion(op, Completion::Listed(listed)));
            }
            WorkerJob::Kept { op, order } => {
                let KeptOrder { backend, path, is_manifest, bytes_max } = *order;
                let kept = mirror::read_directory(&*backend, &path, is_manifest, bytes_max);
                shared.finish(WorkerResult::Completion(op, Completion::Kept(kept)));
            }
            WorkerJob::HashSmall { op, file } => {
                let hashed = hash_small(shared, commits, &*file);
                shared.finish(WorkerResult::Completion(op, Completion::Hashed(hashed)));
            }
            WorkerJob::Recall { op, key, state } => {
                let recalled = shared.state.recall(&key, state.as_ref());
                shared.finish(WorkerResult::Completion(op, Completion::Recalled(recalled)));
            }
            WorkerJob::KeptFile { op, file, bytes_max } => {
                let kept = mirror::read_file(&*file, bytes_max);
                shared.finish(WorkerResult::Completion(op, Completion::Kept(kept)));
            }
            WorkerJob::StoreRoot { file } => store_root(shared, commits, &*file),
            WorkerJob::Commit(commit) => drop(commits.send(commit)),
            WorkerJob::BeginHash { op, file, parts } => {
                begin_hash(shared, commits, (op, file), parts);
            }
            WorkerJob::HashLarge(large) => hash_large(shared, commits, large, &mut buffer),
            WorkerJob::Sign { op, source, order } => {
                let signed = segment_signing::sign(&source, &order);
                shared.finish(WorkerResult::Completion(op, Completion::Signed(signed)));
            }
            WorkerJob::OpenTree { op, file } => {
                let tree = open_tree(&shared.state, &*file);
                shared.finish(WorkerResult::Tree(op, tree));
            }
        }
    }
}

/// Waits until the records are durable and says which of them count; none if the disk failed.
fn commit_batch(
    commits: &SyncSender<Commit>,
    names: Vec<(RecordKey, Record)>,
    roots: Vec<RootRecord>,
) -> Vec<bool> {
    let (reply, answer) = sync_channel(1);
    // The receiver lives as long as anybody can send.
    let _ = commits.send(Commit::Batch(Batch { names, roots, reply }));
    answer.recv().unwrap_or_default()
}

/// Commits what has come, then what came meanwhile, until nobody can bring more.
fn commit_all(shared: &Shared, incoming: &Receiver<Commit>) {
    while let Ok(first) = incoming.recv() {
        let (mut names, mut ops, mut roots) = (Vec::new(), Vec::new(), Vec::new());
        let mut batches = Vec::new();
        for commit in std::iter::once(first).chain(incoming.try_iter().take(COMMIT_BATCH_MAX)) {
            match commit {
                Commit::Announce(op, key, record) => {
                    ops.push(op);
                    names.push((key, record));
                }
                Commit::Root(root) => roots.push(root),
                Commit::Batch(batch) => batches.push(batch),
            }
        }
        for batch in batches {
            let kept = shared.state.commit(&batch.names, &batch.roots);
            // Whoever asked may be gone because the server ends.
            let _ = batch.reply.send(kept.unwrap_or_else(|error| {
                tracing::error!(%error, "cannot keep records; new versions are not announced");
                Vec::new()
            }));
        }
        if names.is_empty() && roots.is_empty() {
            continue;
        }
        let committed = shared.state.commit(&names, &roots);
        if let Err(error) = &committed {
            tracing::error!(%error, "cannot keep records; new versions are not announced");
        }
        let kept = committed.unwrap_or_default();
        for (place, op) in ops.into_iter().enumerate() {
            let completion = Completion::Announced(kept.get(place).is_some_and(|kept| *kept));
            shared.finish(WorkerResult::Completion(op, completion));
        }
    }
}
