//! The watching thread: hears what happened, and walks through directories that are new to it.

use std::collections::{HashSet, VecDeque};
use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use byname_io::{Poller, Token};
use byname_transfer::naming::is_safe_entry;
use rustix::fs::inotify::ReadFlags;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::ahead::NewFiles;
use super::counters::WatchCounters;
use super::directories::{Directories, DirectoryKey, Placed, Position};
use super::kernel::{self, Happened, WatchId};
use super::numbers::Shared;
use crate::backend::posix::{Root, Walked, WalkedDirectory};

pub(super) const INOTIFY: Token = Token(1);
/// Directories that are watched, and that may wait to be walked.
const DIRECTORIES_MAX: usize = 1 << 20;
/// Directories that have come and wait to be looked at. With so many, changes are left with the
/// kernel, which loses them when it has too many: names can be changed faster than looked at.
const ARRIVED_MAX: usize = 1 << 16;
/// Of those, so many are looked at in a row; then it is the turn of what else there is to do.
const ARRIVED_AT_ONCE: usize = 256;
/// Pause between two readings of what happened. What waits meanwhile counts as changed already; a
/// thread that woke for each of ten thousand files would take time from those who write them.
const READING_PAUSE: Duration = Duration::from_millis(2);
/// Pause between two looks whether the published directory is another one.
const ROOT_CHECK: Duration = Duration::from_secs(1);
/// Pause between two warnings about one thing.
const WARNING: Duration = Duration::from_secs(60);

/// A directory to be walked.
struct Waiting {
    position: Position,
    /// What lies in it was not in the tree before.
    is_new: bool,
}

/// State of the thread.
pub(super) struct Watcher {
    shared: Arc<Shared>,
    root: Arc<Root>,
    mount: usize,
    new_files: Arc<NewFiles>,
    directories: Directories,
    /// Found on a walk.
    waiting: Vec<Waiting>,
    /// Told of by the kernel.
    arrived: VecDeque<Waiting>,
    /// In a walk after events were lost: watches of before that it has not come by yet.
    left_over: HashSet<WatchId>,
    /// A walk of the whole tree has not ended.
    is_walking: bool,
    checked: Option<Instant>,
    /// When events were read last.
    read: Option<Instant>,
    warned_overflow: Option<Instant>,
    warned_unwatched: Option<Instant>,
    /// Added to the counters, which several trees share.
    counted: Counted,
}

/// What this tree has in the levels of the counters.
#[derive(Default)]
struct Counted {
    directories: u64,
    unwatched: u64,
}

impl Watcher {
    pub(super) fn new(
        shared: Arc<Shared>,
        root: Arc<Root>,
        (mount, new_files): (usize, Arc<NewFiles>),
    ) -> Self {
        Self {
            shared,
            root,
            mount,
            new_files,
            directories: Directories::default(),
            waiting: Vec::new(),
            arrived: VecDeque::new(),
            left_over: HashSet::new(),
            is_walking: false,
            checked: None,
            read: None,
            warned_overflow: None,
            warned_unwatched: None,
            counted: Counted::default(),
        }
    }

    /// Watches until it is over.
    pub(super) fn run(&mut self, poller: &mut Poller) {
        self.walk_all();
        let mut events = Vec::new();
        loop {
            if let Err(error) = poller.wait(&mut events, self.timeout()) {
                tracing::error!(%error, "cannot wait for changes of a published directory");
                break;
            }
            if self.shared.is_over.load(Ordering::Relaxed) {
                break;
            }
            if self.arrived.len() < ARRIVED_MAX {
                self.rest();
                self.take_events();
            }
            self.check_root();
            let left = self.directories.remove_strays(Instant::now());
            self.forget(&left);
            self.walk_next();
            self.count();
        }
        // Nobody is told any more what changes.
        self.shared.numbers().clear();
    }

    /// Waits if events were read a moment ago and there is nothing else to do.
    fn rest(&mut self) {
        let left =
            self.read.map_or(Duration::ZERO, |at| READING_PAUSE.saturating_sub(at.elapsed()));
        if !left.is_zero() && !self.has_work() {
            std::thread::sleep(left);
        }
        self.read = Some(Instant::now());
    }

    fn timeout(&self) -> Option<Duration> {
        if self.has_work() || self.shared.inotify.has_events() {
            return Some(Duration::ZERO);
        }
        let missed = self.shared.was_missed.load(Ordering::Relaxed);
        let check = missed.then(|| self.checked.map_or_else(Instant::now, |at| at + ROOT_CHECK));
        let due = [check, self.directories.strays_due()].into_iter().flatten().min()?;
        Some(due.saturating_duration_since(Instant::now()))
    }

    fn has_work(&self) -> bool {
        !self.waiting.is_empty() || !self.arrived.is_empty()
    }

