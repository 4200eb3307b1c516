//! Rows as what they say, for people and other programs.

use super::BaseRow;
use crate::codec::{Malformed, key_parts};
use crate::engine::{EngineError, Table};
use crate::id::{ContentId, DiskId, InodeId, LeaseEpoch, TransactionNumber, Version};
use crate::record::{
    COUNTERS_KEY, Content, Counters, Dentry, Disk, Door, Inode, KeptVersion, Key, Kind, LEASE_KEY,
    Lease, Limited, Limits, PolicyChanges, SITE_KEY, Site, Subject, User,
};
use crate::view::decoded;

/// Octets of an inode's number at the beginning of a key.
const NUMBER_BYTES: usize = 8;

/// A row, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KnownRow {
    /// The site's name, as a TLV value.
    Site(Vec<u8>),
    /// The last transaction, and the last number of an inode or a version.
    Counters(TransactionNumber, u64),
    /// The term of a head.
    Lease(LeaseEpoch, String),
    /// An inode.
    Inode(InodeId, Box<Inode>),
    /// A name in a directory, and what it leads to.
    Entry(InodeId, Vec<u8>, (InodeId, Kind)),
    /// An extended attribute: of what, name, value.
    Xattr(InodeId, Vec<u8>, Vec<u8>),
    /// A version that was replaced.
    Kept(ContentId, Content),
    /// Limits.
    Limit(Subject, Limits),
    /// A user.
    User(String, User),
    /// A door.
    Door(String, Door),
    /// A disk.
    Disk(DiskId, Disk),
    /// A key and its name.
    Key(Vec<u8>, Key),
    /// A content that a disk has still to drop.
    Drop(DiskId, ContentId),
    /// A policy of names, and their pattern.
    Pattern(Vec<u8>, PolicyChanges),
    /// A removed directory.
    Detached(InodeId),
    /// Something else.
    Other,
}

impl BaseRow {
    /// What the row says.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] if it cannot be read.
    pub fn known(&self) -> Result<KnownRow, EngineError> {
        let Self { table, key, value } = self;
        let malformed = |Malformed| EngineError::Corrupt { table: *table, what: "a malformed key" };
        let text = || String::from_utf8(key.clone()).map_err(|_| malformed(Malformed));
        let number = || key_parts::<1>(key).map(|[id]| id).map_err(malformed);
        let (inode, rest) = key.split_at_checked(NUMBER_BYTES).unwrap_or((key, &[]));
        let inode = || key_parts::<1>(inode).map(|[id]| InodeId(id)).map_err(malformed);
        let content =
            |inode, version| ContentId { inode: InodeId(inode), version: Version(version) };
        Ok(match table {
            Table::Meta => return self.known_meta(),
            Table::Inode => KnownRow::Inode(InodeId(number()?), Box::new(decoded(value)?)),
            Table::Dentry => {
                let entry: Dentry = decoded(value)?;
                KnownRow::Entry(inode()?, rest.to_vec(), (entry.inode, entry.kind))
            }
            Table::Xattr => KnownRow::Xattr(inode()?, rest.to_vec(), value.clone()),
            Table::Kept => {
                let [inode, version] = key_parts(key).map_err(malformed)?;
                let kept: KeptVersion = decoded(value)?;
                KnownRow::Kept(content(inode, version), kept.content)
            }
            Table::Limit => {
                let subject = Subject::of_key(key).ok_or_else(|| malformed(Malformed))?;
                KnownRow::Limit(subject, decoded::<Limited>(value)?.limits)
            }
            Table::User => KnownRow::User(text()?, decoded(value)?),
            Table::Door => KnownRow::Door(text()?, decoded(value)?),
            Table::Disk => KnownRow::Disk(DiskId(number()?), decoded(value)?),
            Table::Key => KnownRow::Key(key.clone(), decoded(value)?),
            Table::Drop => {
                let [disk, inode, version] = key_parts(key).map_err(malformed)?;
                KnownRow::Drop(DiskId(disk), content(inode, version))
            }
            Table::Pattern => KnownRow::Pattern(key.clone(), decoded(value)?),
            Table::Detached => KnownRow::Detached(InodeId(number()?)),
            _ => KnownRow::Other,
        })
    }

    fn known_meta(&self) -> Result<KnownRow, EngineError> {
        Ok(match self.key.as_slice() {
            SITE_KEY => {
                let site: Site = decoded(&self.value)?;
                KnownRow::Site(site.name)
            }
            COUNTERS_KEY => {
                let counters: Counters = decoded(&self.value)?;
                KnownRow::Counters(TransactionNumber(counters.transaction), counters.issued)
            }
            LEASE_KEY => {
                let lease: Lease = decoded(&self.value)?;
                KnownRow::Lease(lease.epoch, lease.head)
            }
            _ => KnownRow::Other,
        })
    }
}
