//! State that the handles of a cache and its threads share, in one process.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use byname_security::tree::Shape;
use byname_transfer::verify::UnitSet;

use crate::config::CacheConfig;
use crate::content::{Description, DirectoryPacket};
use crate::counters::Counts;
use crate::entry::Entry;
use crate::health::Health;
use crate::layout::{ContentKey, Layout};
use crate::reads::ReadQueue;
use crate::writes::WriteQueue;

/// Age at which what is known of a map is looked at again: others may have added to it.
pub(crate) const MAP_AGE_MAX: Duration = Duration::from_secs(1);
/// Packets of directories kept for files that are placed below them.
const DIRECTORIES_MAX: usize = 256;

/// Shared by handles and threads.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: CacheConfig,
    pub(crate) layout: Layout,
    pub(crate) health: Health,
    pub(crate) counts: Counts,
    pub(crate) reads: ReadQueue,
    pub(crate) writes: WriteQueue,
    contents: Mutex<HashMap<ContentKey, Weak<ContentState>>>,
    directories: Mutex<Vec<(byname_packet::Name, DirectoryPacket)>>,
}

/// Takes a lock also after a thread that held it has panicked: what is protected are hints.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub(crate) fn new(config: CacheConfig) -> Self {
        Shared {
            layout: Layout::new(&config.directory),
            health: Health::new(config.patience),
            writes: WriteQueue::new(config.queue_bytes_max),
            config,
            counts: Counts::default(),
            reads: ReadQueue::default(),
            contents: Mutex::default(),
            directories: Mutex::default(),
        }
    }

    /// The state of a content, one for all who read it.
    pub(crate) fn content(&self, key: ContentKey) -> Arc<ContentState> {
        let mut contents = lock(&self.contents);
        if let Some(state) = contents.get(&key).and_then(Weak::upgrade) {
            return state;
        }
        if contents.len() >= 1024 && contents.len().is_power_of_two() {
            contents.retain(|_, state| state.strong_count() > 0);
        }
        let state = Arc::new(ContentState::new(key));
        contents.insert(key, Arc::downgrade(&state));
        state
    }

    /// Keeps the packet of a directory for files that are placed below it.
    pub(crate) fn keep_directory(&self, name: byname_packet::Name, packet: DirectoryPacket) {
        let mut directories = lock(&self.directories);
        directories.retain(|(known, kept)| *known != name || kept.slot != packet.slot);
        if directories.len() >= DIRECTORIES_MAX {
            directories.remove(0);
        }
        directories.push((name, packet));
    }

    /// The packets kept for the directories above a name.
    pub(crate) fn directories_above(
        &self,
        name: byname_packet::NameRef<'_>,
    ) -> Vec<(byname_packet::Name, DirectoryPacket)> {
        let directories = lock(&self.directories);
        directories.iter().filter(|(above, _)| above.view().is_prefix_of(name)).cloned().collect()
    }
}

/// What is known here of the units of a content.
#[derive(Debug, Default)]
pub(crate) struct Units {
    pub(crate) present: UnitSet,
    /// `None` if the map was never looked at.
    pub(crate) loaded: Option<Instant>,
    pub(crate) is_refreshing: bool,
}

/// One content, in this process. `units` is never locked while the disk is asked; `entry` is, and
/// only by the threads of the cache.
#[derive(Debug)]
pub(crate) struct ContentState {
    pub(crate) key: ContentKey,
    pub(crate) shape: Shape,
    pub(crate) units: Mutex<Units>,
    entry: Mutex<Option<Arc<Entry>>>,
    /// To be written when there is an entry.
    pub(crate) described: Mutex<Option<Description>>,
}

impl ContentState {
    fn new(key: ContentKey) -> Self {
        let (units, entry, described) = Default::default();
        ContentState { key, shape: Shape::new(key.size), units, entry, described }
    }

    /// The open entry, if there is one on the disk.
    pub(crate) fn entry(&self, shared: &Shared) -> io::Result<Option<Arc<Entry>>> {
        let mut place = lock(&self.entry);
        if let Some(entry) = &*place
            && !entry.is_gone()?
        {
            return Ok(Some(Arc::clone(entry)));
        }
        *place = None;
        let path = shared.layout.entry(&self.key);
        let opened = Entry::open(&path, self.key, &shared.config.disk)?.map(Arc::new);
        place.clone_from(&opened);
        Ok(opened)
    }

    /// Makes the entry.
    pub(crate) fn create(&self, shared: &Shared) -> io::Result<Arc<Entry>> {
        let mut place = lock(&self.entry);
        let path = shared.layout.entry(&self.key);
        let entry = Arc::new(Entry::create(&path, self.key, &shared.config.disk)?);
        *place = Some(Arc::clone(&entry));
        Ok(entry)
    }

    /// Looks at the map if that is due.
    pub(crate) fn refresh(&self, shared: &Shared) -> io::Result<Option<Arc<Entry>>> {
        let entry = self.entry(shared);
        let is_due = lock(&self.units).loaded.is_none_or(|at| at.elapsed() >= MAP_AGE_MAX);
        let is_missing = matches!(entry, Ok(None));
        if is_due || is_missing {
            let present = match &entry {
                Ok(Some(entry)) => entry.units(),
                _ => Ok(UnitSet::default()),
            };
            let mut units = lock(&self.units);
            units.is_refreshing = false;
            units.loaded = Some(Instant::now());
            units.present = present?;
        }
        entry
    }
}
