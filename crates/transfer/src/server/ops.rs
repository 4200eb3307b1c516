//! Operations that the engine asks of whoever has the files, and their completions.
//!
//! Every [`Op`] except `Close` is answered by exactly one [`Completion`] with the same [`OpId`], at
//! once or later. The engine never waits: an operation that takes long only delays its requests.
//! Segments of files do not pass through here, see [`super::SegmentBurst`].

use byname_packet::Name;

use crate::metadata::{Extras, Metadata};

use super::config::{FixedData, SegmentSigner};
use super::state::{FileStat, FileState, Recalled, Record, RecordKey};
use super::versions::Quiet;

/// Which operation a completion belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OpId(pub u64);

/// Whom a request came from and its answer goes to, numbered by the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct FaceId(pub u64);

/// A packet to be sent, with its link header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// To whom.
    pub face: FaceId,
    /// The packet.
    pub wire: Vec<u8>,
}

/// An open file or tree, numbered by the executor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Handle(pub u64);

/// An operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// Resolve a path beneath a mount and open it if it is a regular file.
    Locate {
        /// Which mount.
        mount: usize,
        /// Relative path; empty for the mount itself.
        path: Vec<u8>,
    },
    /// Read a directory whole.
    List {
        /// Which mount.
        mount: usize,
        /// Relative path.
        path: Vec<u8>,
        /// The largest payload wanted.
        bytes_max: usize,
    },
    /// Read a directory whole and describe its entries: a [`crate::manifest`]. Answered by
    /// `Listed`; versions that its entries got are durable by then.
    Manifest {
        /// Which mount.
        mount: usize,
        /// Relative path.
        path: Vec<u8>,
        /// Published name of the directory.
        name: Name,
        /// The largest payload wanted.
        bytes_max: usize,
        /// When a file may get a version.
        quiet: Quiet,
        /// Room that packets keep for a signature; what is left decides about segment sizes.
        signature_bytes: usize,
    },
    /// Read what was kept with a copy, see [`crate::copies`]. Answered by `Kept`.
    ReadKept {
        /// Which mount.
        mount: usize,
        /// Relative path of the directory, or of the file.
        path: Vec<u8>,
        /// Which part.
        of: KeptOf,
        /// The most octets wanted.
        bytes_max: usize,
    },
    /// Look up what was announced.
    Recall {
        /// Under which name.
        key: RecordKey,
        /// Whose root is wanted.
        state: Option<FileState>,
    },
    /// Make a record durable. The version is announced only after that.
    Announce {
        /// Under which name.
        key: RecordKey,
        /// The record.
        record: Record,
    },
    /// Compute the root of an open file and keep it and the tree.
    Hash {
        /// The file.
        file: Handle,
        /// Its state; another before or after hashing means that it changed.
        state: FileState,
    },
    /// Open the tree of a file whose root was computed.
    OpenTree {
        /// The open file.
        file: Handle,
        /// Its state.
        state: FileState,
    },
    /// Read, or compute, and sign a segment, see [`super::sign_segment`].
    SignSegment(SignSegment),
    /// Forget a handle. Not answered.
    Close {
        /// Which.
        handle: Handle,
    },
}

/// A segment to be read, or computed, and signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignSegment {
    /// The open file or tree.
    pub source: Handle,
    /// State of the file; another before or after reading means that it changed.
    pub state: FileState,
    /// Its content.
    pub octets: Octets,
    /// TLV-VALUE of the packet's name.
    pub name: Vec<u8>,
    /// Number of the object's last segment.
    pub last_segment: u64,
    /// Signs it.
    pub signer: SegmentSigner,
}

/// Content of a segment that is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Octets {
    /// Octets of the source as they are.
    Stored {
        /// From where.
        offset: u64,
        /// Number of octets.
        len: usize,
    },
    /// Values of level 1 of the source's tree, computed.
    Values {
        /// Where they lie in the level.
        offset: u64,
        /// Number of octets.
        len: usize,
    },
}

