//! Timers of numbered things: set, moved and cancelled in constant time, however many there are.
//!
//! A hierarchical timing wheel. Time is cut into ticks of about a millisecond; level 0 has a slot
//! for each of the next 256 ticks, each slot of level 1 stands for 256 ticks, of level 2 for
//! 65 536. When time reaches a slot of a higher level its timers are dealt out to the lower one.
//! Most timers here are cancelled long before: then they are only ever linked and unlinked.
//!
//! A timer never fires early and at most one tick late. [`Wheel::next_ns`] may name a time at which
//! timers are only dealt out, never one after the next timer.

/// A tick has 2^20 ns: 1.05 ms.
const TICK_SHIFT: u32 = 20;

/// Slots of a level, as a power of two.
const SLOT_BITS: u32 = 8;
const SLOTS: usize = 1 << SLOT_BITS;
const LEVELS: usize = 3;

/// Ticks that the levels together span: 4.9 hours. Later timers are dealt out in vain once or more.
const SPAN: u64 = 1 << (SLOT_BITS * LEVELS as u32);

const NONE: u32 = u32::MAX;

/// One timer, linked with the others of its slot.
#[derive(Debug, Clone, Copy)]
struct Link {
    due_tick: u64,
    next: u32,
    /// The one before; [`NONE`] for the first of its slot.
    previous: u32,
    /// Level and slot in one number; [`NONE`] while the timer is not set.
    place: u32,
}

const UNSET: Link = Link { due_tick: 0, next: NONE, previous: NONE, place: NONE };

/// The slots of one level and which of them hold timers.
#[derive(Debug)]
struct Level {
    heads: Box<[u32; SLOTS]>,
    occupied: [u64; SLOTS / 64],
}

impl Level {
    fn new() -> Self {
        Self { heads: Box::new([NONE; SLOTS]), occupied: [0; SLOTS / 64] }
    }

    /// Distance in slots from `from` to the next occupied one, 1 to 256; 256 is `from` itself.
    fn distance(&self, from: usize) -> Option<u64> {
        let start = (from + 1) % SLOTS;
        let first = self.occupied[start / 64] >> (start % 64);
        if first != 0 {
            return Some(u64::from(first.trailing_zeros()) + 1);
        }
        let skipped = 64 - start % 64;
        for step in 0..SLOTS / 64 {
            let word = self.occupied[(start / 64 + 1 + step) % (SLOTS / 64)];
            if word != 0 {
                let bits = word.trailing_zeros() as usize;
                return Some((skipped + step * 64 + bits + 1) as u64);
            }
        }
        None
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Wheel {
    links: Vec<Link>,
    levels: [Level; LEVELS],
    /// The time up to which timers have been taken out.
    tick: u64,
    len: usize,
}

impl Wheel {
    pub(crate) fn new() -> Self {
        Self {
            links: Vec::new(),
            levels: [Level::new(), Level::new(), Level::new()],
            tick: 0,
            len: 0,
        }
    }

    /// Sets or moves the timer of `index`.
    pub(crate) fn set(&mut self, index: u32, due_ns: u64) {
        self.cancel(index);
        if self.links.len() <= index as usize {
            self.links.resize(index as usize + 1, UNSET);
        }
        let due_tick = due_ns.div_ceil(1 << TICK_SHIFT);
        self.link(index, due_tick);
        self.len += 1;
    }

    /// Unsets the timer of `index`, if it is set.
    pub(crate) fn cancel(&mut self, index: u32) {
        if self.links.get(index as usize).is_some_and(|link| link.place != NONE) {
            self.unlink(index);
            self.len -= 1;
        }
    }

    /// Takes out a timer whose time has come.
    pub(crate) fn pop_due(&mut self, now_ns: u64) -> Option<u32> {
        let target = now_ns >> TICK_SHIFT;
        loop {
            if self.len == 0 {
                self.tick = self.tick.max(target);
                return None;
            }
            let due = self.levels[0].heads[slot_of(self.tick, 0)];
            if due != NONE && self.tick <= target {
                self.cancel(due);
                return Some(due);
            }
            if self.tick >= target {
                return None;
            }
            self.tick = self.next_tick().min(target);
            self.deal_out();
        }
    }

    /// Time at which [`Wheel::pop_due`] must be called next.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        if self.len == 0 {
            return None;
        }
        let is_due = self.levels[0].heads[slot_of(self.tick, 0)] != NONE;
        let tick = if is_due { self.tick } else { self.next_tick() };
        Some(tick << TICK_SHIFT)
    }

