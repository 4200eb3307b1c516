//! What is about sites: wishes for them, attributes and lists, room.
//!
//! Invariants: those of the module above.

use std::ffi::{c_char, c_void};

/// byname_site_mkdir, byname_site_put: make what is missing above, too.
pub const BYNAME_SITE_PARENTS: u32 = 0x01;
/// byname_site_put, byname_site_rename, byname_site_set_xattr: fail with EEXIST if it is there.
pub const BYNAME_SITE_EXCLUSIVE: u32 = 0x02;
/// byname_site_remove: a directory with all that is in it.
pub const BYNAME_SITE_RECURSIVE: u32 = 0x04;
/// byname_site_set_xattr: fail with ENODATA if it is not there.
pub const BYNAME_SITE_REPLACE: u32 = 0x08;
/// byname_site_put: since this file was put here the last time, octets were only added at its end.
/// What was there is not read again.
pub const BYNAME_SITE_GROWN: u32 = 0x10;

/// byname_site_access: a right that the user shall have.
pub const BYNAME_MAY_READ: u32 = 0x04;
/// See BYNAME_MAY_READ.
pub const BYNAME_MAY_WRITE: u32 = 0x02;
/// See BYNAME_MAY_READ: to run a file, to search a directory.
pub const BYNAME_MAY_SEARCH: u32 = 0x01;

/// Bits of `byname_site_changes.wanted`: the member of that name is a new value.
pub const BYNAME_CHANGE_MODE: u32 = 0x01;
/// See BYNAME_CHANGE_MODE.
pub const BYNAME_CHANGE_MTIME: u32 = 0x02;

/// byname_site_change_acl: the list of what is made in a directory, in place of its own.
pub const BYNAME_ACL_DEFAULT: u32 = 0x01;
/// byname_site_change_acl: begin without any entry but those of a mode. Where nothing is set after
/// that, a directory has no default list any more.
pub const BYNAME_ACL_CLEAR: u32 = 0x02;
/// byname_site_change_acl: leave the mask as it is, also where more is granted.
pub const BYNAME_ACL_KEEP_MASK: u32 = 0x04;

/// Wishes for a site. What is 0 or NULL follows from the keys that are here.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SiteOptions {
    /// sizeof(byname_site_options), set by the caller.
    pub struct_size: u32,
    /// 0.
    pub reserved: u32,
    /// User of the site to act as, whose key is here.
    pub user: *const c_char,
    /// Silence that counts as failure.
    pub timeout_ms: u64,
}

/// How a file is written.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PutOptions {
    /// sizeof(byname_put_options), set by the caller.
    pub struct_size: u32,
    /// BYNAME_SITE_PARENTS, BYNAME_SITE_EXCLUSIVE, BYNAME_SITE_GROWN.
    pub flags: u32,
    /// Permission bits of a new file.
    pub mode: u32,
    /// Replicas; 0 for as many as the site says.
    pub replicas: u32,
    /// The version that it takes the place of: if another one is there by now, ESTALE. 0 for
    /// whatever is there.
    pub base_version: u64,
    /// Where the new version is written; may be NULL.
    pub version: *mut u64,
}

/// New attributes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SiteChanges {
    /// sizeof(byname_site_changes), set by the caller.
    pub struct_size: u32,
    /// BYNAME_CHANGE_*.
    pub wanted: u32,
    /// Permission bits.
    pub mode: u32,
    /// 0.
    pub reserved: u32,
    /// Time of last modification, nanoseconds since the Unix epoch.
    pub mtime_ns: u64,
    /// Owner; NULL if it stays.
    pub owner: *const c_char,
    /// Group; NULL if it stays.
    pub group: *const c_char,
}

/// An extended attribute.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SiteXattr {
    /// sizeof(byname_site_xattr), set by the caller.
    pub struct_size: u32,
    /// To set it: 0, BYNAME_SITE_EXCLUSIVE or BYNAME_SITE_REPLACE.
    pub flags: u32,
    /// Its name, which begins with `user.`.
    pub name: *const c_char,
    /// Its value, or room for it. Nothing is written to it when it is set.
    pub value: *mut c_void,
    /// Octets of the value, or of the room.
    pub value_bytes: u64,
}

/// Room below a name, in octets of files.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SiteRoom {
    /// sizeof(byname_site_room), set by the caller.
    pub struct_size: u32,
    /// Replicas of each file.
    pub replicas: u32,
    /// Octets that there can be, by quota and disks.
    pub size_bytes: u64,
    /// Octets of the files there.
    pub used_bytes: u64,
    /// Octets that are left.
    pub free_bytes: u64,
    /// Entries there.
    pub entries: u64,
    /// Most octets of files by quota; BYNAME_NONE for no limit.
    pub quota_bytes: u64,
    /// Most entries by quota; BYNAME_NONE for no limit.
    pub quota_entries: u64,
}

/// Changes of an access control list. Entries are those of setfacl(1) with commas between them:
/// `u:anna:rwx,g::r-x,m::rwx,o::---`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SiteAcl {
    /// sizeof(byname_site_acl), set by the caller.
    pub struct_size: u32,
    /// BYNAME_ACL_*.
    pub flags: u32,
    /// Entries that are there afterwards; NULL for none.
    pub set: *const c_char,
    /// Entries that go, their rights not looked at; NULL for none.
    pub remove: *const c_char,
}
