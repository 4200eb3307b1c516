//! What the tables hold, and where: each record has its format and its key here.

mod acl;
mod content;
mod door;
mod inode;
mod policy;
mod quota;
mod session;
mod site;
mod trash;
mod version;

pub use acl::{ACL_NAMES_MAX, Acl, AclEntry, AclWho, Acls, Named};
pub use content::{Attempt, KeptVersion, Target};
pub use door::{Door, GRANT_NAMES_MAX, Grant, SpokenFor};
pub use inode::{Checksums, Content, Detail, EMPTY_ROOT, Inode, Kind, Times};
pub use policy::{Policy, PolicyChanges};
pub use quota::{Limits, OverSince, Subject, Usage};
pub use session::{Session, WriteLease};
pub use site::{
    DISK_LOAD_MAX, Disk, DiskState, DiskUsage, Key, KeyHolder, Lease, Loan, Site, User,
};
pub use trash::{TrashItem, TrashPolicy, TrashUsage};
pub use version::{OldVersion, Versions};

pub(crate) use content::{Expiry, Replica};
pub(crate) use inode::{Dentry, dentry_key, inode_key, xattr_key};
pub(crate) use policy::{check_pattern, fits};
pub(crate) use quota::{Limited, SPACES, totals};
pub(crate) use session::{
    Slot, hold_key, session_hold_key, session_key, session_lease_key, slot_key, user_session_key,
    user_sessions_prefix,
};
pub(crate) use site::{COUNTERS_KEY, Counters, LEASE_KEY, SITE_KEY, disk_key};
pub(crate) use trash::UNMEASURED;
