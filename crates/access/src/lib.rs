//! A user's access to a site: whose key signs, commands to its head, questions that no cache
//! answers, files that are read and written.
//!
//! An [`Account`] says who acts and who is asked. A [`HeadSession`] sends commands and queries, one
//! at a time; a [`Tree`] does with them what users do with files and directories. A [`SharedSite`]
//! does it for many threads.
//!
//! Whoever asks the head by a query is told what is true now: a signed Interest is answered by
//! nobody else, so that what was just written is there for whoever wrote it.

mod account;
mod acl;
mod described;
mod edges;
mod error;
mod head;
mod lending;
mod loan;
mod mapping;
mod place;
mod shared;
mod tree;

pub mod spool;

pub use account::{Account, AccountOptions};
pub use acl::{AccessLists, AclChanges};
pub use described::{Described, Entries};
pub use error::AccessError;
pub use head::HeadSession;
pub use lending::{lend, lend_new, lent_until, recall};
pub use loan::{LOAN_TEXT_BYTES_MAX, Loan, LoanError};
pub use mapping::{
    Denial, MEMBERSHIPS_MAX, Mapped, MappingError, MappingTable, Membership, Method, Presented,
    RowError, RowPlace,
};
pub use place::place;
pub use shared::{PutOptions, SharedSite};
pub use tree::{FileVersion, Overdrawn, Room, Tree, Xattr};
