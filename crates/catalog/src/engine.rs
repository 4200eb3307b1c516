//! The seam to whatever keeps the catalog's state: ordered rows in tables, read from one state,
//! changed by one set of writes.
//!
//! The core reads through [`Rows`], gathers what it wants changed in [`Writes`], and hands that
//! over once, at the end. An engine therefore needs no uncommitted rows of its own, and a table of
//! a relational engine gets all its changes in one statement.
//! docs/decisions/0018-engines-take-one-set-of-writes.md has the reasons.
//!
//! Invariants: transactions are serialisable; a set of writes is applied whole or not at all; it
//! is durable when [`Transaction::commit`] has returned.

mod embedded;
mod memory;
mod writes;

pub use embedded::EmbeddedEngine;
pub use memory::{CommitFault, MemoryEngine};
pub use writes::Writes;

use std::sync::Arc;

/// A table of rows ordered by key. The number is part of the stored format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Table {
    /// Site, counters and lease.
    Meta = 1,
    /// Inode by id.
    Inode = 2,
    /// Id by directory and name.
    Dentry = 3,
    /// Extended attribute by id and name.
    Xattr = 4,
    /// Open attempt by id and version.
    Attempt = 5,
    /// Version that is not current any more, by id and version.
    Kept = 6,
    /// Replica by disk, id and version.
    Replica = 7,
    /// Hold by id, version and session.
    Hold = 8,
    /// Hold by session, id and version.
    SessionHold = 9,
    /// Due work by time.
    Expiry = 10,
    /// Booked usage by user, group or tree.
    Usage = 11,
    /// Limits by user, group or tree.
    Limit = 12,
    /// User by name.
    User = 13,
    /// Disk by number.
    Disk = 14,
    /// Octets used and reserved, by disk.
    DiskUsage = 15,
    /// Session by number.
    Session = 16,
    /// Kept answer by session and slot.
    Slot = 17,
    /// Change log by transaction number.
    Log = 18,
    /// Key by its name.
    Key = 19,
    /// Content that a disk has still to drop, by disk, id and version.
    Drop = 20,
    /// Policy of new files by the pattern of their names.
    Pattern = 21,
    /// Removed directory whose entries are still to be taken away, by id.
    Detached = 22,
    /// Who may write a file, by id.
    WriteLease = 23,
    /// Leases by session and id.
    SessionLease = 24,
    /// Session by user, end and number.
    UserSession = 25,
    /// What was removed and can be brought back, by id.
    Trash = 26,
    /// The same in the order of removal, by tree; directories to be measured under the tree 0.
    TrashOrder = 27,
    /// Things and octets in the trash, by tree.
    TrashUsage = 28,
    /// What becomes of what is removed, by tree.
    TrashPolicy = 29,
    /// Old version that is kept by policy, by id and version.
    OldVersion = 30,
    /// Door by name.
    Door = 40,
}

impl Table {
    /// All tables, in the order of their numbers.
    pub const ALL: [Self; 31] = [
        Self::Meta,
        Self::Inode,
        Self::Dentry,
        Self::Xattr,
        Self::Attempt,
        Self::Kept,
        Self::Replica,
        Self::Hold,
        Self::SessionHold,
        Self::Expiry,
        Self::Usage,
        Self::Limit,
        Self::User,
        Self::Disk,
        Self::DiskUsage,
        Self::Session,
        Self::Slot,
        Self::Log,
        Self::Key,
        Self::Drop,
        Self::Pattern,
        Self::Detached,
        Self::WriteLease,
        Self::SessionLease,
        Self::UserSession,
        Self::Trash,
        Self::TrashOrder,
        Self::TrashUsage,
        Self::TrashPolicy,
        Self::OldVersion,
        Self::Door,
    ];

    /// The table with this number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|table| *table as u8 == number)
    }
}

/// Key and value.
pub type Row = (Vec<u8>, Vec<u8>);

