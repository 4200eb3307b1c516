//! Inodes and the names that lead to them.

use crate::codec::{Decoder, Encoder, Malformed, key};
use crate::engine::Table;
use crate::id::{DiskId, InodeId, TransactionNumber, Version};
use crate::name::EntryName;
use crate::record::{Acl, Acls, Policy, Versions};
use crate::view::Record;

/// Root of the hash tree of no octets: their BLAKE3.
pub const EMPTY_ROOT: [u8; 32] = [
    0xaf, 0x13, 0x49, 0xb9, 0xf5, 0xf9, 0xa1, 0xa6, 0xa0, 0x40, 0x4d, 0xea, 0x36, 0xdc, 0xc9, 0x49,
    0x9b, 0xcb, 0x25, 0xc9, 0xad, 0xc1, 0x12, 0xb7, 0xcc, 0x9a, 0x93, 0xca, 0xe4, 0x1f, 0x32, 0x62,
];

/// Type of an inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
}

impl Kind {
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::File => 1,
            Self::Directory => 2,
            Self::Symlink => 3,
        }
    }

    pub(crate) fn from_number(number: u8) -> Result<Self, Malformed> {
        match number {
            1 => Ok(Self::File),
            2 => Ok(Self::Directory),
            3 => Ok(Self::Symlink),
            _ => Err(Malformed),
        }
    }
}

/// Times of an inode, in nanoseconds of the head's clock since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Times {
    /// Birth.
    pub created_ns: u64,
    /// Last change of the content or the entries.
    pub modified_ns: u64,
    /// Last change of anything.
    pub changed_ns: u64,
}

/// Checksums that other systems ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checksums {
    /// Adler-32.
    pub adler32: u32,
    /// CRC-32C.
    pub crc32c: u32,
}

impl Checksums {
    /// Those of no octets.
    pub const EMPTY: Self = Self { adler32: 1, crc32c: 0 };

    pub(crate) fn encode(self, encoder: &mut Encoder) {
        encoder.array(&self.adler32.to_be_bytes());
        encoder.array(&self.crc32c.to_be_bytes());
    }

    pub(crate) fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        let adler32 = u32::from_be_bytes(decoder.array()?);
        Ok(Self { adler32, crc32c: u32::from_be_bytes(decoder.array()?) })
    }
}

/// One version of a file's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// Version.
    pub version: Version,
    /// Octets.
    pub size: u64,
    /// Root of the hash tree.
    pub root: [u8; 32],
    /// Checksums of the whole.
    pub checksums: Checksums,
    /// Disks that gave a receipt.
    pub replicas: Vec<DiskId>,
}

impl Content {
    /// A version without octets, which needs no disk.
    pub(crate) fn empty(version: Version) -> Self {
        let checksums = Checksums::EMPTY;
        Self { version, size: 0, root: EMPTY_ROOT, checksums, replicas: Vec::new() }
    }

    pub(crate) fn encode(&self, encoder: &mut Encoder) {
        encoder.number(self.version);
        encoder.number(self.size);
        encoder.array(&self.root);
        self.checksums.encode(encoder);
        encode_disks(&self.replicas, encoder);
    }

    pub(crate) fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            version: Version::decode(decoder)?,
            size: decoder.number()?,
            root: decoder.array()?,
            checksums: Checksums::decode(decoder)?,
            replicas: decoder.list(DiskId::decode)?,
        })
    }
}

pub(crate) fn encode_disks(disks: &[DiskId], encoder: &mut Encoder) {
    encoder.number(disks.len() as u64);
    disks.iter().for_each(|disk| encoder.number(*disk));
}

/// What an inode has by its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Detail {
    /// A file's content.
    File(Content),
    /// A directory's parent; the root is its own.
    Directory {
        /// The directory it is in.
        parent: InodeId,
    },
    /// A symbolic link's target, as it was given.
    Symlink {
        /// The target.
        target: Vec<u8>,
    },
}

/// A file, directory or symbolic link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inode {
    /// Permission bits, with set-user-id, set-group-id and the sticky bit.
    pub mode: u16,
    /// Name of the owner.
    pub owner: String,
    /// Name of the group.
    pub group: String,
    /// Names that lead here; of a directory 2 and one for each directory in it.
    pub link_count: u32,
    /// Times.
    pub times: Times,
    /// Transaction that last changed a path or an attribute.
    pub binding: TransactionNumber,
    /// Top of the tree whose quota it counts for.
    pub tree: InodeId,
    /// Where content goes.
    pub policy: Policy,
    /// The rest, by type.
    pub detail: Detail,
    /// Rights beyond those of the mode.
    pub acls: Acls,
    /// Old versions of the content.
    pub versions: Versions,
}

impl Inode {
    /// The type.
    pub fn kind(&self) -> Kind {
        match self.detail {
            Detail::File(_) => Kind::File,
            Detail::Directory { .. } => Kind::Directory,
            Detail::Symlink { .. } => Kind::Symlink,
        }
    }

    /// True for a directory.
    pub fn is_directory(&self) -> bool {
        self.kind() == Kind::Directory
    }

