//! Signed answers, held until the burst in which they came is there.
//!
//! Signatures of one key cost less verified together than one by one. Segments of files have no
//! signature and never wait. What finds no room is not held, and verified by itself.

use byname_packet::{Data, signature_type};

/// Answers held at most.
const COUNT_MAX: usize = 256;
/// Octets of them at most.
const BYTES_MAX: usize = 512 << 10;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Held {
    wire: Vec<u8>,
    /// Length of each, and whether it was marked as having met a queue.
    answers: Vec<(usize, bool)>,
}

impl Held {
    /// Holds a copy of a packet if it is signed and there is room. False if it is the caller's.
    pub(crate) fn take(&mut self, data: &Data<'_>, is_marked: bool) -> bool {
        let wire = data.wire();
        let is_held = data.signature_info.signature_type == signature_type::ED25519
            && self.answers.len() < COUNT_MAX
            && self.wire.len() + wire.len() <= BYTES_MAX;
        if is_held {
            self.wire.extend_from_slice(wire);
            self.answers.push((wire.len(), is_marked));
        }
        is_held
    }

    /// The answers in the order in which they came.
    pub(crate) fn answers(&self) -> Vec<(Data<'_>, bool)> {
        let mut rest = &self.wire[..];
        let mut found = Vec::with_capacity(self.answers.len());
        for (length, is_marked) in &self.answers {
            let (wire, behind) = rest.split_at(*length);
            rest = behind;
            found.extend(Data::decode(wire).ok().map(|data| (data, *is_marked)));
        }
        found
    }

    /// The same memory without answers.
    pub(crate) fn emptied(mut self) -> Self {
        self.wire.clear();
        self.answers.clear();
        self
    }
}