/// Keys from one on, up to and without another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span<'a> {
    /// The first key.
    pub from: &'a [u8],
    /// The key after the last; `None` is the end of the table.
    pub until: Option<&'a [u8]>,
}

impl Span<'_> {
    /// The whole table.
    pub const ALL: Self = Self { from: &[], until: None };
}

/// One state of the engine, for reading.
pub trait Rows {
    /// The value under a key.
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, EngineError>;

    /// The first rows of a span in the order of their keys, `limit` at most.
    fn range(&self, table: Table, span: Span<'_>, limit: usize) -> Result<Vec<Row>, EngineError>;
}

/// One state of the engine, which one set of writes may follow. Dropped, it changes nothing.
pub trait Transaction: Rows {
    /// Applies the writes and makes them durable. [`EngineError::Conflict`] says that nothing was
    /// applied and all may be tried again; after any other error they are there or not, and only a
    /// new transaction tells.
    fn commit(self: Box<Self>, writes: &Writes) -> Result<(), EngineError>;

    /// Ends a transaction that writes nothing: the state that it read is still the last one.
    /// [`EngineError::Conflict`] says that it is not. Where one process writes it always is.
    fn confirm(self: Box<Self>) -> Result<(), EngineError> {
        Ok(())
    }
}

/// Whatever keeps the rows.
pub trait Engine: Send + Sync {
    /// The last committed state that this process knows of. What several processes commit to may
    /// answer [`EngineError::Conflict`] for a row that has changed since: begin anew.
    fn snapshot(&self) -> Result<Box<dyn Rows + '_>, EngineError>;

    /// A transaction on the last committed state. Waits for its turn where there is one writer.
    fn begin(&self) -> Result<Box<dyn Transaction + '_>, EngineError>;

    /// Claims to be the one that leads, for as long as this process is connected: true if nobody
    /// else who is connected has the claim. It tells others at once that a head is gone; what keeps
    /// two heads apart is the lease. An engine that one process has is always claimed.
    fn claim(&self) -> Result<bool, EngineError> {
        Ok(true)
    }

    /// Takes the claim away from whoever else has it and does not use it any more.
    fn end_claim(&self) -> Result<(), EngineError> {
        Ok(())
    }

    /// Gives the claim back, if this process has it.
    fn release_claim(&self) -> Result<(), EngineError> {
        Ok(())
    }

    /// Times that an earlier state took the place of one that this process knew, or may have taken
    /// the place of one that others knew: what was acknowledged in between is lost.
    fn setbacks(&self) -> u64 {
        0
    }

    /// Makes what is committed quick to open, however the process ends: for when nothing was asked
    /// for a while, and for the end. Changes nothing that anybody sees.
    fn rest(&self) -> Result<(), EngineError> {
        Ok(())
    }
}

impl<E: Engine + ?Sized> Engine for Arc<E> {
    fn snapshot(&self) -> Result<Box<dyn Rows + '_>, EngineError> {
        (**self).snapshot()
    }

    fn begin(&self) -> Result<Box<dyn Transaction + '_>, EngineError> {
        (**self).begin()
    }

    fn claim(&self) -> Result<bool, EngineError> {
        (**self).claim()
    }

    fn end_claim(&self) -> Result<(), EngineError> {
        (**self).end_claim()
    }

    fn release_claim(&self) -> Result<(), EngineError> {
        (**self).release_claim()
    }

    fn setbacks(&self) -> u64 {
        (**self).setbacks()
    }

    fn rest(&self) -> Result<(), EngineError> {
        (**self).rest()
    }
}

/// Failure of an engine, or of what it holds.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// Another transaction came between. Worth a retry.
    #[error("another transaction changed the same rows")]
    Conflict,
    /// The engine did not answer or could not write.
    #[error("the catalog's engine failed")]
    Failed(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A row is not what was written.
    #[error("a row of table {table:?} is damaged: {what}")]
    Corrupt {
        /// The table.
        table: Table,
        /// The contradiction.
        what: &'static str,
    },
}
