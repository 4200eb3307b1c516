//! Options of a link.

/// Longest frame in datagrams on a path of which nothing is known: it passes most tunnels.
pub const CAUTIOUS_MTU_BYTES: usize = 1420;

/// Options of a link beyond framing; both ends decide for themselves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkOptions {
    /// Lost frames are sent again, and what comes is acknowledged. Useful only if the peer does the
    /// same.
    pub reliability: bool,
    /// Longest frame, if it shall be shorter than the link allows.
    pub mtu_bytes: Option<usize>,
}
