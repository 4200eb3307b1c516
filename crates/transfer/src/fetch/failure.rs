//! Reasons for which a fetch ends early, and which others give for not answering it.

/// Why a fetch ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchFailure {
    /// Nobody answers for this segment.
    Silence {
        /// The first segment that was given up.
        segment: u64,
    },
    /// A forwarder has no route, and kept saying so for
    /// [`no_route_ns`](super::FetchConfig::no_route_ns).
    NoRoute,
    /// The publisher does not serve this version, or not this segment of it.
    Gone {
        /// The refused segment.
        segment: u64,
    },
    /// The content of this segment was refused each time it came.
    Refused {
        /// The refused segment.
        segment: u64,
    },
    /// Two packets of the same version disagree about which segment is the last.
    EndMoved,
}

/// The reason given by a forwarder or server for not answering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NackKind {
    /// Ask again a little later.
    Congestion,
    /// The Nonce was seen before; ask again with another one.
    Duplicate,
    /// No route to the name.
    NoRoute,
    /// No route for who wants a fresh answer, which says nothing about older ones.
    NotFresh,
    /// Not here, but another replica may have it.
    Elsewhere,
    /// No reason given: who sent it does not serve this version, or not this segment, or knows
    /// nothing of the name.
    Gone,
}
