//! Hashing a published tree ahead, so that no reader has to wait for a root.
//!
//! One thread walks the tree as readers would see it. Files of at most one group go through a
//! bounded queue to the hashing threads; a larger one is hashed by several threads together, its
//! groups shared between them. What is known already costs a look at the file's state. Checksums
//! need the octets in order: a thread reads a file a second time for them. Roots and checksums are
//! made durable in batches, so that a run that is stopped goes on where it was.
//!
//! Invariants: memory is bounded by one group a thread, the queue and one batch; nothing is
//! written into the tree; the state directory is locked, so no server runs on it meanwhile.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use byname_transfer::checksums::Algorithm;
use byname_transfer::server::{FileState, Hashed, OpId};

use crate::backend::posix::{Exposure, Posix};
use crate::backend::{Backend, BackendFile, Directory, Found, LocateError};
use crate::error::{StateError, StoreError};
use crate::hashing::{LargeFile, Turn, small_tree};
use crate::state::{ChecksumRecord, RootRecord, StateDir, TREE_BYTES_MAX, is_small};
use crate::{stored_roots, summing};

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
    /// Checksums to be computed, in a second pass over each file.
    pub checksums: Vec<Algorithm>,
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
            checksums: Vec::new(),
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
    /// Files whose checksums were computed now.
    pub summed_files: u64,
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
    done: Mutex<Done>,
    error: Mutex<Option<StateError>>,
    stop: &'a AtomicBool,
    attributes: bool,
    checksums: &'a [Algorithm],
}

/// Counts, and what is not durable yet.
#[derive(Default)]
struct Done {
    prepared: Prepared,
    roots: Vec<RootRecord>,
    checksums: Vec<ChecksumRecord>,
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
    let (attributes, checksums) = (config.attributes, &config.checksums[..]);
    let (done, error) = (Mutex::default(), Mutex::default());
    let work = Work { state: &state, done, error, stop, attributes, checksums };
    let threads = config.threads.max(1);
    std::thread::scope(|scope| {
        let (queue, small) = sync_channel(QUEUE_MAX);
        let small = Arc::new(Mutex::new(small));
        for _ in 0..threads {
            let (work, small) = (&work, small.clone());
            scope.spawn(move || work.finish_files(&small));
        }
        work.walk(&backend, &queue, threads, on_progress);
    });
    work.commit(0);
    if let Some(error) = locked(&work.error).take() {
        return Err(error.into());
    }
    let mut prepared = locked(&work.done).prepared;
    prepared.was_stopped = stop.load(Ordering::Relaxed);
    Ok(prepared)
}

