//! Why traffic cannot be made.

use byname_face::FaceError;
use byname_io::IoError;
use byname_packet::Name;

/// A failure of the generator; what happens to single packets is counted instead.
#[derive(Debug, thiserror::Error)]
pub enum TrafficError {
    /// Nothing to ask for, or no weight.
    #[error("a mix needs at least one part of weight 1 or more")]
    NoPattern,
    /// A range of no numbers.
    #[error("a range of no numbers")]
    EmptyRange,
    /// Random numbers need a range.
    #[error("random numbers need a range")]
    EndlessRange,
    /// Zipf's exponent must be positive.
    #[error("{0} is no exponent for Zipf's law; it must be above 0")]
    BadExponent(f64),
    /// Content of that length does not fit a packet.
    #[error("content of {shortest} to {longest} octets: at most {max} fit a packet")]
    BadSize {
        /// Shortest.
        shortest: usize,
        /// Longest.
        longest: usize,
        /// The limit.
        max: usize,
    },
    /// No Interests at a time, or too many.
    #[error("{wanted} Interests at a time: 1 to {max} are possible")]
    BadWindow {
        /// The value wanted.
        wanted: usize,
        /// The limit.
        max: usize,
    },
    /// A rate that is none.
    #[error("{0} Interests per second is not a rate")]
    BadRate(f64),
    /// Fewer numbers than Interests at a time: the same name would be asked for twice at once.
    #[error("a range of {range} numbers is too small for {window} Interests at a time")]
    RangeBelowWindow {
        /// Numbers.
        range: u64,
        /// Interests at a time.
        window: usize,
    },
    /// Segment numbers of constant width begin at 2^32.
    #[error("segment numbers must begin at 4294967296 or above, so that all have eight octets")]
    SegmentTooLow,
    /// An Interest that fits no packet.
    #[error("the prefix {prefix} is too long")]
    PrefixTooLong {
        /// The prefix.
        prefix: Name,
    },
    /// The connection failed.
    #[error(transparent)]
    Io(#[from] IoError),
    /// A timer could not be made or set.
    #[error("timer: {0}")]
    Timer(#[source] std::io::Error),
    /// The forwarder closed the connection.
    #[error("the forwarder closed the connection")]
    Closed,
    /// The routes could not be registered.
    #[error(transparent)]
    Register(#[from] FaceError),
}
