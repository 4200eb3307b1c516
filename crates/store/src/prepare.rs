//! Hashing a published tree ahead, so that no reader has to wait for a root.
//!
//! One thread walks the tree as readers would see it. Files of at most one group go through a
//! bounded queue to the hashing threads; a larger one is hashed by several threads together, its
//! groups shared between them. What is known already costs a look at the file's state. Roots are
//! made durable in batches, so that a run that is stopped goes on where it was.
//!
//! Invariants: memory is bounded by one group a thread, the queue and one batch; nothing is
//! written into the tree; the state directory is locked, so no server runs on it meanwhile.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use byname_transfer::server::{FileState, Hashed, OpId, RecordKey};

use crate::backend::posix::{Exposure, Posix};
use crate::backend::{Backend, BackendFile, Directory, Found, LocateError};
use crate::error::{StateError, StoreError};
use crate::hashing::{LargeFile, Turn, small_tree};
use crate::state::{RootRecord, StateDir, TREE_BYTES_MAX, is_small};
use crate::stored_roots;

/// Small files that wait for a thread.
const QUEUE_MAX: usize = 256;
/// Roots that are made durable together.
const BATCH_MAX: usize = 1024;
/// Octets hashed between two calls for progress.
const PROGRESS_BYTES: u64 = 64 << 20;
/// Directories that may wait to be walked.
const WAITING_MAX: usize = 1 << 20;

/// Configuration of a run.
#[derive(Debug, Clone)]
pub struct PrepareConfig {
    /// The directory that will be published.
    pub directory: PathBuf,
    /// Part of it that will be.
    pub exposure: Exposure,
    /// Where the server that will publish it keeps its state.
    pub state_dir: PathBuf,
    /// Octets of hash trees kept on disk.
    pub tree_bytes_max: u64,
    /// Threads that hash.
    pub threads: usize,
    /// Take roots from the files' attribute `user.byname.root`, and write them there.
    pub attributes: bool,
}

impl PrepareConfig {
    /// For `directory`, with what a server with default bounds would keep, in one thread.
    pub fn new(directory: PathBuf, state_dir: PathBuf) -> Self {
        Self {
            directory,
            exposure: Exposure::default(),
            state_dir,
            tree_bytes_max: TREE_BYTES_MAX,
            threads: 1,
            attributes: false,
        }
    }
}

/// Counts of a run so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Prepared {
    /// Files seen.
    pub files: u64,
    /// Octets in them.
    pub bytes: u64,
    /// Files whose root was known already.
    pub known_files: u64,
    /// Files hashed now.
    pub hashed_files: u64,
    /// Octets in them.
    pub hashed_bytes: u64,
    /// Files that changed while they were hashed; they are hashed when they are asked for.
    pub changed_files: u64,
    /// Files and directories that could not be read.
    pub failed: u64,
    /// The caller wanted it to stop.
    pub was_stopped: bool,
}

/// State shared by the threads.
struct Work<'a> {
    state: &'a StateDir,
    done: Mutex<(Prepared, Vec<RootRecord>)>,
    error: Mutex<Option<StateError>>,
    stop: &'a AtomicBool,
    attributes: bool,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Hashes what is published and not hashed yet. `on_progress` is called now and then.
///
/// # Errors
/// [`StateError::Locked`] while a server runs on the state directory; [`StoreError::Mount`] if the
/// directory cannot be read, and what the disk under the state directory says.
pub fn prepare(
    config: &PrepareConfig,
    stop: &AtomicBool,
    on_progress: &mut dyn FnMut(&Prepared),
) -> Result<Prepared, StoreError> {
    let state = StateDir::open(&config.state_dir, config.tree_bytes_max)?;
    let directory = config.directory.clone();
    let backend = Posix::new(&directory, config.exposure, state.identity())
        .map_err(|source| StoreError::Mount { directory, source })?;
    let attributes = config.attributes;
    let (done, error) = (Mutex::default(), Mutex::default());
    let work = Work { state: &state, done, error, stop, attributes };
    let threads = config.threads.max(1);
    std::thread::scope(|scope| {
        let (queue, small) = sync_channel(QUEUE_MAX);
        let small = Arc::new(Mutex::new(small));
        for _ in 0..threads {
            let (work, small) = (&work, small.clone());
            scope.spawn(move || work.hash_small_files(&small));
        }
        work.walk(&backend, &queue, threads, on_progress);
    });
    work.commit(0);
    if let Some(error) = locked(&work.error).take() {
        return Err(error.into());
    }
    let mut prepared = locked(&work.done).0;
    prepared.was_stopped = stop.load(Ordering::Relaxed);
    Ok(prepared)
}

