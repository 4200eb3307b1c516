//! The site cache as a job sees it: requests to its threads, their answers, and deadlines.
//!
//! The engine never waits for the disk. A job asks for runs of units and goes on; the answer wakes
//! the engine. What has not come within the cache's patience is asked of the network instead. What
//! comes is verified like anything else that nobody vouches for.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use byname_cache::{Cache, Content, Description, Found, Probe};
use byname_io::Waker;
use byname_packet::Name;
use byname_security::tree::{FANOUT, NodeId, UNIT_BYTES};
use byname_transfer::copies;
use byname_transfer::discovery::Discovered;
use byname_transfer::reader::ObjectPlan;

use crate::config::{ClientConfig, nanoseconds};

/// Units of one request: 512 KiB.
const RUN_UNITS_MAX: u64 = 64;
/// Requests of one job that are not answered yet.
const REQUESTS_MAX: usize = 128;

/// A cache, and the waker of the engine that uses it.
#[derive(Clone, Debug)]
pub(crate) struct SiteCache {
    cache: Cache,
    waker: Arc<Waker>,
}

impl SiteCache {
    /// The cache of a configuration, if it has one.
    pub(crate) fn of(config: &ClientConfig, waker: Waker) -> Option<Self> {
        let cache = config.cache.clone()?;
        Some(SiteCache { cache, waker: Arc::new(waker) })
    }

    /// The content of a version; `None` if nothing proves it: what came without being verified
    /// stays out of what others share.
    pub(crate) fn open(
        &self,
        name: &Name,
        discovered: &Discovered,
        plan: &ObjectPlan,
    ) -> Option<SiteContent> {
        let is_verified = discovered.trust != byname_security::trust::Trusted::Insecure;
        let (root, size) = plan.root().filter(|_| is_verified).zip(plan.size)?;
        if size == 0 {
            return None;
        }
        let content = self.cache.content(root, size);
        content.describe(Description {
            name: name.clone(),
            version: discovered.version,
            mtime_ns: discovered.metadata.mtime_ns,
            mode: discovered.metadata.mode,
            packet: copies::encode(discovered, None),
        });
        Some(SiteContent { content, waker: Arc::clone(&self.waker) })
    }
}

/// A content of the site cache.
#[derive(Clone, Debug)]
pub(crate) struct SiteContent {
    content: Content,
    waker: Arc<Waker>,
}

impl SiteContent {
    pub(crate) fn content(&self) -> &Content {
        &self.content
    }
}

/// Answers that have come.
type Mailbox = Arc<Mutex<Vec<Found>>>;

/// What one job has asked of the cache.
#[derive(Debug)]
pub(crate) struct CacheReads {
    site: SiteContent,
    answers: Mailbox,
    /// Units asked for and when that is over, by the first.
    in_flight: BTreeMap<u64, (Range<u64>, u64)>,
    /// Units that are going to be asked for together, and the nodes for them.
    gathered: Range<u64>,
    nodes: Vec<NodeId>,
    patience_ns: u64,
}

impl CacheReads {
    pub(crate) fn new(site: SiteContent) -> Self {
        let (answers, in_flight, gathered, nodes) = Default::default();
        let patience_ns = nanoseconds(site.content.patience());
        CacheReads { site, answers, in_flight, gathered, nodes, patience_ns }
    }

    pub(crate) fn content(&self) -> &Content {
        &self.site.content
    }

    /// True if more may be asked for.
    pub(crate) fn has_room(&self) -> bool {
        self.in_flight.len() < REQUESTS_MAX
    }

    /// True if a unit may be in the cache.
    pub(crate) fn may_have(&self, unit: u64) -> bool {
        self.site.content.probe(unit) != Probe::Absent
    }

    /// Asks for a unit, together with its neighbours if they are asked for next. `nodes` are those
    /// that prove it and are not here; units of one request have the same.
    pub(crate) fn gather(&mut self, unit: u64, nodes: Vec<NodeId>, now_ns: u64) -> Vec<u64> {
        let is_next = unit == self.gathered.end
            && !self.gathered.is_empty()
            && !unit.is_multiple_of(FANOUT as u64)
            && self.gathered.end - self.gathered.start < RUN_UNITS_MAX;
        if is_next {
            self.gathered.end += 1;
            return Vec::new();
        }
        let refused = self.send(now_ns);
        self.gathered = unit..unit + 1;
        self.nodes = nodes;
        refused
    }

