//! Reads of an open file past its engine: what the site cache has.
//!
//! A read through the engine changes threads four times where the cache's disk is asked. That takes
//! longer than reading a unit from memory and hashing it, so who asks for little at a time, as
//! mounts do, tries this first. What is in the kernel's memory is read and hashed on the caller's
//! thread, without waiting for anything. What is on the disk comes from the threads of the cache,
//! and is hashed by whoever waits for it. Nothing is fetched here: where something is missing, or
//! is not what was signed, the engine is asked as ever.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use byname_cache::{ComingUnits, Content, FoundUnits};
use byname_security::tree::{Hash, SpanCheck, UNIT_BYTES, Verifier};

use crate::read::counters::{Counters, add};

/// Nodes that one read may need: those of two paths to the top of the largest tree.
const NODES_PER_READ_MAX: usize = 16;
/// Nodes that a file keeps however many are open.
const NODES_MIN: usize = 2;

/// Memory that all files of a session have for nodes: so many, divided by those that are open.
#[derive(Debug)]
pub(crate) struct NodeBudget(pub(crate) usize);

/// See the module.
#[derive(Debug)]
pub(crate) struct NowaitReads {
    content: Content,
    verifier: Mutex<Verifier>,
    budget: Arc<NodeBudget>,
    counters: Arc<Counters>,
}

impl NowaitReads {
    pub(crate) fn new(
        content: Content,
        root: Hash,
        budget: Arc<NodeBudget>,
        counters: Arc<Counters>,
    ) -> Self {
        let verifier = Mutex::new(Verifier::new(root, content.key().size, NODES_MIN));
        NowaitReads { content, verifier, budget, counters }
    }

    /// Reads what is at hand: see [`RemoteFile::read_nowait`](crate::RemoteFile::read_nowait).
    pub(crate) fn read(
        self: &Arc<Self>,
        scratch: &mut Vec<u8>,
        offset: u64,
        length: usize,
    ) -> CachedRead {
        let Some(place) = self.place(offset, length) else { return CachedRead::Here(0..0) };
        if let Some(coming) = self.content.read_ahead(place.units.clone()) {
            return self.coming(coming, place);
        }
        scratch.resize(place.unit_bytes(), 0);
        if self.content.read_nowait(place.units.clone(), scratch) {
            return match self.is_verified(place.units.start, scratch) {
                true => CachedRead::Here(self.taken(&place)),
                false => CachedRead::Elsewhere,
            };
        }
        match self.content.read_soon(place.units.clone()) {
            Some(coming) => self.coming(coming, place),
            None => CachedRead::Elsewhere,
        }
    }

    fn coming(self: &Arc<Self>, coming: ComingUnits, place: Place) -> CachedRead {
        CachedRead::Coming(ComingRead { reads: Arc::clone(self), coming, place })
    }

    /// `None` if nothing is there.
    fn place(&self, offset: u64, length: usize) -> Option<Place> {
        let (size, unit_bytes) = (self.content.key().size, UNIT_BYTES as u64);
        let end = offset.saturating_add(length as u64).min(size);
        let units = offset / unit_bytes..end.div_ceil(unit_bytes);
        let last = (units.end * unit_bytes).min(size);
        (offset < end).then_some(Place { offset, end, units, last })
    }

    /// Counts a read; the place of its bytes in those of its units.
    fn taken(&self, place: &Place) -> Range<usize> {
        add(&self.counters.asked_bytes, place.end - place.offset);
        add(&self.counters.site_cache_bytes, place.unit_bytes() as u64);
        let start = (place.offset - place.first()) as usize;
        start..start + (place.end - place.offset) as usize
    }

    fn is_verified(&self, first: u64, bytes: &[u8]) -> bool {
        let mut verifier = self.verifier.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..=NODES_PER_READ_MAX {
            match verifier.check_span(first, bytes) {
                SpanCheck::Verified => return true,
                SpanCheck::Bad { unit_index } => {
                    self.content.note_rotten(unit_index);
                    return false;
                }
                SpanCheck::Need(node) => {
                    let Some(found) = self.content.read_node_nowait(node) else { return false };
                    verifier.keep_nodes(self.nodes_max());
                    if verifier.add_node(node, &found).is_err() {
                        return false;
                    }
                }
            }
        }
        false
    }

    fn nodes_max(&self) -> usize {
        (self.budget.0 / Arc::strong_count(&self.budget).max(1)).max(NODES_MIN)
    }
}

/// The bytes of a read, and the units that have them.
#[derive(Debug)]
struct Place {
    offset: u64,
    end: u64,
    units: Range<u64>,
    /// Where the bytes of the units end.
    last: u64,
}

impl Place {
    fn first(&self) -> u64 {
        self.units.start * UNIT_BYTES as u64
    }

    fn unit_bytes(&self) -> usize {
        (self.last - self.first()) as usize
    }
}

/// What the site cache makes of a read.
#[derive(Debug)]
pub enum CachedRead {
    /// The place in the caller's buffer of the verified bytes, fewer than were asked for only at
    /// the end of the file.
    Here(Range<usize>),
    /// They come from the cache's disk.
    Coming(ComingRead),
    /// [`read_at`](crate::RemoteFile::read_at) has to be asked.
    Elsewhere,
}

/// A read that waits for the disk of the site cache.
#[must_use]
#[derive(Debug)]
pub struct ComingRead {
    reads: Arc<NowaitReads>,
    coming: ComingUnits,
    place: Place,
}

impl ComingRead {
    /// Time within which the disk should have answered; after that the read is to be asked for
    /// elsewhere.
    pub fn patience(&self) -> Duration {
        self.reads.content.patience()
    }

    /// Waits for the disk, and verifies what comes on the thread that is woken. `None` if
    /// [`read_at`](crate::RemoteFile::read_at) has to be asked.
    pub async fn verified(self) -> Option<VerifiedRead> {
        let ComingRead { reads, coming, place } = self;
        let found = coming.await?;
        let is_verified = found.iter().all(|found| reads.is_verified(found.first, found.bytes()));
        is_verified.then(|| VerifiedRead { range: reads.taken(&place), found })
    }
}

/// Verified bytes that came from the disk of the site cache.
#[derive(Debug)]
pub struct VerifiedRead {
    found: Vec<FoundUnits>,
    range: Range<usize>,
}

impl VerifiedRead {
    /// The bytes that were read; `scratch` is where they are gathered if they lie apart.
    pub fn bytes<'a>(&'a self, scratch: &'a mut Vec<u8>) -> &'a [u8] {
        if let [found] = self.found.as_slice() {
            return &found.bytes()[self.range.clone()];
        }
        scratch.clear();
        self.found.iter().for_each(|found| scratch.extend_from_slice(found.bytes()));
        &scratch[self.range.clone()]
    }
}