    /// Walks some of the directories that have come, and one of the others.
    fn walk_next(&mut self) {
        let count = self.arrived.len().min(ARRIVED_AT_ONCE);
        for next in self.arrived.drain(..count).collect::<Vec<_>>() {
            self.walk(next);
        }
        if let Some(next) = self.waiting.pop() {
            self.walk(next);
        }
        if self.is_walking && !self.has_work() {
            self.end_walk();
        }
    }

    fn counters(&self) -> &WatchCounters {
        self.new_files.counters()
    }

    fn count(&mut self) {
        let directories = self.directories.len() as u64;
        let level = &self.new_files.counters().directories;
        adjust(level, &mut self.counted.directories, directories);
    }

    fn count_unwatched(&mut self, now: u64) {
        adjust(&self.new_files.counters().unwatched, &mut self.counted.unwatched, now);
    }

    /// Begins a walk through the whole tree. Nothing is taken for unchanged that it has not come
    /// by.
    fn walk_all(&mut self) {
        self.shared.numbers().clear();
        let before = std::mem::take(&mut self.directories);
        self.left_over.extend(before.watches());
        self.waiting.clear();
        self.arrived.clear();
        self.count_unwatched(0);
        self.is_walking = true;
        let position = Position { parent: None, name: Box::default() };
        self.waiting.push(Waiting { position, is_new: false });
    }

    fn end_walk(&mut self) {
        self.is_walking = false;
        for watch in std::mem::take(&mut self.left_over) {
            self.shared.inotify.remove(watch);
        }
        self.count();
        self.counters().walks.fetch_add(1, Ordering::Relaxed);
        let directory = self.root.path().display().to_string();
        tracing::info!(directory, directories = self.directories.len(), "watched");
    }

    /// Takes what happened.
    fn take_events(&mut self) {
        let shared = self.shared.clone();
        shared.is_behind.store(true, Ordering::SeqCst);
        let read = shared.inotify.read(&mut |happened| self.take(happened));
        shared.is_behind.store(false, Ordering::SeqCst);
        if let Err(error) = read {
            tracing::error!(%error, "cannot read changes of a published directory");
            self.walk_all();
        }
    }

