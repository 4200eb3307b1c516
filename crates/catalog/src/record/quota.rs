//! Whose usage is counted, what it is, and what it may be.

use crate::codec::{Decoder, Encoder, Malformed};
use crate::engine::Table;
use crate::id::InodeId;
use crate::view::Record;

/// Whose usage is counted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// A user: all inodes that he owns.
    User(String),
    /// A group: all inodes of this group.
    Group(String),
    /// A tree with a quota of its own, or what lies in none: the top directory's.
    Tree(InodeId),
    /// A space: all inodes whose policy says that their content goes there.
    Space(String),
}

/// What the keys of spaces begin with.
pub(crate) const SPACES: &[u8] = b"s";

impl Subject {
    pub(crate) fn key(&self) -> Vec<u8> {
        match self {
            Self::User(name) => [b"u", name.as_bytes()].concat(),
            Self::Group(name) => [b"g", name.as_bytes()].concat(),
            Self::Tree(inode) => [b"t".as_slice(), &inode.0.to_be_bytes()].concat(),
            Self::Space(name) => [SPACES, name.as_bytes()].concat(),
        }
    }

    pub(crate) fn of_key(key: &[u8]) -> Option<Self> {
        let name = |octets: &[u8]| String::from_utf8(octets.to_vec()).ok();
        match key.split_first()? {
            (b'u', rest) => Some(Self::User(name(rest)?)),
            (b'g', rest) => Some(Self::Group(name(rest)?)),
            (b's', rest) => Some(Self::Space(name(rest)?)),
            (b't', rest) => Some(Self::Tree(InodeId(u64::from_be_bytes(rest.try_into().ok()?)))),
            _ => None,
        }
    }
}

/// What is counted for a subject: inodes that have a name, octets of files that have one, and what
/// open attempts may add.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Inodes.
    pub inodes: u64,
    /// Octets.
    pub bytes: u64,
    /// Inodes of open attempts.
    pub reserved_inodes: u64,
    /// Octets of open attempts.
    pub reserved_bytes: u64,
}

impl Record for Usage {
    const TABLE: Table = Table::Usage;

    fn encode(&self, encoder: &mut Encoder) {
        encoder.number(self.inodes);
        encoder.number(self.bytes);
        encoder.number(self.reserved_inodes);
        encoder.number(self.reserved_bytes);
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            inodes: decoder.number()?,
            bytes: decoder.number()?,
            reserved_inodes: decoder.number()?,
            reserved_bytes: decoder.number()?,
        })
    }
}

/// Inodes and octets together, with what is reserved of them.
pub(crate) fn totals(usage: &Usage) -> (u128, u128) {
    let sum = |used: u64, reserved: u64| u128::from(used) + u128::from(reserved);
    (sum(usage.inodes, usage.reserved_inodes), sum(usage.bytes, usage.reserved_bytes))
}

/// What a subject may use, reservations included. Beyond a hard limit nothing grows; beyond a soft
/// one it does for the grace time, and then no more until it was below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Inodes.
    pub inodes: u64,
    /// Octets.
    pub bytes: u64,
    /// Inodes, softly.
    pub soft_inodes: u64,
    /// Octets, softly.
    pub soft_bytes: u64,
    /// Time that a subject may be above a soft limit and still grow.
    pub grace_ns: u64,
}

impl Limits {
    /// Grace unless it is told: a week, as local file systems have it.
    pub const GRACE_NS: u64 = 7 * 24 * 3600 * 1_000_000_000;

    /// No limit.
    pub const NONE: Self = Self {
        inodes: u64::MAX,
        bytes: u64::MAX,
        soft_inodes: u64::MAX,
        soft_bytes: u64::MAX,
        grace_ns: Self::GRACE_NS,
    };

    /// True if nothing is limited.
    pub fn is_none(&self) -> bool {
        Self { grace_ns: Self::GRACE_NS, ..*self } == Self::NONE
    }
}

