//! Bytes in a row: appended at the end, consumed at the front, never zeroed twice.
//!
//! The octets that wait are `bytes[start..end]`. All of `bytes` is initialised, what lies after
//! `end` with zeroes or with what was there before; so room for more can be lent out as a plain
//! slice and costs nothing. What waits moves to the front only when at least as much has been
//! consumed.
//!
//! Invariant: `start <= end <= bytes.len()`, and `bytes` is at most twice as long as what may wait.

use crate::budget::{Charge, MemoryBudget};

#[derive(Debug)]
pub(crate) struct ByteRun {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// Highest end since the last trim.
    peak: usize,
    bytes_max: usize,
    charge: Charge,
    /// Bytes consumed since the beginning, and the same when it was last looked at.
    consumed: u64,
    consumed_before: u64,
    /// Time at which bytes last moved, or none waited.
    moved_ns: u64,
}

impl ByteRun {
    /// A run of at most `bytes_max` bytes, for which those who append are answerable.
    pub(crate) fn new(bytes_max: usize) -> Self {
        ByteRun {
            bytes: Vec::new(),
            start: 0,
            end: 0,
            peak: 0,
            bytes_max,
            charge: Charge::default(),
            consumed: 0,
            consumed_before: 0,
            moved_ns: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.end - self.start
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Appends `count` bytes and lends them out to be written; until then they are anything.
    pub(crate) fn extend(&mut self, count: usize) -> &mut [u8] {
        if self.end + count > self.bytes.len() {
            self.make_room(count);
        }
        let from = self.end;
        self.end += count;
        self.peak = self.peak.max(self.end);
        &mut self.bytes[from..self.end]
    }

    /// Appends the parts.
    pub(crate) fn append(&mut self, parts: &[&[u8]]) {
        for part in parts {
            self.extend(part.len()).copy_from_slice(part);
        }
    }

    /// Takes the last `count` bytes away.
    pub(crate) fn take_back(&mut self, count: usize) {
        self.end -= count.min(self.len());
        self.rewind_if_empty();
    }

    /// Takes the first `count` bytes away.
    pub(crate) fn consume(&mut self, count: usize) {
        self.consumed = self.consumed.wrapping_add(count as u64);
        self.start += count.min(self.len());
        self.rewind_if_empty();
    }

    fn rewind_if_empty(&mut self) {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    fn make_room(&mut self, count: usize) {
        if self.start >= self.len() {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.len());
        }
        let needed = self.end + count;
        if needed > self.bytes.len() {
            let length = needed.next_power_of_two().min(2 * self.bytes_max).max(needed);
            self.bytes.reserve_exact(length - self.bytes.len());
            self.bytes.resize(length, 0);
            self.charge.set(self.bytes.len());
        }
    }

    /// Counts its memory towards `budget` and keeps within its share from now on.
    pub(crate) fn set_budget(&mut self, budget: &MemoryBudget) {
        self.charge.move_to(budget);
    }

    /// Bytes that may wait now.
    pub(crate) fn bytes_max(&self) -> usize {
        self.bytes_max.min(self.charge.share_bytes())
    }

    /// Frees memory that was not needed since the last call; says for how long bytes have waited
    /// of which none was consumed.
    pub(crate) fn trim(&mut self, now_ns: u64) -> u64 {
        let used = std::mem::replace(&mut self.peak, self.end);
        if used <= self.bytes.len() / 4 {
            self.bytes.truncate(used);
            self.bytes.shrink_to_fit();
            self.charge.set(self.bytes.len());
        }
        let before = std::mem::replace(&mut self.consumed_before, self.consumed);
        if self.len() == 0 || before != self.consumed || self.moved_ns == 0 {
            self.moved_ns = now_ns.max(1);
        }
        now_ns.saturating_sub(self.moved_ns)
    }

    #[cfg(test)]
    pub(crate) fn allocated(&self) -> usize {
        self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against a plain list, whatever is appended, taken back and consumed.
    #[test]
    fn it_is_a_list_of_bytes_with_bounded_memory() {
        const MAX: usize = 1000;
        let mut run = ByteRun::new(MAX);
        let mut model: Vec<u8> = Vec::new();
        for step in 0u32..50_000 {
            let random = (step.wrapping_mul(2_654_435_761) >> 12) as usize;
            let count = random % 300;
            match random % 7 {
                0..=3 if model.len() + count <= MAX => {
                    run.extend(count).fill(step as u8);
                    model.resize(model.len() + count, step as u8);
                }
                4 if random.is_multiple_of(5) => {
                    run.trim(u64::from(step));
                }
                4 => {
                    let count = count.min(model.len()) / 2;
                    run.take_back(count);
                    model.truncate(model.len() - count);
                }
                _ => {
                    run.consume(count);
                    model.drain(..count.min(model.len()));
                }
            }
            assert!(run.as_slice() == model, "step {step}");
            assert!(run.allocated() <= 2 * MAX);
        }
        assert!(run.allocated() > 0);
    }
}
