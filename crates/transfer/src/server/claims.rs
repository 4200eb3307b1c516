//! Claims of kept packets and manifests about copies, and the packets that a mirror has at hand.

use std::collections::HashMap;

use byname_packet::{Data, NameRef};

use super::cache::Cache;
use super::state::FileStat;
use crate::copies::describes;
use crate::manifest;
use crate::metadata::{Answer, ContentRoot, Metadata};
use crate::naming;
use crate::numbers::SEGMENT_BYTES_MAX;

/// Packets of directories that are at hand.
const PACKETS_MAX: usize = 1024;
/// Certificates learned from what was kept.
pub(super) const CERTIFICATES_MAX: usize = 64;

/// Choices about a mirror's answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MirrorOptions {
    /// Answer those who want the publisher's word of this moment with its word of another, for
    /// readers that never ask for anything else.
    pub answers_fresh: bool,
}

/// The mounts that are mirrors, and what they have at hand.
pub(super) struct Mirrors {
    pub(super) options: HashMap<usize, MirrorOptions>,
    /// Packets that describe directories, by the path of the listing or manifest.
    pub(super) packets: Cache<Vec<u8>>,
    /// Where the entries of manifests begin, by the same path and with the version.
    pub(super) entries: Cache<(u64, Vec<u32>)>,
    pub(super) certificates: usize,
}

impl Default for Mirrors {
    fn default() -> Self {
        Self {
            options: HashMap::new(),
            packets: Cache::new(PACKETS_MAX),
            entries: Cache::new(PACKETS_MAX),
            certificates: 0,
        }
    }
}

/// Requirements on a file to be served, and its version then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Claim {
    /// The packet, unless the directory's manifest says it.
    pub(super) packet: Option<Vec<u8>>,
    pub(super) version: u64,
    pub(super) size: u64,
    pub(super) mtime_ns: Option<u64>,
    pub(super) root: [u8; 32],
    pub(super) segment_size: usize,
}

impl Claim {
    /// The claim of the packet that was kept with the file at `path`.
    pub(super) fn of_packet(packet: &[u8], path: NameRef<'_>) -> Option<Self> {
        let metadata = described_by(packet, path)?;
        let ContentRoot::Known(root) = metadata.root else { return None };
        let segment_size = segment_size(metadata.segment_size?)?;
        Some(Self {
            packet: Some(packet.to_vec()),
            version: metadata.version().filter(|_| !metadata.is_directory())?,
            size: metadata.size?,
            mtime_ns: metadata.mtime_ns,
            root,
            segment_size,
        })
    }

    pub(super) fn of_entry(entry: &manifest::Entry<'_>) -> Option<Self> {
        let version = entry.version?;
        Some(Self {
            packet: None,
            version: version.number,
            size: entry.size?,
            mtime_ns: entry.mtime_ns,
            root: version.root?,
            segment_size: segment_size(version.segment_bytes)?,
        })
    }

    /// True if a file can be what is claimed, by all that is seen without reading it.
    pub(super) fn agrees(&self, stat: &FileStat) -> bool {
        const SECOND_NS: u64 = 1_000_000_000;
        let found = stat.mtime_ns;
        // A file system that keeps whole seconds has cut the rest off.
        let is_same = |mtime: u64| {
            mtime == found
                || found.is_multiple_of(SECOND_NS) && mtime / SECOND_NS * SECOND_NS == found
        };
        self.size == stat.state.size && self.mtime_ns.is_none_or(is_same)
    }
}

pub(super) fn segment_size(announced: u64) -> Option<usize> {
    usize::try_from(announced).ok().filter(|size| (1..=SEGMENT_BYTES_MAX).contains(size))
}

/// The description in a packet, if it is one of the object at `path`: a file, a directory, or a
/// manifest's own name.
pub(super) fn described_by(packet: &[u8], path: NameRef<'_>) -> Option<Metadata> {
    let data = Data::decode(packet).ok()?;
    let Ok(Answer::Metadata(metadata)) = Answer::decode(&data) else { return None };
    let is_about = describes(data.name, metadata.name.view())
        && path.is_prefix_of(metadata.name.view())
        && naming::metadata_name(path).view().is_prefix_of(data.name);
    is_about.then_some(metadata)
}
