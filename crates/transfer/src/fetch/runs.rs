//! A set of segment numbers as ascending runs: what is still to be asked for.

use std::collections::VecDeque;
use std::ops::Range;

/// Ascending, disjoint, non-empty runs of segment numbers. The last one may be open-ended
/// (`u64::MAX`), for objects whose end is not known yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SegmentRuns {
    runs: VecDeque<Range<u64>>,
}

impl SegmentRuns {
    /// All segments from `first` on, to an end that is not known.
    pub fn from(first: u64) -> Self {
        let mut runs = SegmentRuns::default();
        runs.push(first..u64::MAX);
        runs
    }

    /// All segments up to and including `last`.
    pub fn up_to(last: u64) -> Self {
        let mut runs = SegmentRuns::default();
        runs.push(0..last.saturating_add(1));
        runs
    }

    /// Adds a run that begins where or after the last one ends; empty runs are ignored, a part
    /// that is already covered is cut off.
    pub fn push(&mut self, run: Range<u64>) {
        let covered = self.runs.back().map_or(0, |back| back.end);
        let start = run.start.max(covered);
        if start >= run.end {
            return;
        }
        match self.runs.back_mut() {
            Some(back) if back.end == start => back.end = run.end,
            _ => self.runs.push_back(start..run.end),
        }
    }

    /// Takes the lowest number out.
    pub fn pop_first(&mut self) -> Option<u64> {
        let front = self.runs.front_mut()?;
        let segment = front.start;
        front.start += 1;
        if front.start >= front.end {
            self.runs.pop_front();
        }
        Some(segment)
    }

    /// The lowest number, left in place.
    pub fn first(&self) -> Option<u64> {
        self.runs.front().map(|run| run.start)
    }

    /// Removes everything beyond `last`.
    pub fn cut_after(&mut self, last: u64) {
        let end = last.saturating_add(1);
        while let Some(back) = self.runs.back_mut() {
            if back.end <= end {
                return;
            }
            if back.start < end {
                back.end = end;
                return;
            }
            self.runs.pop_back();
        }
    }

    /// True when nothing is left.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Count of numbers that are left.
    pub fn segment_count(&self) -> u64 {
        self.runs.iter().map(|run| run.end - run.start).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_merge_are_cut_and_come_out_in_order() {
        let mut runs = SegmentRuns::default();
        for run in [0..2, 2..3, 5..5, 2..7, 9..12] {
            runs.push(run);
        }
        assert_eq!(runs.segment_count(), 10);
        runs.cut_after(9);
        let drained: Vec<u64> = std::iter::from_fn(|| runs.pop_first()).collect();
        assert_eq!(drained, [0, 1, 2, 3, 4, 5, 6, 9]);
        assert!(runs.is_empty());
    }

    #[test]
    fn an_open_end_is_closed_later() {
        let mut runs = SegmentRuns::from(3);
        runs.pop_first();
        runs.cut_after(5);
        assert_eq!(runs.segment_count(), 2);
        runs.cut_after(2);
        assert!(runs.is_empty());
    }
}
