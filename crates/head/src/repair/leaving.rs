//! Disks that are emptied: which, and how fast.

use std::collections::BTreeMap;

use byname_catalog::id::DiskId;
use byname_catalog::{Disk, DiskState, Failure};
use byname_site::Stamp;

use super::allowance::Allowance;
use super::{LOOK_AGAIN_NS, Look, PAGE_ROWS, Repairs, Scene, Task, Why};

impl Repairs {
    /// Disks that are to be emptied.
    pub(super) fn leaving(&mut self, disks: &BTreeMap<DiskId, Disk>, now_ns: u64) -> Vec<DiskId> {
        self.away_since.retain(|id, _| disks.contains_key(id));
        let mut leaving = Vec::new();
        for (id, disk) in disks {
            if disk.is_up && disk.state != DiskState::Off {
                self.away_since.remove(id);
            } else {
                self.away_since.entry(*id).or_insert(now_ns);
            }
            if self.is_gone(*id, now_ns) || disk.state == DiskState::Drain {
                leaving.push(*id);
            }
        }
        self.looks.retain(|id, _| leaving.contains(id));
        leaving
    }

    /// True if a disk has been away for so long that it is made up for.
    fn is_gone(&self, id: DiskId, now_ns: u64) -> bool {
        let away_ns = self.away_since.get(&id).map(|since_ns| now_ns.saturating_sub(*since_ns));
        away_ns.is_some_and(|away_ns| away_ns >= self.config.after_ns)
    }

    /// Octets a second that may leave a disk, if it has a rate of its own. One that is gone is made
    /// up for as fast as everything may be, whatever was said of its drain.
    fn drain_rate(&self, id: DiskId, scene: &Scene<'_>) -> Option<u64> {
        let disk = scene.disks.get(&id).filter(|disk| disk.state == DiskState::Drain)?;
        let rate = Some(disk.drain_bytes_per_s).filter(|rate| *rate < u64::MAX);
        rate.filter(|_| !self.is_gone(id, scene.now_ns))
    }

    /// Adds to what may leave each of the disks that have a rate of their own.
    pub(super) fn refill_drains(&mut self, scene: &Scene<'_>) {
        let mut allowances = std::mem::take(&mut self.drain_allowances);
        for id in &scene.leaving {
            if let Some(rate) = self.drain_rate(*id, scene) {
                let mut allowance = allowances.remove(id).unwrap_or_default();
                allowance.refill(rate, scene.now_ns);
                self.drain_allowances.insert(*id, allowance);
            }
        }
    }

    fn may_leave(&self, disk: DiskId) -> bool {
        self.drain_allowances.get(&disk).is_none_or(Allowance::is_left)
    }

    /// Begins what may begin of one disk's; true if there may be more of it.
    pub(super) fn begin(
        &mut self,
        from: DiskId,
        scene: &Scene<'_>,
        stamp: &mut dyn FnMut() -> Stamp,
    ) -> Result<bool, Failure> {
        if self.drain_rate(from, scene) == Some(0) {
            return Ok(false);
        }
        let mut after = match self.looks.get(&from) {
            Some(Look::Again { at_ns }) if *at_ns > scene.now_ns => return Ok(false),
            Some(Look::After(after)) => *after,
            _ => None,
        };
        while self.may_begin() && self.may_leave(from) {
            let page = scene.reader.replicas(from, after, PAGE_ROWS)?;
            let is_last = page.len() < PAGE_ROWS;
            for content in page {
                if !self.may_begin() || !self.may_leave(from) {
                    self.looks.insert(from, Look::After(after));
                    return Ok(true);
                }
                // A version that was replaced is gone in a while by itself.
                if let Some(found) = scene.reader.current(content)? {
                    let task = Task { content, from: Some(from), why: Why::Leaving };
                    self.begin_one(task, &found, scene, stamp)?;
                }
                after = Some(content);
            }
            if is_last {
                let at_ns = scene.now_ns.saturating_add(LOOK_AGAIN_NS);
                self.looks.insert(from, Look::Again { at_ns });
                return Ok(false);
            }
        }
        self.looks.insert(from, Look::After(after));
        Ok(true)
    }
}
