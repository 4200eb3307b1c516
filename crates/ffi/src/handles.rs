//! Tables of handles: what a caller holds is a number, never an address.
//!
//! A handle has three parts: the kind of thing, the place in the table of that kind, and how often
//! that place was used. So a handle of another kind, one that was closed, and one that was made up
//! are not found. The counts begin at a random number, so that handles of another process, or of an
//! earlier run, are most likely not found either.
//!
//! Whoever finds a thing holds it until the call ends; closing takes it out of the table.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::fault::Fault;

/// Kind of thing that a handle stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Session = 1,
    File = 2,
    Listing = 3,
    Call = 4,
    Site = 5,
    Door = 6,
}

impl Kind {
    /// The word for people.
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Kind::Session => "session",
            Kind::File => "file",
            Kind::Listing => "listing",
            Kind::Call => "call",
            Kind::Site => "site",
            Kind::Door => "door",
        }
    }

    fn of(handle: i64) -> Option<Self> {
        let all = [Kind::Session, Kind::File, Kind::Listing, Kind::Call, Kind::Site, Kind::Door];
        all.into_iter().find(|kind| handle >> KIND_SHIFT == *kind as i64)
    }
}

const KIND_SHIFT: u32 = 60;
const USE_BITS: u32 = 34;
const USE_MASK: u64 = (1 << USE_BITS) - 1;
const INDEX_BITS: u32 = KIND_SHIFT - USE_BITS;
const INDEX_MASK: u64 = (1 << INDEX_BITS) - 1;

struct Slot<T> {
    use_count: u64,
    thing: Option<Arc<T>>,
}

struct Slots<T> {
    slots: Vec<Slot<T>>,
    /// Oldest first, so that a place rests for long before it is used again.
    free: VecDeque<usize>,
}

/// All things of one kind in this process.
pub(crate) struct Table<T> {
    kind: Kind,
    capacity: usize,
    slots: RwLock<Slots<T>>,
}

impl<T> Table<T> {
    pub(crate) const fn new(kind: Kind, capacity: usize) -> Self {
        assert!(capacity as u64 <= INDEX_MASK, "indices fit");
        let slots = RwLock::new(Slots { slots: Vec::new(), free: VecDeque::new() });
        Table { kind, capacity, slots }
    }

