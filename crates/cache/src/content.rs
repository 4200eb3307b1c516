//! A content of the cache, as a reader sees it: what is there, what is wanted, what has come.
//!
//! No call here waits for the disk, but for [`Content::wait_until_whole`].

use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use byname_security::tree::{NodeId, UNIT_BYTES};
use byname_transfer::verify::UnitSet;

use crate::counters::add;
use crate::health::Direction;
use crate::known::{ContentState, MAP_AGE_MAX, lock, runs};
use crate::layout::ContentKey;
use crate::reads::{Found, ReadWork, UnitsWork, WholeWork};
use crate::state::Shared;
use crate::version::Description;
use crate::writes::{Brought, Work};
use crate::{reader, writer};

/// Pause between two looks at what a service has.
const LOOK_PAUSE: Duration = Duration::from_millis(20);

/// Presence of a unit in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// It is there, by the map.
    Present,
    /// It is not there, or the disk is not to be asked.
    Absent,
    /// Nobody has looked yet: ask.
    Unknown,
}

/// A content in a cache. Clones are the same.
#[derive(Clone)]
pub struct Content {
    pub(crate) shared: Arc<Shared>,
    pub(crate) state: Arc<ContentState>,
    /// The user to whom a service counts what is inserted.
    pub(crate) owner: Option<u32>,
}

impl Content {
    /// Identity of the content.
    pub fn key(&self) -> ContentKey {
        self.state.key
    }

    /// Presence of a unit, from memory.
    pub fn probe(&self, unit: u64) -> Probe {
        if !self.shared.health.is_usable(Direction::Read, &self.shared.counts) {
            return Probe::Absent;
        }
        let mut units = lock(&self.state.units);
        let Some(loaded) = units.loaded else { return Probe::Unknown };
        if units.present.contains(unit) {
            return Probe::Present;
        }
        if loaded.elapsed() >= MAP_AGE_MAX && !units.is_refreshing {
            units.is_refreshing = true;
            drop(units);
            self.refresh_later();
        }
        Probe::Absent
    }

    /// True if the map was looked at.
    pub fn is_known(&self) -> bool {
        lock(&self.state.units).loaded.is_some()
    }

    /// Those of `units` that are there, by the map as it was last looked at.
    pub fn present(&self, units: Range<u64>) -> UnitSet {
        let known = lock(&self.state.units);
        let mut present = UnitSet::default();
        runs(&known.present, units).for_each(|run| present.insert_run(run));
        present
    }

    /// The first run of units from `unit` on that are there, by the map as it was last looked at.
    pub(crate) fn next_run(&self, unit: u64) -> Option<Range<u64>> {
        let (known, unit_count) = (lock(&self.state.units), self.state.shape.unit_count());
        runs(&known.present, unit..unit_count).next()
    }

    /// Bytes of the content that are there, by the map as it was last looked at.
    pub fn present_bytes(&self) -> u64 {
        let (known, shape) = (lock(&self.state.units), &self.state.shape);
        let last = shape.unit_count().saturating_sub(1);
        let short = match known.present.contains(last) {
            true => UNIT_BYTES - shape.unit_len(last).unwrap_or(UNIT_BYTES),
            false => 0,
        };
        known.present.count() * UNIT_BYTES as u64 - short as u64
    }

    /// Asks for units and nodes; `answer` is called on a thread of the cache, which it must not
    /// hold up, or dropped. False if the disk is not to be asked now.
    pub fn read(
        &self,
        units: Range<u64>,
        nodes: Vec<NodeId>,
        answer: impl FnOnce(Found) + Send + 'static,
    ) -> bool {
        self.shared.health.is_usable(Direction::Read, &self.shared.counts)
            && self.push_read(units, nodes, Box::new(answer))
    }

    /// Has the map looked at, and the entry let go of if it was removed.
    pub(crate) fn refresh_later(&self) {
        if !self.push_read(0..0, Vec::new(), Box::new(|_| {})) {
            lock(&self.state.units).is_refreshing = false;
        }
    }

    fn push_read(
        &self,
        units: Range<u64>,
        nodes: Vec<NodeId>,
        answer: Box<dyn FnOnce(Found) + Send>,
    ) -> bool {
        let content = Arc::clone(&self.state);
        reader::push(&self.shared, ReadWork::Units(UnitsWork { content, units, nodes, answer }))
    }

