//! Disks that are added and changed.

use crate::record::DiskState;

/// Adds a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddDisk {
    /// Space it belongs to.
    pub space: String,
    /// Disk server it is in.
    pub server: String,
    /// Rack, room or place.
    pub label: String,
    /// Octets that content may take.
    pub capacity_bytes: u64,
}

/// New properties of a disk; what is absent stays.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DiskChanges {
    /// What people want of it.
    pub state: Option<DiskState>,
    /// True if it answers.
    pub is_up: Option<bool>,
    /// Octets that content may take.
    pub capacity_bytes: Option<u64>,
    /// It was made anew: all that it had is gone.
    pub is_new_generation: bool,
    /// How busy it is, in steps: each halves its chance to get new content.
    pub load: Option<u8>,
    /// Octets a second that leave it while it is drained: 0 for none, `u64::MAX` for no bound of
    /// its own.
    pub drain_bytes_per_s: Option<u64>,
    /// Disk server it is in now.
    pub server: Option<String>,
}
