//! Units that came one after the other, laid side by side until they are checked.
//!
//! BLAKE3 is faster the more neighbouring chunks it gets in one call, and so is a disk. Packets
//! hold one unit each and lie apart in memory, but they mostly come in order. So each is copied
//! behind its neighbour, which costs a tenth of what that saves, and what has come together is
//! checked and handed out as one piece.
//!
//! Invariants: a span never crosses a multiple of [`SPAN_UNITS`], so it lies under one node and is
//! made of few aligned runs; at most [`SPANS_MAX`] are open, and the oldest makes room.

use byname_security::tree::{RUN_UNITS_MAX, UNIT_BYTES};

/// Units of a span: what is hashed in one call.
pub const SPAN_UNITS: usize = RUN_UNITS_MAX;
/// Spans open at the same time, for segments that come from several places or out of order.
pub const SPANS_MAX: usize = 4;

const SPAN: u64 = SPAN_UNITS as u64;

/// Neighbouring units.
#[derive(Debug)]
pub(super) struct Span {
    pub(super) first: u64,
    /// The source that sent it.
    pub(super) sender: usize,
    pub(super) bytes: Vec<u8>,
}

impl Span {
    /// The unit that would come next, unless it belongs to another span.
    fn end(&self) -> u64 {
        self.first + self.bytes.len().div_ceil(UNIT_BYTES) as u64
    }

    fn is_continued_by(&self, unit: u64, sender: usize) -> bool {
        self.end() == unit && !unit.is_multiple_of(SPAN) && self.sender == sender
    }
}

/// The open spans, in the order of their beginning.
#[derive(Debug, Default)]
pub(super) struct SpanBuffer {
    spans: Vec<Span>,
    /// Memory of spans that were checked.
    spare: Vec<Vec<u8>>,
}

impl SpanBuffer {
    pub(super) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Copies a unit to its neighbours. Returns what must be checked now: a span that is full, or
    /// one too many. `is_last` if no unit of the file follows.
    pub(super) fn add(
        &mut self,
        unit: u64,
        sender: usize,
        bytes: &[u8],
        is_last: bool,
    ) -> Option<Span> {
        let is_end = is_last || (unit + 1).is_multiple_of(SPAN);
        let found = self.spans.iter().position(|span| span.is_continued_by(unit, sender));
        let place = found.unwrap_or_else(|| {
            let room = self.spare.pop().unwrap_or_default();
            self.spans.push(Span { first: unit, sender, bytes: room });
            self.spans.len() - 1
        });
        self.spans[place].bytes.extend_from_slice(bytes);
        if is_end {
            return Some(self.spans.remove(place));
        }
        (self.spans.len() > SPANS_MAX).then(|| self.spans.remove(0))
    }

    /// The oldest span, full or not.
    pub(super) fn take_first(&mut self) -> Option<Span> {
        (!self.spans.is_empty()).then(|| self.spans.remove(0))
    }

    /// Gives back the memory of a span.
    pub(super) fn recycle(&mut self, mut span: Span) {
        if self.spare.len() < SPANS_MAX {
            span.bytes.clear();
            self.spare.push(span.bytes);
        }
    }

    pub(super) fn clear(&mut self) {
        self.spans.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(fill: u8) -> Vec<u8> {
        vec![fill; UNIT_BYTES]
    }

    #[test]
    fn neighbours_become_one_span_that_ends_where_a_run_can_end() {
        let mut buffer = SpanBuffer::default();
        for index in 10..15 {
            assert!(buffer.add(index, 0, &unit(index as u8), false).is_none());
        }
        let span = buffer.add(15, 0, &unit(15), false).expect("a multiple of the span");
        assert_eq!((span.first, span.bytes.len()), (10, 6 * UNIT_BYTES));
        assert_eq!(span.bytes[5 * UNIT_BYTES], 15);
        buffer.recycle(span);
        assert!(buffer.add(16, 0, &unit(16), false).is_none());
        let span = buffer.add(17, 0, &[1; 100], true).expect("the end of the file");
        assert_eq!((span.first, span.bytes.len()), (16, UNIT_BYTES + 100));
        assert!(buffer.is_empty());
    }

    #[test]
    fn what_two_sources_sent_is_not_put_together() {
        let mut buffer = SpanBuffer::default();
        assert!(buffer.add(10, 0, &unit(0), false).is_none());
        assert!(buffer.add(11, 1, &unit(1), false).is_none());
        let spans = [buffer.take_first(), buffer.take_first()].map(Option::unwrap);
        assert_eq!(spans.map(|span| (span.first, span.sender)), [(10, 0), (11, 1)]);
    }

    #[test]
    fn units_from_several_places_have_spans_of_their_own_up_to_a_bound() {
        let mut buffer = SpanBuffer::default();
        for round in 0..3 {
            for lane in 0..SPANS_MAX as u64 {
                assert!(buffer.add(lane * 100 + round, 0, &unit(0), false).is_none());
            }
        }
        let oldest = buffer.add(1000, 0, &unit(0), false).expect("one too many");
        assert_eq!((oldest.first, oldest.bytes.len()), (0, 3 * UNIT_BYTES));
        assert_eq!(buffer.take_first().map(|span| span.first), Some(100));
    }

    #[test]
    fn memory_of_checked_spans_is_used_again_up_to_a_bound() {
        let mut buffer = SpanBuffer::default();
        for _ in 0..=SPANS_MAX {
            buffer.recycle(Span { first: 0, sender: 0, bytes: unit(9) });
        }
        assert_eq!(buffer.spare.len(), SPANS_MAX);
        let span = buffer.add(7, 0, &unit(1), true).expect("the end of the file");
        assert_eq!((span.bytes, buffer.spare.len()), (unit(1), SPANS_MAX - 1));
    }
}
