//! Commands about doors.

use crate::record::Grant;

/// Adds a door, or says anew for whom it may speak.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetDoor {
    /// Its name.
    pub door: String,
    /// For whom it may speak; all of it.
    pub grant: Grant,
}
