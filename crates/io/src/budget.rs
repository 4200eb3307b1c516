//! Memory that the connections of a process share.
//!
//! Every buffer of a connection says how much it has allocated; the sum is one atomic counter that
//! changes only when a buffer grows or shrinks. A send queue may grow while it holds no more than a
//! quarter of what is still free (dynamic thresholds, Choudhury and Hahne 1998): with few long
//! queues that is more than any may have, with many it shrinks for all alike, and the sum stays
//! below the bound without anybody counting queues.
//!
//! Invariant: what is taken is at most [`MemoryBudget::bytes_max`] and, for each connection,
//! twice [`SHARE_BYTES_MIN`] and the smallest receive buffer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Memory for the connections of a process unless configured otherwise.
pub const MEMORY_BYTES_MAX: usize = 64 << 20;

/// Room in a queue that no shortage takes away: a few packets of any length.
pub const SHARE_BYTES_MIN: usize = 32 << 10;

/// Memory that has come back since the last time is handed to the system from this much on.
const RETURNED_BYTES_MIN: usize = 8 << 20;

/// See the module. Clones are the same budget.
#[derive(Debug, Clone)]
pub struct MemoryBudget {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    bytes_max: AtomicUsize,
    taken: AtomicUsize,
    /// Most that was taken since memory was last handed to the system.
    peak: AtomicUsize,
}

impl Default for MemoryBudget {
    fn default() -> Self {
        Self::new(MEMORY_BYTES_MAX)
    }
}

impl MemoryBudget {
    /// A budget of that many bytes.
    pub fn new(bytes_max: usize) -> Self {
        let (taken, peak) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let bytes_max = AtomicUsize::new(bytes_max);
        MemoryBudget { shared: Arc::new(Shared { bytes_max, taken, peak }) }
    }

    /// Changes the bound. What is taken already comes back as queues drain.
    pub fn set_bytes_max(&self, bytes_max: usize) {
        self.shared.bytes_max.store(bytes_max, Ordering::Relaxed);
    }

    /// The bound.
    pub fn bytes_max(&self) -> usize {
        self.shared.bytes_max.load(Ordering::Relaxed)
    }

    /// Bytes allocated now.
    pub fn taken_bytes(&self) -> usize {
        self.shared.taken.load(Ordering::Relaxed)
    }

    /// Bytes that one queue may hold now.
    pub fn share_bytes(&self) -> usize {
        (self.bytes_max().saturating_sub(self.taken_bytes()) / 4).max(SHARE_BYTES_MIN)
    }

    /// True if more than half is taken: whoever does not read goes first then.
    pub fn is_short(&self) -> bool {
        self.taken_bytes() > self.bytes_max() / 2
    }

    /// True while there is something to sweep: buffers that may not be needed any more, or memory
    /// that was freed and is still the allocator's.
    pub fn needs_sweep(&self) -> bool {
        self.taken_bytes() > 0 || self.has_freed_much()
    }

    fn has_freed_much(&self) -> bool {
        let (taken, peak) = (self.taken_bytes(), self.shared.peak.load(Ordering::Relaxed));
        peak.saturating_sub(taken) >= RETURNED_BYTES_MIN.max(peak / 2)
    }

    /// Hands memory that was freed back to the system, if it is much: the allocator keeps what
    /// lies below the highest block in use. For sweeps, not for every packet.
    pub fn return_freed(&self) {
        if self.has_freed_much() {
            self.shared.peak.store(self.taken_bytes(), Ordering::Relaxed);
            return_to_system();
        }
    }

    fn take(&self, bytes: usize) {
        let taken = self.shared.taken.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.shared.peak.fetch_max(taken, Ordering::Relaxed);
    }

    fn give_back(&self, bytes: usize) {
        self.shared.taken.fetch_sub(bytes, Ordering::Relaxed);
    }
}

#[cfg(target_env = "gnu")]
#[allow(unsafe_code)]
fn return_to_system() {
    // SAFETY: `malloc_trim` takes no pointer and may be called at any time from any thread.
    unsafe { libc::malloc_trim(0) };
}

/// Other allocators return large blocks on their own.
#[cfg(not(target_env = "gnu"))]
fn return_to_system() {}

/// Memory of a budget charged to one buffer; returned on drop.
#[derive(Debug, Default)]
pub struct Charge {
    budget: Option<MemoryBudget>,
    bytes: usize,
}

impl Charge {
    /// Nothing yet of that budget.
    pub fn of(budget: &MemoryBudget) -> Self {
        Charge { budget: Some(budget.clone()), bytes: 0 }
    }

    /// Moves what was taken to another budget.
    pub(crate) fn move_to(&mut self, budget: &MemoryBudget) {
        let bytes = self.bytes;
        *self = Charge::of(budget);
        self.set(bytes);
    }

    /// The buffer has so many bytes now.
    pub fn set(&mut self, bytes: usize) {
        if let Some(budget) = &self.budget {
            match bytes.checked_sub(self.bytes) {
                Some(more) => budget.take(more),
                None => budget.give_back(self.bytes - bytes),
            }
        }
        self.bytes = bytes;
    }