impl Work<'_> {
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || locked(&self.error).is_some()
    }

    fn count(&self, act: impl FnOnce(&mut Prepared)) {
        act(&mut locked(&self.done).0);
    }

    fn walk(
        &self,
        backend: &dyn Backend,
        queue: &SyncSender<Arc<dyn BackendFile>>,
        threads: usize,
        on_progress: &mut dyn FnMut(&Prepared),
    ) {
        let mut waiting: Vec<Vec<u8>> = vec![Vec::new()];
        let mut reported_bytes = 0;
        while let Some(path) = waiting.pop() {
            match backend.locate(&path) {
                Ok(Found::File(file)) => self.take_file(&file, queue, threads),
                Ok(Found::Directory(found)) => self.take_directory(&*found, &path, &mut waiting),
                // Not published.
                Err(LocateError::NotFound) => {}
                Err(_) => self.count(|prepared| prepared.failed += 1),
            }
            if self.is_over() {
                return;
            }
            let prepared = locked(&self.done).0;
            if prepared.hashed_bytes >= reported_bytes + PROGRESS_BYTES {
                reported_bytes = prepared.hashed_bytes;
                on_progress(&prepared);
            }
        }
    }

    fn take_directory(&self, directory: &dyn Directory, path: &[u8], waiting: &mut Vec<Vec<u8>>) {
        let listed = directory.list(false, &mut |entry| {
            if waiting.len() >= WAITING_MAX {
                self.count(|prepared| prepared.failed += 1);
                return Ok(());
            }
            let mut below = path.to_vec();
            if !below.is_empty() {
                below.push(b'/');
            }
            below.extend_from_slice(entry.name);
            waiting.push(below);
            Ok(())
        });
        if listed.is_err() {
            self.count(|prepared| prepared.failed += 1);
        }
    }

    fn take_file(
        &self,
        file: &Arc<dyn BackendFile>,
        queue: &SyncSender<Arc<dyn BackendFile>>,
        threads: usize,
    ) {
        let of = file.stat().state;
        let nobody = RecordKey { name: Vec::new(), listing: false };
        let is_known =
            self.state.recall(&nobody, Some(&of)).root.is_some() || self.take_stored(&**file);
        self.count(|prepared| {
            prepared.files += 1;
            prepared.bytes += of.size;
            prepared.known_files += u64::from(is_known);
        });
        if is_known {
            return self.store_root(&**file);
        }
        if is_small(of.size) {
            // The threads live as long as the queue does.
            let _ = queue.send(file.clone());
            return;
        }
        let hashed = self.hash_large(file.clone(), threads);
        self.take_hashed(&of, hashed);
        self.store_root(&**file);
        self.commit(0);
    }

    /// Takes a root that is stored with a file.
    fn take_stored(&self, file: &dyn BackendFile) -> bool {
        let root = self.attributes.then(|| stored_roots::root_with_tree(file, self.state));
        let Some(root) = root.flatten() else { return false };
        let fingerprint = file.stat().state.fingerprint;
        locked(&self.done).1.push(RootRecord { fingerprint, root });
        true
    }

    /// Stores a root with its file, if that is wanted.
    fn store_root(&self, file: &dyn BackendFile) {
        if self.attributes
            && let Some(record) = stored_roots::store(file, self.state)
        {
            locked(&self.done).1.push(record);
        }
    }

    fn hash_small_files(&self, small: &Mutex<Receiver<Arc<dyn BackendFile>>>) {
        loop {
            let next = locked(small).recv();
            let Ok(file) = next else { return };
            if self.is_over() {
                continue;
            }
            let hashed = match small_tree(&*file) {
                Ok(tree) => Hashed::Root(*tree.root.as_bytes()),
                Err(hashed) => hashed,
            };
            self.take_hashed(&file.stat().state, hashed);
            self.store_root(&*file);
            self.commit(BATCH_MAX);
        }
    }

    fn hash_large(&self, file: Arc<dyn BackendFile>, threads: usize) -> Hashed {
        let tree = match self.state.create_tree(&file.stat().state) {
            Ok(tree) => tree,
            Err(error) => {
                locked(&self.error).get_or_insert(error);
                return Hashed::Failed;
            }
        };
        let large = LargeFile::new(OpId(0), file, tree, threads);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    let mut buffer = Vec::new();
                    while large.turn(&mut buffer) == Turn::More {
                        if self.is_over() {
                            large.give_up();
                        }
                    }
                });
            }
        });
        large.finish(self.state).0
    }

    fn take_hashed(&self, of: &FileState, hashed: Hashed) {
        let mut done = locked(&self.done);
        match hashed {
            Hashed::Root(root) => {
                done.0.hashed_files += 1;
                done.0.hashed_bytes += of.size;
                let record = RootRecord { fingerprint: of.fingerprint, root };
                self.state.remember(record);
                done.1.push(record);
            }
            Hashed::Changed => done.0.changed_files += 1,
            Hashed::Busy | Hashed::Failed if self.stop.load(Ordering::Relaxed) => {}
            Hashed::Busy | Hashed::Failed => done.0.failed += 1,
        }
    }

    /// Makes roots durable if there are more than `above`.
    fn commit(&self, above: usize) {
        let roots = {
            let mut done = locked(&self.done);
            match done.1.len() > above {
                true => std::mem::take(&mut done.1),
                false => return,
            }
        };
        if let Err(error) = self.state.commit(&[], &roots) {
            locked(&self.error).get_or_insert(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(home: &tempfile::TempDir) -> PrepareConfig {
        PrepareConfig {
            directory: home.path().join("tree"),
            exposure: Exposure::default(),
            state_dir: home.path().join("state"),
            tree_bytes_max: 1 << 30,
            threads: 3,
            attributes: false,
        }
    }

    fn run(config: &PrepareConfig) -> Result<Prepared, StoreError> {
        prepare(config, &AtomicBool::new(false), &mut |_| {})
    }

    fn home() -> tempfile::TempDir {
        let home = tempfile::TempDir::new().unwrap();
        let below = home.path().join("tree/d");
        std::fs::create_dir_all(&below).unwrap();
        std::fs::write(home.path().join("tree/small"), b"x").unwrap();
        std::fs::write(home.path().join("tree/.hidden"), b"x").unwrap();
        std::fs::write(below.join("large"), vec![3; 7_000_000]).unwrap();
        home
    }

    #[test]
    fn what_is_published_is_hashed_once() {
        let home = home();
        let config = config(&home);
        let first = run(&config).unwrap();
        assert_eq!((first.files, first.hashed_files, first.hashed_bytes), (2, 2, 7_000_001));
        let again = run(&config).unwrap();
        assert_eq!((again.files, again.known_files, again.hashed_files), (2, 2, 0));
        std::fs::write(home.path().join("tree/small"), b"another").unwrap();
        let changed = run(&config).unwrap();
        assert_eq!((changed.known_files, changed.hashed_files), (1, 1));
        // What it kept is the root that a server announces.
        let state = StateDir::open(&config.state_dir, 1 << 30).unwrap();
        let backend = Posix::new(&config.directory, Exposure::default(), state.identity()).unwrap();
        let Found::File(file) = backend.locate(b"d/large").unwrap() else { panic!() };
        let nobody = RecordKey { name: Vec::new(), listing: false };
        let root = state.recall(&nobody, Some(&file.stat().state)).root.unwrap();
        assert_eq!(root, *blake3::hash(&vec![3; 7_000_000]).as_bytes());
    }

    #[test]
    fn a_running_server_is_not_disturbed() {
        let home = home();
        let config = config(&home);
        let _server = StateDir::open(&config.state_dir, 1 << 30).unwrap();
        let refused = run(&config);
        assert!(matches!(refused, Err(StoreError::State(StateError::Locked { .. }))));
    }

    #[test]
    fn a_stopped_run_keeps_what_it_has_done() {
        let home = home();
        let config = config(&home);
        let stopped = prepare(&config, &AtomicBool::new(true), &mut |_| {}).unwrap();
        assert!(stopped.was_stopped && stopped.hashed_files < 2);
        let rest = run(&config).unwrap();
        assert_eq!(rest.hashed_files + rest.known_files, 2);
    }

    #[test]
    fn roots_that_came_with_copies_are_taken_and_none_is_written_unless_asked() {
        let attribute = |path: &std::path::Path| {
            let name = crate::backend::posix::ROOT_ATTRIBUTE;
            rustix::fs::getxattr(path, name, &mut [0; 256][..]).is_ok()
        };
        let home = home();
        let plain = config(&home);
        let files = ["small", "d/large"].map(|name| home.path().join("tree").join(name));
        run(&plain).unwrap();
        assert!(!files.iter().any(|file| attribute(file)));
        let with = PrepareConfig { attributes: true, ..plain };
        assert_eq!(run(&with).unwrap().known_files, 2);
        assert!(files.iter().all(|file| attribute(file)));
        // Marking them changed their times; they are known all the same.
        assert_eq!(run(&with).unwrap().known_files, 2);
        // In a state that knows nothing, what a small file says is enough.
        let elsewhere = PrepareConfig { state_dir: home.path().join("other"), ..with };
        let known = run(&elsewhere).unwrap();
        assert_eq!((known.known_files, known.hashed_files), (1, 1));
    }
}