    fn take(&mut self, happened: Happened<'_>) {
        let Happened { watch, flags, name } = happened;
        if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
            return self.on_overflow();
        }
        if flags.contains(ReadFlags::IGNORED) {
            self.left_over.remove(&watch);
            let mut removed = Vec::new();
            self.directories.remove(watch, &mut removed);
            return self.forget(&removed);
        }
        self.has_changed(watch);
        if name.is_empty() {
            return;
        }
        let moves =
            ReadFlags::CREATE | ReadFlags::DELETE | ReadFlags::MOVED_FROM | ReadFlags::MOVED_TO;
        if flags.intersects(moves)
            && let Some(parent) = self.directories.parent(watch)
        {
            // Its time of change is shown there.
            self.has_changed(parent);
        }
        match flags.contains(ReadFlags::ISDIR) {
            true => self.take_directory(watch, flags, name),
            false if flags.intersects(ReadFlags::CLOSE_WRITE | ReadFlags::MOVED_TO) => {
                self.take_file(watch, name);
            }
            false => {}
        }
    }

    fn has_changed(&self, watch: WatchId) {
        if let Some(key) = self.directories.key(watch)
            && let Some(number) = self.shared.numbers().get_mut(&key)
        {
            *number = self.shared.next();
        }
    }

    fn take_file(&self, watch: WatchId, name: &[u8]) {
        if !self.is_shown(name) {
            return;
        }
        if let Some(path) = self.directories.path_of(watch, name) {
            self.new_files.push(self.mount, path);
        }
    }

    fn take_directory(&mut self, watch: WatchId, flags: ReadFlags, name: &[u8]) {
        if flags.contains(ReadFlags::MOVED_FROM) {
            self.directories.take_away(watch, name, Instant::now());
        }
        // Permissions may have changed, so that it is published from now on.
        let appears = flags.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO)
            || (flags.contains(ReadFlags::ATTRIB) && !self.directories.has_child(watch, name));
        if appears && self.is_shown(name) {
            let position = Position { parent: Some(watch), name: name.into() };
            self.arrived.push_back(Waiting { position, is_new: true });
        }
    }

    fn is_shown(&self, name: &[u8]) -> bool {
        is_safe_entry(name) && self.root.exposure().shows_name(name)
    }

    fn push(&mut self, parent: WatchId, name: &[u8], is_new: bool) {
        if !self.is_shown(name) {
            return;
        }
        if self.waiting.len() >= DIRECTORIES_MAX {
            return self.on_unwatched(Errno::NOSPC);
        }
        let position = Position { parent: Some(parent), name: name.into() };
        self.waiting.push(Waiting { position, is_new });
    }

    fn on_overflow(&mut self) {
        self.counters().overflows.fetch_add(1, Ordering::Relaxed);
        if is_due(&mut self.warned_overflow) {
            let directory = self.root.path().display().to_string();
            tracing::warn!(
                directory,
                "changes came faster than they could be read and some were lost: until the tree \
                 has been walked through again, directories are read again when they are asked \
                 for; a greater fs.inotify.max_queued_events helps"
            );
        }
        self.walk_all();
    }

    fn on_unwatched(&mut self, why: Errno) {
        self.count_unwatched(self.counted.unwatched + 1);
        if is_due(&mut self.warned_unwatched) {
            let directory = self.root.path().display().to_string();
            let hint = match why {
                Errno::NOSPC => "; a greater fs.inotify.max_user_watches helps",
                _ => "",
            };
            tracing::warn!(
                directory,
                error = %why,
                "cannot watch all directories: those are read again when they are asked for{hint}"
            );
        }
    }

    /// Directories are not in the tree any more.
    fn forget(&mut self, removed: &[(WatchId, DirectoryKey)]) {
        for (_, key) in removed {
            self.shared.numbers().remove(key);
        }
        for (watch, _) in removed {
            self.shared.inotify.remove(*watch);
        }
    }

    /// Watches a directory and looks for others in it.
    fn walk(&mut self, next: Waiting) {
        let Waiting { position, is_new } = next;
        let Some(path) = self.path_at(&position) else { return };
        // Not there any more, or not published.
        let Ok(Walked::Directory(found)) = self.root.find(&path) else { return };
        let is_full = self.directories.len() >= DIRECTORIES_MAX;
        let watched = if is_full { Err(Errno::NOSPC) } else { self.shared.inotify.add(&found.fd) };
        let watch = match watched {
            Ok(watch) => watch,
            Err(error) => return self.on_unwatched(error),
        };
        let key = *found.stat.state.fingerprint.object();
        let was_left_over = self.left_over.remove(&watch);
        if self.directories.place(watch, key, position) != Placed::New {
            return;
        }
        if kernel::tells_all(&found.fd) {
            self.shared.numbers().insert(key, self.shared.next());
        }
        if let Err(error) = self.look_below(watch, &found, is_new && !was_left_over) {
            let directory = self.root.path().join(OsStr::from_bytes(&path));
            tracing::warn!(directory = %directory.display(), %error, "cannot be watched");
        }
    }

    fn path_at(&self, position: &Position) -> Option<Vec<u8>> {
        match position.parent {
            Some(parent) => self.directories.path_of(parent, &position.name),
            None => Some(Vec::new()),
        }
    }

    fn look_below(
        &mut self,
        watch: WatchId,
        found: &WalkedDirectory,
        is_new: bool,
    ) -> Result<(), Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let readable = rustix::fs::openat(&found.fd, ".", flags, Mode::empty())?;
        for entry in Dir::read_from(&readable)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            match kind(&readable, &entry) {
                FileType::Directory => self.push(watch, name, is_new),
                FileType::RegularFile if is_new => self.take_file(watch, name),
                _ => {}
            }
        }
        Ok(())
    }

    /// Begins anew if the published directory is another one by now.
    fn check_root(&mut self) {
        let is_due = self.checked.is_none_or(|at| at.elapsed() >= ROOT_CHECK);
        if !is_due || !self.shared.was_missed.swap(false, Ordering::Relaxed) {
            return;
        }
        self.checked = Some(Instant::now());
        let Ok(Walked::Directory(found)) = self.root.find(b"") else { return };
        let key = *found.stat.state.fingerprint.object();
        let is_watched = self.directories.root_key() == Some(key);
        if !is_watched && !self.is_walking {
            self.walk_all();
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.count_unwatched(0);
        adjust(&self.new_files.counters().directories, &mut self.counted.directories, 0);
    }
}

/// Kind of an entry.
fn kind(directory: impl AsFd, entry: &rustix::fs::DirEntry) -> FileType {
    if entry.file_type() != FileType::Unknown {
        return entry.file_type();
    }
    let stat = rustix::fs::statat(directory, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW);
    stat.map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode))
}

/// Makes what is counted of one tree in a level be `now`.
fn adjust(level: &AtomicU64, counted: &mut u64, now: u64) {
    level.fetch_add(now.wrapping_sub(*counted), Ordering::Relaxed);
    *counted = now;
}

/// True if a warning may be given again.
fn is_due(last: &mut Option<Instant>) -> bool {
    let is_due = last.is_none_or(|at| at.elapsed() >= WARNING);
    if is_due {
        *last = Some(Instant::now());
    }
    is_due
}
