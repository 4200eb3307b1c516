//! What is about doors.
//!
//! Invariants: those of the module above.

use std::ffi::c_char;

/// A door: its key, and who is who.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DoorOptions {
    /// sizeof(byname_door_options), set by the caller.
    pub struct_size: u32,
    /// 0.
    pub reserved: u32,
    /// Name of the door, whose key is here.
    pub door: *const c_char,
    /// File with its table: docs/site.md.
    pub table: *const c_char,
    /// Silence that counts as failure; 0 for that of the session.
    pub timeout_ms: u64,
}

/// Somebody as a door has authenticated him. Texts may be NULL. Lists have spaces between their
/// words, and go together: the first of each, the second of each.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Authenticated {
    /// sizeof(byname_authenticated), set by the caller.
    pub struct_size: u32,
    /// 0.
    pub reserved: u32,
    /// How: krb5, ztn, gsi, unix, sss, host.
    pub method: *const c_char,
    /// His name there.
    pub name: *const c_char,
    /// His machine's name, which counts for `host`.
    pub host: *const c_char,
    /// Virtual organisations.
    pub vos: *const c_char,
    /// Roles.
    pub roles: *const c_char,
    /// Groups.
    pub groups: *const c_char,
}
