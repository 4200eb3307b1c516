//! Violations by a peer of the memif protocol, or of our limits.

use std::io;

/// Why a memif connection could not be made, or is of no further use.
#[derive(Debug, thiserror::Error)]
pub enum MemifError {
    /// A control message of another length than 128 octets.
    #[error("a control message of {bytes} octets instead of 128")]
    MessageBytes {
        /// Its length, as far as it was read.
        bytes: usize,
    },
    /// A control message of a type that version 2 does not have.
    #[error("unknown control message {kind}")]
    UnknownMessage {
        /// The type on the wire.
        kind: u16,
    },
    /// A control message that does not belong there.
    #[error("unexpected control message {message}")]
    UnexpectedMessage {
        /// Its name.
        message: &'static str,
    },
    /// More control messages than any handshake needs.
    #[error("more than {max} control messages in one handshake")]
    TooManyMessages {
        /// The limit.
        max: usize,
    },
    /// A control message with too few or too many file descriptors.
    #[error("{message} came with {count} file descriptors instead of {wanted}")]
    Descriptors {
        /// The message.
        message: &'static str,
        /// Number of descriptors received.
        count: usize,
        /// Number that the message requires.
        wanted: usize,
    },
    /// The peer speaks other versions only.
    #[error("the peer speaks memif {min:#06x} to {max:#06x}, this is 0x0200")]
    Version {
        /// The lowest it speaks.
        min: u16,
        /// The highest.
        max: u16,
    },
    /// An interface mode other than Ethernet.
    #[error("the peer wants interface mode {mode}, only 0 (Ethernet) is supported")]
    Mode {
        /// The mode on the wire.
        mode: u8,
    },
    /// A memory region that cannot be accepted.
    #[error("memory region {index} refused: {reason}")]
    Region {
        /// Its number.
        index: u16,
        /// Why.
        reason: RegionRefusal,
    },
    /// A ring that cannot be accepted.
    #[error("ring {index} refused: {reason}")]
    Ring {
        /// Its number.
        index: u16,
        /// Why.
        reason: RingRefusal,
    },
    /// CONNECT before both rings were there.
    #[error("the peer connected without a ring in each direction")]
    MissingRing,
    /// A descriptor that points outside of its region.
    #[error("descriptor {slot} is out of bounds: region {region}, offset {offset}, {bytes} bytes")]
    Descriptor {
        /// Where it is in its ring.
        slot: u16,
        /// The region it names.
        region: u16,
        /// The offset it names.
        offset: u32,
        /// The length it names.
        bytes: u32,
    },
    /// A ring index that moved back, or further than it was let.
    #[error("a ring index moved by {moved} where 0 to {at_most} were possible ({slots} slots)")]
    IndexJump {
        /// Slots moved since the last read; negative when back is nearer than forward.
        moved: i16,
        /// Slots it may have moved at most.
        at_most: u16,
        /// Slots of the ring.
        slots: u16,
    },
    /// The peer refused or ended the connection, with its words.
    #[error("the peer disconnected: {reason}")]
    Refused {
        /// Reason given by the peer.
        reason: String,
    },
    /// The peer closed its control socket.
    #[error("the peer is gone")]
    Gone,
    /// The handshake took too long.
    #[error("the handshake was not finished in time")]
    TimedOut,
    /// The kernel refused something.
    #[error("{operation}: {source}")]
    Failed {
        /// The system call.
        operation: &'static str,
        /// Error returned by the kernel.
        source: io::Error,
    },
}

/// Why a memory region was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RegionRefusal {
    /// Numbers must be 0, 1, 2, ….
    #[error("its number is not the next, or too large")]
    Index,
    /// Empty, too large, or larger than the file behind it.
    #[error("{bytes} bytes announced, {file_bytes} there, {max} allowed")]
    Size {
        /// Size announced by the peer.
        bytes: u64,
        /// Size of the file behind the region.
        file_bytes: u64,
        /// The limit.
        max: u64,
    },
    /// More memory of a stranger than we map.
    #[error("together with the others it is more than a stranger may have")]
    TooMuch,
    /// A stranger's memory could shrink under us, which would end this process.
    #[error("not sealed against shrinking (F_SEAL_SHRINK), of neither our user nor root")]
    NotSealed,
}

/// Why a ring was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RingRefusal {
    /// One ring for each direction is enough.
    #[error("there is one ring for each direction, number 0")]
    Index,
    /// The ring is there already.
    #[error("it was added before")]
    Twice,
    /// Too small or too large.
    #[error("2^{log2} slots, 2^1 to 2^14 are supported")]
    Size {
        /// The logarithm of the number of slots.
        log2: u8,
    },
    /// Not within its region, or not aligned.
    #[error("it does not lie within its region, or not at a multiple of 8")]
    Place,
    /// Its first word is not the protocol's cookie.
    #[error("wrong cookie {found:#x}")]
    Cookie {
        /// Word read in its place.
        found: u32,
    },
    /// A private header before each packet, which no NDN software uses.
    #[error("private headers are not supported")]
    PrivateHeader,
    /// The descriptor received with it cannot be waited for, or is no eventfd.
    #[error("its descriptor is no eventfd")]
    NotAnEventfd,
}

impl MemifError {
    pub(super) fn failed(operation: &'static str) -> impl Fn(rustix::io::Errno) -> Self {
        move |errno| MemifError::Failed { operation, source: errno.into() }
    }
}
