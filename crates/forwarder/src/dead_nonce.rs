//! The dead nonce list: nonces of Interests whose PIT entry is gone, so that a copy still circling
//! in a loop is recognised.
//!
//! Made like a processor's cache: the hash of name and nonce says in which set of eight it may
//! stand, which is one line of memory, and a new one takes the place of the oldest in its set. So
//! nothing is allocated, sorted or timed, and looking costs one line. A nonce is remembered for
//! [`LIFETIME_NS`], less when its set overflows. What is kept of it is 48 bits and the time: a
//! false match has probability 8 / 2^48.

use crate::hash::NameHasher;

/// Time for which a nonce is remembered.
pub(crate) const LIFETIME_NS: u64 = 6_000_000_000;

/// Nonces in a set.
const WAYS: usize = 8;

/// Sets at first: the list grows with the traffic, up to its maximum.
const SETS_MIN: usize = 64;

/// Octets of time kept with a nonce, in units of 2^24 ns (17 ms): 18 minutes, then it wraps.
const TIME_BITS: u32 = 16;
const TIME_SHIFT: u32 = 24;
const TIME_MASK: u64 = (1 << TIME_BITS) - 1;

/// A nonce's hash with its lowest bits replaced by the time; 0 for none.
type Slot = u64;

#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
struct Set([Slot; WAYS]);

#[derive(Debug)]
pub(crate) struct DeadNonceList {
    sets: Vec<Set>,
    sets_max: usize,
    /// Nonces put into a place whose nonce was still alive, since the list grew last.
    overwritten: usize,
}

impl DeadNonceList {
    /// A list of at most about `entries_max` nonces.
    pub(crate) fn new(entries_max: usize) -> Self {
        let sets_max = (entries_max / WAYS).max(1).next_power_of_two();
        Self { sets: Vec::new(), sets_max, overwritten: 0 }
    }

    /// Nonces for which there is a place.
    pub(crate) fn capacity(&self) -> usize {
        self.sets.len() * WAYS
    }

    /// Remembers a nonce.
    pub(crate) fn insert(&mut self, hasher: &NameHasher, dead: (u64, [u8; 4]), now_ns: u64) {
        if self.sets.is_empty() || self.overwritten * 4 > self.sets.len() {
            self.grow();
        }
        let hash = hasher.with_nonce(dead.0, dead.1);
        let at = self.place(hash);
        let Some(set) = self.sets.get_mut(at) else { return };
        let age = |slot: &Slot| if *slot == 0 { u64::MAX } else { age(*slot, now_ns) };
        let Some(oldest) = set.0.iter_mut().max_by_key(|slot| age(slot)) else { return };
        self.overwritten += usize::from(age(oldest) <= LIFETIME_NS >> TIME_SHIFT);
        *oldest = hash & !TIME_MASK | (now_ns >> TIME_SHIFT) & TIME_MASK;
    }

    /// Returns whether a nonce is remembered.
    pub(crate) fn contains(&self, hasher: &NameHasher, dead: (u64, [u8; 4]), now_ns: u64) -> bool {
        if self.sets.is_empty() {
            return false;
        }
        let hash = hasher.with_nonce(dead.0, dead.1);
        let Some(set) = self.sets.get(self.place(hash)) else { return false };
        set.0.iter().any(|slot| {
            (slot ^ hash) & !TIME_MASK == 0 && age(*slot, now_ns) <= LIFETIME_NS >> TIME_SHIFT
        })
    }

    /// The highest bits, which are all kept.
    fn place(&self, hash: u64) -> usize {
        (hash >> 32) as usize & (self.sets.len() - 1)
    }

    /// Doubles the list. A nonce stays where it is or moves by half of the new length.
    fn grow(&mut self) {
        self.overwritten = 0;
        let before = self.sets.len();
        let after = (before * 2).max(SETS_MIN).min(self.sets_max);
        if after == before {
            return;
        }
        self.sets.resize(after, Set::default());
        for at in 0..before {
            for way in 0..WAYS {
                let slot = self.sets[at].0[way];
                let target = self.place(slot);
                if target != at {
                    self.sets[at].0[way] = 0;
                    self.sets[target].0[way] = slot;
                }
            }
        }
    }
}

/// Age of a nonce, in units of 2^24 ns.
fn age(slot: Slot, now_ns: u64) -> u64 {
    (now_ns >> TIME_SHIFT).wrapping_sub(slot) & TIME_MASK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_is_remembered_for_a_lifetime_and_then_forgotten() {
        let (hasher, mut list) = (NameHasher::new([1, 2]), DeadNonceList::new(1000));
        assert!(!list.contains(&hasher, (1 << 40, [1; 4]), 0));
        list.insert(&hasher, (1 << 40, [1; 4]), 5 * LIFETIME_NS);
        assert!(list.contains(&hasher, (1 << 40, [1; 4]), 6 * LIFETIME_NS - 1));
        assert!(!list.contains(&hasher, (2 << 40, [1; 4]), 6 * LIFETIME_NS - 1));
        assert!(!list.contains(&hasher, (1 << 40, [2; 4]), 6 * LIFETIME_NS - 1));
        assert!(!list.contains(&hasher, (1 << 40, [1; 4]), 7 * LIFETIME_NS));
    }

    #[test]
    fn the_list_grows_without_forgetting_and_then_keeps_the_newest() {
        let (hasher, mut list) = (NameHasher::new([1, 2]), DeadNonceList::new(1 << 14));
        let known = |list: &DeadNonceList, range: std::ops::Range<u32>| {
            let all = range.len();
            let known = range.filter(|i| list.contains(&hasher, (7, i.to_be_bytes()), 0)).count();
            known as f64 / all as f64
        };
        for i in 0..4000u32 {
            list.insert(&hasher, (7, i.to_be_bytes()), 0);
        }
        assert!(known(&list, 0..4000) > 0.9, "{}", known(&list, 0..4000));
        for i in 4000..200_000u32 {
            list.insert(&hasher, (7, i.to_be_bytes()), u64::from(i) << 12);
        }
        assert_eq!(list.sets.len() * WAYS, 1 << 14);
        let newest = (195_000..200_000)
            .filter(|i: &u32| list.contains(&hasher, (7, i.to_be_bytes()), 200_000 << 12))
            .count();
        assert!(newest > 4_800, "{newest}");
    }
}
