//! How full the disks of a space are beside each other, and which replicas may move between them.
//!
//! A replica moves only to a disk that is not fuller after it than the one it left, so every step
//! brings them nearer to each other, and there is an end.

use std::collections::BTreeMap;

use byname_catalog::id::DiskId;
use byname_catalog::{DiskState, Failure, Reader};

/// A disk, with what is on its way there and from there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Room {
    used: u128,
    capacity: u128,
    takes: bool,
}

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fill {
    disks: BTreeMap<DiskId, Room>,
    within_percent: u128,
    used: u128,
    capacity: u128,
}

impl Fill {
    /// Of the disks of a space that serve.
    ///
    /// # Errors
    /// [`Failure`] of the catalog.
    pub(crate) fn of(
        reader: &Reader<'_>,
        space: &str,
        within_percent: u64,
    ) -> Result<Self, Failure> {
        let mut disks = Vec::new();
        for (id, disk) in reader.disks()? {
            let is_serving = matches!(disk.state, DiskState::ReadWrite | DiskState::ReadOnly);
            if disk.space == space && disk.is_up && is_serving && disk.capacity_bytes > 0 {
                let usage = reader.disk_usage(id)?;
                let used = usage.used_bytes.saturating_add(usage.reserved_bytes);
                let takes = disk.state == DiskState::ReadWrite;
                disks.push((id, (used, disk.capacity_bytes), takes));
            }
        }
        Ok(Self::new(disks, within_percent))
    }

    fn new(disks: Vec<(DiskId, (u64, u64), bool)>, within_percent: u64) -> Self {
        let room = |(id, (used, capacity), takes)| {
            (id, Room { used: u128::from(used), capacity: u128::from(capacity), takes })
        };
        let disks: BTreeMap<DiskId, Room> = disks.into_iter().map(room).collect();
        let used = disks.values().map(|room| room.used).sum();
        let capacity = disks.values().map(|room| room.capacity).sum::<u128>().max(1);
        Self { disks, within_percent: within_percent.into(), used, capacity }
    }

    /// Counts a replica that is on its way.
    pub(crate) fn plan(&mut self, from: DiskId, to: DiskId, bytes: u64) {
        if let Some(room) = self.disks.get_mut(&from) {
            room.used = room.used.saturating_sub(bytes.into());
        }
        if let Some(room) = self.disks.get_mut(&to) {
            room.used = room.used.saturating_add(bytes.into());
        }
    }

    /// Octets that a disk would have if all were as full.
    fn mean_of(&self, room: &Room) -> u128 {
        room.capacity * self.used / self.capacity
    }

    fn band_of(&self, room: &Room) -> u128 {
        room.capacity * self.within_percent / 100
    }

    fn over(&self, room: &Room) -> u128 {
        room.used.saturating_sub(self.mean_of(room) + self.band_of(room))
    }

    fn under(&self, room: &Room) -> u128 {
        self.mean_of(room).saturating_sub(room.used + self.band_of(room))
    }

    /// Octets that have to move until all disks are within the bounds.
    pub(crate) fn left_bytes(&self) -> u64 {
        let over: u128 = self.disks.values().map(|room| self.over(room)).sum();
        let takes = self.disks.values().filter(|room| room.takes);
        let under: u128 = takes.map(|room| self.under(room)).sum();
        u64::try_from(over.max(under)).unwrap_or(u64::MAX)
    }

    /// Disks that replicas leave, the fullest first: those above the bounds, and while there are
    /// some below them, all that have more than the mean.
    pub(crate) fn sources(&self) -> Vec<DiskId> {
        let is_any_under = self.disks.values().any(|room| room.takes && self.under(room) > 0);
        let gives = |room: &Room| match is_any_under {
            true => room.used > self.mean_of(room),
            false => self.over(room) > 0,
        };
        let mut sources: Vec<(u128, DiskId)> = self
            .disks
            .iter()
            .filter(|(_, room)| gives(room))
            .map(|(id, room)| (room.used * 1_000_000 / room.capacity, *id))
            .collect();
        sources.sort_by_key(|(fill, id)| (std::cmp::Reverse(*fill), *id));
        sources.into_iter().map(|(_, id)| id).collect()
    }

    /// True if a replica may move so.
    pub(crate) fn may_move(&self, from: DiskId, to: DiskId, bytes: u64) -> bool {
        let (Some(from), Some(to)) = (self.disks.get(&from), self.disks.get(&to)) else {
            return false;
        };
        let bytes = u128::from(bytes);
        let is_needed = self.over(from) > 0 || self.under(to) > 0;
        let after = (from.used.saturating_sub(bytes), to.used + bytes);
        to.takes && is_needed && after.1 * from.capacity <= after.0 * to.capacity
    }

    /// All disks of the space that are looked at, with how full they are in hundredths.
    pub(crate) fn percents(&self) -> impl Iterator<Item = (DiskId, u64)> {
        self.disks.iter().map(|(id, room)| {
            (*id, u64::try_from(room.used * 100 / room.capacity).unwrap_or(u64::MAX))
        })
    }

    /// The same of all together.
    pub(crate) fn mean_percent(&self) -> u64 {
        u64::try_from(self.used * 100 / self.capacity).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(disks: &[(u64, u64)], within: u64) -> Fill {
        let disk = |(index, room): (usize, &(u64, u64))| (DiskId(index as u64), *room, true);
        Fill::new(disks.iter().enumerate().map(disk).collect(), within)
    }

    #[test]
    fn an_empty_disk_gets_something_though_nobody_else_is_far_from_the_mean() {
        let mut disks = vec![(50, 100); 20];
        disks.push((0, 100));
        let fill = fill(&disks, 5);
        assert!(fill.left_bytes() >= 40, "{}", fill.left_bytes());
        assert_eq!(fill.sources().len(), 20);
        assert!(fill.may_move(DiskId(0), DiskId(20), 10));
        assert!(!fill.may_move(DiskId(0), DiskId(1), 1), "nobody needs that");
        assert!(!fill.may_move(DiskId(0), DiskId(20), 30), "it would be fuller than the other");
    }

    /// Whatever is moved as long as something may be, there is an end, and with small files all are
    /// within the bounds then.
    #[test]
    fn moving_ends_with_all_disks_within_the_bounds() {
        let mut seed = 1_u64;
        let mut draw = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        };
        for _ in 0..200 {
            let count = 2 + draw(4);
            let disks: Vec<(u64, u64)> =
                (0..count).map(|_| (draw(1000), 1000 + draw(2000))).collect();
            let mut fill = fill(&disks, 2 + draw(18));
            let mut steps = 0;
            while let Some((from, to)) = next(&fill, count) {
                fill.plan(from, to, 1);
                steps += 1;
                assert!(steps < 10_000, "no end: {disks:?}");
            }
            assert!(fill.left_bytes() <= count, "{} left: {disks:?}", fill.left_bytes());
        }
    }

    fn next(fill: &Fill, count: u64) -> Option<(DiskId, DiskId)> {
        let pairs = fill.sources().into_iter();
        let mut pairs = pairs.flat_map(|from| (0..count).map(move |to| (from, DiskId(to))));
        pairs.find(|(from, to)| from != to && fill.may_move(*from, *to, 1))
    }
}
