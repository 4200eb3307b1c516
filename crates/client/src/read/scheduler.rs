//! Range scheduler: which call waits for which granule of a file, and what to ask for next.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use byname_transfer::fetch::Class;

use crate::error::ClientError;
use crate::read::cache::ContentCache;
use crate::read::counters::{Counters, add};
use crate::read::operation::{Operation, Places};
use crate::read::prefetch::Prefetcher;
use crate::read::unread::UnreadUnits;

/// Granules taken from one call before the next has its turn: 128 KiB.
const TURN: u32 = 16;

/// Bytes that callers may wait for and still count as prompt; a larger read is a transfer.
const PROMPT_BYTES_MAX: u64 = 4 << 20;
/// Calls on one file that may be prompt; more together are a transfer.
const PROMPT_CALLS_MAX: usize = 64;

/// Ranges of a call that may leave something in the cache; if it asked for no more than
/// [`PROMPT_BYTES_MAX`], what it used whole as well. Who names more of them at once has said
/// what is wanted, and would push out what others are likely to read next.
const KEPT_RANGES_MAX: usize = 64;

/// The next thing to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    Nothing,
    /// Something was served from memory.
    Served,
    /// This granule is to be asked for.
    Want(u64),
    /// The file has to be read from its start.
    ReadAll,
}

/// Waits for a granule.
struct Waiter {
    operation: u64,
    places: Places,
}

/// The calls on one file.
pub(super) struct RangeScheduler {
    granule_bytes: Option<u64>,
    size: Option<u64>,
    operations: BTreeMap<u64, Operation>,
    next_id: u64,
    /// Calls that have granules left to pick, in the order of their turns.
    turns: VecDeque<u64>,
    taken_in_turn: u32,
    /// Without waiters, the granule is read ahead.
    awaited: BTreeMap<u64, Vec<Waiter>>,
    /// Count of those that are read ahead.
    readahead_count: u64,
    /// Calls served by the present reading of a file without granules.
    pass: Vec<u64>,
    cache: ContentCache,
    unread: UnreadUnits,
    readahead_bytes_max: u64,
    prefetcher: Prefetcher,
    /// Granules that are predicted and not asked for yet.
    predicted: Range<u64>,
    counters: Arc<Counters>,
}

impl RangeScheduler {
    pub(super) fn new(
        granule_bytes: Option<u64>,
        size: Option<u64>,
        prefetch_bytes_max: u64,
        cache: ContentCache,
        counters: Arc<Counters>,
    ) -> Self {
        RangeScheduler {
            granule_bytes,
            size,
            operations: BTreeMap::new(),
            next_id: 0,
            turns: VecDeque::new(),
            taken_in_turn: 0,
            awaited: BTreeMap::new(),
            readahead_count: 0,
            pass: Vec::new(),
            cache,
            unread: UnreadUnits::default(),
            readahead_bytes_max: 0,
            prefetcher: Prefetcher::new(prefetch_bytes_max),
            predicted: 0..0,
            counters,
        }
    }

    pub(super) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Bounds the share of the cache that may hold what was read ahead.
    pub(super) fn set_readahead_bytes_max(&mut self, bytes_max: u64) {
        self.readahead_bytes_max = bytes_max;
    }

    pub(super) fn add(&mut self, operation: Operation) {
        add(&self.counters.asked_bytes, operation.missing_bytes());
        self.prefetcher.on_read(&operation.ranges());
        if operation.is_complete() {
            return operation.finish();
        }
        self.next_id += 1;
        self.operations.insert(self.next_id, operation);
        self.turns.push_back(self.next_id);
    }

    /// Drops the calls whose callers are gone. Returns the granules that nobody awaits now.
    pub(super) fn drop_cancelled(&mut self) -> Vec<u64> {
        let RangeScheduler { operations, turns, pass, awaited, .. } = self;
        operations.retain(|_, operation| !operation.reply.is_cancelled());
        turns.retain(|id| operations.contains_key(id));
        pass.retain(|id| operations.contains_key(id));
        let mut unwanted = Vec::new();
        awaited.retain(|granule, waiters| {
            let was_readahead = waiters.is_empty();
            waiters.retain(|waiter| operations.contains_key(&waiter.operation));
            let is_awaited = was_readahead || !waiters.is_empty();
            if !is_awaited {
                unwanted.push(*granule);
            }
            is_awaited
        });
        unwanted
    }

