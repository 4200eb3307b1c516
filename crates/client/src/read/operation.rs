//! One call of a reader: its ranges, the buffers they go to, and how far it has come.

use std::ops::Range;

use byname_io::loan::Loan;

use crate::engine::completion::Reply;
use crate::error::{ClientError, Limit};

/// Ranges in one call.
pub const RANGES_MAX: usize = 65_536;

/// Bytes of a file, read into a buffer of the engine's caller.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RangesRead {
    /// The buffer that was given, range after range, each at the place it has if all are full.
    /// Empty if the bytes went to borrowed buffers.
    pub buffer: Vec<u8>,
    /// Bytes per range, in the order of the call; fewer than asked only where the file ends.
    pub filled: Vec<usize>,
}

/// Where the bytes go.
#[derive(Debug)]
pub(crate) enum Destination {
    /// To this vector, in which each range begins at its place in `starts`.
    Owned { buffer: Vec<u8>, starts: Vec<usize> },
    /// To the buffers of the caller, one for each range.
    Lent(Loan),
}

impl Destination {
    fn put(&mut self, index: usize, at: usize, bytes: &[u8]) {
        // Ranges were made from the lengths of the buffers, so there is room.
        match self {
            Destination::Owned { buffer, starts } => {
                let start = starts[index] + at;
                if let Some(target) = buffer.get_mut(start..start + bytes.len()) {
                    target.copy_from_slice(bytes);
                }
            }
            Destination::Lent(loan) => loan.put(index, at, bytes),
        }
    }
}

/// Ranges of one call, and room for them.
#[derive(Debug)]
pub(crate) struct ReadRequest {
    pub(crate) ranges: Vec<Range<u64>>,
    pub(crate) destination: Destination,
}

impl ReadRequest {
    /// Fills the whole buffer.
    pub(crate) fn filling(buffer: Vec<u8>, offset: u64) -> Self {
        let range = span(offset, buffer.len());
        let destination = Destination::Owned { buffer, starts: vec![0] };
        ReadRequest { ranges: vec![range], destination }
    }

    /// One `(offset, length)` behind the other, in a buffer that is made large enough.
    pub(crate) fn owned(mut buffer: Vec<u8>, ranges: &[(u64, usize)]) -> Result<Self, ClientError> {
        check_count(ranges.len())?;
        let mut end = 0usize;
        let starts = ranges.iter().map(|(_, length)| {
            let start = end;
            end = end.saturating_add(*length);
            start
        });
        let starts: Vec<usize> = starts.collect();
        buffer.clear();
        buffer.resize(end, 0);
        let ranges = ranges.iter().map(|(offset, length)| span(*offset, *length)).collect();
        Ok(ReadRequest { ranges, destination: Destination::Owned { buffer, starts } })
    }

    /// Each range to one of the borrowed buffers, which have these lengths.
    pub(crate) fn lent(loan: Loan, ranges: &[(u64, usize)]) -> Self {
        let ranges = ranges.iter().map(|(offset, length)| span(*offset, *length)).collect();
        ReadRequest { ranges, destination: Destination::Lent(loan) }
    }
}

fn span(offset: u64, length: usize) -> Range<u64> {
    offset..offset.saturating_add(length as u64)
}

/// Refuses calls of too many ranges.
pub(crate) fn check_count(count: usize) -> Result<(), ClientError> {
    if count > RANGES_MAX {
        return Err(ClientError::TooMany { what: Limit::Ranges, max: RANGES_MAX });
    }
    Ok(())
}

#[derive(Debug)]
struct Piece {
    start: u64,
    end: u64,
    index: usize,
    filled: usize,
}

/// Some ranges of a call, as places in the sorted list; a superset that the bytes are held
/// against when they come.
pub(crate) type Places = Range<usize>;

/// A call that is being worked on.
pub(crate) struct Operation {
    /// Ascending by start; empty ones are left out.
    pieces: Vec<Piece>,
    range_count: usize,
    asked_bytes: u64,
    destination: Destination,
    pub(crate) reply: Reply<RangesRead>,
    missing_bytes: u64,
    /// The next granule to look at, `None` when all were.
    next: Option<u64>,
    places: Places,
    /// Largest end among the pieces before `places.end`.
    reach: u64,
}

