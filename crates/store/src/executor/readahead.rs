//! Readahead for readers that go through a file from front to back.
//!
//! Only what had to be fetched from the disk counts: a file in memory costs nothing here. As long
//! as a reader goes on where it was, what lies before it is asked for in windows that grow; one
//! that jumps gets none. Requests come a little out of order, and several readers may go through
//! one file, so a few positions are kept.
//!
//! Invariant: a stream asks for each octet once, and for nothing beyond the end of the file.

use std::ops::Range;

/// Readers of one file that are followed.
const STREAMS_MAX: usize = 4;
/// Largest distance of a stream's next request from where it was.
const SLACK_BYTES: u64 = 1 << 20;
/// The first window and the largest.
const WINDOW_BYTES: (u64, u64) = (512 << 10, 8 << 20);

#[derive(Debug, Clone, Copy)]
struct Stream {
    /// Where the next request is expected.
    next: u64,
    /// End of the requested part.
    until: u64,
    window: u64,
    /// When it was used last.
    stamp: u64,
}

/// The readers of a file.
#[derive(Debug, Default)]
pub(super) struct Readahead {
    streams: Vec<Stream>,
    clock: u64,
}

impl Readahead {
    /// Takes note of a request and says what to read ahead. `is_cold`: it waits for the disk.
    pub(super) fn on_request(
        &mut self,
        range: Range<u64>,
        is_cold: bool,
        size: u64,
    ) -> Option<Range<u64>> {
        self.clock += 1;
        let near = |stream: &&mut Stream| stream.next.abs_diff(range.start) <= SLACK_BYTES;
        let Some(stream) = self.streams.iter_mut().find(near) else {
            if is_cold {
                self.follow(range.end);
            }
            return None;
        };
        stream.stamp = self.clock;
        // What comes late or again does not take the stream back.
        stream.next = stream.next.max(range.end);
        if is_cold && stream.window == 0 {
            stream.window = WINDOW_BYTES.0;
        }
        let ahead = stream.until.saturating_sub(stream.next);
        if stream.window == 0 || ahead >= stream.window / 2 || stream.until >= size {
            return None;
        }
        let from = stream.until.max(stream.next).min(size);
        stream.until = from.saturating_add(stream.window).min(size);
        stream.window = (stream.window * 2).min(WINDOW_BYTES.1);
        (from < stream.until).then_some(from..stream.until)
    }

    fn follow(&mut self, next: u64) {
        let stream = Stream { next, until: 0, window: 0, stamp: self.clock };
        if self.streams.len() < STREAMS_MAX {
            return self.streams.push(stream);
        }
        if let Some(oldest) = self.streams.iter_mut().min_by_key(|stream| stream.stamp) {
            *oldest = stream;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1024;
    const SIZE: u64 = 64 << 20;

    #[test]
    fn a_reader_from_front_to_back_is_read_ahead_in_growing_windows_up_to_the_end() {
        let mut readahead = Readahead::default();
        let mut asked = Vec::new();
        for at in (0..SIZE).step_by(512 * 1024) {
            let window = readahead.on_request(at..at + 512 * KIB, at < 2 << 20, SIZE);
            asked.extend(window);
        }
        let lengths: Vec<u64> = asked.iter().map(|range| (range.end - range.start) / KIB).collect();
        assert_eq!(lengths[..5], [512, 1024, 2048, 4096, 8192]);
        assert!(asked.windows(2).all(|pair| pair[0].end <= pair[1].start), "twice: {asked:?}");
        assert_eq!(asked.last().unwrap().end, SIZE);
    }

    #[test]
    fn a_reader_that_jumps_is_not_read_ahead() {
        let mut readahead = Readahead::default();
        for step in 0..1000u64 {
            let at = (step * 7919 * 8192 * 37) % (1 << 40);
            assert_eq!(readahead.on_request(at..at + 8192, true, 1 << 40), None, "step {step}");
        }
    }

    #[test]
    fn a_file_in_memory_is_not_read_ahead() {
        let mut readahead = Readahead::default();
        for at in (0..SIZE).step_by(8192) {
            assert_eq!(readahead.on_request(at..at + 8192, false, SIZE), None);
        }
    }

    #[test]
    fn several_readers_are_followed_and_disorder_does_no_harm() {
        let mut readahead = Readahead::default();
        let mut asked = [0u64; 3];
        for step in 0..64u64 {
            for (reader, octets) in asked.iter_mut().enumerate() {
                let at = reader as u64 * (16 << 20) + (step ^ 1) * 128 * KIB;
                let window = readahead.on_request(at..at + 128 * KIB, step < 4, SIZE);
                *octets += window.map_or(0, |range| range.end - range.start);
            }
        }
        assert!(asked.iter().all(|octets| *octets >= 6 << 20), "{asked:?}");
    }
}
