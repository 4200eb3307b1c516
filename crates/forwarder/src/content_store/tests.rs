//! The store against a plain list that does the same the slow way.

use super::*;
use byname_packet::{Component, DataBuilder, InterestBuilder, Name, NullSigner};
use proptest::prelude::*;

use crate::hash::NameHasher;
use crate::testing::MS;

const FACE: FaceId = FaceId(300);

fn charge(name: &Name, wire: &[u8]) -> usize {
    wire.len().div_ceil(64) * 64 + name.view().value().len() + OVERHEAD_BYTES
}

/// The entries of all packets in the store.
fn kept(store: &ContentStore) -> impl Iterator<Item = &Entry> {
    store.by_hash.iter().filter_map(|(_, index)| store.entry(*index))
}

struct Model {
    /// Oldest use first.
    packets: Vec<(Name, Vec<u8>, u64)>,
    entries_max: usize,
    bytes_max: usize,
}

impl Model {
    fn insert(&mut self, name: &Name, wire: &[u8], fresh_until_ns: u64) {
        if self.entries_max == 0 || charge(name, wire) > self.bytes_max {
            return;
        }
        self.packets.retain(|(known, _, _)| known != name);
        self.packets.push((name.clone(), wire.to_vec(), fresh_until_ns));
        let total = |packets: &[(Name, Vec<u8>, u64)]| -> usize {
            packets.iter().map(|(name, wire, _)| charge(name, wire)).sum()
        };
        while self.packets.len() > self.entries_max || total(&self.packets) > self.bytes_max {
            self.packets.remove(0);
        }
    }

    fn find(&mut self, interest: &Interest<'_>, now_ns: u64) -> Option<Vec<u8>> {
        let usable = |fresh: u64| !interest.must_be_fresh || now_ns < fresh;
        let matching = |(name, wire, fresh): &&(Name, Vec<u8>, u64)| {
            let data = Data::decode(wire).unwrap();
            assert_eq!(data.name, name.view());
            usable(*fresh) && interest.matches(&data)
        };
        let exact_length =
            |name: &Name| name.view() == interest.name || !interest.name.is_prefix_of(name.view());
        let best = self
            .packets
            .iter()
            .filter(matching)
            .max_by_key(|(name, _, _)| (exact_length(name), name.clone()))?;
        let at = self.packets.iter().position(|packet| packet.0 == best.0)?;
        let packet = self.packets.remove(at);
        let wire = packet.1.clone();
        self.packets.push(packet);
        Some(wire)
    }
}

#[derive(Debug, Clone)]
enum Operation {
    Insert { name: Name, freshness_ms: u64, content_len: usize },
    Find { name: Name, can_be_prefix: bool, must_be_fresh: bool, digest_of: Option<bool> },
    Wait(u64),
}

fn a_name() -> impl Strategy<Value = Name> {
    proptest::collection::vec(0u8..8, 1..5).prop_map(|components| {
        let mut name = Name::new();
        for c in components {
            match c {
                0 => name.push_generic(&[0xFF, 0xFF]),
                1 => name.push_generic(b"a"),
                2 => name.push_generic(b""),
                3 => name.push_version(1),
                4 => name.push_segment(0),
                5 => name.push_segment(255),
                6 => name.push_segment(256),
                // A number of two octets where one is enough.
                _ => name.push(Component { typ: types::SEGMENT, value: &[0, 9] }),
            }
        }
        name
    })
}

fn operation() -> impl Strategy<Value = Operation> {
    let digest = proptest::option::weighted(0.2, any::<bool>());
    prop_oneof![
        (a_name(), 0u64..4, 0usize..300).prop_map(|(name, freshness_ms, content_len)| {
            Operation::Insert { name, freshness_ms, content_len }
        }),
        (a_name(), any::<bool>(), any::<bool>(), digest).prop_map(
            |(name, can_be_prefix, must_be_fresh, digest_of)| Operation::Find {
                name,
                can_be_prefix,
                must_be_fresh,
                digest_of
            }
        ),
        (0u64..3).prop_map(Operation::Wait),
    ]
}

struct Pair {
    store: ContentStore,
    model: Model,
    hasher: NameHasher,
    now_ns: u64,
}