    fn read(&self) -> RwLockReadGuard<'_, Slots<T>> {
        self.slots.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Slots<T>> {
        self.slots.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn handle(&self, index: usize, use_count: u64) -> i64 {
        let parts = (index as u64) << USE_BITS | use_count & USE_MASK;
        (self.kind as i64) << KIND_SHIFT | parts.cast_signed()
    }

    /// A handle for a new thing.
    pub(crate) fn insert(&self, thing: Arc<T>) -> Result<i64, Fault> {
        let mut slots = self.write();
        let is_full = slots.slots.len() >= self.capacity;
        let index = match slots.free.pop_front() {
            Some(index) => index,
            None if is_full => return Err(Fault::TooMany { what: self.kind.noun() }),
            None => {
                slots.slots.push(Slot { use_count: first_use(), thing: None });
                slots.slots.len() - 1
            }
        };
        let slot = &mut slots.slots[index];
        slot.use_count = slot.use_count.wrapping_add(1);
        slot.thing = Some(thing);
        Ok(self.handle(index, slot.use_count))
    }

    fn index(&self, slots: &Slots<T>, handle: i64) -> Result<usize, Fault> {
        let wanted = self.kind.noun();
        match Kind::of(handle) {
            Some(kind) if kind == self.kind => {}
            Some(kind) => return Err(Fault::OtherKind { wanted, given: kind.noun() }),
            None => return Err(Fault::NoHandle { wanted }),
        }
        let index = (handle.cast_unsigned() >> USE_BITS & INDEX_MASK) as usize;
        let slot = slots.slots.get(index).filter(|slot| slot.thing.is_some());
        let is_same = slot.is_some_and(|slot| self.handle(index, slot.use_count) == handle);
        is_same.then_some(index).ok_or(Fault::Closed { wanted })
    }

    /// The thing that a handle stands for.
    pub(crate) fn get(&self, handle: i64) -> Result<Arc<T>, Fault> {
        let slots = self.read();
        let index = self.index(&slots, handle)?;
        slots.slots[index].thing.clone().ok_or(Fault::Closed { wanted: self.kind.noun() })
    }

    /// Takes a thing out of the table.
    pub(crate) fn remove(&self, handle: i64) -> Result<Arc<T>, Fault> {
        let mut slots = self.write();
        let index = self.index(&slots, handle)?;
        let thing = slots.slots[index].thing.take();
        slots.free.push_back(index);
        thing.ok_or(Fault::Closed { wanted: self.kind.noun() })
    }

    /// Looks at all things.
    pub(crate) fn for_each(&self, mut look: impl FnMut(&T)) {
        self.read().slots.iter().filter_map(|slot| slot.thing.as_ref()).for_each(|it| look(it));
    }

    /// Takes all things out of the table that are so.
    pub(crate) fn remove_all(&self, is_so: impl Fn(&T) -> bool) -> Vec<Arc<T>> {
        let mut slots = self.write();
        let Slots { slots, free } = &mut *slots;
        let mut removed = Vec::new();
        for (index, slot) in slots.iter_mut().enumerate() {
            if slot.thing.as_ref().is_some_and(|thing| is_so(thing)) {
                removed.extend(slot.thing.take());
                free.push_back(index);
            }
        }
        removed
    }
}

/// A number that another process does not begin with.
fn first_use() -> u64 {
    static FIRST: OnceLock<u64> = OnceLock::new();
    *FIRST.get_or_init(|| RandomState::new().hash_one(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_finds_its_thing_until_it_is_removed() {
        let table = Table::new(Kind::File, 2);
        let first = table.insert(Arc::new("a")).unwrap();
        let second = table.insert(Arc::new("b")).unwrap();
        assert!(first > 0 && second > 0 && first != second);
        assert!(matches!(table.insert(Arc::new("c")), Err(Fault::TooMany { what: "file" })));
        assert_eq!((*table.get(first).unwrap(), *table.get(second).unwrap()), ("a", "b"));
        assert_eq!(*table.remove(first).unwrap(), "a");
        for gone in [table.get(first), table.remove(first)] {
            assert!(matches!(gone, Err(Fault::Closed { wanted: "file" })));
        }
        let third = table.insert(Arc::new("c")).unwrap();
        assert_ne!(third, first, "the place is used again, the handle is not");
        assert!(table.get(first).is_err());
        assert_eq!(table.remove_all(|thing| *thing != "c").len(), 1);
        assert!(table.get(second).is_err());
        assert_eq!(*table.get(third).unwrap(), "c");
    }

    #[test]
    fn handles_of_other_kinds_and_made_up_numbers_are_not_found() {
        let (files, sessions) = (Table::new(Kind::File, 9), Table::new(Kind::Session, 9));
        let (file, session) = (files.insert(Arc::new(1)), sessions.insert(Arc::new(1)));
        let (file, session) = (file.unwrap(), session.unwrap());
        let other = files.get(session).unwrap_err();
        assert!(matches!(other, Fault::OtherKind { wanted: "file", given: "session" }));
        for bit in 0..64 {
            assert!(files.get(file ^ 1 << bit).is_err(), "bit {bit}");
        }
        for made_up in [0, 1, -1, 3, i64::MAX, i64::MIN, 0x7fff_0000_1234] {
            assert!(files.get(made_up).is_err() && sessions.get(made_up).is_err(), "{made_up}");
        }
    }

    #[test]
    fn places_are_used_again_oldest_first() {
        let table = Table::new(Kind::Call, 4);
        let handles: Vec<i64> = (0..4).map(|n| table.insert(Arc::new(n)).unwrap()).collect();
        for handle in &handles {
            table.remove(*handle).unwrap();
        }
        let place = |handle: i64| handle.cast_unsigned() >> USE_BITS & INDEX_MASK;
        for handle in &handles {
            assert_eq!(place(table.insert(Arc::new(9)).unwrap()), place(*handle));
        }
    }
}
