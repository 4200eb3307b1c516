//! Places for Interests that wait: taken and freed in constant time, expired in order.
//!
//! All Interests of a part have the same lifetime, so one list per part, in the order of sending,
//! has the next to expire at its front. Lists run through the slots.

/// No slot.
const NONE: u32 = u32::MAX;

/// A slot and which use of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SlotId {
    pub(super) index: u32,
    pub(super) generation: u16,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    number: u64,
    due_ns: u64,
    deadline_ns: u64,
    part: u32,
    previous: u32,
    next: u32,
    generation: u16,
    is_taken: bool,
}

#[derive(Debug, Clone, Copy)]
struct List {
    first: u32,
    last: u32,
}

#[derive(Debug)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    free: Vec<u32>,
    lists: Vec<List>,
}

impl Slots {
    pub(super) fn new(count: usize, parts: usize) -> Self {
        let slot = Slot {
            number: 0,
            due_ns: 0,
            deadline_ns: 0,
            part: 0,
            previous: NONE,
            next: NONE,
            generation: 0,
            is_taken: false,
        };
        let count = u32::try_from(count).unwrap_or(NONE);
        Self {
            slots: vec![slot; count as usize],
            free: (0..count).rev().collect(),
            lists: vec![List { first: NONE, last: NONE }; parts],
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.free.is_empty()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.free.len() == self.slots.len()
    }

    /// A slot for `number` of `part`, or `None` if all are taken.
    #[inline]
    pub(super) fn take(
        &mut self,
        part: usize,
        number: u64,
        (due_ns, deadline_ns): (u64, u64),
    ) -> Option<SlotId> {
        let index = self.free.pop()?;
        let list = &mut self.lists[part];
        let previous = std::mem::replace(&mut list.last, index);
        match self.slots.get_mut(previous as usize) {
            Some(slot) => slot.next = index,
            None => list.first = index,
        }
        let slot = &mut self.slots[index as usize];
        let generation = slot.generation.wrapping_add(1);
        let part = part as u32;
        let next = NONE;
        *slot =
            Slot { number, due_ns, deadline_ns, part, previous, next, generation, is_taken: true };
        Some(SlotId { index, generation })
    }

    /// Part and number of a slot, if this use of it still waits.
    #[inline]
    pub(super) fn get(&self, id: SlotId) -> Option<(usize, u64)> {
        let slot = self.slots.get(id.index as usize)?;
        let is_this = slot.is_taken && slot.generation == id.generation;
        is_this.then_some((slot.part as usize, slot.number))
    }

    /// The first slot, in no order, that is as wanted.
    pub(super) fn find(&self, mut is_wanted: impl FnMut((usize, u64)) -> bool) -> Option<SlotId> {
        let slots = (0u32..).zip(&self.slots);
        let mut taken = slots.filter(|(_, slot)| slot.is_taken);
        let found = taken.find(|(_, slot)| is_wanted((slot.part as usize, slot.number)));
        found.map(|(index, slot)| SlotId { index, generation: slot.generation })
    }

    /// Frees a slot that waits; its part, number, and when it was due.
    #[inline]
    pub(super) fn free(&mut self, id: SlotId) -> (usize, u64, u64) {
        let slot = &mut self.slots[id.index as usize];
        slot.is_taken = false;
        let Slot { previous, next, part, number, due_ns, .. } = *slot;
        let list = &mut self.lists[part as usize];
        match self.slots.get_mut(previous as usize) {
            Some(slot) => slot.next = next,
            None => list.first = next,
        }
        match self.slots.get_mut(next as usize) {
            Some(slot) => slot.previous = previous,
            None => list.last = previous,
        }
        self.free.push(id.index);
        (part as usize, number, due_ns)
    }

    /// A slot whose deadline is over.
    pub(super) fn expired(&self, now_ns: u64) -> Option<SlotId> {
        let mut firsts = self.firsts();
        let (index, slot) = firsts.find(|(_, slot)| slot.deadline_ns <= now_ns)?;
        Some(SlotId { index, generation: slot.generation })
    }

    pub(super) fn next_deadline_ns(&self) -> Option<u64> {
        self.firsts().map(|(_, slot)| slot.deadline_ns).min()
    }

    fn firsts(&self) -> impl Iterator<Item = (u32, &Slot)> {
        let firsts = self.lists.iter().map(|list| list.first);
        firsts.filter_map(|index| Some((index, self.slots.get(index as usize)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against a plain list, whatever is taken, freed and expired.
    #[test]
    fn slots_behave_like_a_list() {
        let mut slots = Slots::new(5, 2);
        let mut model: Vec<(SlotId, usize, u64, u64)> = Vec::new();
        let mut random = crate::numbers::Random::new(3);
        for now_ns in 0..20_000u64 {
            assert_eq!((slots.is_empty(), slots.is_full()), (model.is_empty(), model.len() == 5));
            match random.below(3) {
                0 | 1 if model.len() < 5 => {
                    let part = random.below(2) as usize;
                    let deadline_ns = now_ns + 10 + 5 * part as u64;
                    let id = slots.take(part, now_ns, (now_ns, deadline_ns)).unwrap();
                    assert!(model.iter().all(|(other, ..)| *other != id));
                    model.push((id, part, now_ns, deadline_ns));
                }
                2 if !model.is_empty() => {
                    let at = random.below(model.len() as u64) as usize;
                    let (id, part, number, _) = model.remove(at);
                    assert_eq!(slots.get(id), Some((part, number)));
                    assert_eq!(slots.find(|slot| slot == (part, number)), Some(id));
                    assert_eq!(slots.free(id), (part, number, number));
                    assert_eq!(slots.get(id), None);
                }
                _ => assert!(model.len() < 5 || slots.take(0, 0, (0, 0)).is_none()),
            }
            assert_eq!(slots.next_deadline_ns(), model.iter().map(|entry| entry.3).min());
            while let Some(id) = slots.expired(now_ns) {
                let at = model.iter().position(|entry| entry.0 == id).unwrap();
                assert!(model.remove(at).3 <= now_ns);
                slots.free(id);
            }
            assert!(model.iter().all(|entry| entry.3 > now_ns));
        }
    }
}
