//! S3-FIFO: a small queue for what has come, a main queue for what was used again.
//!
//! What comes stands in the small queue. When that is over its share, its front leaves it: to the
//! main queue if it was used meanwhile, else out of the cache. The front of the main queue goes
//! back to its end with one use less, if it has one, and out of the cache otherwise. What was
//! removed not long ago and is missed comes to the main queue at once (the list of ghosts, which
//! the cache keeps). So a scan passes through the small queue and pushes out nothing else.
//! (Yang et al., "FIFO queues are all you need for cache eviction", SOSP 2023.)

use std::collections::{BTreeMap, HashMap};

use super::{EntryIndex, Policy, Standing};

/// Share of the small queue: a tenth.
const SMALL_DIVISOR: u64 = 10;

/// A queue in the order of coming. Those that came at once are in the order of their numbers.
#[derive(Debug, Default)]
struct Queue {
    by_turn: BTreeMap<(u64, u64), (EntryIndex, u64, Standing)>,
    bytes: u64,
    turns: u64,
}

impl Queue {
    fn push(&mut self, entry: EntryIndex, bytes: u64, standing: Standing) {
        self.turns += 1;
        self.bytes += bytes;
        self.by_turn.insert((standing.queued_ns, self.turns), (entry, bytes, standing));
    }

    fn pop(&mut self) -> Option<(EntryIndex, u64, Standing)> {
        let (_, front) = self.by_turn.pop_first()?;
        self.bytes -= front.1;
        Some(front)
    }
}

/// See the module.
#[derive(Debug, Default)]
pub struct S3Fifo {
    small: Queue,
    main: Queue,
    changed: HashMap<EntryIndex, Standing>,
}

impl S3Fifo {
    /// To the end of the main queue.
    fn requeue(&mut self, now_ns: u64, (entry, bytes, standing): (EntryIndex, u64, Standing)) {
        self.changed.insert(entry, standing);
        self.main.push(entry, bytes, Standing { queued_ns: now_ns, ..standing });
    }
}

impl Policy for S3Fifo {
    fn restore(&mut self, entry: EntryIndex, bytes: u64, standing: Standing) {
        let queue = if standing.is_main { &mut self.main } else { &mut self.small };
        queue.push(entry, bytes, standing);
    }

    fn victim(&mut self, now_ns: u64) -> Option<EntryIndex> {
        loop {
            let share = (self.small.bytes + self.main.bytes) / SMALL_DIVISOR;
            let is_small = self.small.bytes > share || self.main.by_turn.is_empty();
            let queue = if is_small { &mut self.small } else { &mut self.main };
            let (entry, bytes, mut standing) = queue.pop()?;
            if standing.uses == 0 {
                self.changed.remove(&entry);
                return Some(entry);
            }
            standing.uses = if is_small { 0 } else { standing.uses - 1 };
            (standing.is_main, standing.queued_ns) = (true, now_ns);
            self.requeue(now_ns, (entry, bytes, standing));
        }
    }

    fn changed(&mut self) -> Vec<(EntryIndex, Standing)> {
        std::mem::take(&mut self.changed).into_iter().collect()
    }
}
