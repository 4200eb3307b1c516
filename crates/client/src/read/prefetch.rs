//! Guesses what an open file is asked for next: sequential, strided and vector reads.
//!
//! The idea: a call is a *shape*, a list of ranges relative to where the first of them begins.
//! Two calls of the same shape suggest a stride, a third one at the same distance proves it, and
//! from then on whole calls of that shape are predicted at that distance. A plain `read` is a
//! shape of one range, so "sequential" is the stride that equals its length; ranges of changing
//! lengths that meet end to end count as sequential too. The window, in bytes, grows by what was
//! read of the predicted, halves when predicted bytes were dropped unread, and is cut off when the
//! pattern breaks, so a random reader pays nothing.

use std::ops::Range;

/// First window, and what one misprediction costs at most.
const WINDOW_FIRST_BYTES: u64 = 128 << 10;
/// Ranges of a call above which its shape is not remembered.
const SHAPE_RANGES_MAX: usize = 4096;
/// Calls predicted ahead, whatever the window says.
const STEPS_AHEAD_MAX: u64 = 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Call {
    start: u64,
    /// Ranges relative to `start`.
    shape: Vec<Range<u64>>,
    bytes: u64,
    /// End of the last range, relative to `start`.
    reach: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stride {
    bytes: i64,
    /// Calls that confirmed it.
    confirmed: u32,
}

/// Watches the calls on one file and predicts what to read ahead.
#[derive(Debug)]
pub(crate) struct Prefetcher {
    window_max: u64,
    window: u64,
    last: Option<Call>,
    stride: Option<Stride>,
    /// Calls after the last one that were predicted already.
    steps_reported: u64,
    /// Ranges of the prediction being handed out.
    reported: usize,
}

impl Prefetcher {
    /// Predicts at most `window_max` bytes ahead; 0 switches it off.
    pub(crate) fn new(window_max: u64) -> Self {
        Prefetcher {
            window_max,
            window: 0,
            last: None,
            stride: None,
            steps_reported: 0,
            reported: 0,
        }
    }

    /// Somebody reads these ranges.
    pub(crate) fn on_read(&mut self, ranges: &[Range<u64>]) {
        if self.window_max == 0 {
            return;
        }
        let Some(call) = Call::of(ranges) else { return self.break_off(None) };
        let Some(last) = self.last.take() else { return self.break_off(Some(call)) };
        let distance = call.start.wrapping_sub(last.start).cast_signed();
        let is_next = last.shape.len() == 1
            && call.shape.len() == 1
            && call.start == last.start.saturating_add(last.reach);
        if distance == 0 || !(is_next || call.shape == last.shape) {
            return self.break_off(Some(call));
        }
        let stride_bytes = if is_next { call.reach.cast_signed() } else { distance };
        let was_sequential = self.stride.is_some_and(|it| it.bytes == last.reach.cast_signed());
        let continues =
            self.stride.is_some_and(|it| it.bytes == distance) || (is_next && was_sequential);
        let confirmed = self.stride.filter(|_| continues).map_or(0, |it| it.confirmed + 1);
        if confirmed == 0 {
            (self.steps_reported, self.reported) = (0, 0);
            self.window = 0;
        } else {
            if self.window == 0 {
                self.window = WINDOW_FIRST_BYTES.min(self.window_max);
            }
            self.steps_reported = self.steps_reported.saturating_sub(1);
            if call.shape != last.shape {
                (self.steps_reported, self.reported) = (0, 0);
            }
        }
        self.stride = Some(Stride { bytes: stride_bytes, confirmed });
        self.last = Some(call);
    }

    /// Predicted bytes were read: a window that was read whole has doubled.
    pub(crate) fn on_useful(&mut self, bytes: u64) {
        self.window = self.window.saturating_add(bytes).min(self.window_max);
    }

    /// Predicted bytes were dropped unread.
    pub(crate) fn on_wasted(&mut self) {
        self.window /= 2;
    }

    /// The next range to read ahead, if the window has room beyond `readahead_bytes`, which are in
    /// flight or there and unread. Nothing at or beyond `size` is handed out.
    pub(crate) fn poll_range(&mut self, readahead_bytes: u64, size: u64) -> Option<Range<u64>> {
        let stride = self.stride.filter(|it| it.confirmed > 0)?;
        let last = self.last.as_ref()?;
        if readahead_bytes >= self.window || self.steps_reported >= self.steps_max(last) {
            return None;
        }
        let steps = i64::try_from(self.steps_reported + 1).ok()?;
        let base = last.start.checked_add_signed(stride.bytes.checked_mul(steps)?)?;
        let shape = last.shape.get(self.reported)?;
        self.reported += 1;
        if self.reported == last.shape.len() {
            (self.reported, self.steps_reported) = (0, self.steps_reported + 1);
        }
        let range = base.checked_add(shape.start)?..base.checked_add(shape.end)?.min(size);
        (range.start < range.end).then_some(range)
    }

    fn steps_max(&self, last: &Call) -> u64 {
        (self.window / last.bytes.max(1)).clamp(1, STEPS_AHEAD_MAX)
    }

    fn break_off(&mut self, call: Option<Call>) {
        (self.last, self.stride, self.window) = (call, None, 0);
        (self.steps_reported, self.reported) = (0, 0);
    }
}

impl Call {
    fn of(ranges: &[Range<u64>]) -> Option<Self> {
        let start = ranges.iter().map(|range| range.start).min()?;
        if ranges.len() > SHAPE_RANGES_MAX {
            return None;
        }
        let relative = |range: &Range<u64>| range.start - start..range.end.saturating_sub(start);
        let shape: Vec<Range<u64>> = ranges.iter().map(relative).collect();
        let bytes = shape.iter().map(|range| range.end.saturating_sub(range.start)).sum();
        let reach = shape.iter().map(|range| range.end).max()?;
        Some(Call { start, shape, bytes, reach })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u64 = 1 << 30;

    fn predicted(prefetcher: &mut Prefetcher) -> Vec<Range<u64>> {
        let mut ahead = 0;
        std::iter::from_fn(|| {
            let range = prefetcher.poll_range(ahead, SIZE)?;
            ahead += range.end - range.start;
            Some(range)
        })
        .collect()
    }

    fn read(prefetcher: &mut Prefetcher, start: u64, length: u64) {
        prefetcher.on_read(std::slice::from_ref(&(start..start + length)));
    }

    #[test]
    fn a_sequential_reader_is_recognised_at_its_third_read_and_the_window_grows() {
        let mut prefetcher = Prefetcher::new(1 << 20);
        read(&mut prefetcher, 0, 65536);
        read(&mut prefetcher, 65536, 65536);
        assert_eq!(predicted(&mut prefetcher), []);
        read(&mut prefetcher, 131_072, 65536);
        assert_eq!(predicted(&mut prefetcher), [196_608..262_144, 262_144..327_680]);
        prefetcher.on_useful(WINDOW_FIRST_BYTES);
        read(&mut prefetcher, 196_608, 65536);
        assert_eq!(prefetcher.window, 256 << 10);
        assert_eq!(
            predicted(&mut prefetcher),
            [327_680..393_216, 393_216..458_752, 458_752..524_288]
        );
    }

    #[test]
    fn sequential_reads_of_changing_lengths_are_sequential() {
        let mut prefetcher = Prefetcher::new(1 << 20);
        let mut at = 0;
        for length in [5000, 7000, 4096, 9000] {
            read(&mut prefetcher, at, length);
            at += length;
        }
        assert_eq!(predicted(&mut prefetcher).first(), Some(&(at..at + 9000)));
    }

    #[test]
    fn strides_are_followed_in_both_directions() {
        for (start, stride) in [(0i64, 1_000_000i64), (900_000_000, -1_000_000)] {
            let mut prefetcher = Prefetcher::new(1 << 20);
            for step in 0..3 {
                read(&mut prefetcher, (start + step * stride) as u64, 4096);
            }
            let expected = (start + 3 * stride) as u64;
            assert_eq!(predicted(&mut prefetcher)[0], expected..expected + 4096);
        }
    }

    #[test]
    fn a_vector_read_that_moves_on_is_predicted_as_a_whole() {
        let mut prefetcher = Prefetcher::new(1 << 20);
        let call = |base: u64| [base + 500..base + 900, base..base + 100];
        for step in 0..3 {
            prefetcher.on_read(&call(step * 10_000));
        }
        assert_eq!(predicted(&mut prefetcher)[..2], call(30_000));
    }

    #[test]
    fn random_reads_are_never_followed_and_a_broken_pattern_ends() {
        let mut prefetcher = Prefetcher::new(1 << 20);
        for start in [7, 900_000, 13_000, 500_000_000, 77_777] {
            read(&mut prefetcher, start, 4096);
            assert_eq!(predicted(&mut prefetcher), []);
        }
        for step in 0..4 {
            read(&mut prefetcher, step * 4096, 4096);
        }
        assert!(!predicted(&mut prefetcher).is_empty());
        read(&mut prefetcher, 700_000_000, 4096);
        assert_eq!((predicted(&mut prefetcher), prefetcher.window), (vec![], 0));
    }

    #[test]
    fn nothing_is_predicted_beyond_the_end_or_when_switched_off() {
        let mut prefetcher = Prefetcher::new(1 << 20);
        for step in 0..3 {
            read(&mut prefetcher, SIZE - 3 * 4096 + step * 4096, 4096);
        }
        assert_eq!(predicted(&mut prefetcher), []);
        let mut off = Prefetcher::new(0);
        for step in 0..5 {
            read(&mut off, step * 4096, 4096);
        }
        assert_eq!(predicted(&mut off), []);
    }

    #[test]
    fn waste_shrinks_the_window() {
        let mut prefetcher = Prefetcher::new(1 << 20);
        for step in 0..3 {
            read(&mut prefetcher, step * 4096, 4096);
        }
        prefetcher.on_useful(WINDOW_FIRST_BYTES);
        prefetcher.on_wasted();
        assert_eq!(prefetcher.window, WINDOW_FIRST_BYTES);
    }
}
