//! What is known in this process of a content: which units are there, and its open entry.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use byname_security::tree::{Shape, UNIT_BYTES};
use byname_transfer::verify::UnitSet;

use crate::disk::Disk;
use crate::entry::Entry;
use crate::layout::{ContentKey, Layout};
use crate::lending::link::ServiceLink;
use crate::streams::Streams;
use crate::version::Description;

/// Age at which what is known of a map is looked at again: others may have added to it.
pub(crate) const MAP_AGE_MAX: Duration = Duration::from_secs(1);
/// Takes a lock also after a thread that held it has panicked: what is protected are hints.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Directory and disk of a cache, or the service that has them.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) layout: Layout,
    pub(crate) disk: Disk,
    /// The service that has the directory in this one's place.
    pub(crate) service: Option<Arc<ServiceLink>>,
}

/// What is known here of the units of a content.
#[derive(Debug, Default)]
pub(crate) struct Units {
    pub(crate) present: UnitSet,
    /// `None` if the map was never looked at.
    pub(crate) loaded: Option<Instant>,
    pub(crate) is_refreshing: bool,
    /// Runs that were added here.
    added_count: u64,
}

impl Units {
    /// These were written here.
    pub(crate) fn add(&mut self, run: Range<u64>) {
        self.present.insert_run(run);
        self.added_count += 1;
    }

    /// The map is to be looked at before anything counts as there.
    fn forget(&mut self) {
        self.present = UnitSet::default();
        self.loaded = None;
    }

    /// Takes over what the map had. Of what was added here since `added_count` was that, it may
    /// not have said anything yet.
    fn take(&mut self, on_disk: UnitSet, added_count: u64, unit_count: u64) {
        let known = std::mem::replace(&mut self.present, on_disk);
        if self.added_count != added_count {
            runs(&known, 0..unit_count).for_each(|run| self.present.insert_run(run));
        }
    }
}

/// Those of `range` that are in the set.
pub(crate) fn runs(units: &UnitSet, range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let mut at = range.start;
    let gaps = units.missing(range.clone()).chain(std::iter::once(range.end..range.end));
    gaps.map(move |gap| std::mem::replace(&mut at, gap.end)..gap.start)
        .filter(|run| !run.is_empty())
}

/// One content, in this process. `units` is never locked while the disk is asked; `entry` is, and
/// only by the threads of the cache.
#[derive(Debug)]
pub(crate) struct ContentState {
    pub(crate) key: ContentKey,
    pub(crate) shape: Shape,
    pub(crate) units: Mutex<Units>,
    entry: Mutex<Option<Arc<Entry>>>,
    /// Who reads on from where, without waiting.
    pub(crate) streams: Mutex<Streams>,
    /// To be written when there is an entry.
    pub(crate) described: Mutex<Option<Description>>,
    /// Times that nodes were lost which had been taken, with the entry or alone.
    lost: AtomicU64,
}

impl ContentState {
    pub(crate) fn new(key: ContentKey) -> Self {
        let (units, entry, streams, described, lost) = Default::default();
        ContentState { key, shape: Shape::new(key.size), units, entry, streams, described, lost }
    }

    /// Nodes that were taken are not there any more, or never were.
    pub(crate) fn note_lost(&self) {
        self.lost.fetch_add(1, Ordering::Relaxed);
    }

    /// A number that is another one once nodes were lost.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// The open entry, if there is one on the disk.
    pub(crate) fn entry(&self, place: &Place) -> io::Result<Option<Arc<Entry>>> {
        let mut open = lock(&self.entry);
        if let Some(entry) = &*open
            && !entry.is_gone()?
        {
            return Ok(Some(Arc::clone(entry)));
        }
        if open.take().is_some() {
            // Somebody has removed it; what stands there now has units of its own.
            lock(&self.units).forget();
            self.note_lost();
        }
        let opened = match &place.service {
            Some(service) => Entry::borrow(service, self.key, &place.disk)?,
            None => {
                place.layout.check_own()?;
                Entry::open(&place.layout.entry(&self.key), self.key, &place.disk)?
            }
        };
        let opened = opened.map(Arc::new);
        open.clone_from(&opened);
        Ok(opened)
    }

    /// The entry, if it is open and nobody is opening it or asking the disk about it.
    pub(crate) fn open_entry(&self) -> Option<Arc<Entry>> {
        match self.entry.try_lock() {
            Ok(open) => open.clone(),
            Err(TryLockError::Poisoned(open)) => open.into_inner().clone(),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Bytes of neighbouring units.
    pub(crate) fn bytes_of(&self, units: &Range<u64>) -> usize {
        let unit_bytes = UNIT_BYTES as u64;
        let end = (units.end * unit_bytes).min(self.key.size);
        usize::try_from(end.saturating_sub(units.start * unit_bytes)).unwrap_or(0)
    }

    /// True if all units are there, by the map as it was last looked at.
    pub(crate) fn is_whole(&self) -> bool {
        lock(&self.units).present.count() == self.shape.unit_count()
    }

    /// Makes the entry.
    pub(crate) fn create(&self, place: &Place) -> io::Result<Arc<Entry>> {
        let mut open = lock(&self.entry);
        place.layout.check_own()?;
        let path = place.layout.entry(&self.key);
        let entry = Arc::new(Entry::create(&path, self.key, &place.disk)?);
        *open = Some(Arc::clone(&entry));
        Ok(entry)
    }

    /// Looks at the map if that is due.
    pub(crate) fn refresh(&self, place: &Place) -> io::Result<Option<Arc<Entry>>> {
        let entry = self.entry(place);
        let units = lock(&self.units);
        let is_due = units.loaded.is_none_or(|at| at.elapsed() >= MAP_AGE_MAX);
        let added_count = units.added_count;
        drop(units);
        if is_due || matches!(entry, Ok(None)) {
            let on_disk = match &entry {
                Ok(Some(entry)) => entry.units(),
                _ => Ok(UnitSet::default()),
            };
            let mut units = lock(&self.units);
            units.is_refreshing = false;
            units.loaded = Some(Instant::now());
            units.take(on_disk?, added_count, self.shape.unit_count());
        }
        entry
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_that_was_read_before_units_were_added_does_not_take_them_away() {
        let mut units = Units::default();
        units.add(0..2);
        let added_count = units.added_count;
        let mut on_disk = UnitSet::default();
        on_disk.insert(9);
        units.add(4..6);
        units.take(on_disk.clone(), added_count, 10);
        assert!(units.present.iter().eq([0, 1, 4, 5, 9]));
        units.take(on_disk, units.added_count, 10);
        assert!(units.present.iter().eq([9]), "what another process removed is gone");
    }
}
