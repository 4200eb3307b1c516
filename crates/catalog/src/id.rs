//! Numbers that the catalog gives out, once each, in all its life.
//!
//! All of them have the catalog's epoch in their top 16 bits. Restoring an older state and
//! rebuilding raise the epoch above everything that was seen, so that no number of a lost future
//! is given out again. No clock takes part.

use crate::codec::{Decoder, Malformed};

/// Bits below the epoch.
const COUNT_BITS: u32 = 48;

macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub u64);

        impl From<$name> for u64 {
            fn from(number: $name) -> Self {
                number.0
            }
        }

        impl $name {
            pub(crate) fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
                decoder.number().map(Self)
            }
        }
    )*};
}

numbers! {
    /// A file, directory or symbolic link, whatever it is called.
    InodeId;
    /// A version of a file's content.
    Version;
    /// A transaction: its place in the change log, and the *binding* of what it changed.
    TransactionNumber;
    /// A session of a user, door or disk.
    SessionId;
    /// A disk.
    DiskId;
    /// A term of one head: raised whenever another takes the lease.
    LeaseEpoch;
}

impl InodeId {
    /// The directory at the top of the site.
    pub const ROOT: Self = Self(1);
}

/// Content that is being written or was written: what an attempt is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentId {
    /// The file.
    pub inode: InodeId,
    /// The version.
    pub version: Version,
}

impl ContentId {
    pub(crate) fn key(self) -> Vec<u8> {
        crate::codec::key([self.inode.0, self.version.0])
    }
}

impl LeaseEpoch {
    /// How often the catalog was restored or made again before this term.
    pub fn epoch(self) -> u16 {
        epoch_of(self.0)
    }
}

impl TransactionNumber {
    /// How often the catalog was restored or made again before this transaction.
    pub fn epoch(self) -> u16 {
        epoch_of(self.0)
    }

    /// Its number among those since then.
    pub fn count(self) -> u64 {
        self.0 - epoch_start(self.epoch())
    }
}

/// For people: the count, and the epoch if there was one before.
impl std::fmt::Display for TransactionNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.epoch() {
            0 => write!(f, "{}", self.count()),
            epoch => write!(f, "{} of epoch {epoch}", self.count()),
        }
    }
}

/// The number after this one; `None` if the next would run into the epoch's bits.
pub(crate) fn following(number: u64) -> Option<u64> {
    number.checked_add(1).filter(|next| next >> COUNT_BITS == number >> COUNT_BITS)
}

/// The epoch that a number belongs to.
pub(crate) fn epoch_of(number: u64) -> u16 {
    (number >> COUNT_BITS) as u16
}

/// The first number of an epoch.
pub(crate) fn epoch_start(epoch: u16) -> u64 {
    u64::from(epoch) << COUNT_BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_transactions_are_told_as_people_count() {
        let told = |number| TransactionNumber(number).to_string();
        assert_eq!(told(17), "17");
        assert_eq!(told(epoch_start(2) + 17), "17 of epoch 2");
    }

    #[test]
    fn counting_never_runs_into_the_epoch() {
        assert_eq!(following(7), Some(8));
        assert_eq!(following(epoch_start(1) - 1), None);
        assert_eq!(following(epoch_start(3)), Some(epoch_start(3) + 1));
        assert_eq!(following(u64::MAX), None);
    }
}
