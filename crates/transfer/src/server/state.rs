//! States of files as back-ends give them, and the records kept of them.
//!
//! The engine compares fingerprints and hands them back; what they are made of is the back-end's
//! business.

use std::fmt;

use crate::attributes::Checksums;

/// Name of one state of a file, found without reading it. Opaque: a value of the back-end,
/// compared by everybody else.
///
/// The first 16 octets name the object and stay the same for all its states, so that what is kept
/// of an older state can be replaced; the others tell the states apart. Two equal fingerprints mean
/// equal content, as far as the back-end can tell without reading.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; Self::BYTES]);

impl Fingerprint {
    /// Octets of a fingerprint.
    pub const BYTES: usize = 40;

    /// A fingerprint of an object in one of its states.
    pub fn new(object: [u8; 16], state: [u8; 24]) -> Self {
        let mut octets = [0; Self::BYTES];
        octets[..16].copy_from_slice(&object);
        octets[16..].copy_from_slice(&state);
        Self(octets)
    }

    /// A fingerprint that was kept with [`Fingerprint::as_bytes`].
    pub fn from_bytes(octets: [u8; Self::BYTES]) -> Self {
        Self(octets)
    }

    /// All octets, to be kept.
    pub fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }

    /// The octets that name the object.
    pub fn object(&self) -> &[u8; 16] {
        self.0.first_chunk().expect("a fingerprint has 40 octets")
    }

    /// The octets that tell its states apart.
    pub fn state(&self) -> &[u8; 24] {
        self.0.last_chunk().expect("a fingerprint has 40 octets")
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fingerprint(")?;
        self.0.iter().try_for_each(|octet| write!(f, "{octet:02x}"))?;
        f.write_str(")")
    }
}

/// One state of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileState {
    /// Tells it from every other one.
    pub fingerprint: Fingerprint,
    /// Octets of the file in it.
    pub size: u64,
}

/// State and attributes of a file or directory, found without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStat {
    /// Its state.
    pub state: FileState,
    /// Type and permissions, as in `st_mode`.
    pub mode: u16,
    /// Last change of the content, nanoseconds since the Unix epoch (0 if before).
    pub mtime_ns: u64,
    /// Last change of any kind by the clock of the file system, nanoseconds since the Unix epoch
    /// (0 if before). `None` if files are only ever replaced whole: then a state that is seen is
    /// complete, and no other state can have its fingerprint.
    pub ctime_ns: Option<u64>,
}

/// A durable record: what was last announced under a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Subject of the version.
    pub subject: Subject,
    /// The version. Also the highest ever announced under the name.
    pub version: u64,
}

/// Subject of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// A file in this state.
    File(Fingerprint),
    /// A directory's listing with this root.
    Listing([u8; 32]),
}

/// Records of the state directory about one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recalled {
    /// The record of the name.
    pub record: Option<Record>,
    /// No version below this may be announced (set when records were lost).
    pub version_floor: u64,
    /// Root of the file in the state that was asked about, if its tree is kept too.
    pub root: Option<[u8; 32]>,
    /// Checksums of the file in that state, those that are known.
    pub checksums: Checksums,
}

/// Names a record: two objects with one name differ in `listing`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RecordKey {
    /// TLV-VALUE of the published name.
    pub name: Vec<u8>,
    /// The directory's listing under that name rather than a file.
    pub listing: bool,
}