impl Pair {
    /// With a store that takes everything in: the model does.
    fn new(entries_max: usize, bytes_max: usize) -> Self {
        let mut store = ContentStore::new(entries_max, bytes_max, CsPolicy::Lru);
        store.admission = Admission::of_everything();
        Self {
            store,
            model: Model { packets: Vec::new(), entries_max, bytes_max },
            hasher: NameHasher::new([1, 2]),
            now_ns: 0,
        }
    }

    fn apply(&mut self, operation: Operation) {
        match operation {
            Operation::Wait(ms) => self.now_ns += ms * MS,
            Operation::Insert { name, freshness_ms, content_len } => {
                let mut wire = Vec::new();
                DataBuilder::new(name.view())
                    .freshness_ms(freshness_ms)
                    .encode(&vec![0; content_len], &NullSigner, &mut wire)
                    .unwrap();
                let mut prefixes = Prefixes::default();
                self.hasher.prefixes(name.view(), &mut prefixes);
                let data = Data::decode(&wire).unwrap();
                self.store.insert(&prefixes, &data, FACE, self.now_ns);
                self.model.insert(&name, &wire, self.now_ns + freshness_ms * MS);
            }
            Operation::Find { name, can_be_prefix, must_be_fresh, digest_of } => {
                let name = self.with_digest(name, digest_of);
                let mut wire = Vec::new();
                InterestBuilder::new(name.view())
                    .can_be_prefix(can_be_prefix)
                    .must_be_fresh(must_be_fresh)
                    .encode(&mut wire);
                let interest = Interest::decode(&wire).unwrap();
                let mut prefixes = Prefixes::default();
                self.hasher.prefixes(interest.name, &mut prefixes);
                let found = self.store.find_match(&interest, &prefixes, FACE, self.now_ns);
                let expected = self.model.find(&interest, self.now_ns);
                let found = found.map(|found| found.packet);
                assert_eq!(found, expected.as_deref(), "{interest:?}");
            }
        }
        assert_eq!(self.store.len(), self.model.packets.len());
        assert!(self.store.len() <= self.store.entries_max);
        assert!(self.store.bytes <= self.store.bytes_max);
    }

    /// The name with the digest of the packet kept under it, or with a wrong one.
    fn with_digest(&self, name: Name, digest_of: Option<bool>) -> Name {
        let Some(right) = digest_of else { return name };
        let kept = self.model.packets.iter().find(|(known, _, _)| *known == name);
        let digest = match kept {
            Some((_, wire, _)) if right => sha256(&[wire]),
            _ => [9; 32],
        };
        name.with(Component { typ: types::IMPLICIT_SHA256_DIGEST, value: &digest })
    }
}

proptest! {
    #[test]
    fn agrees_with_a_plain_list(
        entries_max in 0usize..8,
        bytes_max in 0usize..3000,
        operations in proptest::collection::vec(operation(), 1..80),
    ) {
        let mut pair = Pair::new(entries_max, bytes_max);
        for operation in operations {
            pair.apply(operation);
        }
    }
}

proptest! {
    /// Few packets of few names, so that every one is near many others.
    #[test]
    fn searches_by_prefix_agree_with_a_plain_list(
        inserts in proptest::collection::vec((a_name(), 0u64..3), 1..40),
        searches in proptest::collection::vec((a_name(), any::<bool>()), 1..40),
    ) {
        let mut pair = Pair::new(64, 1 << 20);
        for (name, freshness_ms) in inserts {
            pair.apply(Operation::Insert { name, freshness_ms, content_len: 1 });
        }
        pair.apply(Operation::Wait(1));
        for (mut name, must_be_fresh) in searches {
            if name.view().count() > 1 {
                name.pop();
            }
            let can_be_prefix = true;
            pair.apply(Operation::Find { name, can_be_prefix, must_be_fresh, digest_of: None });
        }
    }
}

