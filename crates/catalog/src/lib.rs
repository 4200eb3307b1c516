//! The catalog of a site: its namespace, and where the content of its files lies.
//!
//! A core without I/O. Commands become answers and writes; an [`engine`] makes the writes durable,
//! all of a batch at once. The core knows the time only as an argument, verifies no signature and
//! sends nothing: whoever carries commands in and answers out does.
//!
//! * [`Catalog`] executes [`Command`]s during a head's term, [`Reader`] reads a committed state.
//! * Numbers come from durable counters with the catalog's epoch in their top bits
//!   ([`id`]); none is given out twice.
//! * An [`Attempt`] to write a version is open, or it is not; receipts of disks decide about its
//!   commit, in one transaction.

mod attached;
mod catalog;
mod check;
mod codec;
mod command;
pub mod engine;
mod execution;
pub mod id;
mod log;
mod mend;
mod moving;
mod name;
mod ops;
mod placement;
mod query;
mod quota;
mod rebuild;
mod record;
mod refusal;
mod reserved;
mod rights;
mod view;

pub use catalog::{Catalog, CatalogError, Setup, initialise};
pub use check::{Inconsistency, check};
pub use command::{
    AddDisk, AddKey, Answer, AttributeChanges, Caller, Command, Commit, Create, DiskChanges, Entry,
    LendKey, ListedEntry, MeasuredTrash, MoveReplica, Publish, Receipt, Rename, Request,
    Resolution, RestoreTrash, SetAcl, SetDoor, SetXattr, Submission, Ticket, TicketDisk,
    TimeChange,
};
pub use log::LogRecord;
pub use mend::mend;
pub use moving::{
    Standing, TakeRow, adopt_site, copy_rows, each_row_but_site, give_up_site, site_of,
};
pub use name::{EntryName, LABEL_BYTES_MAX, NAME_BYTES_MAX, PATH_NAMES_MAX, Place};
pub use ops::{ATTEMPT_NS, KEPT_NS, LOAN_NS_MAX, SESSION_IDLE_NS, SESSION_NS, SLOT_COUNT};
pub use query::{NamedEntry, PAGE_ROWS_MAX, Quota, Reader, Resolved, TrashPage, TrashWalk};
pub use rebuild::{
    Adoption, BaseRow, FoundContent, FoundFile, KnownRow, MalformedChange, RowChange, Seen,
    Staging, adopt, can_be_seen, export, rebuild,
};
pub use record::{
    ACL_NAMES_MAX, Acl, AclEntry, AclWho, Acls, Attempt, Checksums, Content, DISK_LOAD_MAX, Detail,
    Disk, DiskState, DiskUsage, Door, EMPTY_ROOT, GRANT_NAMES_MAX, Grant, Inode, KeptVersion, Key,
    KeyHolder, Kind, Lease, Limits, Loan, Named, OldVersion, OverSince, Policy, PolicyChanges,
    Session, Site, SpokenFor, Subject, Target, Times, TrashItem, TrashPolicy, TrashUsage, Usage,
    User, Versions, WriteLease,
};
pub use refusal::{Failure, Refusal};
pub use reserved::RESERVED_PERCENT;