    /// The next tick after the present one at which a slot of any level must be looked at.
    fn next_tick(&self) -> u64 {
        let at = |level: usize| {
            let shift = SLOT_BITS * level as u32;
            let distance = self.levels[level].distance(slot_of(self.tick, level))?;
            Some(((self.tick >> shift) + distance) << shift)
        };
        (0..LEVELS).filter_map(at).min().unwrap_or(self.tick + SPAN)
    }

    /// At the start of a slot of a higher level: its timers go where they belong now.
    fn deal_out(&mut self) {
        for level in (1..LEVELS).rev() {
            if self.tick & ((1 << (SLOT_BITS * level as u32)) - 1) != 0 {
                continue;
            }
            let slot = slot_of(self.tick, level);
            let mut index = self.levels[level].heads[slot];
            while index != NONE {
                let Link { next, due_tick, .. } = self.links[index as usize];
                self.unlink(index);
                self.link(index, due_tick);
                index = next;
            }
        }
    }

    fn link(&mut self, index: u32, due_tick: u64) {
        let due = due_tick.clamp(self.tick, self.tick + SPAN - 1);
        let ahead = due - self.tick;
        let level = (1..LEVELS).rev().find(|l| ahead >> (SLOT_BITS * *l as u32) > 0).unwrap_or(0);
        let slot = slot_of(due, level);
        let next = self.levels[level].heads[slot];
        self.levels[level].heads[slot] = index;
        self.levels[level].occupied[slot / 64] |= 1 << (slot % 64);
        if let Some(link) = self.links.get_mut(next as usize) {
            link.previous = index;
        }
        let place = (level * SLOTS + slot) as u32;
        self.links[index as usize] = Link { due_tick, next, previous: NONE, place };
    }

    fn unlink(&mut self, index: u32) {
        let Link { next, previous, place, .. } = self.links[index as usize];
        let (level, slot) = (place as usize / SLOTS, place as usize % SLOTS);
        if let Some(link) = self.links.get_mut(next as usize) {
            link.previous = previous;
        }
        match self.links.get_mut(previous as usize) {
            Some(link) => link.next = next,
            None => {
                let level = &mut self.levels[level];
                level.heads[slot] = next;
                if next == NONE {
                    level.occupied[slot / 64] &= !(1 << (slot % 64));
                }
            }
        }
        self.links[index as usize].place = NONE;
    }
}

fn slot_of(tick: u64, level: usize) -> usize {
    (tick >> (SLOT_BITS * level as u32)) as usize % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const TICK_NS: u64 = 1 << TICK_SHIFT;

    proptest! {
        /// Against a sorted map: everything fires, nothing early, nothing more than a tick late
        /// when the wheel is asked at the times it names itself.
        #[test]
        fn timers_fire_in_time(
            steps in proptest::collection::vec((0u32..40, 0u32..45, any::<u64>(), 0u8..4), 1..200),
            start in 0u64..1 << 50,
        ) {
            let mut wheel = Wheel::new();
            let mut model: BTreeMap<u32, u64> = BTreeMap::new();
            let mut now_ns = start;
            prop_assert_eq!(wheel.pop_due(now_ns), None);
            for (index, magnitude, random, action) in steps {
                let delay_ns = random % (1 << magnitude);
                match action {
                    0 | 1 => {
                        wheel.set(index, now_ns + delay_ns);
                        model.insert(index, now_ns + delay_ns);
                    }
                    2 => {
                        wheel.cancel(index);
                        model.remove(&index);
                    }
                    _ => {
                        let end_ns = now_ns + delay_ns;
                        while let Some(next_ns) = wheel.next_ns().filter(|next| *next <= end_ns) {
                            now_ns = now_ns.max(next_ns);
                            while let Some(fired) = wheel.pop_due(now_ns) {
                                let due_ns = model.remove(&fired);
                                prop_assert!(due_ns.is_some_and(|due_ns| due_ns <= now_ns));
                                prop_assert!(due_ns.is_some_and(|due| now_ns < due + TICK_NS));
                            }
                        }
                        now_ns = end_ns;
                        prop_assert!(model.values().all(|due_ns| *due_ns + TICK_NS > now_ns));
                    }
                }
                prop_assert_eq!(wheel.next_ns().is_none(), model.is_empty());
            }
        }
    }

    #[test]
    fn a_long_sleep_fires_everything_at_once() {
        let mut wheel = Wheel::new();
        for index in 0..2000u32 {
            wheel.set(index, u64::from(index) * 97_000_000);
        }
        let mut fired: Vec<u32> = std::iter::from_fn(|| wheel.pop_due(3_000_000_000_000)).collect();
        fired.sort_unstable();
        assert_eq!(fired, (0..2000).collect::<Vec<_>>());
        assert_eq!(wheel.next_ns(), None);
    }
}
