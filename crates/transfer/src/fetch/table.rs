//! The requests in flight: found by segment, and in the order of their sending.
//!
//! A slab with a list through it and an index beside it, so that everything but the index is one
//! cache line touched per packet. Segment numbers are chosen by us, not by a peer, so the index
//! needs no keyed hash.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};

use crate::flow::Sent;

const NONE: u32 = u32::MAX;

/// One request, sent once or more.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempt {
    pub(super) first_sent_ns: u64,
    pub(super) sent_ns: u64,
    pub(super) bytes: u64,
    /// Its place among all requests of the flow.
    pub(super) order: u64,
    pub(super) tries: u32,
    /// It was asked for again because later requests were answered.
    pub(super) was_overtaken: bool,
}

impl Attempt {
    pub(super) fn sent(&self) -> Sent {
        let Attempt { sent_ns, order, bytes, tries, .. } = *self;
        Sent { sent_ns, order, bytes, was_sent_once: tries == 1 }
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    segment: u64,
    attempt: Attempt,
    before: u32,
    after: u32,
}

/// Requests in flight.
#[derive(Debug)]
pub(super) struct Table {
    index: SegmentMap<u32>,
    entries: Vec<Entry>,
    free: Vec<u32>,
    oldest: u32,
    newest: u32,
}

impl Default for Table {
    fn default() -> Self {
        Table {
            index: SegmentMap::default(),
            entries: Vec::new(),
            free: Vec::new(),
            oldest: NONE,
            newest: NONE,
        }
    }
}

impl Table {
    pub(super) fn len(&self) -> usize {
        self.index.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    pub(super) fn contains(&self, segment: u64) -> bool {
        self.index.contains_key(&segment)
    }

    /// Adds a request as the newest one. It must not be in flight already.
    pub(super) fn push(&mut self, segment: u64, attempt: Attempt) {
        let entry = Entry { segment, attempt, before: self.newest, after: NONE };
        let place = match self.free.pop() {
            Some(place) => {
                self.entries[place as usize] = entry;
                place
            }
            None => {
                let place = u32::try_from(self.entries.len()).expect("windows are far smaller");
                self.entries.push(entry);
                place
            }
        };
        match self.newest {
            NONE => self.oldest = place,
            newest => self.entries[newest as usize].after = place,
        }
        self.newest = place;
        self.index.insert(segment, place);
    }

    pub(super) fn remove(&mut self, segment: u64) -> Option<Attempt> {
        let place = self.index.remove(&segment)?;
        let Entry { attempt, before, after, .. } = self.entries[place as usize];
        match before {
            NONE => self.oldest = after,
            before => self.entries[before as usize].after = after,
        }
        match after {
            NONE => self.newest = before,
            after => self.entries[after as usize].before = before,
        }
        self.free.push(place);
        Some(attempt)
    }

    /// The one that was sent first of all.
    pub(super) fn oldest(&self) -> Option<(u64, &Attempt)> {
        let entry = self.entries.get(self.oldest as usize)?;
        Some((entry.segment, &entry.attempt))
    }

    /// Removes what is beyond `last`. Returns how many those were.
    pub(super) fn cut_after(&mut self, last: u64) -> usize {
        let beyond: Vec<u64> = self.index.keys().copied().filter(|it| *it > last).collect();
        beyond.iter().for_each(|segment| {
            self.remove(*segment);
        });
        beyond.len()
    }
}

/// A map with segment numbers as keys.
pub(super) type SegmentMap<V> = HashMap<u64, V, SegmentHash>;

/// Multiplies by an odd constant; see the module for why that is enough.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SegmentHash;

impl BuildHasher for SegmentHash {
    type Hasher = SegmentHasher;

    fn build_hasher(&self) -> SegmentHasher {
        SegmentHasher(0)
    }
}

/// The state of one hashing.
#[derive(Clone, Copy, Debug)]
pub(super) struct SegmentHasher(u64);

impl Hasher for SegmentHasher {
    fn write_u64(&mut self, segment: u64) {
        // The map takes places from the low bits and tags from the high ones: both must vary.
        let product = u128::from(segment ^ self.0) * 0x9E37_79B9_7F4A_7C15;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