#[test]
fn a_full_store_keeps_its_buffers_and_charges_them_in_full() {
    let mut pair = Pair::new(4, 1 << 20);
    for segment in 0..4 {
        let name = Name::new().with_generic(b"f").with_segment(segment);
        pair.apply(Operation::Insert { name, freshness_ms: 0, content_len: 1000 });
    }
    let buffers = |store: &ContentStore| -> Vec<*const u8> {
        let mut buffers: Vec<_> = kept(store).map(|e| e.wire.as_ptr()).collect();
        buffers.sort();
        buffers
    };
    let before = buffers(&pair.store);
    for segment in 4..20 {
        let name = Name::new().with_generic(b"f").with_segment(segment);
        let content_len = 990 + segment as usize % 10;
        pair.apply(Operation::Insert { name, freshness_ms: 0, content_len });
        assert_eq!(buffers(&pair.store), before);
        let held: usize = kept(&pair.store).map(|e| e.wire.capacity()).sum();
        assert!(held + 4 * OVERHEAD_BYTES <= pair.store.bytes);
    }
    let name = Name::new().with_generic(b"small");
    pair.apply(Operation::Insert { name, freshness_ms: 0, content_len: 1 });
    let held: usize = kept(&pair.store).map(|e| e.wire.capacity()).sum();
    assert!(held + 4 * OVERHEAD_BYTES <= pair.store.bytes, "a small packet pins a large buffer");
}

#[test]
fn buffers_are_a_sixteenth_larger_at_most() {
    assert_eq!([1, 64, 65, 2048].map(buffer_bytes), [64, 64, 128, 2048]);
    assert_eq!([8193, 8300, 8704, 8705].map(buffer_bytes), [8704, 8704, 8704, 9216]);
}

#[test]
fn bounds_are_reached_and_what_is_over_goes_at_once() {
    let mut pair = Pair::new(10, 1 << 20);
    let insert = |pair: &mut Pair, number: u8| {
        let name = Name::new().with_generic(&[number]);
        pair.apply(Operation::Insert { name, freshness_ms: 0, content_len: 10 });
    };
    (0..4).for_each(|number| insert(&mut pair, number));
    let bytes: usize = kept(&pair.store).map(Entry::cost_bytes).sum();
    assert_eq!((pair.store.len(), pair.store.bytes()), (4, bytes));
    pair.store.set_entries_max(4);
    assert_eq!(pair.store.len(), 4);
    pair.store.set_entries_max(3);
    assert_eq!((pair.store.len(), pair.store.bytes()), (3, bytes / 4 * 3));
    pair.store.set_bytes_max(bytes / 4 * 3);
    assert_eq!(pair.store.len(), 3);
    pair.store.set_bytes_max(bytes / 4 * 3 - 1);
    assert_eq!(pair.store.len(), 2);
    // What is as large as the whole store is kept alone.
    pair.store.set_bytes_max(bytes / 4);
    assert_eq!(pair.store.len(), 1);
    pair.model = Model { packets: Vec::new(), entries_max: 3, bytes_max: bytes / 4 };
    insert(&mut pair, 9);
    let name = Name::new().with_generic(&[9]);
    assert_eq!(kept(&pair.store).map(Entry::name_value).collect::<Vec<_>>(), [name.view().value()]);
}

#[test]
fn a_closed_store_finds_nothing_and_says_so() {
    let mut pair = Pair::new(10, 1 << 20);
    let name: Name = "/a/b".parse().unwrap();
    pair.apply(Operation::Insert { name: name.clone(), freshness_ms: 0, content_len: 10 });
    let above = Name::new().with_generic(b"a");
    let missing = Name::new().with_generic(b"b");
    assert!(pair.store.has_below(above.view(), &pair.hasher));
    assert!(!pair.store.has_below(missing.view(), &pair.hasher));
    // One hash does not make two names one.
    let hash = pair.hasher.hash(name.view().value());
    assert!(pair.store.find(hash, name.view().value()).is_some());
    assert_eq!(pair.store.find(hash, missing.view().value()), None);
    assert!(pair.store.serves());
    pair.store.set_serves(false);
    assert!(!pair.store.serves());
    let mut wire = Vec::new();
    InterestBuilder::new(name.view()).encode(&mut wire);
    let interest = Interest::decode(&wire).unwrap();
    let mut prefixes = Prefixes::default();
    pair.hasher.prefixes(name.view(), &mut prefixes);
    assert!(pair.store.find_match(&interest, &prefixes, FACE, 0).is_none());
}