    /// Sends what was gathered; returns units that the cache does not take.
    pub(crate) fn send(&mut self, now_ns: u64) -> Vec<u64> {
        let units = std::mem::take(&mut self.gathered);
        let nodes = std::mem::take(&mut self.nodes);
        match units.is_empty() || self.ask(units.clone(), nodes, now_ns) {
            true => Vec::new(),
            false => units.collect(),
        }
    }

    /// Asks for units, or with an empty range that the cache looks what it has.
    pub(crate) fn ask(&mut self, units: Range<u64>, nodes: Vec<NodeId>, now_ns: u64) -> bool {
        let (answers, waker) = (Arc::clone(&self.answers), Arc::clone(&self.site.waker));
        let is_asked = self.site.content.read(units.clone(), nodes, move |found| {
            answers.lock().unwrap_or_else(PoisonError::into_inner).push(found);
            waker.wake();
        });
        if is_asked {
            let until_ns = now_ns.saturating_add(self.patience_ns);
            self.in_flight.insert(units.start, (units, until_ns));
        }
        is_asked
    }

    /// True if a unit was asked for and has not come.
    pub(crate) fn is_in_flight(&self, unit: u64) -> bool {
        let before = self.in_flight.range(..=unit).next_back();
        self.gathered.contains(&unit) || before.is_some_and(|(_, (units, _))| units.contains(&unit))
    }

    /// Units asked for that have not come.
    pub(crate) fn awaited_count(&self) -> u64 {
        let asked = self.in_flight.values().map(|(units, _)| units.end - units.start);
        asked.sum::<u64>() + self.gathered.end - self.gathered.start
    }

    /// True if nothing is awaited.
    pub(crate) fn is_idle(&self) -> bool {
        self.in_flight.is_empty() && self.gathered.is_empty()
    }

    /// Answers that have come and are still waited for.
    pub(crate) fn poll(&mut self) -> Vec<Found> {
        if self.in_flight.is_empty() {
            return Vec::new();
        }
        let come =
            std::mem::take(&mut *self.answers.lock().unwrap_or_else(PoisonError::into_inner));
        let is_awaited = |found: &Found| {
            let place = self.in_flight.get(&found.units.start);
            place.is_some_and(|(units, _)| *units == found.units)
        };
        let come: Vec<Found> = come.into_iter().filter(is_awaited).collect();
        for found in &come {
            self.in_flight.remove(&found.units.start);
        }
        come
    }

    /// Units that did not come in time; they are not waited for any more.
    pub(crate) fn take_overdue(&mut self, now_ns: u64) -> Vec<Range<u64>> {
        let is_over = |(_, until_ns): &(Range<u64>, u64)| *until_ns <= now_ns;
        let over: Vec<Range<u64>> =
            self.in_flight.values().filter(|asked| is_over(asked)).map(|it| it.0.clone()).collect();
        for units in &over {
            self.in_flight.remove(&units.start);
            self.site.content.note_overdue();
        }
        over
    }

    /// When [`take_overdue`](CacheReads::take_overdue) has something.
    pub(crate) fn deadline(&self) -> Option<u64> {
        self.in_flight.values().map(|(_, until_ns)| *until_ns).min()
    }
}

/// Units of an answer: each that was asked for with its bytes, if they were there.
pub(crate) fn units_of(found: &Found) -> impl Iterator<Item = (u64, Option<&[u8]>)> {
    let mut runs = found.runs.iter().peekable();
    found.units.clone().map(move |unit| {
        while runs.next_if(|(first, bytes)| unit >= end_of(*first, bytes)).is_some() {}
        let run = runs.peek().filter(|(first, _)| *first <= unit);
        let bytes = run.and_then(|(first, bytes)| {
            let start = (unit - first) as usize * UNIT_BYTES;
            bytes.get(start..(start + UNIT_BYTES).min(bytes.len()))
        });
        (unit, bytes)
    })
}

fn end_of(first: u64, bytes: &[u8]) -> u64 {
    first + bytes.len().div_ceil(UNIT_BYTES) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_an_answer_are_those_that_were_found() {
        let run = |first: u64, length: usize| (first, vec![first as u8; length]);
        let runs = vec![run(11, 2 * UNIT_BYTES), run(15, UNIT_BYTES + 5)];
        let found = Found { units: 10..18, runs, nodes: Vec::new() };
        let lengths: Vec<Option<usize>> =
            units_of(&found).map(|(_, bytes)| bytes.map(<[u8]>::len)).collect();
        let whole = Some(UNIT_BYTES);
        assert_eq!(lengths, [None, whole, whole, None, None, whole, Some(5), None]);
    }
}