    /// Asks for the file that has all of the content, if it was verified as a whole since this
    /// machine started and nothing has changed it since: whoever reads it needs no verifier. What
    /// is whole and was not verified is hashed from now on, for whoever asks later. `answer` is
    /// called as that of [`Content::read`] is.
    pub fn whole(&self, answer: impl FnOnce(Option<File>) + Send + 'static) -> bool {
        let (content, answer) = (Arc::clone(&self.state), Box::new(answer));
        self.shared.health.is_usable(Direction::Read, &self.shared.counts)
            && reader::push(&self.shared, ReadWork::Whole(WholeWork { content, answer }))
    }

    /// Keeps verified units that came from elsewhere: whole ones, from `offset` on. What finds no
    /// room in the queue is not kept.
    pub fn insert(&self, offset: u64, bytes: &[u8]) {
        let unit_bytes = UNIT_BYTES as u64;
        let end = offset + bytes.len() as u64;
        let is_whole = end.is_multiple_of(unit_bytes) || end == self.state.key.size;
        if !offset.is_multiple_of(unit_bytes) || !is_whole || bytes.is_empty() {
            return;
        }
        if !self.shared.health.is_usable(Direction::Write, &self.shared.counts) {
            return add(&self.shared.counts.refused_bytes, bytes.len() as u64);
        }
        let brought = Brought { content: Arc::clone(&self.state), owner: self.owner };
        writer::push_units(&self.shared, brought, offset / unit_bytes, bytes);
    }

    /// Keeps a verified node of the tree.
    pub fn insert_node(&self, node: NodeId, bytes: &[u8]) {
        if let Some(service) = &self.shared.service {
            // It goes with the first units that it proves: a service has few nodes in memory. Kept
            // also while the service is passed by: what comes later is proved by it.
            return service.keep_proof(&self.state.key, node, bytes);
        }
        let brought = Brought { content: Arc::clone(&self.state), owner: self.owner };
        if !self.push(Work::Node { brought, node, bytes: bytes.to_vec() }) {
            self.state.note_lost();
        }
    }

    /// A version with this content is read: one more use of it, and one of its names. While
    /// nothing of it is there, the name is kept as long as a handle of the content is.
    pub fn describe(&self, description: Description) {
        let content = Arc::clone(&self.state);
        self.push(Work::Describe { content, description });
    }

    /// The same, with what is inserted counted to a user of a service.
    pub(crate) fn brought_by(self, uid: u32) -> Self {
        Content { owner: Some(uid), ..self }
    }

    /// One more use of what is there, without a name.
    pub(crate) fn touch(&self) {
        self.push(Work::Touch { content: Arc::clone(&self.state) });
    }

    /// Waits until all of it is there, at most for so long, and for the disk. True if it is. A
    /// service writes what it was brought in its own time; a cache of one's own has it once it was
    /// flushed.
    pub fn wait_until_whole(&self, patience: Duration) -> bool {
        let until = Instant::now() + patience;
        loop {
            if self.state.is_whole() {
                return true;
            }
            lock(&self.state.units).loaded = None;
            let is_there = self.look().is_ok() && self.state.is_whole();
            if is_there || self.shared.service.is_none() || Instant::now() >= until {
                return is_there;
            }
            std::thread::sleep(LOOK_PAUSE);
        }
    }

    /// Looks which units are there, waiting for the disk. False if there is no entry.
    pub(crate) fn look(&self) -> io::Result<bool> {
        Ok(self.state.refresh(&self.shared.place())?.is_some())
    }

    /// A node of the tree, waiting for the disk.
    pub(crate) fn read_node(&self, node: NodeId) -> io::Result<Option<Vec<u8>>> {
        match self.state.refresh(&self.shared.place())? {
            Some(entry) => entry.read_node(node),
            None => Ok(None),
        }
    }

    /// A number that is another one once nodes that were inserted were lost.
    pub(crate) fn lost(&self) -> u64 {
        self.state.lost()
    }

    fn push(&self, work: Work) -> bool {
        self.shared.health.is_usable(Direction::Write, &self.shared.counts)
            && writer::push(&self.shared, work)
    }

    /// A unit that was read from here is not what its root says. It is not read again.
    pub fn note_rotten(&self, unit: u64) {
        add(&self.shared.counts.rotten_units, 1);
        lock(&self.state.units).present.remove(unit);
        let key = &self.state.key;
        tracing::warn!(%key, unit, "a unit in the cache is not what was signed; fetched anew");
    }

    /// The disk did not answer in time.
    pub fn note_overdue(&self) {
        self.shared.counts.failed_reads.fetch_add(1, Ordering::Relaxed);
    }

    /// Time within which a reader should have its answer; after that it asks elsewhere.
    pub fn patience(&self) -> Duration {
        self.shared.config.patience
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Content").field(&self.state.key).finish()
    }
}
