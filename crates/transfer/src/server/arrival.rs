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
    /// The face by which it came to the forwarder at the other end, if that was asked to say so.
    /// To be given only where the peer is believed: each such face has a share of its own.
    pub incoming_face_id: Option<u64>,
    /// Trace that goes back with the answer, where one is asked for.
    pub path_trace: Option<&'static [u8]>,
}

/// Whoever asks: a peer, or one of those that a forwarder tells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Asker {
    /// The peer.
    pub face: FaceId,
    /// The face of the forwarder at the other end.
    pub behind: Option<u64>,
}
