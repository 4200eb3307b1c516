//! CoDel: a queue that drops, or marks, when packets wait too long for too long.
//!
//! The fate of a packet is decided when it leaves the queue, by the time it waited, as RFC 8289
//! §5.2–5.5 writes it: `ok` below is `dodequeue`, `pop` is `deque`. With marks, a packet that would
//! be dropped is marked and goes on, and there is no second one at the same instant.

use std::collections::VecDeque;

/// Waiting time that is acceptable. spec: RFC 8289 §4.4
const TARGET_NS: u64 = 5_000_000;
/// For how long more is acceptable: a round trip or so. spec: RFC 8289 §4.3
const INTERVAL_NS: u64 = 100_000_000;

#[derive(Clone, Debug)]
struct Waiting<T> {
    since_ns: u64,
    bytes: u64,
    item: T,
}

/// The output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Popped<T> {
    /// The packet.
    pub item: T,
    /// Its size.
    pub bytes: u64,
    /// True if it shall carry a congestion mark.
    pub is_marked: bool,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Codel<T> {
    marks: bool,
    limit_bytes: u64,
    waiting: VecDeque<Waiting<T>>,
    bytes: u64,
    /// The largest packet seen: with no more than that waiting, nothing is dropped.
    largest_bytes: u64,
    first_above_ns: u64,
    drop_next_ns: u64,
    count: u64,
    last_count: u64,
    is_dropping: bool,
    drop_count: u64,
    overflow_count: u64,
    mark_count: u64,
}

impl<T> Codel<T> {
    /// An empty queue of at most so many octets (two packets always fit).
    pub fn new(limit_bytes: u64, marks: bool) -> Self {
        Codel {
            marks,
            limit_bytes,
            waiting: VecDeque::new(),
            bytes: 0,
            largest_bytes: 0,
            first_above_ns: 0,
            drop_next_ns: 0,
            count: 0,
            last_count: 0,
            is_dropping: false,
            drop_count: 0,
            overflow_count: 0,
            mark_count: 0,
        }
    }

    /// Octets that wait.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// True if nothing waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Packets dropped because they had waited too long.
    pub fn drop_count(&self) -> u64 {
        self.drop_count
    }

    /// Packets that did not fit.
    pub fn overflow_count(&self) -> u64 {
        self.overflow_count
    }

    /// Packets marked.
    pub fn mark_count(&self) -> u64 {
        self.mark_count
    }

    /// Nothing waits any more. How many packets did.
    pub fn clear(&mut self) -> u64 {
        self.bytes = 0;
        self.first_above_ns = 0;
        self.waiting.drain(..).count() as u64
    }

    /// A packet arrives; false if it does not fit.
    pub fn push(&mut self, now_ns: u64, bytes: u64, item: T) -> bool {
        self.largest_bytes = self.largest_bytes.max(bytes);
        if self.bytes + bytes > self.limit_bytes.max(2 * bytes) {
            self.overflow_count += 1;
            return false;
        }
        self.bytes += bytes;
        self.waiting.push_back(Waiting { since_ns: now_ns, bytes, item });
        true
    }

    /// The line is free: the next packet that leaves.
    pub fn pop(&mut self, now_ns: u64) -> Option<Popped<T>> {
        let (mut next, mut may_drop) = self.take(now_ns);
        let mut is_marked = false;
        if self.is_dropping {
            if !may_drop {
                self.is_dropping = false;
            }
            while self.is_dropping && now_ns >= self.drop_next_ns {
                self.count += 1;
                if self.marks {
                    is_marked = true;
                    self.drop_next_ns = law(self.drop_next_ns, self.count);
                    break;
                }
                self.drop_count += 1;
                (next, may_drop) = self.take(now_ns);
                if may_drop {
                    self.drop_next_ns = law(self.drop_next_ns, self.count);
                } else {
                    self.is_dropping = false;
                }
            }
        } else if may_drop {
            if self.marks {
                is_marked = true;
            } else {
                self.drop_count += 1;
                (next, _) = self.take(now_ns);
            }
            self.begin_dropping(now_ns);
        }
        self.mark_count += u64::from(is_marked);
        let Waiting { bytes, item, .. } = next?;
        Some(Popped { item, bytes, is_marked })
    }

    /// spec: RFC 8289 §5.4: soon after the last time, the rate goes on from where it was.
    fn begin_dropping(&mut self, now_ns: u64) {
        self.is_dropping = true;
        let delta = self.count.saturating_sub(self.last_count);
        let is_soon = now_ns.saturating_sub(self.drop_next_ns) < 16 * INTERVAL_NS;
        self.count = if delta > 1 && is_soon { delta } else { 1 };
        self.drop_next_ns = law(now_ns, self.count);
        self.last_count = self.count;
    }

    /// The packet in front, and whether it may be dropped.
    fn take(&mut self, now_ns: u64) -> (Option<Waiting<T>>, bool) {
        let Some(next) = self.waiting.pop_front() else {
            self.first_above_ns = 0;
            return (None, false);
        };
        self.bytes -= next.bytes;
        let waited_ns = now_ns.saturating_sub(next.since_ns);
        if waited_ns < TARGET_NS || self.bytes <= self.largest_bytes {
            self.first_above_ns = 0;
            return (Some(next), false);
        }
        if self.first_above_ns == 0 {
            self.first_above_ns = now_ns + INTERVAL_NS;
            return (Some(next), false);
        }
        (Some(next), now_ns >= self.first_above_ns)
    }
}

/// spec: RFC 8289 §5.3, control_law
fn law(from_ns: u64, count: u64) -> u64 {
    from_ns + (INTERVAL_NS as f64 / (count as f64).sqrt()) as u64
}

#[cfg(test)]
mod tests;
