//! Files that are new in a watched tree, hashed before anybody asks.
//!
//! A file waits until it has not changed for a while, longer if it is large, so that one that keeps
//! being written is not hashed again and again. Then a thread of the lowest priority hashes it as a
//! worker would. What finds no room here, or changes meanwhile, is hashed when it is asked for.
//! Contents of a site do not change, and are handed over when they are whole ([`NewContents`]); if
//! with the tree that they were verified by ([`TreeDraft`]), nothing is left to be hashed.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use byname_io::Clock;
use byname_transfer::server::{FileStat, OpId, Quiet};

use super::counters::WatchCounters;
use crate::backend::{Backend, BackendFile, Found};
use crate::drafts::TreeDraft;
use crate::error::StoreError;
use crate::hashing::{FILE_BYTES_MAX, LargeFile, Turn, small_tree};
use crate::state::{RootRecord, StateDir, is_small};
use crate::stored_roots;

/// Files that may wait, and octets of their paths.
const FILES_MAX: usize = 1 << 16;
const PATH_BYTES_MAX: usize = 16 << 20;
/// Time for which a file has to be quiet.
const QUIET: Duration = Duration::from_millis(300);
/// Octets for which one more second of quiet is wanted: about as long as hashing them takes.
const BYTES_A_SECOND: u64 = 512 << 20;
/// Roots that are made durable together.
const BATCH_MAX: usize = 256;
/// Niceness of the thread: the lowest.
const AHEAD_NICE: i32 = 19;

/// A file: number of its tree, and its path there.
type NewFile = (usize, Vec<u8>);

/// Contents that are new in a mount: those that are told here are hashed before anybody asks.
#[derive(Debug, Clone)]
pub struct NewContents {
    new_files: Arc<NewFiles>,
    backend: Arc<dyn Backend>,
    state: Arc<StateDir>,
    mount: usize,
}

impl NewContents {
    /// The tree of a content that is on its way; `None` of a small one, whose tree is made as it is
    /// needed, of one that is too large to be served, and if nothing can be written.
    pub fn draft(&self, size: u64, root: [u8; 32]) -> Option<TreeDraft> {
        let is_kept = !is_small(size) && size <= FILE_BYTES_MAX;
        if is_kept { TreeDraft::new(&self.state, size, root) } else { None }
    }

    /// The content at this path is whole, and this its tree, if it came. Otherwise it is hashed;
    /// what finds no room for that, when it is asked for.
    pub fn push(&self, path: Vec<u8>, draft: Option<TreeDraft>) {
        let root = draft.and_then(|draft| match self.backend.locate(&path) {
            Ok(Found::File(file)) => draft.finish(&*file, &self.state),
            _ => None,
        });
        match root {
            Some(root) => self.new_files.push_root(root),
            None => self.new_files.push_after((self.mount, path), Duration::ZERO),
        }
    }
}

/// Files that wait, by the time from which they may be quiet.
#[derive(Debug, Default)]
struct Queue {
    due: BTreeMap<(Instant, u64), NewFile>,
    known: HashSet<NewFile>,
    /// Roots that are known and not durable.
    roots: Vec<RootRecord>,
    path_bytes: usize,
    pushed: u64,
    is_over: bool,
}

/// New files of all watched trees.
#[derive(Debug, Default)]
pub(crate) struct NewFiles {
    queue: Mutex<Queue>,
    ready: Condvar,
    counters: Arc<WatchCounters>,
}

