//! Content in its three states: being written, current (in the inode), and kept for readers after
//! it was replaced. Beside it the replicas of all, and what has to be looked at when.

use super::inode::encode_disks;
use super::{Content, Named, Policy, Usage};
use crate::codec::{Decoder, Encoder, Malformed, key};
use crate::engine::Table;
use crate::id::{ContentId, DiskId, InodeId, SessionId, Version};
use crate::name::EntryName;
use crate::view::Record;

/// What an attempt becomes when it is committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A new file, which gets its name then.
    NewFile {
        /// The directory, wherever it is by then.
        directory: InodeId,
        /// The name, which must still be free.
        name: EntryName,
        /// Permission bits.
        mode: u16,
    },
    /// The next version of a file.
    NextVersion {
        /// The version that must still be current.
        base: Version,
    },
}

/// An open attempt to write a version. There is a row as long as it is open, and no other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The user who opened it, and who alone may commit it.
    pub user: String,
    /// What it becomes.
    pub target: Target,
    /// User whose quota the reservation is booked on: the owner of the file.
    pub owner: String,
    /// Group whose quota the reservation is booked on.
    pub group: String,
    /// Tree whose quota the reservation is booked on.
    pub tree: InodeId,
    /// Octets that the file may grow by, reserved in those quotas.
    pub reserved_bytes: u64,
    /// Most octets the content may have.
    pub size_max: u64,
    /// Space, replicas and receipts.
    pub policy: Policy,
    /// True if whoever opened it asked for another policy than the file's: it becomes the file's.
    pub policy_is_own: bool,
    /// Disks that are asked to pull.
    pub disks: Vec<DiskId>,
    /// Disks that were given up.
    pub replaced: Vec<DiskId>,
    /// When it may be aborted by anyone, in nanoseconds of the head's clock.
    pub expires_ns: u64,
    /// Number of the write lease under which it was opened.
    pub lease: Option<u64>,
    /// Rights of a new file beyond those of its mode.
    pub access: Option<Box<Named>>,
}

impl Attempt {
    /// What is reserved for quota.
    pub(crate) fn reserved(&self) -> Usage {
        Usage {
            reserved_inodes: u64::from(matches!(self.target, Target::NewFile { .. })),
            reserved_bytes: self.reserved_bytes,
            ..Usage::default()
        }
    }
}

impl Record for Attempt {
    const TABLE: Table = Table::Attempt;

    fn encode(&self, encoder: &mut Encoder) {
        encoder.octets(self.user.as_bytes());
        match &self.target {
            Target::NewFile { directory, name, mode } => {
                encoder.octet(0);
                encoder.number(*directory);
                encoder.octets(name.as_bytes());
                encoder.number(*mode);
            }
            Target::NextVersion { base } => {
                encoder.octet(1);
                encoder.number(*base);
            }
        }
        encoder.octets(self.owner.as_bytes());
        encoder.octets(self.group.as_bytes());
        encoder.number(self.tree);
        encoder.number(self.reserved_bytes);
        encoder.number(self.size_max);
        self.policy.encode(encoder);
        encoder.octet(self.policy_is_own.into());
        encode_disks(&self.disks, encoder);
        encode_disks(&self.replaced, encoder);
        encoder.number(self.expires_ns);
        encoder.number(self.lease.unwrap_or(0));
        self.access.iter().for_each(|named| named.encode(encoder));
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            user: decoder.text()?,
            target: match decoder.octet()? {
                0 => Target::NewFile {
                    directory: InodeId::decode(decoder)?,
                    name: EntryName::new(decoder.octets()?).map_err(|_| Malformed)?,
                    mode: decoder.narrow()?,
                },
                1 => Target::NextVersion { base: Version::decode(decoder)? },
                _ => return Err(Malformed),
            },
            owner: decoder.text()?,
            group: decoder.text()?,
            tree: InodeId::decode(decoder)?,
            reserved_bytes: decoder.number()?,
            size_max: decoder.number()?,
            policy: Policy::decode(decoder)?,
            policy_is_own: decoder.flag()?,
            disks: decoder.list(DiskId::decode)?,
            replaced: decoder.list(DiskId::decode)?,
            expires_ns: decoder.number()?,
            // Rows of before there were leases end here; no lease has the number 0.
            lease: match decoder.0 {
                [] => None,
                _ => Some(decoder.number()?).filter(|number| *number != 0),
            },
            access: match decoder.0 {
                [] => None,
                _ => Some(Box::new(Named::decode(decoder)?)),
            },
        })
    }
}

/// A version that was replaced and stays a while for its readers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptVersion {
    /// The content.
    pub content: Content,
}

impl Record for KeptVersion {
    const TABLE: Table = Table::Kept;

    fn encode(&self, encoder: &mut Encoder) {
        self.content.encode(encoder);
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        Ok(Self { content: Content::decode(decoder)? })
    }
}

/// Content on a disk: the disk may drop it when this row is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Replica {
    pub(crate) size: u64,
}

impl Replica {
    pub(crate) fn key(disk: DiskId, content: ContentId) -> Vec<u8> {
        key([disk.0, content.inode.0, content.version.0])
    }
}

impl Record for Replica {
    const TABLE: Table = Table::Replica;

    fn encode(&self, encoder: &mut Encoder) {
        encoder.number(self.size);
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        Ok(Self { size: decoder.number()? })
    }
}

/// Something that ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Expiry {
    Attempt(ContentId),
    Kept(ContentId),
    /// A file without a name.
    Nameless(InodeId),
    Session(SessionId),
}

impl Expiry {
    /// The key of its row, which has no value.
    pub(crate) fn key(self, at_ns: u64) -> Vec<u8> {
        match self {
            Self::Attempt(content) => key([at_ns, 1, content.inode.0, content.version.0]),
            Self::Kept(content) => key([at_ns, 2, content.inode.0, content.version.0]),
            Self::Nameless(inode) => key([at_ns, 3, inode.0, 0]),
            Self::Session(session) => key([at_ns, 4, session.0, 0]),
        }
    }

    pub(crate) fn from_parts(parts: [u64; 4]) -> Result<(u64, Self), Malformed> {
        let [at_ns, kind, first, second] = parts;
        let content = ContentId { inode: InodeId(first), version: Version(second) };
        let what = match kind {
            1 => Self::Attempt(content),
            2 => Self::Kept(content),
            3 => Self::Nameless(content.inode),
            4 => Self::Session(SessionId(first)),
            _ => return Err(Malformed),
        };
        Ok((at_ns, what))
    }
}