/// Result of signing a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignedSegment {
    /// The Data packet, without link header.
    Packet(Vec<u8>),
    /// The file is no longer in the state in which it was opened.
    Changed,
    /// Reading or signing failed.
    Failed,
}

/// Place of a copy's packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptOf {
    /// This open file.
    File(Handle),
    /// The directory at the path: its listing.
    Listing,
    /// The directory at the path: its manifest.
    Manifest,
}

/// Packets that were kept with a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptObject {
    /// The packet that describes it.
    pub packet: Vec<u8>,
    /// The certificates that came with it.
    pub certificates: Vec<Vec<u8>>,
    /// Of a directory: the payload that was kept, and the state of the local directory.
    pub listing: Option<Listing>,
}

/// Result of an operation.
#[derive(Debug)]
pub enum Completion {
    /// Of `Locate`.
    Located(Located),
    /// Of `List`.
    Listed(Result<Listing, ListFailure>),
    /// Of `ReadKept`: nothing if nothing was kept, or it cannot be read.
    Kept(Option<KeptObject>),
    /// Of `Recall`.
    Recalled(Recalled),
    /// Of `Announce`: whether the record is durable.
    Announced(bool),
    /// Of `Hash`.
    Hashed(Hashed),
    /// Of `OpenTree`: nothing if the tree is not kept.
    TreeOpened(Option<Handle>),
    /// Of `SignSegment`.
    Signed(SignedSegment),
}

/// Where a path leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Located {
    /// A regular file.
    File {
        /// Its state and attributes.
        stat: FileStat,
        /// The open file.
        handle: Handle,
    },
    /// A directory.
    Directory {
        /// Its state and attributes.
        stat: FileStat,
        /// Changes of it and of its entries that were seen so far. `None` if nobody watches it.
        changes: Option<u64>,
    },
    /// A file or link that whoever located it describes whole: its content lies elsewhere
    /// (docs/protocol.md §2.1), and its versions are given out elsewhere.
    Described(Box<Metadata>),
    /// Nothing that is published.
    NotFound,
    /// Something that the server's user may not read.
    NoPermission,
    /// Reading failed for another reason.
    Failed,
    /// What would say it cannot be asked at present: nothing is answered, as if nobody were here,
    /// so that others are asked, or the same again.
    Unavailable,
}

/// A directory read whole, with the tree over its payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// Of the directory, before it was read.
    pub stat: FileStat,
    /// Changes of it and of its entries that had been seen before it was read. `None` if nobody
    /// watches it, or if what it shows depends on other directories too.
    pub changes: Option<u64>,
    /// Sorted entries, see [`crate::listing`].
    pub payload: Vec<u8>,
    /// Root of the payload.
    pub root: [u8; 32],
    /// Tree levels, level 1 first.
    pub levels: Vec<Vec<u8>>,
    /// Present if whoever read it gives versions out; otherwise the engine does, by its records.
    pub versioned: Option<Box<VersionedListing>>,
}

/// The version of a listing that whoever read it has given out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionedListing {
    /// Above that of every other payload that was read before. An equal payload keeps the version
    /// it has while its snapshot is kept.
    pub version: u64,
    /// Further elements of the directory's metadata.
    pub extras: Extras,
}

/// Why a directory could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListFailure {
    /// It is no longer there.
    NotFound,
    /// The server's user may not read it.
    NoPermission,
    /// The payload would be larger than wanted.
    TooLarge,
    /// Reading failed for another reason.
    Failed,
    /// As [`Located::Unavailable`].
    Unavailable,
}

/// Result of hashing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hashed {
    /// The root, kept in the state directory.
    Root([u8; 32]),
    /// The file changed meanwhile.
    Changed,
    /// Too many files wait for hashing.
    Busy,
    /// Reading failed.
    Failed,
}

/// Result of sending a burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentSent {
    /// They are on their way.
    Sent,
    /// The file is no longer in the state in which it was opened; nothing was sent.
    Changed,
    /// Reading failed; nothing was sent.
    Failed,
}

impl From<Vec<u8>> for FixedData {
    fn from(wire: Vec<u8>) -> Self {
        Self { wire }
    }
}
