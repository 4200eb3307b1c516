//! Small objects that are verified as a whole, without a node of their tree.
//!
//! Whoever takes all of an object can compute its root, and a node would only say which unit is
//! not what was signed. So none is asked for before something is wrong: then all units wait for
//! their node, as they would have from the beginning.
//!
//! Invariant: nothing of the object is handed out before all of it is, and its root is the signed
//! one.

use byname_security::tree::{Hash, NodeId, UNIT_BYTES};

use super::span_buffer::{SPAN_UNITS, Span};
use super::{Output, Verifier};

/// Octets of the largest object that is verified as a whole: what is hashed in one call, so that
/// it is kept nowhere else while it comes.
pub const WHOLE_BYTES_MAX: u64 = (SPAN_UNITS * UNIT_BYTES) as u64;

impl Verifier {
    /// The owner takes all of the object, and wants no part of it before: an object of up to
    /// [`WHOLE_BYTES_MAX`] whose root is known needs no nodes then.
    pub fn verify_whole(&mut self) {
        let shape = self.tree.shape();
        let is_small = shape.level_count() > 0 && shape.size() <= WHOLE_BYTES_MAX;
        self.is_whole = is_small && !self.is_rootless && self.verified.count() == 0;
    }

    /// A unit waits for its node: asks for that, unless all units may prove each other.
    pub(super) fn need_unless_whole(&mut self, node: NodeId, out: &mut Output<'_>) {
        if !self.is_whole {
            return self.need(node);
        }
        if (self.parked_units.len() as u64) < self.tree.shape().unit_count() {
            return;
        }
        let units = self.parked_units.values().map(|parked| &*parked.bytes);
        let bytes = units.collect::<Vec<_>>().concat();
        match self.take_whole(&bytes, out) {
            true => self.parked_units.clear(),
            false => self.need(node),
        }
    }

    /// Hands out a span that is all of the object; false if it is not, or not what was signed.
    pub(super) fn take_whole_span(&mut self, span: &Span, out: &mut Output<'_>) -> bool {
        let is_all = span.first == 0 && span.bytes.len() as u64 == self.tree.shape().size();
        self.is_whole && is_all && self.take_whole(&span.bytes, out)
    }

    /// Hands out all of the object if it is what was signed. Otherwise nodes say what is not.
    fn take_whole(&mut self, bytes: &[u8], out: &mut Output<'_>) -> bool {
        let is_signed = Hash::of(bytes) == self.tree.root();
        if is_signed {
            out(0, bytes);
            self.verified.insert_run(0..self.tree.shape().unit_count());
        }
        self.is_whole = false;
        is_signed
    }
}
