//! Reasons for which a frame makes no packet.

use byname_packet::DecodeError;
use thiserror::Error;

/// Why a frame led to no packet. None of these is the end of the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum DropReason {
    /// Not an Interest, Data or LpPacket, or a malformed one.
    #[error("malformed: {0}")]
    Malformed(#[from] DecodeError),
    /// Nothing for the network layer in it.
    #[error("an idle packet")]
    Idle,
    /// A fragment on a link that does not split packets.
    #[error("a fragment on a stream")]
    FragmentOnStream,
    /// More fragments announced than allowed.
    #[error("{count} fragments announced")]
    TooManyFragments {
        /// The number read.
        count: u64,
    },
    /// Fragments of one message disagree about their count, or lack a sequence number.
    #[error("inconsistent fragments")]
    Inconsistent,
    /// A fragment that is already there.
    #[error("a fragment came twice")]
    DuplicateFragment,
    /// A frame that came before: its acknowledgement was late or lost.
    #[error("a frame came twice")]
    DuplicateFrame,
    /// The packet is, or would become, larger than any NDN packet.
    #[error("larger than an NDN packet")]
    TooLarge,
}
