//! Which units of a file are verified: a bitmap that takes memory only where something is set.

use std::collections::BTreeMap;
use std::ops::Range;

const WORDS: usize = 64;
/// Units in one piece of the bitmap: 32 MiB of content.
pub const UNITS_PER_CHUNK: u64 = (WORDS * 64) as u64;

/// A set of unit indices. Costs 16 KiB of memory per GiB of content that was touched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnitSet {
    chunks: BTreeMap<u64, Box<[u64; WORDS]>>,
    count: u64,
}

impl UnitSet {
    /// Adds a unit; false if it was there.
    pub fn insert(&mut self, unit: u64) -> bool {
        let chunk =
            self.chunks.entry(unit / UNITS_PER_CHUNK).or_insert_with(|| Box::new([0; WORDS]));
        let (word, bit) = place(unit);
        let is_new = chunk[word] & bit == 0;
        chunk[word] |= bit;
        self.count += u64::from(is_new);
        is_new
    }

    /// Adds neighbouring units.
    pub fn insert_run(&mut self, run: Range<u64>) {
        let mut unit = run.start;
        while unit < run.end {
            let chunk =
                self.chunks.entry(unit / UNITS_PER_CHUNK).or_insert_with(|| Box::new([0; WORDS]));
            let word = &mut chunk[place(unit).0];
            let end = run.end.min((unit / 64 + 1) * 64);
            let bits = (u64::MAX >> (64 - (end - unit))) << (unit % 64);
            self.count += u64::from((bits & !*word).count_ones());
            *word |= bits;
            unit = end;
        }
    }

    /// True if none of these units is missing.
    pub fn contains_all(&self, range: Range<u64>) -> bool {
        self.next_where(range, false).is_none()
    }

    /// True if at least one of these units is in the set.
    pub fn contains_any(&self, range: Range<u64>) -> bool {
        self.next_where(range, true).is_some()
    }

    /// Removes a unit; false if it was not there.
    pub fn remove(&mut self, unit: u64) -> bool {
        let Some(chunk) = self.chunks.get_mut(&(unit / UNITS_PER_CHUNK)) else { return false };
        let (word, bit) = place(unit);
        let was_there = chunk[word] & bit != 0;
        chunk[word] &= !bit;
        self.count -= u64::from(was_there);
        was_there
    }

    /// True if the unit is in the set.
    pub fn contains(&self, unit: u64) -> bool {
        let (word, bit) = place(unit);
        self.chunks.get(&(unit / UNITS_PER_CHUNK)).is_some_and(|chunk| chunk[word] & bit != 0)
    }

    /// Number of units in the set.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The runs of units within `range` that are not in the set, ascending.
    pub fn missing(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        let mut at = range.start;
        std::iter::from_fn(move || {
            let start = self.next_where(at..range.end, false)?;
            let end = self.next_where(start..range.end, true).unwrap_or(range.end);
            at = end;
            Some(start..end)
        })
    }

    /// All units of the set, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.chunks.iter().flat_map(|(index, chunk)| {
            let first = index * UNITS_PER_CHUNK;
            (0..UNITS_PER_CHUNK).filter_map(move |offset| {
                let (word, bit) = place(offset);
                (chunk[word] & bit != 0).then_some(first + offset)
            })
        })
    }

    fn next_where(&self, range: Range<u64>, wanted: bool) -> Option<u64> {
        let mut unit = range.start;
        while unit < range.end {
            let Some(chunk) = self.chunks.get(&(unit / UNITS_PER_CHUNK)) else {
                if !wanted {
                    return Some(unit);
                }
                let next = self.chunks.range(unit / UNITS_PER_CHUNK..).next();
                unit = next.map_or(range.end, |(index, _)| index * UNITS_PER_CHUNK);
                continue;
            };
            let word = chunk[place(unit).0];
            let word = if wanted { word } else { !word } >> (unit % 64);
            if word != 0 {
                let found = unit + u64::from(word.trailing_zeros());
                return (found < range.end).then_some(found);
            }
            unit = (unit / 64 + 1) * 64;
        }
        None
    }
}

fn place(unit: u64) -> (usize, u64) {
    ((unit % UNITS_PER_CHUNK / 64) as usize, 1 << (unit % 64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn behaves_like_a_set(
            operations in prop::collection::vec((any::<bool>(), 0u64..20_000), 0..400),
            start in 0u64..10_000,
            length in 0u64..20_000,
        ) {
            let (mut set, mut model) = (UnitSet::default(), BTreeSet::new());
            for (is_insert, unit) in operations {
                if is_insert {
                    prop_assert_eq!(set.insert(unit), model.insert(unit));
                } else {
                    prop_assert_eq!(set.remove(unit), model.remove(&unit));
                }
            }
            prop_assert_eq!(set.count(), model.len() as u64);
            prop_assert!(set.iter().eq(model.iter().copied()));
            let range = start..start + length;
            let missing: Vec<u64> = set.missing(range.clone()).flatten().collect();
            let expected: Vec<u64> = range.filter(|unit| !model.contains(unit)).collect();
            prop_assert_eq!(missing, expected);
        }
    }

    proptest! {
        #[test]
        fn a_run_is_its_units_one_by_one(
            before in prop::collection::btree_set(0u64..10_000, 0..50),
            start in 0u64..9_000,
            length in 0u64..600,
        ) {
            let (mut set, mut model) = (UnitSet::default(), UnitSet::default());
            for unit in &before {
                set.insert(*unit);
                model.insert(*unit);
            }
            let run = start..start + length;
            let any = run.clone().any(|unit| model.contains(unit));
            prop_assert_eq!(set.contains_any(run.clone()), any);
            set.insert_run(run.clone());
            run.clone().for_each(|unit| {
                model.insert(unit);
            });
            prop_assert!(set.contains_all(run));
            prop_assert_eq!(set, model);
        }
    }

    #[test]
    fn an_enormous_file_costs_nothing_until_touched() {
        let mut set = UnitSet::default();
        set.insert(u64::MAX / 8192);
        assert_eq!(set.missing(0..u64::MAX / 8192 + 1).next(), Some(0..u64::MAX / 8192));
    }
}
