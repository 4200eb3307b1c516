//! The table against a plain map: small ones of every shape, and one of a million entries.

use super::*;
use byname_packet::Name;
use proptest::prelude::*;
use std::collections::{BTreeMap, HashMap};

use crate::rng::Rng;

/// Few components of few values, so that prefixes of each other are common, up to and beyond the
/// start; and now and then a component that does not fit in place.
fn name() -> impl Strategy<Value = Name> {
    proptest::collection::vec(0u8..3, 0..START_DEPTH + 5).prop_map(|components| {
        let mut name = Name::new();
        for component in components {
            let len = if component == 2 { 30 } else { usize::from(component) };
            name.push_generic(&vec![b'x'; len]);
        }
        name
    })
}

proptest! {
    #[test]
    fn agrees_with_a_plain_map(
        operations in proptest::collection::vec((0u8..3, name()), 1..80),
        lookups in proptest::collection::vec(name(), 1..40),
    ) {
        let hasher = NameHasher::new([3, 4]);
        let mut table = PrefixTable::new();
        let mut model = BTreeMap::new();
        for (index, (action, name)) in operations.into_iter().enumerate() {
            if action > 0 {
                table.insert(&hasher, name.view(), index);
                model.insert(name, index);
            } else {
                prop_assert_eq!(table.remove(&hasher, name.view()), model.remove(&name));
            }
            prop_assert_eq!(table.len(), model.len());
        }
        let mut prefixes = Prefixes::default();
        for name in lookups {
            hasher.prefixes(name.view(), &mut prefixes);
            let expected = (0..=name.view().count())
                .rev()
                .find_map(|count| model.get(&name.view().prefix(count).to_name()));
            prop_assert_eq!(table.longest_match(name.view(), &prefixes), expected);
            prop_assert_eq!(table.get(&hasher, name.view()), model.get(&name));
        }
        let all: BTreeMap<Name, usize> =
            table.iter().map(|(name, value)| (name.to_name(), *value)).collect();
        prop_assert_eq!(&all, &model);
        for name in all.keys() {
            table.remove(&hasher, name.view());
        }
        prop_assert_eq!(table.len(), 0);
        prop_assert!(table.notes.is_empty() && table.counts == [0; START_DEPTH + 1]);
    }
}

/// A name of one to twelve components (but three), of which the first ones are few.
fn random_name(rng: &mut Rng, number: u32) -> Name {
    let mut name = Name::new();
    let length = 1 + rng.next_u64() % 11;
    for depth in 0..length {
        let values = 4u64 << (2 * depth.min(10));
        name.push_generic(&((rng.next_u64() % values) as u32).to_be_bytes());
    }
    if length > 2 { name.with_generic(&number.to_be_bytes()) } else { name }
}

#[test]
fn agrees_with_a_plain_map_at_a_million_entries() {
    const ENTRIES: u32 = 1_000_000;
    let (hasher, mut rng) = (NameHasher::new([3, 4]), Rng::new(1));
    let mut table = PrefixTable::new();
    let mut model: HashMap<Name, u32> = HashMap::new();
    let mut names = Vec::new();
    for number in 0..ENTRIES {
        let name = random_name(&mut rng, number);
        table.insert(&hasher, name.view(), number);
        if number % 50 == 0 {
            names.push(name.clone());
        }
        model.insert(name, number);
    }
    assert_eq!(table.len(), model.len());
    assert!(model.len() > 800_000, "{}", model.len());
    let mut prefixes = Prefixes::default();
    let mut lengths = [0; 16];
    for name in &names {
        let keep = (rng.next_u64() % 12) as usize;
        for name in [
            name.with_generic(b"longer").with_generic(b"still"),
            name.view().prefix(keep).to_name(),
        ] {
            hasher.prefixes(name.view(), &mut prefixes);
            let found = (0..=name.view().count())
                .rev()
                .find_map(|count| Some((count, model.get(&name.view().prefix(count).to_name())?)));
            lengths[found.map_or(0, |(length, _)| length)] += 1;
            let expected = found.map(|(_, value)| value);
            assert_eq!(table.longest_match(name.view(), &prefixes), expected, "{name}");
        }
    }
    assert!((1..=12).all(|length| length == 3 || lengths[length] > 100), "{lengths:?}");
    for (number, name) in model.keys().enumerate().filter(|(number, _)| number % 3 != 0) {
        assert!(table.remove(&hasher, name.view()).is_some(), "{number} {name}");
    }
    assert_eq!(table.len(), model.len().div_ceil(3));
}
