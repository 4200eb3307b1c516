//! Result of receiving.

/// Result of one `recv_burst`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecvStatus {
    /// Frames handed to the callback.
    pub frames: usize,
    /// The peer has closed (streams only); nothing more will come.
    pub closed: bool,
    /// The kernel had no more at that moment. If not set, call again before waiting, or let the
    /// level-triggered poller report the rest.
    pub drained: bool,
    /// Bytes of an unfinished frame when the peer closed; not zero means it was cut off.
    pub partial_bytes: usize,
    /// Datagrams dropped: longer than the limit, or not exactly one frame.
    pub dropped: usize,
    /// Times the network said that a datagram sent before could not be delivered.
    pub unreachable: usize,
}
