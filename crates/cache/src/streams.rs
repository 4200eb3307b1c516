//! Readers that go on where they stopped, and the pieces that are read ahead for them.
//!
//! Reads that do not wait ([`nowait`](crate::nowait)) find what is in the kernel's memory. Where a
//! reader who goes on finds nothing there, what comes next is read ahead in pieces, as far as the
//! reader has shown to go: twice as far with each piece that was wanted. As long as there are
//! pieces, the kernel's memory is not looked at.
//!
//! Pieces end where the reader's own reads do, so that one is handed on as it is.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use byname_security::tree::UNIT_BYTES;

use crate::pieces::{PIECE_UNITS_MAX, Part, Piece};

/// Units of a read from which on it counts: those of programs that read here and there are shorter.
pub(crate) const READ_UNITS_MIN: u64 = (64 << 10) / UNIT_BYTES as u64;
/// Pieces that are kept ahead of a reader, at first and at most.
const DEPTH_FIRST: usize = 2;
const AHEAD_MAX: usize = 16;
/// Distance from the place where a reader stopped at which a read is still taken for his: several
/// threads bring his reads in any order.
const NEAR_UNITS: u64 = (8 << 20) / UNIT_BYTES as u64;
/// Readers of one content that are known.
const STREAMS_MAX: usize = 4;

#[derive(Debug)]
struct Ahead {
    piece: Arc<Piece>,
    /// Units of it that nobody has come for.
    left: u64,
}

impl Ahead {
    /// Those of `units` that it has.
    fn part(&self, units: &Range<u64>) -> Range<u64> {
        units.start.max(self.piece.units.start)..units.end.min(self.piece.units.end)
    }
}

#[derive(Debug, Default)]
struct Stream {
    /// Where the reader stopped.
    next: u64,
    /// True once the reader has gone on.
    goes_on: bool,
    /// In order, one behind the other.
    pieces: VecDeque<Ahead>,
    /// So many are to be ahead of the reader.
    depth: usize,
}

impl Stream {
    /// The parts of pieces that are these units, if all of them are in some.
    fn take(&mut self, units: &Range<u64>) -> Option<Vec<Part>> {
        let (mut parts, mut at) = (Vec::new(), units.start);
        for ahead in &self.pieces {
            let part = ahead.part(units);
            if part.is_empty() {
                continue;
            }
            if part.start != at {
                return None;
            }
            at = part.end;
            parts.push(Part { piece: Arc::clone(&ahead.piece), units: part });
        }
        if at != units.end {
            return None;
        }
        for ahead in &mut self.pieces {
            let part = ahead.part(units);
            ahead.left = ahead.left.saturating_sub(part.end.saturating_sub(part.start));
        }
        // What several threads read twice, or not at all, is let go of when the reader is far off.
        let far = self.next.saturating_sub(NEAR_UNITS);
        self.pieces.retain(|ahead| ahead.left > 0 && ahead.piece.units.end > far);
        Some(parts)
    }

    /// New pieces behind those that are there: as many as are wanted ahead, and so that `end` is in
    /// one. They go as far as `end_of_run` of where the last one ends.
    fn extend(&mut self, end: u64, end_of_run: impl Fn(u64) -> u64) -> Vec<Arc<Piece>> {
        let mut fresh = Vec::new();
        let mut tail = self.pieces.back().map_or(self.next, |ahead| ahead.piece.units.end);
        while self.pieces.len() < self.depth || (tail < end && self.pieces.len() < 2 * AHEAD_MAX) {
            let piece_end = (tail + self.length_from(tail)).min(end_of_run(tail));
            if piece_end <= tail {
                break;
            }
            let piece = Arc::new(Piece::new(tail..piece_end));
            self.pieces.push_back(Ahead { piece: Arc::clone(&piece), left: piece_end - tail });
            fresh.push(piece);
            tail = piece_end;
        }
        fresh
    }

    /// Length of a piece that ends a whole number of pieces from where the reader stopped.
    fn length_from(&self, tail: u64) -> u64 {
        let odd = match tail.checked_sub(self.next) {
            Some(ahead) => PIECE_UNITS_MAX - ahead % PIECE_UNITS_MAX,
            None => (self.next - tail) % PIECE_UNITS_MAX,
        };
        if odd == 0 { PIECE_UNITS_MAX } else { odd }
    }
}

/// What becomes of a read.
#[derive(Debug, Default)]
pub(crate) struct Noted {
    /// The pieces that have it.
    pub(crate) parts: Option<Vec<Part>>,
    /// Pieces that are to be read now.
    pub(crate) fresh: Vec<Arc<Piece>>,
}

/// See the module. The one of last first.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    known: Vec<Stream>,
}

