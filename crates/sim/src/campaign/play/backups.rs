//! Contents of a holder's disk at first, again after a backup, and when that is over.

use super::{FIRST_UNIX_NS, START_UNIX_NS, SitePlan, Stage};
use crate::campaign::plan::{Trouble, TroublePlan};
use crate::disk::Disk;

impl Stage<'_> {
    /// True if all holders of a site have a state that is newer than any planned one.
    pub(super) fn is_renewed(&self, site: usize) -> bool {
        let is_backup = |it: &TroublePlan| matches!(it.trouble, Trouble::Backup(of) if of == site);
        self.plan.sites[site].holders.len() > 1
            && self.world.now_ns() >= self.plan.storm_end_ns
            && self.plan.troubles.iter().any(is_backup)
    }

    /// Holders that are alone number a state above all that they announced. Of several only one did
    /// so for the backup, and none knows of the others' numbers: they need a state that is newer.
    pub(super) fn renew(&mut self, site: usize) {
        let SitePlan { holders, versions, .. } = &self.plan.sites[site];
        let Some(last) = versions.last() else { return };
        let at_ns = if holders.len() > 1 { self.plan.storm_end_ns } else { last.at_ns };
        let unix_ns = if at_ns == 0 { FIRST_UNIX_NS } else { START_UNIX_NS + at_ns };
        for holder in 0..holders.len() {
            self.disk_mut(site, holder).put("file", last.seed, last.size, unix_ns);
        }
    }
}

/// The first state of a site.
pub(super) fn first_disk(plan: &SitePlan) -> Disk {
    let (mut disk, first) = (Disk::default(), plan.versions[0]);
    if plan.has_state_directory {
        disk.use_state_directory().expect("a directory for temporary files");
    }
    disk.put("file", first.seed, first.size, FIRST_UNIX_NS);
    for (path, seed, size) in plan.tree.iter().flat_map(|tree| &tree.files) {
        disk.put(path, *seed, *size, FIRST_UNIX_NS);
    }
    disk
}
