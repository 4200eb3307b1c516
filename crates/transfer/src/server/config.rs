//! Configuration of the file server, with every bound it keeps.

use std::fmt;
use std::sync::Arc;

use byname_packet::{Name, Signer};

use super::versions::Quiet;
use crate::numbers::{METADATA_FRESHNESS_MS, WATCHED_FRESHNESS_MS};

/// A key that may be used from any thread.
pub type SharedSigner = Arc<dyn Signer + Send + Sync>;

/// A key for segments, as it travels in operations.
#[derive(Clone)]
pub struct SegmentSigner(pub SharedSigner);

impl fmt::Debug for SegmentSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SegmentSigner({})", self.0.signature_type())
    }
}

impl PartialEq for SegmentSigner {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for SegmentSigner {}

/// One published directory.
#[derive(Clone)]
pub struct Mount {
    /// Its name; every component is generic. The empty name publishes at the root of all names.
    pub prefix: Name,
    /// Signs metadata and absences below that name.
    pub signer: SharedSigner,
    /// Its files are contents ([`crate::naming::content_path`]), asked for by id and version; they
    /// have no paths, metadata or listings.
    pub contents: bool,
}

/// A Data packet served under its own name, such as a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FixedData {
    /// The whole packet.
    pub wire: Vec<u8>,
}

/// Times and bounds. The default is meant for everybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerConfig {
    /// A version is minted when the file has not changed for this long.
    pub quiet_ns: u64,
    /// The same where the file system keeps whole seconds only.
    pub quiet_coarse_ns: u64,
    /// Longest time that an Interest is held for a file to become quiet, at most half its lifetime.
    pub hold_quiet_ns: u64,
    /// Longest time that an Interest is held for the root of a file of at most 2 MiB, which is
    /// there in no time unless others wait too. Larger files are answered "root pending" at once.
    pub hold_root_ns: u64,
    /// Time after which whoever asks for a directory learns that its list is still being made;
    /// half of the Interest's lifetime if that is less.
    pub hold_listing_ns: u64,
    /// FreshnessPeriod of metadata.
    pub metadata_freshness_ms: u64,
    /// A signed packet whose content is still right is sent again up to this age.
    pub reuse_ns: u64,
    /// A directory that seems unchanged is read again when asked after this time.
    pub relist_ns: u64,
    /// The same of a directory that is watched and in which no change was seen: some changes cannot
    /// be seen, such as a store through mmap.
    pub relist_watched_ns: u64,
    /// Interests waiting for the disk, a root or a quiet file; also paths being looked at, of which
    /// a disk that does not answer would leave ever more behind when Interests expire.
    pub pending_max: usize,
    /// Open versions of files (one descriptor each, two when its tree is asked for).
    pub open_max: usize,
    /// Octets of all listings kept.
    pub listing_bytes_max: usize,
    /// Signed packets kept for reuse.
    pub answers_max: usize,
    /// Lookups whose operations are executed at the same time; others wait for their turn.
    pub lookups_max: usize,
    /// Signatures made in a second. Those who ask take turns.
    pub signatures_per_s: u64,
    /// Roots being computed or waiting for it.
    pub hashes_max: usize,
    /// Nodes of files with a pending root that are computed for readers at the same time; each
    /// costs reading and hashing 2 MiB at most.
    pub nodes_max: usize,
    /// Such nodes signed in a second.
    pub nodes_per_s: u64,
    /// Octets of such nodes kept for reuse.
    pub nodes_bytes_max: usize,
}

impl ServerConfig {
    /// Sets how long metadata is fresh. Answers kept for reuse are kept no longer than that,
    /// so that nobody sees what was for longer.
    pub fn set_freshness_ms(&mut self, freshness_ms: u64) {
        let freshness_ns = freshness_ms.saturating_mul(1_000_000);
        self.metadata_freshness_ms = freshness_ms;
        self.reuse_ns = self.reuse_ns.min(freshness_ns);
        self.relist_ns = self.relist_ns.min(freshness_ns);
    }

    /// Makes metadata fresh for as short as can be afforded where directories are watched, so that
    /// a question costs no reading of one. What is not watched is read as often as otherwise.
    pub fn set_watched(&mut self) {
        let relist_ns = self.relist_ns;
        self.set_freshness_ms(WATCHED_FRESHNESS_MS);
        self.relist_ns = relist_ns;
    }

    /// Time that a file must have been as it is.
    pub fn quiet(&self) -> Quiet {
        Quiet { quiet_ns: self.quiet_ns, quiet_coarse_ns: self.quiet_coarse_ns }
    }
}

impl Default for ServerConfig {
    fn default() -> Self {
        const MS: u64 = 1_000_000;
        Self {
            quiet_ns: 100 * MS,
            quiet_coarse_ns: 2_000 * MS,
            hold_quiet_ns: 500 * MS,
            hold_root_ns: 5 * MS,
            hold_listing_ns: 500 * MS,
            metadata_freshness_ms: METADATA_FRESHNESS_MS,
            reuse_ns: 1_000 * MS,
            relist_ns: 1_000 * MS,
            relist_watched_ns: 10_000 * MS,
            // The executor makes requests wait before so many segments wait for the disk.
            pending_max: 16_384,
            open_max: 256,
            // Half of it is one directory: 500 000 entries with names of the greatest length.
            listing_bytes_max: 256 << 20,
            answers_max: 1024,
            lookups_max: 128,
            signatures_per_s: 5000,
            hashes_max: 1024,
            nodes_max: 64,
            nodes_per_s: 4096,
            nodes_bytes_max: 4 << 20,
        }
    }
}