    /// A file's content.
    pub fn content(&self) -> Option<&Content> {
        match &self.detail {
            Detail::File(content) => Some(content),
            _ => None,
        }
    }

    /// Octets as `stat` tells them.
    pub fn size(&self) -> u64 {
        match &self.detail {
            Detail::File(content) => content.size,
            Detail::Directory { .. } => 0,
            Detail::Symlink { target } => target.len() as u64,
        }
    }

    /// Who may do what: the mode and what is beside it.
    pub fn access_acl(&self) -> Acl {
        Acl::of_mode(self.mode, self.acls.access.as_deref())
    }

    /// Octets that count for quota: those of files that have a name, with what is kept of them.
    pub(crate) fn charged_bytes(&self) -> u64 {
        match (self.link_count, self.content()) {
            (0, _) | (_, None) => 0,
            (_, Some(content)) => content.size.saturating_add(self.versions.bytes),
        }
    }

    /// Octets that it may count for more once it has a new content of a size.
    pub(crate) fn growth_bytes(&self, size: u64) -> u64 {
        let stays = self.link_count == 0 || self.versions.wanted > 0;
        let replaced = self.content().filter(|_| !stays).map_or(0, |content| content.size);
        size.saturating_sub(replaced)
    }
}

impl Record for Inode {
    const TABLE: Table = Table::Inode;

    fn encode(&self, encoder: &mut Encoder) {
        encoder.number(self.mode);
        encoder.octets(self.owner.as_bytes());
        encoder.octets(self.group.as_bytes());
        encoder.number(self.link_count);
        encoder.number(self.times.created_ns);
        encoder.number(self.times.modified_ns);
        encoder.number(self.times.changed_ns);
        encoder.number(self.binding);
        encoder.number(self.tree);
        self.policy.encode(encoder);
        encoder.octet(self.kind().number());
        match &self.detail {
            Detail::File(content) => content.encode(encoder),
            Detail::Directory { parent } => encoder.number(*parent),
            Detail::Symlink { target } => encoder.octets(target),
        }
        match self.versions == Versions::default() {
            true => self.acls.encode_tail(encoder),
            false => self.acls.encode(encoder),
        }
        self.versions.encode_tail(encoder);
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            mode: decoder.narrow()?,
            owner: decoder.text()?,
            group: decoder.text()?,
            link_count: decoder.narrow()?,
            times: Times {
                created_ns: decoder.number()?,
                modified_ns: decoder.number()?,
                changed_ns: decoder.number()?,
            },
            binding: TransactionNumber::decode(decoder)?,
            tree: InodeId::decode(decoder)?,
            policy: Policy::decode(decoder)?,
            detail: match Kind::from_number(decoder.octet()?)? {
                Kind::File => Detail::File(Content::decode(decoder)?),
                Kind::Directory => Detail::Directory { parent: InodeId::decode(decoder)? },
                Kind::Symlink => Detail::Symlink { target: decoder.octets()?.to_vec() },
            },
            acls: Acls::decode_tail(decoder)?,
            versions: Versions::decode_tail(decoder)?,
        })
    }
}

pub(crate) fn inode_key(id: InodeId) -> Vec<u8> {
    key([id.0])
}

/// What a name in a directory leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dentry {
    pub(crate) inode: InodeId,
    pub(crate) kind: Kind,
    /// Transaction that put it there.
    pub(crate) placed: TransactionNumber,
}

impl Record for Dentry {
    const TABLE: Table = Table::Dentry;

    fn encode(&self, encoder: &mut Encoder) {
        encoder.number(self.inode);
        encoder.octet(self.kind.number());
        encoder.number(self.placed);
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        let inode = InodeId::decode(decoder)?;
        let kind = Kind::from_number(decoder.octet()?)?;
        Ok(Self { inode, kind, placed: TransactionNumber::decode(decoder)? })
    }
}

pub(crate) fn dentry_key(directory: InodeId, name: &EntryName) -> Vec<u8> {
    let mut key = inode_key(directory);
    key.extend_from_slice(name.as_bytes());
    key
}

pub(crate) fn xattr_key(id: InodeId, name: &[u8]) -> Vec<u8> {
    let mut key = inode_key(id);
    key.extend_from_slice(name);
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Octets of a directory as they were written before there were lists.
    #[test]
    fn rows_of_before_there_were_lists_are_read_and_written_as_they_were() {
        let mut row = vec![0xed, 0x03, 2];
        row.extend_from_slice(b"op\x03ops\x02\x01\x02\x03\x07\x01\x04main\x02\x02\x02\x01");
        let mut decoder = Decoder(&row);
        let inode = Inode::decode(&mut decoder).unwrap();
        assert!(decoder.0.is_empty());
        assert_eq!((inode.mode, inode.owner.as_str()), (0o755, "op"));
        assert_eq!(inode.acls, Acls::default());
        let mut encoder = Encoder::default();
        inode.encode(&mut encoder);
        assert_eq!(encoder.0, row);
    }

    #[test]
    fn the_root_of_nothing_is_blake3_of_nothing() {
        assert_eq!(EMPTY_ROOT, *blake3::hash(b"").as_bytes());
    }
}
