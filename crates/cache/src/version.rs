//! What is said of versions and directories: it is kept with contents, and proves itself to others.

use std::sync::Arc;

use byname_packet::Name;

/// A version that has a content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Its name, without the version.
    pub name: Name,
    /// Its version.
    pub version: u64,
    /// Time of last change, nanoseconds since the Unix epoch.
    pub mtime_ns: Option<u64>,
    /// Mode, as published.
    pub mode: Option<u16>,
    /// The publisher's packets, as [`byname_transfer::copies`] keeps them, if there are any of the
    /// file alone.
    pub packet: Option<Vec<u8>>,
}

/// The publisher's packets for a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryPacket {
    /// The slot of [`byname_transfer::copies`].
    pub slot: &'static str,
    /// As [`byname_transfer::copies`] keeps them.
    pub octets: Arc<Vec<u8>>,
}