/// Since when a subject is above each of its soft limits, in nanoseconds of the head's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OverSince {
    /// Inodes.
    pub inodes_ns: Option<u64>,
    /// Octets.
    pub bytes_ns: Option<u64>,
}

/// Limits, and since when they are passed. The times are part of the row, so that the next head
/// goes on with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limited {
    pub(crate) limits: Limits,
    pub(crate) over: OverSince,
}

impl Limited {
    pub(crate) const NONE: Self =
        Self { limits: Limits::NONE, over: OverSince { inodes_ns: None, bytes_ns: None } };

    /// The row once so much is used.
    pub(crate) fn at(self, usage: &Usage, now_ns: u64) -> Self {
        let (inodes, bytes) = totals(usage);
        let since = |used: u128, soft: u64, since: Option<u64>| {
            (used > soft.into()).then(|| since.unwrap_or(now_ns))
        };
        let over = OverSince {
            inodes_ns: since(inodes, self.limits.soft_inodes, self.over.inodes_ns),
            bytes_ns: since(bytes, self.limits.soft_bytes, self.over.bytes_ns),
        };
        Self { over, ..self }
    }
}

impl Record for Limited {
    const TABLE: Table = Table::Limit;

    fn encode(&self, encoder: &mut Encoder) {
        encoder.number(self.limits.inodes);
        encoder.number(self.limits.bytes);
        let hard = Limits { inodes: self.limits.inodes, bytes: self.limits.bytes, ..Limits::NONE };
        if *self == (Self { limits: hard, ..Self::NONE }) {
            return;
        }
        encoder.number(self.limits.soft_inodes);
        encoder.number(self.limits.soft_bytes);
        encoder.number(self.limits.grace_ns);
        for since_ns in [self.over.inodes_ns, self.over.bytes_ns] {
            encoder.octet(since_ns.is_some().into());
            encoder.number(since_ns.unwrap_or_default());
        }
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        let (inodes, bytes) = (decoder.number()?, decoder.number()?);
        let hard = Limits { inodes, bytes, ..Limits::NONE };
        // Rows without soft limits, and those of before there were any, end here.
        if decoder.0.is_empty() {
            return Ok(Self { limits: hard, ..Self::NONE });
        }
        let limits = Limits {
            soft_inodes: decoder.number()?,
            soft_bytes: decoder.number()?,
            grace_ns: decoder.number()?,
            ..hard
        };
        let mut since = || Ok((decoder.flag()?, decoder.number()?));
        let [inodes_ns, bytes_ns] = [since()?, since()?].map(|(is, ns)| is.then_some(ns));
        Ok(Self { limits, over: OverSince { inodes_ns, bytes_ns } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(row: &Limited) -> Vec<u8> {
        let mut encoder = Encoder::default();
        row.encode(&mut encoder);
        encoder.0
    }

    #[test]
    fn limits_of_before_there_were_soft_ones_are_read_and_written_as_they_were() {
        let limits = Limits { inodes: 5, bytes: 300, ..Limits::NONE };
        let row = Limited { limits, ..Limited::NONE };
        assert_eq!(encoded(&row), [5, 0xac, 0x02]);
        let mut decoder = Decoder(&[5, 0xac, 0x02]);
        assert_eq!(Limited::decode(&mut decoder), Ok(row));
    }

    #[test]
    fn soft_limits_and_since_when_they_are_passed_come_back() {
        let limits = Limits { soft_inodes: 4, soft_bytes: 7, grace_ns: 0, ..Limits::NONE };
        for over in [
            OverSince::default(),
            OverSince { inodes_ns: Some(0), bytes_ns: None },
            OverSince { inodes_ns: None, bytes_ns: Some(u64::MAX) },
        ] {
            let row = Limited { limits, over };
            assert_eq!(Limited::decode(&mut Decoder(&encoded(&row))), Ok(row));
        }
    }
}