    /// Bytes that a queue may hold now; no bound without a budget.
    pub(crate) fn share_bytes(&self) -> usize {
        self.budget.as_ref().map_or(usize::MAX, MemoryBudget::share_bytes)
    }

    /// True if the budget [is short](MemoryBudget::is_short).
    pub fn is_short(&self) -> bool {
        self.budget.as_ref().is_some_and(MemoryBudget::is_short)
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;
    use crate::connection::Connection;

    #[test]
    fn many_queues_that_nobody_reads_stay_below_the_bound_together() {
        const BYTES_MAX: usize = 8 << 20;
        let budget = MemoryBudget::new(BYTES_MAX);
        let limits = Limits::default();
        let mut pairs: Vec<_> = (0..100)
            .map(|_| {
                let (mut ours, theirs) = Connection::pair_with(limits).unwrap();
                ours.set_budget(&budget);
                (ours, theirs)
            })
            .collect();
        let frame = [7u8; 8000];
        let mut refused = 0;
        for _ in 0..600 {
            for (ours, _) in &mut pairs {
                refused += usize::from(ours.queue(&[&frame]).is_err());
            }
            assert!(budget.taken_bytes() <= BYTES_MAX + pairs.len() * 2 * SHARE_BYTES_MIN);
        }
        assert!(refused > 0 && budget.is_short());
        let queued: Vec<usize> = pairs.iter().map(|(ours, _)| ours.queued_bytes()).collect();
        let (least, most) = (*queued.iter().min().unwrap(), *queued.iter().max().unwrap());
        assert!(least >= 16_000 && most <= 8 * least, "unfair: {least} to {most}");
        drop(pairs);
        assert_eq!(budget.taken_bytes(), 0);
    }

    /// Nobody looked again once the last connection had gone, so the memory stayed.
    #[test]
    fn what_the_last_connection_freed_is_returned_too() {
        let budget = MemoryBudget::default();
        let mut charge = Charge::of(&budget);
        charge.set(RETURNED_BYTES_MIN);
        assert!(budget.needs_sweep());
        drop(charge);
        assert!(budget.needs_sweep());
        budget.return_freed();
        assert!(!budget.needs_sweep());
    }

    #[cfg(target_env = "gnu")]
    fn resident_bytes() -> usize {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        let kib: usize = line.trim().trim_end_matches(" kB").parse().unwrap();
        kib << 10
    }

    #[cfg(target_env = "gnu")]
    #[test]
    fn what_is_freed_below_a_block_in_use_goes_back_to_the_system() {
        const BLOCK_BYTES: usize = 64 << 10;
        const BLOCKS: usize = 4000;
        let (budget, mut blocks) = (MemoryBudget::default(), Vec::new());
        blocks.resize_with(BLOCKS, || vec![7u8; BLOCK_BYTES]);
        let mut charge = Charge::of(&budget);
        charge.set(BLOCKS * BLOCK_BYTES);
        let last = blocks.pop();
        let before = resident_bytes();
        drop(blocks);
        charge.set(BLOCK_BYTES);
        budget.return_freed();
        let after = resident_bytes();
        assert!(last.is_some_and(|block| block[BLOCK_BYTES - 1] == 7));
        assert!(before.saturating_sub(after) > BLOCKS * BLOCK_BYTES / 2, "{before}, then {after}");
    }

    #[test]
    fn one_long_queue_may_use_what_the_others_leave() {
        let budget = MemoryBudget::default();
        let (mut ours, _theirs) = Connection::pair().unwrap();
        ours.set_budget(&budget);
        let frame = [7u8; 8000];
        while ours.queue(&[&frame]).is_ok() {}
        assert!(ours.queued_bytes() > crate::limits::SEND_BYTES_MAX - 2 * frame.len());
    }

    #[test]
    fn memory_comes_back_once_a_queue_has_been_read_and_rests() {
        let budget = MemoryBudget::default();
        let (mut ours, mut theirs) = Connection::pair().unwrap();
        ours.set_budget(&budget);
        let frame = [7u8; 8000];
        for _ in 0..500 {
            ours.queue(&[&frame]).unwrap();
        }
        ours.flush().unwrap();
        assert!(ours.wants_write() && budget.taken_bytes() >= ours.queued_bytes());
        // Nobody reads: the queue does not move.
        assert_eq!(ours.trim(10), 0);
        assert_eq!(ours.trim(15), 5);
        let framer = |bytes: &[u8]| Ok((bytes.len() >= 8000).then_some(8000));
        let mut read = 0;
        while read < 500 {
            read += theirs.recv_burst(framer, &mut |_| {}).unwrap().frames;
            ours.flush().unwrap();
        }
        assert_eq!(ours.trim(20), 0);
        ours.trim(21);
        assert_eq!(budget.taken_bytes(), 0);
    }
}
