//! Why a name could not be read: what the client engines end with.

use byname_packet::name::escape_path_component;
use byname_packet::{DecodeError, Name};
use byname_security::key::KeyId;
use byname_security::trust::TrustError;
use thiserror::Error;

use crate::manifest::ManifestError;

/// Class of an error: what a caller can do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorClass {
    /// The same call may succeed later.
    Retryable,
    /// The same call will fail again until somebody changes something.
    Permanent,
    /// The answer is not what was signed, or by nobody who counts.
    Corrupt,
}

/// Why a name could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReadError {
    /// The publisher says that there is no such file or directory.
    #[error("{name} does not exist")]
    NotFound {
        /// Name asked for.
        name: Name,
    },
    /// The forwarder knows no route to the name.
    #[error("no route to {name}: nobody has announced this prefix to the forwarder")]
    NoRoute {
        /// Name asked for.
        name: Name,
    },
    /// Nobody answered in time.
    #[error("no answer for {name}")]
    TimeOut {
        /// Name asked for.
        name: Name,
    },
    /// The publisher no longer serves this version.
    #[error("{name} is no longer served: the file was changed or removed")]
    VersionGone {
        /// Versioned name.
        name: Name,
    },
    /// The file stays under change.
    #[error("{name} is being written; try again when its writer is done")]
    BeingWritten {
        /// Name asked for.
        name: Name,
    },
    /// The publisher does not finish the list of the directory.
    #[error("the publisher of {name} is still making its list; try again later")]
    BeingListed {
        /// Name asked for.
        name: Name,
    },
    /// The publisher does not finish computing the root.
    #[error("the publisher of {name} does not finish hashing it")]
    RootPending {
        /// Versioned name.
        name: Name,
    },
    /// The publisher's user may not read it.
    #[error("the publisher of {name} has no permission to read it")]
    NoPermission {
        /// Name asked for.
        name: Name,
    },
    /// The publisher has it but cannot serve it.
    #[error("the publisher of {name} cannot serve it: {reason}")]
    Unservable {
        /// Name asked for.
        name: Name,
        /// Why, as far as known.
        reason: ServerReason,
    },
    /// An older version than one seen before was announced.
    #[error(
        "{name}: version {got} is older than {seen}, which was seen before; an old copy is being \
         replayed, or the publisher lost its state"
    )]
    RolledBack {
        /// Name asked for.
        name: Name,
        /// The newest version seen.
        seen: u64,
        /// The version announced now.
        got: u64,
    },
    /// Only an old announcement came, and the caller wants none.
    #[error(
        "{name}: what came was signed {} s ago; its publisher does not answer, or its clock is \
         wrong",
        age_ns / 1_000_000_000
    )]
    NotFresh {
        /// Name asked for.
        name: Name,
        /// Time since it was signed.
        age_ns: u64,
    },
    /// The announcement or a certificate of its chain does not count.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// A unit of content is not what was signed.
    #[error("{name}: unit {unit} (bytes {} on) is not what was signed", unit * 8192)]
    BadUnit {
        /// Versioned name.
        name: Name,
        /// Index of the 8 KiB unit.
        unit: u64,
    },
    /// A node of the hash tree is not what was signed.
    #[error("{name}: node {node} of hash-tree level {level} is not what was signed")]
    BadNode {
        /// Versioned name.
        name: Name,
        /// Level of the tree.
        level: u8,
        /// Index of the node.
        node: u64,
    },
    /// A manifest is whole and as it was signed, and breaks a rule.
    #[error("the manifest of {name}{} is malformed: {source}", by_key(.key))]
    Manifest {
        /// Name of the directory.
        name: Name,
        /// Digest of the key that signed it; `None` if nothing was checked.
        key: Option<KeyId>,
        /// Which rule.
        source: ManifestError,
    },
    /// A packet breaks the rules of the file protocol.
    #[error("{name}: {problem}")]
    Protocol {
        /// The name concerned.
        name: Name,
        /// Which rule.
        problem: ProtocolProblem,
    },
}

/// Why a publisher cannot serve what it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ServerReason {
    /// The directory has too many entries for the publisher.
    #[error("the directory is too large to list")]
    ListingTooLarge,
    /// No content fits in a packet with this name.
    #[error("the name is too long for a packet")]
    NameTooLong,
    /// A failing disk, or a code that is not known here.
    #[error("it cannot be read there (code {code})")]
    Unreadable {
        /// The code as received.
        code: u64,
    },
}

/// Which rule of the file protocol was broken.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProtocolProblem {
    /// The announcement cannot be decoded.
    #[error("the announcement is malformed: {0}")]
    Announcement(#[from] DecodeError),
    /// The announced name belongs to something else, or has no version.
    #[error("the announcement is about {announced}")]
    OtherName {
        /// The announced name.
        announced: Name,
    },
    /// A directory where a file was asked for, or the reverse.
    #[error("it is a {}", if *.is_directory { "directory" } else { "file, not a directory" })]
    Kind {
        /// True if it is a directory.
        is_directory: bool,
    },
    /// A symbolic link where content was asked for.
    #[error("it is a symbolic link to {}, and links are not followed", shown(.target))]
    Link {
        /// The path it leads to.
        target: Vec<u8>,
    },
    /// The announced root comes without size or segment size.
    #[error("the announcement has a root but no size and segment size")]
    Incomplete,
    /// The announced segment size cannot be used.
    #[error("segments of {bytes} bytes cannot be verified")]
    SegmentSize {
        /// The announced size.
        bytes: u64,
    },
    /// A segment has a length that does not fit the announcement.
    #[error("segment {segment} has a wrong length")]
    SegmentLength {
        /// The segment.
        segment: u64,
    },
    /// Two segments disagree about which is the last.
    #[error("the publisher contradicts itself about the last segment")]
    EndMoved,
    /// A listing breaks off within an entry.
    #[error("the listing is malformed")]
    Listing,
}

fn by_key(key: &Option<KeyId>) -> String {
    key.map_or_else(String::new, |key| format!(" by key {key}"))
}

/// Octets of a peer, so that they do no harm to a terminal.
fn shown(octets: &[u8]) -> String {
    let mut out = String::new();
    for (index, part) in octets.split(|octet| *octet == b'/').enumerate() {
        if index > 0 {
            out.push('/');
        }
        escape_path_component(part, &mut out);
    }
    out
}

impl ReadError {
    /// The class: what a caller can do about it.
    pub fn class(&self) -> ErrorClass {
        match self {
            ReadError::NoRoute { .. }
            | ReadError::TimeOut { .. }
            | ReadError::NotFresh { .. }
            | ReadError::VersionGone { .. }
            | ReadError::BeingWritten { .. }
            | ReadError::BeingListed { .. }
            | ReadError::RootPending { .. } => ErrorClass::Retryable,
            ReadError::NotFound { .. }
            | ReadError::NoPermission { .. }
            | ReadError::Unservable { .. }
            | ReadError::Manifest { .. }
            | ReadError::Protocol { .. } => ErrorClass::Permanent,
            ReadError::Trust(TrustError::NoCertificate { .. }) => ErrorClass::Retryable,
            ReadError::Trust(error) if error.is_unknown_key() => ErrorClass::Permanent,
            ReadError::Trust(_)
            | ReadError::RolledBack { .. }
            | ReadError::BadUnit { .. }
            | ReadError::BadNode { .. } => ErrorClass::Corrupt,
        }
    }
}
