//! What was removed and can be brought back: how long that is, and what there is.

use crate::codec::{Decoder, Encoder, Malformed, key};
use crate::engine::Table;
use crate::id::{InodeId, TransactionNumber};
use crate::name::{EntryName, Place};
use crate::record::Kind;
use crate::refusal::Refusal;
use crate::view::Record;

/// What becomes of things that are removed from a tree, or from what has no such row of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrashPolicy {
    /// True if they go to the trash. If not, what is there already stays for its time.
    pub is_on: bool,
    /// Nanoseconds that they stay there.
    pub keep_ns: u64,
    /// Most octets of files in the trash of one tree; the oldest go for it.
    pub bytes_max: u64,
}

impl TrashPolicy {
    /// Shortest time that anything stays: somebody has to be able to bring it back.
    pub const KEEP_NS_MIN: u64 = 60_000_000_000;

    pub(crate) fn check(&self) -> Result<(), Refusal> {
        if self.keep_ns < Self::KEEP_NS_MIN { Err(Refusal::BadPolicy) } else { Ok(()) }
    }

    /// Key of the row of a tree. That of the top directory holds where there is no other.
    pub(crate) fn key(tree: InodeId) -> Vec<u8> {
        key([tree.0])
    }
}

impl Record for TrashPolicy {
    const TABLE: Table = Table::TrashPolicy;

    fn encode(&self, encoder: &mut Encoder) {
        encoder.octet(self.is_on.into());
        encoder.number(self.keep_ns);
        encoder.number(self.bytes_max);
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        let is_on = decoder.flag()?;
        Ok(Self { is_on, keep_ns: decoder.number()?, bytes_max: decoder.number()? })
    }
}

/// An inode in the trash. The row, whose key is the inode's number, is its only name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrashItem {
    /// Its type.
    pub kind: Kind,
    /// The tree whose quota it counts for.
    pub tree: InodeId,
    /// Transaction that removed it.
    pub removed: TransactionNumber,
    /// When that was, in nanoseconds of the head's clock since 1970.
    pub removed_ns: u64,
    /// Who removed it.
    pub removed_by: String,
    /// Whose it was.
    pub owner: String,
    /// Where it was.
    pub place: Place,
    /// Octets and inodes of it and all that is in it; of a directory unknown until it was measured.
    pub measure: Option<(u64, u64)>,
}

impl TrashItem {
    /// Octets as far as they are known.
    pub(crate) fn bytes(&self) -> u64 {
        self.measure.map_or(0, |(bytes, _)| bytes)
    }

    /// Its row in the order of removal, by tree.
    pub(crate) fn order_key(&self, id: InodeId) -> Vec<u8> {
        key([self.tree.0, self.removed.0, id.0])
    }

    /// Its row among those that are to be measured, which no tree has the number of.
    pub(crate) fn unmeasured_key(&self, id: InodeId) -> Vec<u8> {
        key([UNMEASURED, self.removed.0, id.0])
    }
}

/// What stands in place of a tree before directories that are to be measured.
pub(crate) const UNMEASURED: u64 = 0;

impl Record for TrashItem {
    const TABLE: Table = Table::Trash;

    fn encode(&self, encoder: &mut Encoder) {
        encoder.octet(self.kind.number());
        encoder.number(self.tree);
        encoder.number(self.removed);
        encoder.number(self.removed_ns);
        encoder.octets(self.removed_by.as_bytes());
        encoder.octets(self.owner.as_bytes());
        encoder.number(self.place.base);
        encoder.number(self.place.names.len() as u64);
        self.place.names.iter().for_each(|name| encoder.octets(name.as_bytes()));
        encoder.octet(self.measure.is_some().into());
        if let Some((bytes, inodes)) = self.measure {
            encoder.number(bytes);
            encoder.number(inodes);
        }
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        let name =
            |decoder: &mut Decoder<'_>| EntryName::new(decoder.octets()?).map_err(|_| Malformed);
        Ok(Self {
            kind: Kind::from_number(decoder.octet()?)?,
            tree: InodeId::decode(decoder)?,
            removed: TransactionNumber::decode(decoder)?,
            removed_ns: decoder.number()?,
            removed_by: decoder.text()?,
            owner: decoder.text()?,
            place: Place { base: InodeId::decode(decoder)?, names: decoder.list(name)? },
            measure: match decoder.flag()? {
                true => Some((decoder.number()?, decoder.number()?)),
                false => None,
            },
        })
    }
}

/// What is in the trash of one tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TrashUsage {
    /// Things that were removed by themselves.
    pub items: u64,
    /// Octets of files, as far as directories have been measured.
    pub bytes: u64,
}

impl Record for TrashUsage {
    const TABLE: Table = Table::TrashUsage;

    fn encode(&self, encoder: &mut Encoder) {
        encoder.number(self.items);
        encoder.number(self.bytes);
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        Ok(Self { items: decoder.number()?, bytes: decoder.number()? })
    }
}