impl Operation {
    /// Ranges are cut at `size` if it is known.
    pub(crate) fn new(request: ReadRequest, size: Option<u64>, reply: Reply<RangesRead>) -> Self {
        let end_max = size.unwrap_or(u64::MAX);
        let range_count = request.ranges.len();
        let ranges = request.ranges.into_iter().enumerate();
        let pieces = ranges.map(|(index, range)| {
            let end = range.end.min(end_max);
            Piece { start: range.start, end, index, filled: 0 }
        });
        let mut pieces: Vec<Piece> = pieces.filter(|piece| piece.start < piece.end).collect();
        pieces.sort_by_key(|piece| piece.start);
        let missing_bytes = pieces.iter().map(|piece| piece.end - piece.start).sum();
        let destination = request.destination;
        let (next, places, reach) = (Some(0), 0..0, 0);
        let mut made = Operation {
            pieces,
            range_count,
            asked_bytes: missing_bytes,
            destination,
            reply,
            missing_bytes,
            next,
            places,
            reach,
        };
        if made.pieces.is_empty() {
            made.next = None;
        }
        made
    }

    /// Count of its ranges.
    pub(crate) fn range_count(&self) -> usize {
        self.range_count
    }

    /// Bytes that it asked for and that the file has.
    pub(crate) fn asked_bytes(&self) -> u64 {
        self.asked_bytes
    }

    /// Bytes that are still to come.
    pub(crate) fn missing_bytes(&self) -> u64 {
        self.missing_bytes
    }

    /// The ranges, ascending.
    pub(crate) fn ranges(&self) -> Vec<Range<u64>> {
        self.pieces.iter().map(|piece| piece.start..piece.end).collect()
    }

    /// True when every byte has come.
    pub(crate) fn is_complete(&self) -> bool {
        self.missing_bytes == 0
    }

    /// True if [`next_granule`](Operation::next_granule) has more.
    pub(crate) fn has_next(&self) -> bool {
        self.next.is_some()
    }

    /// The next granule that holds a byte of a range, ascending and each once.
    pub(crate) fn next_granule(&mut self, granule_bytes: u64) -> Option<(u64, Places)> {
        let wanted = self.next?;
        let first = self.pieces.first()?.start / granule_bytes;
        let granule = wanted.max(first);
        let start = granule.saturating_mul(granule_bytes);
        let end = start.saturating_add(granule_bytes);
        while let Some(piece) = self.pieces.get(self.places.end).filter(|it| it.start < end) {
            self.reach = self.reach.max(piece.end);
            self.places.end += 1;
        }
        while self.places.start < self.places.end && self.pieces[self.places.start].end <= start {
            self.places.start += 1;
        }
        self.next = if self.reach > end {
            Some(granule + 1)
        } else {
            self.pieces.get(self.places.end).map(|piece| piece.start / granule_bytes)
        };
        Some((granule, self.places.clone()))
    }

    /// All ranges, for bytes that come unasked.
    pub(crate) fn all_places(&self) -> Places {
        0..self.pieces.len()
    }

    /// Copies what of `bytes` belongs to the ranges at these places; returns how much that was.
    pub(crate) fn take(&mut self, places: &Places, offset: u64, bytes: &[u8]) -> u64 {
        let bytes_end = offset + bytes.len() as u64;
        let mut taken = 0;
        for piece in &mut self.pieces[places.clone()] {
            let (start, end) = (piece.start.max(offset), piece.end.min(bytes_end));
            if start >= end {
                continue;
            }
            let part = &bytes[(start - offset) as usize..(end - offset) as usize];
            self.destination.put(piece.index, (start - piece.start) as usize, part);
            piece.filled += part.len();
            taken += part.len() as u64;
        }
        self.missing_bytes = self.missing_bytes.saturating_sub(taken);
        taken
    }

    /// Answers the caller, who may have lost interest.
    pub(crate) fn finish(self) {
        let mut filled = vec![0; self.range_count];
        for piece in &self.pieces {
            filled[piece.index] = piece.filled;
        }
        let buffer = match self.destination {
            Destination::Owned { buffer, .. } => buffer,
            Destination::Lent(loan) => {
                drop(loan);
                Vec::new()
            }
        };
        self.reply.send(Ok(RangesRead { buffer, filled }));
    }
}