#[test]
fn packets_that_wait_to_be_ordered_are_found_whatever_has_gone_before() {
    let mut pair = Pair::new(10_000, 1 << 24);
    let name = |number: u64| {
        Name::new()
            .with_generic(&[number as u8 % 7])
            .with(byname_packet::NumberComponent::new(58, number).as_component())
    };
    for number in 0..1000 {
        pair.apply(Operation::Insert { name: name(number), freshness_ms: 0, content_len: 10 });
    }
    for number in (0..1000).filter(|number| number % 3 != 0) {
        assert_eq!(
            {
                let name = name(number);
                let hash = pair.hasher.hash(name.view().value());
                let index = pair.store.find(hash, name.view().value()).unwrap();
                usize::from(pair.store.remove(index).is_some())
            },
            1
        );
        pair.model.packets.retain(|(known, _, _)| *known != name(number));
    }
    for first in 0..7u8 {
        let prefix = Name::new().with_generic(&[first]);
        let mut wire = Vec::new();
        InterestBuilder::new(prefix.view()).can_be_prefix(true).encode(&mut wire);
        let interest = Interest::decode(&wire).unwrap();
        let mut prefixes = Prefixes::default();
        pair.hasher.prefixes(prefix.view(), &mut prefixes);
        let found =
            pair.store.find_match(&interest, &prefixes, FACE, 0).map(|it| it.packet.to_vec());
        assert_eq!(found, pair.model.find(&interest, 0));
        assert!(found.is_some());
    }
}

/// A full store that a reader of `object` passes through, and what of it is found afterwards.
struct Passing {
    store: ContentStore,
    hasher: NameHasher,
    now_ns: u64,
}

impl Passing {
    fn new() -> Self {
        let store = ContentStore::new(200, 1 << 20, CsPolicy::Lru);
        Self { store, hasher: NameHasher::new([1, 2]), now_ns: 0 }
    }

    /// Asks for a segment as a forwarder would; whether the store had it.
    fn ask(&mut self, by: u64, object: &[u8], segment: u64) -> bool {
        self.now_ns += 1000;
        let name = Name::new().with_generic(object).with_segment(segment);
        let mut prefixes = Prefixes::default();
        self.hasher.prefixes(name.view(), &mut prefixes);
        let mut wire = Vec::new();
        InterestBuilder::new(name.view()).encode(&mut wire);
        let interest = Interest::decode(&wire).unwrap();
        if self.store.find_match(&interest, &prefixes, FaceId(by), self.now_ns).is_some() {
            return true;
        }
        let mut wire = Vec::new();
        DataBuilder::new(name.view()).encode(b"", &NullSigner, &mut wire).unwrap();
        let data = Data::decode(&wire).unwrap();
        self.store.insert(&prefixes, &data, FaceId(by), self.now_ns);
        false
    }
}

#[test]
fn a_reader_that_passes_once_leaves_what_others_use() {
    let mut passing = Passing::new();
    for segment in 0..100 {
        passing.ask(1, b"popular", segment);
    }
    for segment in 0..10_000 {
        passing.ask(2, b"bulk", segment);
    }
    let found = (0..100).filter(|segment| passing.ask(2, b"popular", *segment)).count();
    assert_eq!(found, 100);
}

#[test]
fn a_reader_behind_another_is_answered_from_the_store() {
    for distance in [20, 90, 300] {
        let mut passing = Passing::new();
        for segment in 0..1000 {
            passing.ask(1, b"other", segment);
        }
        let mut found = 0;
        for segment in 0..10_000 {
            passing.ask(1, b"shared", segment);
            if let Some(behind) = segment.checked_sub(distance) {
                found += usize::from(passing.ask(2, b"shared", behind));
            }
        }
        let missed = 10_000 - distance as usize - found;
        match distance {
            // Farther behind than the store reaches.
            300 => assert!(found < 200, "{distance}: {found}"),
            _ => assert!(missed <= 200, "{distance}: {missed}"),
        }
    }
}
