//! The history so far, in a number: to see that a seed gives one history.

/// Odd, with bits all over: from the golden ratio.
const DIGEST_FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

/// The history so far, in short.
#[derive(Debug, Default)]
pub(super) struct History {
    /// Frames that came out of lines.
    pub(super) frame_count: u64,
    /// The same only for equal histories.
    pub(super) digest: u64,
}

impl History {
    /// Something happened.
    pub(super) fn note(&mut self, at_ns: u64, place: u64, bytes: u64) {
        for number in [at_ns, place, bytes] {
            self.digest = (self.digest.rotate_left(23) ^ number).wrapping_mul(DIGEST_FACTOR);
        }
    }
}
