//! A map with a bounded total weight that forgets what was not used for longest.
//!
//! Uses are stamped by counting, so a look-up costs one hash. When the bound is passed, entries are
//! dropped oldest first down to 7/8 of it, so the sort is paid once per many insertions.

use std::collections::HashMap;

struct Slot<V> {
    value: V,
    weight: usize,
    stamp: u64,
}

pub(super) struct Cache<V> {
    slots: HashMap<Vec<u8>, Slot<V>>,
    weight: usize,
    weight_max: usize,
    clock: u64,
}

impl<V> Cache<V> {
    pub(super) fn new(weight_max: usize) -> Self {
        Self { slots: HashMap::new(), weight: 0, weight_max, clock: 0 }
    }

    /// The value, which now counts as used last.
    pub(super) fn get(&mut self, key: &[u8]) -> Option<&mut V> {
        self.clock += 1;
        let slot = self.slots.get_mut(key)?;
        slot.stamp = self.clock;
        Some(&mut slot.value)
    }

    /// The value, without counting as use.
    pub(super) fn peek(&self, key: &[u8]) -> Option<&V> {
        self.slots.get(key).map(|slot| &slot.value)
    }

    pub(super) fn remove(&mut self, key: &[u8]) -> Option<V> {
        let slot = self.slots.remove(key)?;
        self.weight -= slot.weight;
        Some(slot.value)
    }

    /// Stores a value and returns those that had to go, the one it replaces included.
    pub(super) fn insert(&mut self, key: Vec<u8>, value: V, weight: usize) -> Vec<V> {
        self.clock += 1;
        let mut gone: Vec<V> = self.remove(&key).into_iter().collect();
        self.weight += weight;
        self.slots.insert(key, Slot { value, weight, stamp: self.clock });
        if self.weight > self.weight_max {
            self.shrink(&mut gone);
        }
        gone
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn weight(&self) -> usize {
        self.weight
    }

    fn shrink(&mut self, gone: &mut Vec<V>) {
        let target = self.weight_max - self.weight_max / 8;
        let mut ages: Vec<(u64, Vec<u8>)> =
            self.slots.iter().map(|(key, slot)| (slot.stamp, key.clone())).collect();
        ages.sort_unstable();
        // The newest stays whatever it weighs: it is about to be used.
        ages.pop();
        for (_, key) in ages {
            if self.weight <= target {
                break;
            }
            gone.extend(self.remove(&key));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_goes_first() {
        let mut cache = Cache::new(8);
        for key in 0u8..8 {
            assert!(cache.insert(vec![key], key, 1).is_empty());
        }
        assert_eq!(cache.get(&[0]), Some(&mut 0));
        assert_eq!(cache.insert(vec![8], 8, 1), [1, 2]);
        assert_eq!((cache.len(), cache.weight()), (7, 7));
        assert!(cache.peek(&[0]).is_some());
        assert!(cache.peek(&[1]).is_none());
    }

    #[test]
    fn replacing_returns_the_old_value_and_its_weight() {
        let mut cache = Cache::new(8);
        cache.insert(vec![1], 'a', 5);
        assert_eq!(cache.insert(vec![1], 'b', 2), ['a']);
        assert_eq!(cache.weight(), 2);
        assert_eq!(cache.remove(&[1]), Some('b'));
        assert_eq!(cache.weight(), 0);
    }

    #[test]
    fn one_entry_above_the_bound_stays_alone() {
        let mut cache = Cache::new(8);
        cache.insert(vec![1], 'a', 5);
        assert_eq!(cache.insert(vec![2], 'b', 100), ['a']);
        assert_eq!(cache.peek(&[2]), Some(&'b'));
    }
}
