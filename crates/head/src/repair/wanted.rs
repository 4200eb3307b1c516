//! Replicas that operators want to be somewhere else: one by one, or to balance disks.

use byname_catalog::id::{ContentId, DiskId};
use byname_catalog::{Content, Disk, Failure, Policy};
use byname_site::Stamp;

use super::{Begun, Fill, Home, LOOK_AGAIN_NS, Look, PAGE_ROWS, Repairs, Scene, Task, Why, Wish};

/// Replicas that one look for balance passes by, at most.
const BALANCE_ROWS_MAX: usize = 4096;

impl Repairs {
    /// Begins what was asked for by name.
    pub(super) fn begin_wishes(
        &mut self,
        scene: &Scene<'_>,
        stamp: &mut dyn FnMut() -> Stamp,
    ) -> Result<(), Failure> {
        for wish in self.desk.wishes(scene.now_ns) {
            if !self.may_begin() {
                return Ok(());
            }
            match self.begin_wish(wish, scene, stamp)? {
                Begun::Yes | Begun::Needless => {}
                Begun::Impossible(why) => self.desk.fail(&wish, why),
            }
        }
        Ok(())
    }

    fn begin_wish(
        &mut self,
        wish: Wish,
        scene: &Scene<'_>,
        stamp: &mut dyn FnMut() -> Stamp,
    ) -> Result<Begun, Failure> {
        let content = wish.content;
        if self.in_flight.contains_key(&content) || self.settling.contains_key(&content) {
            return Ok(Begun::Needless);
        }
        let Some(found) = scene.reader.current(content)? else {
            return Ok(Begun::Impossible("the file was written again"));
        };
        let has = |disk: DiskId| found.0.replicas.contains(&disk);
        let is_done = match wish.from {
            Some(from) => !has(from),
            None => found.0.replicas.len() as u64 > wish.had || wish.to.is_some_and(has),
        };
        if is_done {
            self.desk.end(&wish);
            return Ok(Begun::Needless);
        }
        let task = Task { content, from: wish.from, why: Why::Wish(wish) };
        Ok(match wish.to {
            None => self.begin_one(task, &found, scene, stamp)?,
            Some(to) => match scene.reader.takes(content, &found.0, to)? {
                Some(disk) => {
                    let home = Home { found: &found.0, to, disk };
                    self.send(task, home, scene, stamp())
                }
                None => {
                    Begun::Impossible("the disk takes nothing new, has no room, or has it still")
                }
            },
        })
    }

    /// Begins to move replicas from full disks to emptier ones; true if there may be more to move.
    pub(super) fn begin_balance(
        &mut self,
        scene: &Scene<'_>,
        stamp: &mut dyn FnMut() -> Stamp,
    ) -> Result<bool, Failure> {
        let Some(wish) = self.desk.balance(scene.now_ns) else {
            self.balance_looks.clear();
            return Ok(false);
        };
        let rate = wish.bytes_per_s.unwrap_or(self.config.bytes_per_s);
        self.balance_allowance.refill(rate, scene.now_ns);
        let mut fill = Fill::of(scene.reader, &wish.space, wish.within_percent)?;
        for copying in self.in_flight.values() {
            if let Some(from) = copying.task.from {
                fill.plan(from, copying.to.id, copying.size);
            }
        }
        for settling in self.settling.values() {
            if let Some(from) = settling.from {
                fill.plan(from, settling.to, settling.size);
            }
        }
        let sources: Vec<DiskId> =
            fill.sources().into_iter().filter(|id| !scene.leaving.contains(id)).collect();
        let mut is_more = false;
        for from in sources {
            is_more |= self.begin_from(from, &mut fill, scene, stamp)?;
        }
        let is_stuck = !is_more && self.in_flight.is_empty() && self.settling.is_empty();
        self.desk.tell(|report| report.is_balance_stuck = is_stuck);
        Ok(is_more)
    }

    fn may_balance(&self) -> bool {
        self.may_begin() && self.balance_allowance.is_left()
    }

    /// The same from one disk.
    fn begin_from(
        &mut self,
        from: DiskId,
        fill: &mut Fill,
        scene: &Scene<'_>,
        stamp: &mut dyn FnMut() -> Stamp,
    ) -> Result<bool, Failure> {
        let mut after = match self.balance_looks.get(&from) {
            Some(Look::Again { at_ns }) if *at_ns > scene.now_ns => return Ok(false),
            Some(Look::After(after)) => *after,
            _ => None,
        };
        let mut passed = 0;
        while self.may_balance() && passed < BALANCE_ROWS_MAX && fill.sources().contains(&from) {
            let page = scene.reader.replicas(from, after, PAGE_ROWS)?;
            let is_last = page.len() < PAGE_ROWS;
            for content in page {
                if !self.may_balance() || !fill.sources().contains(&from) {
                    self.balance_looks.insert(from, Look::After(after));
                    return Ok(true);
                }
                self.balance_one((content, from), fill, scene, stamp)?;
                (after, passed) = (Some(content), passed + 1);
            }
            if is_last {
                let at_ns = scene.now_ns.saturating_add(LOOK_AGAIN_NS);
                self.balance_looks.insert(from, Look::Again { at_ns });
                return Ok(false);
            }
        }
        self.balance_looks.insert(from, Look::After(after));
        Ok(true)
    }

    fn balance_one(
        &mut self,
        (content, from): (ContentId, DiskId),
        fill: &mut Fill,
        scene: &Scene<'_>,
        stamp: &mut dyn FnMut() -> Stamp,
    ) -> Result<(), Failure> {
        let Some(found) = scene.reader.current(content)? else { return Ok(()) };
        let task = Task { content, from: Some(from), why: Why::Balance };
        let Some((to, disk)) = self.emptier(task, &found, fill, scene)? else { return Ok(()) };
        let size = found.0.size;
        let home = Home { found: &found.0, to, disk };
        if let Begun::Yes = self.send(task, home, scene, stamp()) {
            fill.plan(from, to, size);
            self.balance_allowance.take(size);
        }
        Ok(())
    }

    /// A disk where a replica may go from a fuller one.
    fn emptier(
        &self,
        Task { content, from, .. }: Task,
        found: &(Content, Policy),
        fill: &Fill,
        scene: &Scene<'_>,
    ) -> Result<Option<(DiskId, Disk)>, Failure> {
        let Some(from) = from else { return Ok(None) };
        let refused = self.refused_by(content);
        let is_out = |id: &DiskId| {
            let may = fill.may_move(from, *id, found.0.size);
            // Those that have it stay what placement looks at.
            let has = found.0.replicas.contains(id) && *id != from;
            !has && (!may || refused.contains(id) || scene.leaving.contains(id))
        };
        let without: Vec<DiskId> = scene.disks.keys().copied().filter(is_out).collect();
        scene.reader.home_for(content, (&found.0, &found.1), &without)
    }
}