    pub(super) fn is_awaited(&self, granule: u64) -> bool {
        self.awaited.contains_key(&granule)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.operations.is_empty() && self.readahead_count == 0
    }

    /// True if somebody waits for what is asked for next, or it is read ahead or in bulk.
    pub(super) fn class(&self) -> Class {
        let count = self.operations.len();
        let missing = self.operations.values().take(PROMPT_CALLS_MAX);
        let missing_bytes = missing.map(Operation::missing_bytes).sum::<u64>();
        match count {
            1..=PROMPT_CALLS_MAX if missing_bytes <= PROMPT_BYTES_MAX => Class::Prompt,
            _ => Class::Bulk,
        }
    }

    pub(super) fn awaited_count(&self) -> usize {
        self.awaited.len()
    }

    pub(super) fn awaited(&self) -> Vec<u64> {
        self.awaited.keys().copied().collect()
    }

    /// Forgets all outstanding requests, which will not be answered.
    pub(super) fn forget_awaited(&mut self) {
        self.awaited.clear();
        self.readahead_count = 0;
        self.predicted = 0..0;
        self.pass.clear();
    }

    pub(super) fn next_step(&mut self) -> Step {
        let Some(granule_bytes) = self.granule_bytes else { return self.begin_pass() };
        let Some(&id) = self.turns.front() else { return self.step_readahead(granule_bytes) };
        let Some(operation) = self.operations.get_mut(&id) else {
            self.end_turn(false);
            return Step::Served;
        };
        let picked = operation.next_granule(granule_bytes);
        let has_next = operation.has_next();
        let step = match picked {
            Some((granule, places)) => self.place(id, granule, places, granule_bytes),
            None => Step::Served,
        };
        self.taken_in_turn += 1;
        if !has_next || self.taken_in_turn >= TURN {
            self.end_turn(has_next);
        }
        step
    }

    /// A call wants a granule: it may be here, or in flight.
    fn place(&mut self, id: u64, granule: u64, places: Places, granule_bytes: u64) -> Step {
        let waiter = Waiter { operation: id, places };
        if let Some(waiters) = self.awaited.get_mut(&granule) {
            if waiters.is_empty() {
                self.readahead_count -= 1;
                add(&self.counters.prefetch_useful_bytes, granule_bytes);
                self.prefetcher.on_useful(granule_bytes);
            }
            waiters.push(waiter);
            return Step::Served;
        }
        let offset = granule * granule_bytes;
        let operation = self.operations.get_mut(&id);
        let taken = self.cache.read(granule, |bytes| {
            operation.map_or(0, |operation| operation.take(&waiter.places, offset, bytes))
        });
        let unread_bytes = self.unread.remove(granule).unwrap_or(0) as u64;
        let Some(taken) = taken else {
            self.note_wasted(unread_bytes);
            self.awaited.insert(granule, vec![waiter]);
            return Step::Want(granule);
        };
        add(&self.counters.cached_bytes, taken);
        if unread_bytes > 0 {
            add(&self.counters.prefetch_useful_bytes, unread_bytes);
            self.prefetcher.on_useful(unread_bytes);
        }
        self.finish_if_complete(id);
        Step::Served
    }

    /// So much was read ahead and has left the cache unread.
    fn note_wasted(&mut self, bytes: u64) {
        if bytes > 0 {
            add(&self.counters.prefetch_wasted_bytes, bytes);
            self.prefetcher.on_wasted();
        }
    }

    fn end_turn(&mut self, has_more: bool) {
        self.taken_in_turn = 0;
        if let Some(id) = self.turns.pop_front()
            && has_more
        {
            self.turns.push_back(id);
        }
    }

    /// Nobody waits for more: read ahead.
    fn step_readahead(&mut self, granule_bytes: u64) -> Step {
        let Some(size) = self.size else { return Step::Nothing };
        if self.predicted.is_empty() {
            let wasted = self.unread.remove_dropped(|unit| self.cache.contains(unit));
            self.note_wasted(wasted as u64);
            let readahead_bytes = self.unread.bytes() as u64 + self.readahead_count * granule_bytes;
            if readahead_bytes.saturating_add(granule_bytes) > self.readahead_bytes_max {
                return Step::Nothing;
            }
            let Some(range) = self.prefetcher.poll_range(readahead_bytes, size) else {
                return Step::Nothing;
            };
            self.predicted = range.start / granule_bytes..range.end.div_ceil(granule_bytes);
        }
        let granule = self.predicted.start;
        self.predicted.start += 1;
        if self.awaited.contains_key(&granule) || self.cache.contains(granule) {
            return Step::Served;
        }
        self.awaited.insert(granule, Vec::new());
        self.readahead_count += 1;
        add(&self.counters.prefetched_bytes, granule_bytes);
        Step::Want(granule)
    }

