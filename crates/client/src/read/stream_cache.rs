//! The site cache below a stream: first it says what it has, then the network is asked for the
//! rest while the cache reads its part.
//!
//! Units from the cache come in ascending order, not further ahead of what was handed out than a
//! stream may hold back.

use std::ops::Range;

use byname_cache::Found;
use byname_security::tree::{Check, FANOUT, UNIT_BYTES};
use byname_transfer::fetch::FetchConfig;
use byname_transfer::reader::{HELD_MAX, ObjectPlan, Reader, Selection};
use byname_transfer::verify::{Output, UnitSet};

use crate::read::site_cache::{CacheReads, SiteContent, units_of};

/// Units ahead of what was handed out that are asked of the cache, and of those on their way.
const AHEAD_UNITS_MAX: u64 = HELD_MAX as u64 / 2;
/// Units of one request.
const RUN_UNITS_MAX: u64 = 64;

/// How far it is with what the cache has.
#[derive(Debug)]
enum Stage {
    /// Nobody knows yet what is there.
    Begin,
    /// It was asked for.
    Looking,
    /// These units of it are there; those before `next` were asked for.
    Reading { held: UnitSet, next: u64 },
}

/// See the module.
#[derive(Debug)]
pub(crate) struct StreamCache {
    reads: CacheReads,
    plan: ObjectPlan,
    range: Range<u64>,
    config: FetchConfig,
    stage: Stage,
}

/// Keeps units that came from the network.
pub(crate) fn keep(site: Option<&StreamCache>, offset: u64, bytes: &[u8]) {
    if let Some(site) = site {
        site.reads.content().insert(offset, bytes);
    }
}

impl StreamCache {
    pub(crate) fn new(
        site: SiteContent,
        plan: ObjectPlan,
        range: Range<u64>,
        config: FetchConfig,
    ) -> Self {
        StreamCache { reads: CacheReads::new(site), plan, range, config, stage: Stage::Begin }
    }

    fn units(&self) -> Range<u64> {
        let unit_bytes = UNIT_BYTES as u64;
        self.range.start / unit_bytes..self.range.end.div_ceil(unit_bytes)
    }

    /// True if nothing more comes from the cache.
    pub(crate) fn is_finished(&self) -> bool {
        let is_read = matches!(&self.stage, Stage::Reading { next, .. } if *next >= self.range.end
            .div_ceil(UNIT_BYTES as u64));
        is_read && self.reads.is_idle()
    }

    /// True if the disk was asked and has not answered.
    pub(crate) fn awaits_answers(&self) -> bool {
        !self.reads.is_idle()
    }

    pub(crate) fn deadline(&self) -> Option<u64> {
        self.reads.deadline()
    }

    /// Takes what has come. What was not there, in time, or genuine is asked of the network.
    pub(crate) fn poll(&mut self, reader: &mut Reader, now_ns: u64, out: &mut Output<'_>) {
        for found in self.reads.poll() {
            match self.stage {
                Stage::Looking => self.begin(reader),
                _ => self.take(&found, reader, now_ns, out),
            }
        }
        for units in self.reads.take_overdue(now_ns) {
            match self.stage {
                Stage::Looking => self.begin(reader),
                _ => units.for_each(|unit| reader.want(unit, now_ns)),
            }
        }
    }

    fn take(&self, found: &Found, reader: &mut Reader, now_ns: u64, out: &mut Output<'_>) {
        for (node, bytes) in &found.nodes {
            reader.offer_node(*node, bytes);
        }
        for (unit, bytes) in units_of(found) {
            match (bytes.map(|bytes| reader.offer_unit(unit, bytes, out)), bytes) {
                (Some(Check::Verified), _) => continue,
                // Its node is on its way from the network.
                (Some(Check::Need(_)), Some(bytes)) if reader.takes_local() => {
                    reader.handle_candidate(unit, bytes, now_ns, out);
                    continue;
                }
                (Some(Check::Bad), _) => self.reads.content().note_rotten(unit),
                _ => {}
            }
            reader.want(unit, now_ns);
        }
    }

    /// Asks for what comes next, if it is not too far ahead of `next` or too much is held back.
    pub(crate) fn ask_for_more(
        &mut self,
        reader: &mut Reader,
        (next_byte, held_bytes): (u64, usize),
        now_ns: u64,
    ) {
        if matches!(self.stage, Stage::Begin) {
            self.look(reader, now_ns);
        }
        let ahead_max = (next_byte / UNIT_BYTES as u64).saturating_add(AHEAD_UNITS_MAX);
        let held_count = (held_bytes / UNIT_BYTES) as u64;
        while self.reads.awaited_count() + held_count < AHEAD_UNITS_MAX {
            let Some(run) = self.next_run(ahead_max) else { return };
            let nodes = reader.missing_nodes(run.start);
            if !self.reads.ask(run.clone(), nodes, now_ns) {
                run.for_each(|unit| reader.want(unit, now_ns));
            }
        }
    }

    fn look(&mut self, reader: &mut Reader, now_ns: u64) {
        let is_known = self.reads.content().is_known();
        if !is_known && self.reads.ask(0..0, Vec::new(), now_ns) {
            self.stage = Stage::Looking;
        } else {
            self.begin(reader);
        }
    }

    /// Asks the network for what is not there.
    fn begin(&mut self, reader: &mut Reader) {
        let units = self.units();
        let held = self.reads.content().present(units.clone());
        let bytes = self.range.clone();
        let selection = match held.count() {
            0 => Selection::Bytes(bytes),
            _ => Selection::Rest { bytes, held: held.clone() },
        };
        *reader = Reader::new(self.plan.clone(), selection, self.config);
        reader.buffer_spans();
        let next = if held.count() == 0 { units.end } else { units.start };
        self.stage = Stage::Reading { held, next };
    }

    /// Neighbouring units that are there and were not asked for, all below one node.
    fn next_run(&mut self, ahead_max: u64) -> Option<Range<u64>> {
        let end = self.units().end;
        let Stage::Reading { held, next } = &mut self.stage else { return None };
        let mut missing = held.missing(*next..end);
        // The first unit that is held, from `next` on.
        let start = match missing.next() {
            Some(gap) if gap.start == *next => gap.end,
            _ => *next,
        };
        if start >= end {
            *next = end;
            return None;
        }
        if start >= ahead_max {
            *next = start;
            return None;
        }
        let group_end = (start / FANOUT as u64 + 1) * FANOUT as u64;
        let limit = end.min(group_end).min(start + RUN_UNITS_MAX);
        let run_end = held.missing(start..limit).next().map_or(limit, |gap| gap.start);
        *next = run_end;
        Some(start..run_end)
    }

    /// Keeps the nodes that came from the network.
    pub(crate) fn keep_nodes(&self, reader: &mut Reader) {
        while let Some((node, bytes)) = reader.poll_arrived_node() {
            self.reads.content().insert_node(node, bytes);
        }
    }
}