impl Work<'_> {
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || locked(&self.error).is_some()
    }

    fn count(&self, act: impl FnOnce(&mut Prepared)) {
        act(&mut locked(&self.done).prepared);
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
                // Not published, or nothing to hash here.
                Ok(Found::Described(_)) | Err(LocateError::NotFound) => {}
                Err(_) => self.count(|prepared| prepared.failed += 1),
            }
            if self.is_over() {
                return;
            }
            let prepared = locked(&self.done).prepared;
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
        let is_known = self.state.digests(&of).is_some() || self.take_stored(&**file);
        self.count(|prepared| {
            prepared.files += 1;
            prepared.bytes += of.size;
            prepared.known_files += u64::from(is_known);
        });
        if !is_known && !is_small(of.size) {
            let hashed = self.hash_large(file.clone(), threads);
            self.take_hashed(&of, hashed);
            self.commit(0);
        }
        // The threads live as long as the queue does.
        let _ = queue.send(file.clone());
    }

    /// Takes a root that is stored with a file.
    fn take_stored(&self, file: &dyn BackendFile) -> bool {
        let root = self.attributes.then(|| stored_roots::root_with_tree(file, self.state));
        let Some(root) = root.flatten() else { return false };
        let record = RootRecord { fingerprint: file.stat().state.fingerprint, root };
        self.state.remember(record);
        locked(&self.done).roots.push(record);
        true
    }

    /// Stores a root with its file, if that is wanted.
    fn store_root(&self, file: &dyn BackendFile) {
        if self.attributes
            && let Some(record) = stored_roots::store(file, self.state)
        {
            locked(&self.done).roots.push(record);
        }
    }

    /// What one thread can do by itself: hashing small files, checksums, roots stored with files.
    fn finish_files(&self, files: &Mutex<Receiver<Arc<dyn BackendFile>>>) {
        loop {
            let next = locked(files).recv();
            let Ok(file) = next else { return };
            if self.is_over() {
                continue;
            }
            let of = file.stat().state;
            if is_small(of.size) && self.state.digests(&of).is_none() {
                let hashed = match small_tree(&*file) {
                    Ok(tree) => Hashed::Root(*tree.root.as_bytes()),
                    Err(hashed) => hashed,
                };
                self.take_hashed(&of, hashed);
            }
            self.sum(&file);
            self.store_root(&*file);
            self.commit(BATCH_MAX);
        }
    }

    /// Computes the checksums of a file whose root is known, those that are not.
    fn sum(&self, file: &Arc<dyn BackendFile>) {
        let of = file.stat().state;
        let Some(root) = summing::wanted(self.state, &of, self.checksums) else { return };
        let summed = summing::sum(file, self.checksums, root, &|| self.is_over());
        let Some(checksums) = summed else { return };
        {
            let mut done = locked(&self.done);
            done.prepared.summed_files += 1;
            done.checksums.push(ChecksumRecord { fingerprint: of.fingerprint, checksums });
        }
        if self.attributes {
            // Storing the root changes the file's state, and takes with it what is kept by then.
            self.commit(0);
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
                done.prepared.hashed_files += 1;
                done.prepared.hashed_bytes += of.size;
                let record = RootRecord { fingerprint: of.fingerprint, root };
                self.state.remember(record);
                done.roots.push(record);
            }
            Hashed::Changed => done.prepared.changed_files += 1,
            Hashed::Busy | Hashed::Failed if self.stop.load(Ordering::Relaxed) => {}
            Hashed::Busy | Hashed::Failed => done.prepared.failed += 1,
        }
    }

    /// Makes roots and checksums durable if there are more than `above` of either.
    fn commit(&self, above: usize) {
        let (roots, checksums) = {
            let mut done = locked(&self.done);
            match done.roots.len().max(done.checksums.len()) > above {
                true => (std::mem::take(&mut done.roots), std::mem::take(&mut done.checksums)),
                false => return,
            }
        };
        let mut kept = self.state.commit(&[], &roots).map(drop);
        if kept.is_ok() && !checksums.is_empty() {
            kept = self.state.keep_checksums(&checksums);
        }
        if let Err(error) = kept {
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
            checksums: Vec::new(),
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
        let root = state.digests(&file.stat().state).unwrap().root;
        assert_eq!(root, *blake3::hash(&vec![3; 7_000_000]).as_bytes());
    }

    #[test]
    fn checksums_are_computed_once_and_stay_with_the_content() {
        let home = home();
        let plain = config(&home);
        run(&plain).unwrap();
        let config = PrepareConfig { checksums: Algorithm::ALL.to_vec(), ..plain };
        let first = run(&config).unwrap();
        assert_eq!((first.hashed_files, first.summed_files), (0, 2), "of known files too");
        assert_eq!(run(&config).unwrap().summed_files, 0);
        // A root that is stored with a file changes its state, not its content.
        let marked = PrepareConfig { attributes: true, ..config };
        assert_eq!(run(&marked).unwrap().summed_files, 0);
        assert_eq!(run(&marked).unwrap().summed_files, 0);
        std::fs::write(home.path().join("tree/small"), b"123456789").unwrap();
        assert_eq!(run(&marked).unwrap().summed_files, 1);
        let state = StateDir::open(&marked.state_dir, 1 << 30).unwrap();
        let backend = Posix::new(&marked.directory, Exposure::default(), state.identity()).unwrap();
        let digests = |path: &[u8]| {
            let Found::File(file) = backend.locate(path).unwrap() else { panic!() };
            state.digests(&file.stat().state).unwrap()
        };
        assert_eq!(digests(b"small").checksums.adler32, Some([0x09, 0x1e, 0x01, 0xde]));
        let large = Some(crc32c_of(&vec![3; 7_000_000]));
        assert_eq!(digests(b"d/large").checksums.crc32c, large);
    }

    fn crc32c_of(octets: &[u8]) -> [u8; 4] {
        let mut summing = byname_transfer::checksums::Summing::new(&[Algorithm::Crc32c]);
        summing.update(octets);
        summing.finish().crc32c.unwrap()
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