    /// Verified bytes came: whole granules, or any run of a file without them.
    pub(super) fn take(&mut self, offset: u64, bytes: &[u8]) {
        let Some(granule_bytes) = self.granule_bytes else {
            return self.take_in_pass(offset, bytes);
        };
        let mut at = offset;
        let mut rest = bytes;
        while !rest.is_empty() {
            let granule = at / granule_bytes;
            let length = (granule + 1).saturating_mul(granule_bytes).saturating_sub(at);
            let length = rest.len().min(usize::try_from(length).unwrap_or(usize::MAX)).max(1);
            let (head, tail) = rest.split_at(length);
            self.take_granule(granule, at, head);
            at += length as u64;
            rest = tail;
        }
    }

    fn take_granule(&mut self, granule: u64, offset: u64, bytes: &[u8]) {
        // A segment may bring neighbours that nobody asked for.
        let Some(waiters) = self.awaited.remove(&granule) else { return };
        let is_readahead = waiters.is_empty();
        let mut is_kept = is_readahead;
        for waiter in waiters {
            let Some(operation) = self.operations.get_mut(&waiter.operation) else { continue };
            let taken = operation.take(&waiter.places, offset, bytes);
            let is_left_over = taken < bytes.len() as u64;
            is_kept |= operation.range_count() <= KEPT_RANGES_MAX
                && (is_left_over || operation.asked_bytes() <= PROMPT_BYTES_MAX);
            self.finish_if_complete(waiter.operation);
        }
        if is_readahead {
            self.readahead_count -= 1;
            self.unread.insert(granule, bytes.len());
        }
        if is_kept {
            self.cache.insert(granule, bytes, is_readahead);
        }
    }

    fn finish_if_complete(&mut self, id: u64) {
        if self.operations.get(&id).is_some_and(Operation::is_complete)
            && let Some(operation) = self.operations.remove(&id)
        {
            operation.finish();
        }
    }

    /// Fails the calls that wait for this granule, or all of them.
    pub(super) fn fail(&mut self, granule: Option<u64>, error: &dyn Fn() -> ClientError) {
        let waiters = granule.and_then(|granule| self.awaited.remove(&granule));
        let concerned: Vec<u64> = match waiters {
            Some(waiters) => {
                self.readahead_count -= u64::from(waiters.is_empty());
                waiters.iter().map(|waiter| waiter.operation).collect()
            }
            None => {
                self.forget_awaited();
                self.operations.keys().copied().collect()
            }
        };
        for id in concerned {
            if let Some(operation) = self.operations.remove(&id) {
                operation.reply.send(Err(error()));
            }
        }
        self.pass.retain(|id| self.operations.contains_key(id));
        self.turns.retain(|id| self.operations.contains_key(id));
    }

    /// True if a file without granules is being read.
    pub(super) fn is_passing(&self) -> bool {
        !self.pass.is_empty()
    }

    fn begin_pass(&mut self) -> Step {
        if self.is_passing() || self.turns.is_empty() {
            return Step::Nothing;
        }
        self.pass = self.turns.drain(..).collect();
        Step::ReadAll
    }

    fn take_in_pass(&mut self, offset: u64, bytes: &[u8]) {
        for id in self.pass.clone() {
            if let Some(operation) = self.operations.get_mut(&id) {
                operation.take(&operation.all_places(), offset, bytes);
            }
            self.finish_if_complete(id);
        }
        self.pass.retain(|id| self.operations.contains_key(id));
    }

    /// The file has ended, so what is still missing does not exist.
    pub(super) fn end_pass(&mut self) {
        for id in std::mem::take(&mut self.pass) {
            if let Some(operation) = self.operations.remove(&id) {
                operation.finish();
            }
        }
    }
}

