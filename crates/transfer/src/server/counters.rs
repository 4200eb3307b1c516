//! Counters of the server.

/// Counts since the start. Every refusal and every reached bound has its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Interests handled.
    pub interests: u64,
    /// Metadata packets sent.
    pub metadata: u64,
    /// Absences sent.
    pub absences: u64,
    /// Segments of files and trees handed to the executor.
    pub segments: u64,
    /// Segments of listings sent.
    pub listing_segments: u64,
    /// Certificates and other fixed packets sent.
    pub fixed: u64,
    /// Packets signed.
    pub signatures: u64,
    /// Signed packets sent again.
    pub signatures_reused: u64,
    /// Versions announced for the first time.
    pub versions: u64,
    /// Roots asked for.
    pub hashes: u64,
    /// Directories read.
    pub listings: u64,
    /// Directories read with all that a manifest says of their entries.
    pub manifests: u64,
    /// Nack: the name is no request, or of no mount.
    pub not_understood: u64,
    /// Nack: the version is not served, or has no such segment.
    pub stale: u64,
    /// Nack: a file changed under its version.
    pub changed: u64,
    /// Nack: reading failed.
    pub failed: u64,
    /// Not answered: what the answer depends on could not be asked.
    pub unavailable: u64,
    /// Nack (congestion): too many Interests wait, or the asker has more of them than are free.
    pub pending_full: u64,
    /// Nack (congestion): more signatures wanted than the asker's share in a second.
    pub signing_limited: u64,
    /// Hashing refused because too many files wait for it.
    pub hashes_full: u64,
    /// Interests whose lifetime ended before the disk answered.
    pub expired: u64,
    /// Nodes computed and signed because the root was pending.
    pub nodes_signed: u64,
    /// Such nodes sent again.
    pub nodes_reused: u64,
    /// Nack (congestion): too many such nodes are being computed.
    pub nodes_full: u64,
    /// Metadata answered with the root still pending.
    pub root_pending: u64,
    /// Absences because a file is being written.
    pub being_written: u64,
    /// Absences because a directory's list is being made.
    pub being_listed: u64,
    /// Mirror: metadata packets of publishers sent.
    pub mirror_metadata: u64,
    /// Mirror: copies hidden because size, time or root are not what their packet says.
    pub mirror_changed: u64,
    /// Mirror, Nack (no route): only the publisher's word of this moment was wanted.
    pub mirror_unfresh: u64,
    /// Mirror, Nack (no route): there is no such copy, or nothing that proves it.
    pub mirror_elsewhere: u64,
    /// Completions that belong to no operation (an error of the executor).
    pub strays: u64,
}