impl NewFiles {
    pub(crate) fn counters(&self) -> &Arc<WatchCounters> {
        &self.counters
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A file was written or has come. Never waits.
    pub(super) fn push(&self, mount: usize, path: Vec<u8>) {
        self.push_after((mount, path), QUIET);
    }

    fn push_after(&self, file: NewFile, after: Duration) {
        let mut queue = self.queue();
        if queue.known.contains(&file) {
            return;
        }
        let has_room = queue.known.len() < FILES_MAX && queue.path_bytes < PATH_BYTES_MAX;
        if !has_room {
            self.counters.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        queue.path_bytes += file.1.len();
        queue.pushed += 1;
        let at = (Instant::now() + after, queue.pushed);
        // Otherwise the thread wakes in time for an earlier one.
        let is_first = queue.due.first_key_value().is_none_or(|(first, _)| at < *first);
        queue.known.insert(file.clone());
        queue.due.insert(at, file);
        drop(queue);
        if is_first {
            self.ready.notify_one();
        }
    }

    /// A root is to be made durable. One that finds no room is computed when it is asked for after
    /// a restart.
    fn push_root(&self, root: RootRecord) {
        let mut queue = self.queue();
        if queue.roots.len() < FILES_MAX {
            queue.roots.push(root);
            drop(queue);
            self.ready.notify_one();
        }
    }

    /// Roots to be made durable.
    fn take_roots(&self) -> Vec<RootRecord> {
        std::mem::take(&mut self.queue().roots)
    }

    /// The next file whose time has come; `None` if none has and `is_patient` is false or there are
    /// roots, or it is over.
    fn next(&self, is_patient: bool) -> Option<NewFile> {
        let mut queue = self.queue();
        loop {
            if queue.is_over {
                return None;
            }
            let now = Instant::now();
            let due = queue.due.first_key_value().map(|((at, _), _)| *at);
            if due.is_some_and(|due| due <= now) {
                let (_, file) = queue.due.pop_first().expect("it was just seen");
                queue.known.remove(&file);
                queue.path_bytes -= file.1.len();
                return Some(file);
            }
            if !is_patient || !queue.roots.is_empty() {
                return None;
            }
            queue = match due {
                Some(due) => {
                    let waited = self.ready.wait_timeout(queue, due - now);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.ready.wait(queue).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}

/// The thread that hashes. Dropping stops it.
pub(crate) struct AheadThread {
    new_files: Arc<NewFiles>,
    backends: Vec<Arc<dyn Backend>>,
    state: Arc<StateDir>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl AheadThread {
    /// `quiet`: of versions; `None` where what is handed over does not change. `attributes`: roots
    /// that are stored with files count.
    pub(crate) fn start(
        new_files: Arc<NewFiles>,
        backends: Vec<Arc<dyn Backend>>,
        state: Arc<StateDir>,
        (quiet, attributes): (Option<Quiet>, bool),
    ) -> Result<Self, StoreError> {
        let is_over = Arc::new(AtomicBool::new(false));
        let ahead = Ahead {
            new_files: new_files.clone(),
            backends: backends.clone(),
            state: state.clone(),
            quiet,
            attributes,
            is_over: is_over.clone(),
        };
        let body = move || {
            // Not allowed: it then reads as eagerly as others.
            let _ = rustix::process::setpriority_process(None, AHEAD_NICE);
            ahead.work();
        };
        let thread = Builder::new().name("byname-ahead".to_owned()).spawn(body);
        let thread = Some(thread.map_err(StoreError::Thread)?);
        Ok(Self { new_files, backends, state, is_over, thread })
    }
}

impl AheadThread {
    /// Takes contents of a mount, if there is one of this number.
    pub(crate) fn contents(&self, mount: usize) -> Option<NewContents> {
        let backend = self.backends.get(mount)?.clone();
        let (new_files, state) = (self.new_files.clone(), self.state.clone());
        Some(NewContents { new_files, backend, state, mount })
    }

    pub(crate) fn counters(&self) -> Arc<WatchCounters> {
        self.new_files.counters.clone()
    }
}

impl Drop for AheadThread {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.new_files.queue().is_over = true;
        self.new_files.ready.notify_all();
        if let Some(thread) = self.thread.take() {
            // One that panicked has said so.
            let _ = thread.join();
        }
    }
}

struct Ahead {
    new_files: Arc<NewFiles>,
    backends: Vec<Arc<dyn Backend>>,
    state: Arc<StateDir>,
    quiet: Option<Quiet>,
    attributes: bool,
    is_over: Arc<AtomicBool>,
}

impl Ahead {
    fn work(&self) {
        let mut roots = Vec::new();
        loop {
            let next = self.new_files.next(roots.is_empty());
            let is_idle = next.is_none();
            roots.append(&mut self.new_files.take_roots());
            if let Some(file) = next {
                roots.extend(self.hash(file));
            }
            if roots.len() >= BATCH_MAX || (is_idle && !roots.is_empty()) {
                self.commit(&mut roots);
            } else if is_idle {
                return;
            }
        }
    }

    fn commit(&self, roots: &mut Vec<RootRecord>) {
        match self.state.commit(&[], roots) {
            Ok(_) => {
                let hashed = &self.new_files.counters.hashed;
                hashed.fetch_add(roots.len() as u64, Ordering::Relaxed);
            }
            Err(error) => tracing::error!(%error, "cannot keep roots"),
        }
        roots.clear();
    }

    /// The root of a file that is quiet and not hashed yet.
    fn hash(&self, (mount, path): NewFile) -> Option<RootRecord> {
        let Ok(Found::File(file)) = self.backends.get(mount)?.locate(&path) else { return None };
        let stat = file.stat();
        if self.state.digests(&stat.state).is_some() || stat.state.size > FILE_BYTES_MAX {
            return None;
        }
        if let Some(quiet) = &self.quiet {
            let left = unquiet(&stat, Clock::new().unix_ns(), quiet)?;
            if !left.is_zero() {
                self.new_files.push_after((mount, path), left);
                return None;
            }
        }
        let root = match self.attributes.then(|| stored_roots::root_with_tree(&*file, &self.state))
        {
            Some(Some(root)) => root,
            _ if is_small(stat.state.size) => *small_tree(&*file).ok()?.root.as_bytes(),
            _ => return self.hash_large(file),
        };
        let record = RootRecord { fingerprint: stat.state.fingerprint, root };
        self.state.remember(record);
        Some(record)
    }

    fn hash_large(&self, file: Arc<dyn BackendFile>) -> Option<RootRecord> {
        let tree = self.state.create_tree(&file.stat().state);
        let tree = tree.inspect_err(|error| tracing::error!(%error, "cannot make a hash tree"));
        let large = LargeFile::new(OpId(0), file, tree.ok()?, 1);
        let mut buffer = Vec::new();
        while large.turn(&mut buffer) == Turn::More {
            if self.is_over.load(Ordering::Relaxed) {
                large.give_up();
            }
        }
        large.finish(&self.state).1
    }
}

/// Time for which a file has to be quiet still; `None` if its times do not say whether it is.
///
/// At least what a version waits for: a root is of a state, and a file that changes again while its
/// times stay the same would have the root of what it was.
fn unquiet(stat: &FileStat, unix_ns: u64, quiet: &Quiet) -> Option<Duration> {
    let wanted = QUIET + Duration::from_secs(stat.state.size / BYTES_A_SECOND);
    let ctime_ns = stat.ctime_ns.unwrap_or(0);
    if ctime_ns > unix_ns {
        return None;
    }
    // An mtime that is yet to come was set by hand, and ctime tells when.
    let mtime_ns = Some(stat.mtime_ns).filter(|mtime_ns| *mtime_ns <= unix_ns);
    let quiet_for = Duration::from_nanos(unix_ns - ctime_ns.max(mtime_ns.unwrap_or(0)));
    let settled = Duration::from_nanos(quiet.unsettled_ns(stat, unix_ns, 0));
    Some(wanted.saturating_sub(quiet_for).max(settled))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::memory::Memory;
    use byname_transfer::server::{FileState, Fingerprint};

    fn stat(size: u64, changed_ns: u64) -> FileStat {
        let state = FileState { fingerprint: Fingerprint::new([0; 16], [0; 24]), size };
        FileStat { state, mode: 0o644, mtime_ns: changed_ns, ctime_ns: Some(changed_ns) }
    }

    const S: u64 = 1_000_000_000;
    /// No multiple of a second.
    const TIME: u64 = 10 * S + 1;
    const OF_VERSIONS: Quiet = Quiet { quiet_ns: S / 10, quiet_coarse_ns: 2 * S };

    #[test]
    fn large_files_have_to_be_quiet_for_longer() {
        let left = |size, unix_ns| unquiet(&stat(size, TIME), unix_ns, &OF_VERSIONS);
        assert_eq!(left(1, TIME + S), Some(Duration::ZERO));
        assert_eq!(left(1, TIME), Some(QUIET));
        assert_eq!(left(4 << 30, TIME + S), Some(QUIET + Duration::from_secs(7)));
    }

    /// Within one tick of the file system's clock a file can change again and look the same.
    #[test]
    fn a_root_is_of_a_file_that_cannot_change_and_look_the_same() {
        let coarse = stat(1, 10 * S);
        let left = |stat: &FileStat, unix_ns| unquiet(stat, unix_ns, &OF_VERSIONS);
        assert_eq!(left(&coarse, 10 * S + S / 2), Some(Duration::from_millis(1500)));
        assert_eq!(left(&coarse, 12 * S), Some(Duration::ZERO));
        let slow = Quiet { quiet_ns: 5 * S, ..OF_VERSIONS };
        assert_eq!(unquiet(&stat(1, TIME), TIME + S, &slow), Some(Duration::from_secs(4)));
        assert_eq!(left(&stat(1, TIME), TIME - 1), None, "a clock that was set back");
        let of_tomorrow = FileStat { mtime_ns: u64::MAX, ..stat(1, TIME) };
        assert_eq!(left(&of_tomorrow, TIME), Some(QUIET), "its ctime counts");
    }

    /// What a writer claims of its size takes no memory.
    #[test]
    fn no_tree_is_drafted_of_what_is_small_or_larger_than_what_is_served() {
        let directory = tempfile::tempdir().expect("a directory");
        let state = StateDir::open(&directory.path().join("state"), 1 << 30).expect("a state");
        let (new_files, backend) = (Arc::default(), Arc::new(Memory::new()));
        let contents = NewContents { new_files, backend, state: Arc::new(state), mount: 0 };
        let is_drafted = |size| contents.draft(size, [1; 32]).is_some();
        assert!(is_drafted(3 << 20) && is_drafted(FILE_BYTES_MAX));
        assert!(!is_drafted(2 << 20) && !is_drafted(FILE_BYTES_MAX + 1) && !is_drafted(u64::MAX));
    }

    #[test]
    fn what_waits_is_bounded_and_there_once() {
        let files = NewFiles::default();
        for n in 0..FILES_MAX + 10 {
            files.push(0, n.to_string().into_bytes());
            files.push(0, n.to_string().into_bytes());
        }
        assert_eq!(files.queue().due.len(), FILES_MAX);
        assert_eq!(files.counters.levels().dropped, 20);
        let long = NewFiles::default();
        for n in 0..100 {
            long.push(n, vec![b'x'; PATH_BYTES_MAX / 10 + 1]);
        }
        assert_eq!(long.queue().due.len(), 10);
    }
}
