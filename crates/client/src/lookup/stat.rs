//! Status of a file or directory, flat: no packets in it.

use byname_packet::Name;
use byname_security::key::KeyId;
use byname_security::tree::Hash;
use byname_security::trust::Trusted;
use byname_transfer::attributes::Checksums;
use byname_transfer::discovery::Discovered;
use byname_transfer::metadata::ContentRoot;

/// Kind of what a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FileKind {
    /// A file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
}

/// Why a status counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TrustLevel {
    /// The publisher's key is an anchor for the name, or vouched for by one.
    Anchored,
    /// The key was met for the first time, and the policy takes such keys.
    FirstUse,
    /// Nothing was checked.
    Insecure,
}

/// Status of one version of a file or directory, as its publisher has signed it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stat {
    /// The name, without version.
    pub name: Name,
    /// File or directory.
    pub kind: FileKind,
    /// Version number; newer versions have larger ones.
    pub version: u64,
    /// Size in bytes: of the file, or of the directory's listing. `None` if not announced.
    pub size: Option<u64>,
    /// Last change of the content, in nanoseconds since the Unix epoch.
    pub mtime_ns: Option<u64>,
    /// Type and permission bits as in `st_mode`.
    pub mode: Option<u16>,
    /// BLAKE3 root of the content: what `b3sum` prints. `None` if pending or never announced.
    pub root: Option<Hash>,
    /// True if the publisher still computes the root.
    pub is_root_pending: bool,
    /// Of a symbolic link: the path it leads to, neither checked nor followed.
    pub link_target: Option<Vec<u8>>,
    /// Name of the owner.
    pub owner: Option<String>,
    /// Name of the group.
    pub group: Option<String>,
    /// Checksums of the content, for software that knows no BLAKE3.
    pub checksums: Checksums,
    /// Media type of the content, as its publisher calls it.
    pub media_type: Option<String>,
    /// Bytes in every segment but the last.
    pub segment_bytes: Option<u64>,
    /// Digest of the public key that signed the status; `None` if nothing was checked.
    pub publisher_key: Option<KeyId>,
    /// The namespace that the key speaks for, as far as the trust rules say.
    pub publisher_name: Option<Name>,
    /// Why the status counts.
    pub trust: TrustLevel,
    /// True if this is what the publisher says now, and not what a cache or mirror has.
    pub is_fresh: bool,
    /// Time since it was signed, by the clocks of the publisher and of this machine, nanoseconds.
    pub age_ns: u64,
}

impl Stat {
    /// The status of `name` that a verified description gives.
    pub fn new(name: Name, found: &Discovered) -> Self {
        let metadata = &found.metadata;
        let (publisher_key, publisher_name, trust) = match &found.trust {
            Trusted::Anchored { key, anchor } => {
                (Some(*key), Some(anchor.prefix.clone()), TrustLevel::Anchored)
            }
            Trusted::FirstUse { key, identity } => {
                (Some(*key), Some(identity.clone()), TrustLevel::FirstUse)
            }
            Trusted::Insecure => (None, None, TrustLevel::Insecure),
        };
        let attributes = metadata.attributes();
        let kind = match metadata.is_directory() {
            _ if attributes.link_target.is_some() => FileKind::Symlink,
            true => FileKind::Directory,
            false => FileKind::File,
        };
        Stat {
            name,
            kind,
            version: found.version,
            size: metadata.size.or(metadata.listing_size),
            mtime_ns: metadata.mtime_ns,
            mode: metadata.mode,
            root: match metadata.root {
                ContentRoot::Known(root) => Some(Hash(root)),
                ContentRoot::Pending | ContentRoot::Absent => None,
            },
            is_root_pending: metadata.root == ContentRoot::Pending,
            link_target: attributes.link_target.map(<[u8]>::to_vec),
            owner: attributes.owner.map(str::to_owned),
            group: attributes.group.map(str::to_owned),
            checksums: attributes.checksums,
            media_type: attributes.media_type.map(str::to_owned),
            segment_bytes: metadata.segment_size.or(metadata.listing_segment_size),
            publisher_key,
            publisher_name,
            trust,
            is_fresh: found.is_fresh,
            age_ns: found.age_ns,
        }
    }

    /// True if it is a directory.
    pub fn is_directory(&self) -> bool {
        self.kind == FileKind::Directory
    }
}
