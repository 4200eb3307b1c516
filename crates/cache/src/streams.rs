//! Readers that go on where they stopped, and what the kernel is to bring into memory for them.
//!
//! Reads that do not wait ([`nowait`](crate::nowait)) find only what is in memory. The kernel's own
//! readahead is a few such reads long, and loses its track where several threads read one file; so
//! what comes next is asked for here, in pieces that a disk likes, well before it is wanted.

use std::ops::Range;

use byname_security::tree::UNIT_BYTES;

/// Units of a read from which on it counts: those of programs that read here and there are shorter.
const READ_UNITS_MIN: u64 = (64 << 10) / UNIT_BYTES as u64;
/// Units that are kept ahead of a reader.
const AHEAD_UNITS: u64 = (8 << 20) / UNIT_BYTES as u64;
/// Distance from the place where a reader stopped at which a read is still taken for his: several
/// threads bring his reads in any order.
const NEAR_UNITS: u64 = (4 << 20) / UNIT_BYTES as u64;
/// Readers of one content that are known.
const STREAMS_MAX: usize = 4;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    /// Where readers stopped, and as far as was asked for; the one of last first.
    known: Vec<Range<u64>>,
}

impl Streams {
    /// Takes note of a read; returns what is to be brought into memory, if it is time for that.
    pub(crate) fn note(&mut self, units: &Range<u64>) -> Option<Range<u64>> {
        if units.end.saturating_sub(units.start) < READ_UNITS_MIN {
            return None;
        }
        let is_near = |known: &Range<u64>| known.start.abs_diff(units.start) <= NEAR_UNITS;
        let Some(place) = self.known.iter().position(is_near) else {
            self.known.truncate(STREAMS_MAX - 1);
            self.known.insert(0, units.end..units.end);
            return None;
        };
        let mut stream = self.known.remove(place);
        stream.start = stream.start.max(units.end);
        stream.end = stream.end.max(stream.start);
        let is_due = stream.end - stream.start < AHEAD_UNITS / 2;
        let wanted = is_due.then(|| stream.end..stream.start + AHEAD_UNITS);
        stream.end = wanted.as_ref().map_or(stream.end, |wanted| wanted.end);
        self.known.insert(0, stream);
        wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_reads_on_finds_it_in_memory_and_each_unit_is_asked_for_once() {
        let (mut streams, mut asked) = (Streams::default(), Vec::new());
        for at in 0..1000 {
            asked.extend(streams.note(&(at * 16..at * 16 + 16)));
            let ahead = asked.last().map_or(0, |last: &Range<u64>| last.end);
            assert!(at == 0 || ahead >= at * 16 + 16 + AHEAD_UNITS / 2, "{at}: {ahead}");
        }
        assert!(asked.windows(2).all(|pair| pair[0].end == pair[1].start), "{asked:?}");
        assert!(asked.len() < 100, "in long pieces");
    }

    #[test]
    fn threads_that_bring_reads_in_another_order_are_one_reader() {
        let (mut streams, mut asked) = (Streams::default(), Vec::new());
        for at in [0u64, 2, 1, 4, 5, 3, 7, 6, 8, 9] {
            asked.extend(streams.note(&(at * 128..at * 128 + 128)));
        }
        assert_eq!(streams.known.len(), 1);
        assert!(asked.windows(2).all(|pair| pair[0].end == pair[1].start), "{asked:?}");
    }

    #[test]
    fn reads_here_and_there_bring_nothing() {
        let mut streams = Streams::default();
        for at in [70_000u64, 3, 900_000, 20_000, 5_000, 400_000, 100_000] {
            assert_eq!(streams.note(&(at..at + 1)), None, "short");
            assert_eq!(streams.note(&(at..at + 16)), None, "long");
        }
        assert_eq!(streams.known.len(), STREAMS_MAX);
    }
}
