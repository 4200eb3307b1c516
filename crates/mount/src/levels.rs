//! Numbers of a mount, for whoever looks after it.

use std::sync::Arc;

use byname_cache::Counters;

use crate::tree::Tree;

/// Numbers of a mount at one moment.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct MountLevels {
    /// Files and directories that the kernel holds.
    pub inodes: u64,
    /// Versions of files that are open.
    pub open_files: u64,
    /// Those of them that the kernel reads by itself.
    pub passed_through_files: u64,
    /// Opens since it began that let the kernel read by itself.
    pub passed_through_opens: u64,
    /// Sums of what its trees read through the site cache; `None` without one.
    pub cache: Option<Counters>,
}

/// Reads the numbers of a mount.
#[derive(Clone)]
pub struct MountMeter(pub(crate) Arc<Tree>);

impl MountMeter {
    /// The numbers now.
    pub fn levels(&self) -> MountLevels {
        let inodes = self.0.inodes().count() as u64;
        let (open_files, passed_through_files) = self.0.files().counts();
        let passed_through_opens = self.0.passing.opens();
        let cache = self.0.cache_counters();
        MountLevels { inodes, open_files, passed_through_files, passed_through_opens, cache }
    }
}
