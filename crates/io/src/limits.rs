//! The named maxima of a connection or datagram socket.

/// An NDN packet is at most 8800 octets; the rest is room for what a link layer puts around it.
pub const FRAME_BYTES_MAX: usize = 8800 + 416;

/// Bytes that may wait for the kernel to take them, per connection.
pub const SEND_BYTES_MAX: usize = 4 << 20;

/// Bytes read from a stream in one go; a receive buffer is this plus one whole frame.
pub const RECV_BYTES: usize = 256 << 10;

/// The same to begin with, and while memory is short.
pub const RECV_BYTES_MIN: usize = 16 << 10;

/// System calls that read in one `recv_burst`; a busy peer then waits for the others' turn.
pub const READS_PER_BURST_MAX: usize = 4;

/// Messages handed to or taken from the kernel in one system call.
pub const DATAGRAM_BATCH: usize = 64;

/// The same, of messages that may be many datagrams at once: each needs 64 KiB of room.
pub const COALESCED_SLOTS: usize = 16;

/// Bytes of datagrams after which a `recv_burst` reads no more.
pub const RECV_BURST_BYTES: usize = 1 << 20;

/// Bytes of datagrams (a little is counted for each of them, too) after which one `flush` sends
/// no further message: less than what is left of the longest message when no datagram of 8800
/// bytes fits any more.
pub const FLUSH_BYTES: usize = 48 << 10;

/// Size asked of the kernel for the buffers of a datagram socket (it may grant less).
pub const DATAGRAM_KERNEL_BYTES: usize = 4 << 20;

/// Bounds of one connection or datagram socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The longest frame accepted from a peer.
    pub frame_bytes_max: usize,
    /// The most bytes that wait to be sent.
    pub send_bytes_max: usize,
    /// About so many frames come in one burst at most, so that others have their turn soon however
    /// small the frames of a peer are. Shared memory has a bound of its own.
    pub burst_frames_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            frame_bytes_max: FRAME_BYTES_MAX,
            send_bytes_max: SEND_BYTES_MAX,
            burst_frames_max: usize::MAX,
        }
    }
}
