//! Eviction policies: which entry to remove next.
//!
//! A policy lives for one round of removing. It is given every entry with its [`Standing`], names
//! victims one after the other, and leaves behind the standing of those that stay. So it needs no
//! memory of its own between processes, and the same code runs over traces in tests.

mod lru;
mod s3_fifo;

pub use crate::standing::{Standing, USES_MAX};
pub use lru::Lru;
pub use s3_fifo::S3Fifo;

/// Number of an entry in a round.
pub type EntryIndex = usize;

/// Chooses what to remove.
pub trait Policy {
    /// An entry that is there. Entries may come in any order, all before the first victim.
    fn restore(&mut self, entry: EntryIndex, bytes: u64, standing: Standing);

    /// The next entry to remove; it is gone for the policy. `None` if there is none left.
    fn victim(&mut self, now_ns: u64) -> Option<EntryIndex>;

    /// Standings that have changed since they were given, of entries that stay.
    fn changed(&mut self) -> Vec<(EntryIndex, Standing)>;
}

#[cfg(test)]
mod tests;
