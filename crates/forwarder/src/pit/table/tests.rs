//! What the table counts is what it holds, and it holds no more than it may.

use byname_packet::{Interest, InterestBuilder, Name};

use super::*;

const FACE: FaceId = FaceId(300);

struct Bench {
    pit: Pit,
    hasher: NameHasher,
}

impl Bench {
    fn new(entries_max: usize, bytes_max: usize) -> Self {
        Bench { pit: Pit::new(entries_max, bytes_max), hasher: NameHasher::new([1, 2]) }
    }

    fn insert(&mut self, name: &Name, can_be_prefix: bool) -> Option<PitIndex> {
        let mut wire = Vec::new();
        let builder = InterestBuilder::new(name.view()).can_be_prefix(can_be_prefix);
        builder.nonce([1; 4]).encode(&mut wire);
        let interest = Interest::decode(&wire).unwrap();
        let selectors = Selectors::of(&interest, &self.hasher);
        let mut prefixes = Prefixes::default();
        self.hasher.prefixes(name.view(), &mut prefixes);
        let (name, prefixes, wire) = (name.view(), &prefixes, &wire);
        self.pit.insert(&Request { face: FACE, name, prefixes, selectors, wire, now_ns: 0 })
    }
}

fn with_digest(name: &Name, octet: u8) -> Name {
    name.clone()
        .with(byname_packet::Component { typ: types::IMPLICIT_SHA256_DIGEST, value: &[octet; 32] })
}

#[test]
fn what_is_counted_is_what_is_there_and_nothing_is_left_behind() {
    let mut bench = Bench::new(100, 1 << 20);
    let (one, other): (Name, Name) = ("/a/b".parse().unwrap(), "/c".parse().unwrap());
    let mut indices = Vec::new();
    for name in [&one, &other] {
        for octet in [1, 2, 3] {
            indices.push(bench.insert(&with_digest(name, octet), false).unwrap());
        }
        indices.push(bench.insert(name, true).unwrap());
        indices.push(bench.insert(&name.clone().with_generic(b"x"), true).unwrap());
    }
    let pit = &mut bench.pit;
    let held: usize = indices.iter().filter_map(|it| pit.get(*it)).map(|it| it.wire().len()).sum();
    assert_eq!((pit.len(), pit.bytes()), (10, held));
    assert_eq!(pit.prefix_counts, [0, 1, 2, 1]);
    let parents: Vec<u32> = pit.digest_parents.iter().map(|(_, count)| *count).collect();
    assert_eq!(parents, [3, 3]);
    for (at, index) in indices.iter().enumerate() {
        let bytes = pit.bytes();
        let wire_bytes = pit.remove(*index, |entry| entry.wire().len()).unwrap();
        assert_eq!(pit.bytes(), bytes - wire_bytes);
        let left: u32 = pit.digest_parents.iter().map(|(_, count)| *count).sum();
        assert_eq!(left, [5, 4, 3, 3, 3, 2, 1, 0, 0, 0][at]);
    }
    assert!(pit.digest_parents.is_empty());
    assert_eq!((pit.len(), pit.bytes(), &pit.prefix_counts[..]), (0, 0, &[0; 4][..]));
}

#[test]
fn what_is_larger_than_all_that_there_may_be_finds_no_room_in_an_empty_table() {
    let name: Name = "/a".parse().unwrap();
    assert_eq!(Bench::new(100, 10).insert(&name, false), None);
    assert_eq!(Bench::new(0, 1000).insert(&name, false), None);
    assert!(Bench::new(1, 1000).insert(&name, false).is_some());
}

#[test]
fn a_nonce_is_put_where_the_nonce_is() {
    // Four octets of name, as a nonce has.
    let name: Name = "/ab".parse().unwrap();
    let mut bench = Bench::new(1, 1000);
    let index = bench.insert(&name, false).unwrap();
    let mut wire = Vec::new();
    bench.pit.get(index).unwrap().encode_with_nonce([9; 4], &mut wire);
    let interest = Interest::decode(&wire).unwrap();
    assert_eq!((interest.name, interest.nonce), (name.view(), Some([9; 4])));
}