impl Streams {
    /// Takes note of a read. `end_of_run` is where the units end that are there from one on.
    pub(crate) fn note(&mut self, units: &Range<u64>, end_of_run: impl Fn(u64) -> u64) -> Noted {
        if units.end.saturating_sub(units.start) < READ_UNITS_MIN {
            return Noted::default();
        }
        let is_near = |known: &Stream| known.next.abs_diff(units.start) <= NEAR_UNITS;
        let Some(place) = self.known.iter().position(is_near) else {
            self.known.truncate(STREAMS_MAX - 1);
            self.known.insert(0, Stream { next: units.end, ..Stream::default() });
            return Noted::default();
        };
        let mut stream = self.known.remove(place);
        stream.next = stream.next.max(units.end);
        stream.goes_on = true;
        let mut noted = Noted::default();
        if !stream.pieces.is_empty() {
            noted.fresh = stream.extend(units.end, end_of_run);
            noted.parts = stream.take(units);
            stream.depth = (stream.depth * 2).min(AHEAD_MAX);
        }
        self.known.insert(0, stream);
        noted
    }

    /// A read was not in memory: it is read now, and if its reader goes on, what comes next.
    pub(crate) fn begin(&mut self, units: &Range<u64>, end_of_run: impl Fn(u64) -> u64) -> Noted {
        let piece = Arc::new(Piece::new(units.clone()));
        let mut fresh = vec![Arc::clone(&piece)];
        let is_same = |known: &&mut Stream| {
            known.goes_on && known.pieces.is_empty() && known.next.abs_diff(units.end) <= NEAR_UNITS
        };
        if let Some(stream) = self.known.iter_mut().find(is_same) {
            stream.depth = DEPTH_FIRST;
            fresh.extend(stream.extend(0, end_of_run));
        }
        Noted { parts: Some(vec![Part { piece, units: units.clone() }]), fresh }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAR: u64 = 1 << 40;

    /// Reads of a reader who finds nothing in memory. Returns how each was served: by a piece that
    /// was there before, or not; and all pieces in the order in which they were asked for.
    fn read(streams: &mut Streams, reads: &[Range<u64>], end: u64) -> (Vec<bool>, Vec<Range<u64>>) {
        let (mut served, mut asked) = (Vec::new(), Vec::new());
        for units in reads {
            let mut noted = streams.note(units, |_| end);
            served.push(noted.parts.is_some());
            asked.extend(noted.fresh.iter().map(|piece| piece.units.clone()));
            if noted.parts.is_none() {
                noted = streams.begin(units, |_| end);
                asked.extend(noted.fresh.iter().map(|piece| piece.units.clone()));
            }
            let parts = noted.parts.expect("in pieces");
            assert_eq!(
                (parts[0].units.start, parts[parts.len() - 1].units.end),
                (units.start, units.end)
            );
            assert!(parts.windows(2).all(|pair| pair[0].units.end == pair[1].units.start));
            let within = |part: &Part| {
                part.piece.units.start <= part.units.start && part.units.end <= part.piece.units.end
            };
            assert!(parts.iter().all(within));
        }
        (served, asked)
    }

    fn one_by_one(count: u64, length: u64) -> Vec<Range<u64>> {
        (0..count).map(|at| at * length..(at + 1) * length).collect()
    }

    #[test]
    fn who_reads_on_is_served_from_pieces_and_each_unit_is_read_once() {
        let (served, asked) = read(&mut Streams::default(), &one_by_one(100, 128), FAR);
        assert_eq!(served.iter().filter(|is_served| !**is_served).count(), 2, "{served:?}");
        assert!(asked.windows(2).all(|pair| pair[0].end == pair[1].start), "{asked:?}");
        assert!(asked.len() <= 100 + AHEAD_MAX, "{}", asked.len());
    }

    #[test]
    fn pieces_end_where_reads_do_once_those_have_their_length() {
        let mut reads = vec![0..16, 16..32, 32..64, 64..128, 128..240];
        reads.extend((0..40).map(|at| 240 + at * 128..368 + at * 128));
        let (_, asked) = read(&mut Streams::default(), &reads, FAR);
        assert!(asked[asked.len() - 10..].iter().all(|it| it.start % 128 == 112), "{asked:?}");
    }

    #[test]
    fn threads_that_bring_reads_in_another_order_are_one_reader() {
        let order = [0u64, 2, 1, 4, 5, 3, 7, 6, 8, 9, 13, 12, 11, 10, 14];
        let reads: Vec<Range<u64>> = order.iter().map(|at| at * 128..at * 128 + 128).collect();
        let mut streams = Streams::default();
        let (served, _) = read(&mut streams, &reads, FAR);
        assert_eq!(streams.known.len(), 1);
        assert!(served[4..].iter().all(|is_served| *is_served), "{served:?}");
    }

    #[test]
    fn nothing_is_read_ahead_of_what_is_missing_and_little_for_who_begins() {
        let (_, asked) = read(&mut Streams::default(), &one_by_one(3, 128), 384);
        assert_eq!(asked.iter().map(|it| it.end).max(), Some(384));
        let (_, asked) = read(&mut Streams::default(), &one_by_one(1, 128), FAR);
        assert_eq!(asked, one_by_one(1, 128));
    }

    #[test]
    fn reads_here_and_there_bring_nothing_else() {
        let mut streams = Streams::default();
        for at in [70_000u64, 3, 900_000, 20_000, 5_000, 400_000, 100_000] {
            let (served, asked) = read(&mut streams, &[at..at + 1, at..at + 16], FAR);
            assert_eq!((served, asked), (vec![false; 2], vec![at..at + 1, at..at + 16]));
        }
        assert_eq!(streams.known.len(), STREAMS_MAX);
    }
}
