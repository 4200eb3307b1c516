//! What is known in this process of a content: which units are there, and its open entry.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use byname_security::tree::Shape;
use byname_transfer::verify::UnitSet;

use crate::disk::Disk;
use crate::entry::Entry;
use crate::layout::{ContentKey, Layout};
use crate::version::Description;

/// Age at which what is known of a map is looked at again: others may have added to it.
pub(crate) const MAP_AGE_MAX: Duration = Duration::from_secs(1);
/// Takes a lock also after a thread that held it has panicked: what is protected are hints.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Directory and disk of a cache.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) layout: Layout,
    pub(crate) disk: Disk,
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
    pub(crate) fn new(key: ContentKey) -> Self {
        let (units, entry, described) = Default::default();
        ContentState { key, shape: Shape::new(key.size), units, entry, described }
    }

    /// The open entry, if there is one on the disk.
    pub(crate) fn entry(&self, place: &Place) -> io::Result<Option<Arc<Entry>>> {
        let mut open = lock(&self.entry);
        if let Some(entry) = &*open
            && !entry.is_gone()?
        {
            return Ok(Some(Arc::clone(entry)));
        }
        *open = None;
        let path = place.layout.entry(&self.key);
        let opened = Entry::open(&path, self.key, &place.disk)?.map(Arc::new);
        open.clone_from(&opened);
        Ok(opened)
    }

    /// Makes the entry.
    pub(crate) fn create(&self, place: &Place) -> io::Result<Arc<Entry>> {
        let mut open = lock(&self.entry);
        let path = place.layout.entry(&self.key);
        let entry = Arc::new(Entry::create(&path, self.key, &place.disk)?);
        *open = Some(Arc::clone(&entry));
        Ok(entry)
    }

    /// Looks at the map if that is due.
    pub(crate) fn refresh(&self, place: &Place) -> io::Result<Option<Arc<Entry>>> {
        let entry = self.entry(place);
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
