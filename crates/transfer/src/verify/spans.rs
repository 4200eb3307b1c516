//! Checking buffered spans, and letting go of nodes that have done their work.

use byname_security::tree::{FANOUT, SpanCheck, UNIT_BYTES};

use super::span_buffer::{Span, SpanBuffer};
use super::{Origin, Output, Verifier};

impl Verifier {
    /// From now on, units that come are put together with their neighbours before they are
    /// checked. The owner then calls [`settle`](Verifier::settle) whenever it has nothing better
    /// to do, at the latest when nothing more comes.
    pub fn buffer_spans(&mut self) {
        self.span_buffer.get_or_insert_default();
    }

    /// True if [`settle`](Verifier::settle) has something to do.
    pub fn has_buffered_spans(&self) -> bool {
        self.span_buffer.as_ref().is_some_and(|buffer| !buffer.is_empty())
    }

    /// Checks all buffered spans and hands out what is verified.
    pub fn settle(&mut self, out: &mut Output<'_>) {
        while let Some(span) = self.span_buffer.as_mut().and_then(SpanBuffer::take_first) {
            self.check_span(span, out);
        }
    }

    /// True if the segment is exactly one unit of an object with a tree.
    pub(super) fn is_unit(&self, segment: u64, length: usize) -> bool {
        let shape = self.tree.shape();
        self.content.segment_bytes() == UNIT_BYTES as u64
            && shape.level_count() > 0
            && shape.unit_len(segment) == Some(length)
    }

    pub(super) fn buffer_unit(&mut self, unit: u64, bytes: &[u8], out: &mut Output<'_>) {
        let is_last = unit + 1 == self.tree.shape().unit_count();
        let Some(buffer) = &mut self.span_buffer else { return };
        if let Some(span) = buffer.add(unit, self.sender, bytes, is_last) {
            self.check_span(span, out);
        }
    }

    fn check_span(&mut self, span: Span, out: &mut Output<'_>) {
        let first = span.first;
        let units = first..first + span.bytes.len().div_ceil(UNIT_BYTES) as u64;
        let is_new = !self.verified.contains_any(units.clone());
        if is_new && self.tree.check_span(first, &span.bytes) == SpanCheck::Verified {
            out(first * UNIT_BYTES as u64, &span.bytes);
            self.verified.insert_run(units);
            self.release_node(first);
        } else if is_new && self.take_whole_span(&span, out) {
            // No node was needed.
        } else {
            // Something is wrong or missing, so each unit is checked alone.
            for (unit, bytes) in units.zip(span.bytes.chunks(UNIT_BYTES)) {
                self.take_unit(unit, bytes, Origin::Network(span.sender), out);
            }
        }
        if let Some(buffer) = &mut self.span_buffer {
            buffer.recycle(span);
        }
    }

    /// Forgets the node of a unit if all that it proves is verified.
    fn release_node(&mut self, unit: u64) {
        let Some(node) = self.tree.shape().node_of_unit(unit) else { return };
        let first = node.index * FANOUT as u64;
        let end = (first + FANOUT as u64).min(self.tree.shape().unit_count());
        if self.verified.contains_all(first..end) {
            self.tree.forget_node(node);
            self.present_node = None;
        }
    }
}
