//! The cache in memory against a model over plain lists, and what a scan may push out.

use std::rc::Rc;

use byname_transfer::naming::Part;
use byname_transfer::reader::{ObjectPlan, Proof};
use proptest::prelude::*;

use super::*;
use crate::read::cache::ContentId;

const UNIT: usize = 1000;
const COST: usize = UNIT + OVERHEAD_BYTES;

fn content(name: &str) -> Rc<ContentId> {
    let name = name.parse().expect("a name");
    let (size, segment_bytes) = (Some(1 << 40), Some(UNIT as u64));
    let plan = ObjectPlan {
        name,
        size,
        segment_bytes,
        last_segment: None,
        proof: Proof::Packets,
        hints: Vec::new(),
    };
    Rc::new(ContentId::of(&plan, false))
}

fn keys(content: &Rc<ContentId>, units: std::ops::Range<u64>) -> Vec<UnitKey> {
    let key = |index| UnitKey { content: Rc::clone(content), part: Part::Content, index };
    units.map(key).collect()
}

fn insert_all(cache: &mut MemoryCache, keys: &[UnitKey], is_unread: bool) {
    for key in keys {
        cache.insert(key.clone(), &[key.index as u8; UNIT], is_unread);
    }
}

fn kept(cache: &MemoryCache, keys: &[UnitKey]) -> usize {
    keys.iter().filter(|key| cache.contains(key)).count()
}

#[test]
fn a_scan_through_one_file_leaves_what_others_read_again() {
    let (hot, scanned) = (content("/hot"), content("/scanned"));
    let mut cache = MemoryCache::new(100 * COST);
    let hot = keys(&hot, 0..20);
    insert_all(&mut cache, &hot, false);
    let scanned = keys(&scanned, 0..1000);
    insert_all(&mut cache, &scanned[..20], false);
    hot.iter().for_each(|key| assert!(cache.get(key).is_some()));
    for key in &scanned[20..] {
        insert_all(&mut cache, std::slice::from_ref(key), false);
        // A reader of small pieces reads each unit several times, one after the other.
        (0..8).for_each(|_| assert!(cache.get(key).is_some()));
    }
    assert_eq!(kept(&cache, &hot), 20);
    assert_eq!(kept(&cache, &scanned), 80, "the rest is for the scan");
}

#[test]
fn the_first_read_of_what_was_read_ahead_is_not_a_second_use() {
    let mut cache = MemoryCache::new(100 * COST);
    let ahead = keys(&content("/ahead"), 0..50);
    insert_all(&mut cache, &ahead, true);
    ahead.iter().for_each(|key| assert!(cache.get(key).is_some()));
    assert_eq!(cache.reused_bytes, 0);
}

#[test]
fn reused_units_have_half_and_the_longest_unused_of_them_go_back() {
    let mut cache = MemoryCache::new(100 * COST);
    let keys = keys(&content("/f"), 0..100);
    insert_all(&mut cache, &keys, false);
    keys[..80].iter().for_each(|key| assert!(cache.get(key).is_some()));
    assert_eq!(cache.reused_bytes, 50 * COST);
    assert_eq!(cache.reused.values().next(), Some(&keys[30]));
    assert_eq!(cache.bytes, 100 * COST);
}

/// The same rules over plain lists, front first.
#[derive(Default)]
struct Model {
    recent: Vec<ModelUnit>,
    reused: Vec<ModelUnit>,
    inserted: u64,
}

struct ModelUnit {
    key: UnitKey,
    cost: usize,
    used_at: Option<u64>,
}

fn cost(units: &[ModelUnit]) -> usize {
    units.iter().map(|unit| unit.cost).sum()
}

impl Model {
    fn contains(&self, key: &UnitKey) -> bool {
        self.recent.iter().chain(&self.reused).any(|unit| unit.key == *key)
    }

    fn insert(&mut self, key: UnitKey, cost_of_it: usize, is_unread: bool, max: usize) {
        if cost_of_it > max || self.contains(&key) {
            return;
        }
        self.inserted += cost_of_it as u64;
        while cost(&self.recent) + cost(&self.reused) + cost_of_it > max {
            if self.recent.is_empty() {
                self.reused.remove(0)
            } else {
                self.recent.remove(0)
            };
        }
        let used_at = (!is_unread).then_some(self.inserted);
        self.recent.push(ModelUnit { key, cost: cost_of_it, used_at });
    }

    fn get(&mut self, key: &UnitKey, max: usize) -> bool {
        if let Some(place) = self.reused.iter().position(|unit| unit.key == *key) {
            let unit = self.reused.remove(place);
            self.reused.push(unit);
            return true;
        }
        let Some(place) = self.recent.iter().position(|unit| unit.key == *key) else {
            return false;
        };
        let used_at = *self.recent[place].used_at.get_or_insert(self.inserted);
        if self.inserted - used_at >= (max / REUSE_DIVISOR) as u64 {
            let unit = self.recent.remove(place);
            self.reused.push(unit);
            while cost(&self.reused) > max / 2 {
                let unit = self.reused.remove(0);
                self.recent.push(ModelUnit { used_at: Some(self.inserted), ..unit });
            }
        }
        true
    }
}

#[derive(Clone, Debug)]
enum Act {
    Insert { file: usize, unit: u64, length: usize, is_unread: bool },
    Get { file: usize, unit: u64 },
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        (0..6usize, 0..12u64, 0..3000usize, any::<bool>()).prop_map(
            |(file, unit, length, is_unread)| Act::Insert { file, unit, length, is_unread }
        ),
        (0..6usize, 0..12u64).prop_map(|(file, unit)| Act::Get { file, unit }),
    ]
}

proptest! {
    #[test]
    fn the_bound_holds_and_what_stays_is_what_the_model_keeps(
        acts in prop::collection::vec(act(), 0..300),
        bytes_max in 0..40_000usize,
    ) {
        let file = |file| keys(&content(&format!("/f{file}")), 0..12);
        let files: Vec<_> = (0..6).map(file).collect();
        let (mut cache, mut model) = (MemoryCache::new(bytes_max), Model::default());
        for act in acts {
            match act {
                Act::Insert { file, unit, length, is_unread } => {
                    let key = &files[file][unit as usize];
                    cache.insert(key.clone(), &vec![unit as u8; length], is_unread);
                    model.insert(key.clone(), length + OVERHEAD_BYTES, is_unread, bytes_max);
                }
                Act::Get { file, unit } => {
                    let key = &files[file][unit as usize];
                    let bytes = cache.get(key);
                    let is_own = |bytes: &[u8]| bytes.iter().all(|it| *it == unit as u8);
                    prop_assert!(bytes.is_none_or(is_own));
                    prop_assert_eq!(bytes.is_some(), model.get(key, bytes_max));
                }
            }
            for key in files.iter().flatten() {
                prop_assert_eq!(cache.contains(key), model.contains(key));
            }
            let held: usize = cache.units.values().map(Unit::cost).sum();
            prop_assert_eq!(cache.bytes, held);
            prop_assert!(held <= bytes_max);
            prop_assert_eq!(cache.reused_bytes, cost(&model.reused));
            prop_assert_eq!(cache.units.len(), cache.recent.len() + cache.reused.len());
        }
    }
}
