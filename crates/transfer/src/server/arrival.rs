//! Interests as they arrive, and the time of it.

use byname_packet::Interest;

use super::ops::FaceId;

/// Both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// Monotonic nanoseconds since an arbitrary epoch.
    pub now_ns: u64,
    /// Nanoseconds since the Unix epoch.
    pub unix_ns: u64,
}

/// An Interest with its link header.
#[derive(Debug, Clone, Copy)]
pub struct Arrival<'a> {
    /// The Interest.
    pub interest: &'a Interest<'a>,
    /// Token to be returned with the answer.
    pub pit_token: Option<&'a [u8]>,
    /// Congestion mark to be returned with the answer.
    pub congestion_mark: Option<u64>,
    /// Whom it came from.
    pub face: FaceId,
}