impl Drop for RangeScheduler {
    fn drop(&mut self) {
        add(&self.counters.prefetch_wasted_bytes, self.unread.bytes() as u64);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::engine::completion::{Completion, Reply};
    use crate::read::operation::ReadRequest;

    const SIZE: u64 = 1 << 30;

    fn scheduler_with(ranges: &[Range<u64>], prefetch_bytes: u64) -> RangeScheduler {
        let cache = ContentCache::in_memory(2 << 20);
        let mut scheduler =
            RangeScheduler::new(Some(8192), Some(SIZE), prefetch_bytes, cache, Arc::default());
        scheduler.set_readahead_bytes_max(1 << 20);
        for range in ranges {
            let length = usize::try_from(range.end - range.start).expect("small");
            let request = ReadRequest::owned(Vec::new(), &[(range.start, length)]).expect("one");
            let reply = Reply::new(Completion::new());
            scheduler.add(Operation::new(request, Some(SIZE), reply));
        }
        scheduler
    }

    #[test]
    fn what_is_left_of_a_granule_is_kept_unless_the_call_had_many_ranges() {
        for (count, is_kept) in [(KEPT_RANGES_MAX, true), (KEPT_RANGES_MAX + 1, false)] {
            let mut scheduler = scheduler_with(&[], 0);
            let ranges: Vec<_> = (0..count as u64).map(|at| (at * 8192, 4096)).collect();
            let request = ReadRequest::owned(Vec::new(), &ranges).expect("not too many");
            scheduler.add(Operation::new(request, Some(SIZE), Reply::new(Completion::new())));
            assert_eq!(scheduler.next_step(), Step::Want(0));
            scheduler.take(0, &[7; 8192]);
            assert_eq!(scheduler.cache.contains(0), is_kept, "{count} ranges");
        }
    }

    #[test]
    fn what_a_call_used_whole_is_kept_unless_it_was_a_transfer() {
        for (bytes, is_kept) in [(PROMPT_BYTES_MAX, true), (PROMPT_BYTES_MAX + 1, false)] {
            let mut scheduler = scheduler_with(std::slice::from_ref(&(0..bytes)), 0);
            assert_eq!(scheduler.next_step(), Step::Want(0));
            scheduler.take(0, &[7; 8192]);
            assert_eq!(scheduler.cache.contains(0), is_kept, "{bytes} bytes");
        }
    }

    #[test]
    fn what_leaves_the_shared_cache_unread_is_wasted_and_makes_room_for_more() {
        let mut scheduler = scheduler_with(&[0..8192, 8192..16384, 16384..24576], 1 << 20);
        while matches!(scheduler.next_step(), Step::Want(_) | Step::Served) {}
        let readahead: Vec<u64> = scheduler.awaited().split_off(3);
        for unit in &readahead {
            scheduler.take(unit * 8192, &[7; 8192]);
        }
        let unread_bytes = 8192 * readahead.len();
        assert_eq!((scheduler.unread.bytes(), unread_bytes > 0), (unread_bytes, true));
        // Another file fills the cache.
        for unit in 1000..2000 {
            scheduler.cache.insert(unit, &[1; 8192], false);
        }
        assert_eq!(scheduler.next_step(), Step::Nothing, "its window was halved");
        assert_eq!(scheduler.unread.bytes(), 0);
        let wasted = scheduler.counters.prefetch_wasted_bytes.load(Ordering::Relaxed);
        assert_eq!(wasted, unread_bytes as u64);
    }

    #[test]
    fn what_somebody_waits_for_is_prompt_and_what_is_large_or_read_ahead_is_not() {
        let one = |bytes| scheduler_with(std::slice::from_ref(&(0..bytes)), 0).class();
        assert_eq!(one(4096), Class::Prompt);
        assert_eq!(one(100 << 20), Class::Bulk);
        let many: Vec<Range<u64>> = (0..65).map(|at| at * 100_000..at * 100_000 + 1).collect();
        assert_eq!(scheduler_with(&many[..64], 0).class(), Class::Prompt);
        assert_eq!(scheduler_with(&many, 0).class(), Class::Bulk);
        let mut ahead = scheduler_with(&[0..8192, 8192..16384, 16384..24576], 1 << 20);
        while matches!(ahead.next_step(), Step::Want(_) | Step::Served) {}
        assert_eq!(ahead.class(), Class::Prompt);
        ahead.take(0, &[0; 24576]);
        assert!(ahead.readahead_count > 0, "the rest is read ahead");
        assert_eq!(ahead.class(), Class::Bulk);
    }
}
