//! Shapes and roots.

use byname_security::tree::{
    BuildError, FANOUT, Folder, GROUP_BYTES, Hash, LEVELS_MAX, NodeId, ParseHashError, Shape,
    SpanError, Tree, TreeBuilder, UNIT_BYTES,
};
use proptest::prelude::*;

use super::{SIZES, content};

const UNIT: u64 = UNIT_BYTES as u64;
const GROUP: u64 = GROUP_BYTES as u64;

#[test]
fn the_root_is_the_ordinary_blake3_hash_at_every_boundary() {
    let bytes = content(SIZES[SIZES.len() - 1]);
    for size in SIZES {
        let tree = Tree::of(&bytes[..size]);
        assert_eq!(tree.root, Hash(*blake3::hash(&bytes[..size]).as_bytes()), "size {size}");
    }
}

#[test]
fn three_levels_fold_to_the_ordinary_hash_around_65536_units() {
    let block = content(GROUP_BYTES + 251);
    for size in [FANOUT as u64 * GROUP - 1, FANOUT as u64 * GROUP, FANOUT as u64 * GROUP + 1] {
        let mut builder = TreeBuilder::new(size);
        let mut reference = blake3::Hasher::new();
        let mut offset = 0;
        while offset < size {
            let length = (size - offset).min(GROUP) as usize;
            let start = (offset % 251) as usize;
            builder.push(&block[start..start + length]).unwrap();
            reference.update(&block[start..start + length]);
            offset += length as u64;
        }
        let tree = builder.finish().unwrap();
        assert_eq!(tree.root.0, *reference.finalize().as_bytes(), "size {size}");
        let levels = if size > FANOUT as u64 * GROUP { 3 } else { 2 };
        assert_eq!(tree.levels.len(), levels, "size {size}");
    }
}

#[test]
fn level_counts_follow_from_the_size() {
    let cases: [(u64, &[u64]); 12] = [
        (0, &[]),
        (1, &[]),
        (UNIT, &[]),
        (UNIT + 1, &[2]),
        (256 * UNIT, &[256]),
        (256 * UNIT + 1, &[257, 2]),
        (65536 * UNIT - 1, &[65536, 256]),
        (65536 * UNIT, &[65536, 256]),
        (65536 * UNIT + 1, &[65537, 257, 2]),
        (128 << 30, &[1 << 24, 1 << 16, 256]),
        (32 << 40, &[1 << 32, 1 << 24, 1 << 16, 256]),
        (u64::MAX, &[1 << 51, 1 << 43, 1 << 35, 1 << 27, 1 << 19, 1 << 11, 8]),
    ];
    for (size, entries) in cases {
        let shape = Shape::new(size);
        assert_eq!(shape.level_count() as usize, entries.len(), "size {size}");
        for (level, count) in (1..).zip(entries) {
            assert_eq!(shape.entries(level), *count, "size {size} level {level}");
            assert_eq!(shape.level_bytes(level), count * 32, "size {size} level {level}");
        }
        assert_eq!(shape.entries(entries.len() as u8 + 1), 0);
        assert_eq!(shape.entries(0), 0);
        assert_eq!(shape.entries(u8::MAX), 0);
    }
    assert_eq!(Shape::new(u64::MAX).level_count() as usize, LEVELS_MAX);
}

#[test]
fn the_last_node_and_the_last_unit_are_short() {
    let shape = Shape::new(257 * UNIT + 3);
    assert_eq!(shape.unit_count(), 258);
    assert_eq!(shape.unit_len(256), Some(UNIT_BYTES));
    assert_eq!(shape.unit_len(257), Some(3));
    assert_eq!(shape.unit_len(258), None);
    assert_eq!(shape.node_len(NodeId { level: 1, index: 0 }), Some(8192));
    assert_eq!(shape.node_len(NodeId { level: 1, index: 1 }), Some(64));
    assert_eq!(shape.node_len(NodeId { level: 1, index: 2 }), None);
    assert_eq!(shape.node_len(NodeId { level: 2, index: 0 }), Some(64));
    assert_eq!(shape.node_len(NodeId { level: 3, index: 0 }), None);
    assert_eq!(shape.node_len(NodeId { level: 0, index: 0 }), None);
    assert_eq!(shape.node_of_unit(257), Some(NodeId { level: 1, index: 1 }));
    assert_eq!(shape.node_of_unit(258), None);
    let top = NodeId { level: 2, index: 0 };
    assert_eq!(shape.parent(NodeId { level: 1, index: 1 }), Some(top));
    assert_eq!(shape.parent(top), None);
}

#[test]
fn a_node_of_one_value_moves_up_unchanged() {
    let tree = Tree::of(&content(GROUP_BYTES + 1));
    let lonely = tree.node(NodeId { level: 1, index: 1 }).unwrap();
    assert_eq!(lonely.len(), 32);
    assert_eq!(&tree.levels[1][32..], lonely);
}

#[test]
fn hashing_a_group_gives_its_level_1_node_and_folds_in_any_batching() {
    let bytes = content(2 * GROUP_BYTES + 3 * UNIT_BYTES + 1);
    let tree = Tree::of(&bytes);
    let shape = Shape::new(bytes.len() as u64);
    let mut values = Vec::new();
    for (group, run) in (0..).zip(bytes.chunks(GROUP_BYTES)) {
        let mut node = Vec::new();
        shape.hash_units(group * FANOUT as u64, run, &mut node).unwrap();
        assert_eq!(tree.node(NodeId { level: 1, index: group }), Some(&node[..]));
        values.extend(node);
    }
    for batch in [32, 96, 8192, 8224, values.len()] {
        let mut folder = Folder::new(shape);
        let mut nodes = Vec::new();
        for part in values.chunks(batch) {
            folder.push_values(part, |id, node| nodes.push((id, node.to_vec()))).unwrap();
        }
        assert_eq!(folder.finish().unwrap(), tree.root, "batch {batch}");
        assert_eq!(nodes.len(), 4);
        for (id, node) in nodes {
            assert_eq!(tree.node(id), Some(&node[..]), "{id:?}");
        }
    }
}

#[test]
fn runs_that_are_not_whole_units_are_refused_before_hashing() {
    let shape = Shape::new(3 * UNIT + 10);
    let bytes = content(4 * UNIT_BYTES);
    let mut out = Vec::new();
    for (unit_index, length) in
        [(0, 0), (0, 1), (0, 8193), (1, 3 * UNIT_BYTES), (3, 9), (3, 11), (3, UNIT_BYTES)]
    {
        let refused = shape.hash_units(unit_index, &bytes[..length], &mut out);
        assert_eq!(refused, Err(SpanError::Length { unit_index, length }));
    }
    for unit_index in [4, u64::MAX / UNIT + 1, u64::MAX] {
        let refused = shape.hash_units(unit_index, &bytes, &mut out);
        assert_eq!(refused, Err(SpanError::BeyondEnd { unit_index, unit_count: 4 }));
    }
    assert!(out.is_empty());
    assert_eq!(shape.hash_units(3, &bytes[..10], &mut out), Ok(()));
    assert_eq!(out.len(), 32);
}

#[test]
fn content_of_another_size_than_announced_is_an_error() {
    for size in [0, 1, UNIT, UNIT + 1, GROUP + 1] {
        let bytes = content(size as usize + 1);
        let mut long = TreeBuilder::new(size);
        assert_eq!(long.push(&bytes), Err(BuildError::TooLong { size }));
        let mut short = TreeBuilder::new(size + 1);
        short.push(&bytes[1..]).unwrap();
        let refused = short.finish().unwrap_err();
        assert_eq!(refused, BuildError::TooShort { size: size + 1, received: size });
    }
    let mut folder = Folder::new(Shape::new(2 * UNIT));
    assert_eq!(folder.push_values(&[0; 33], |_, _| ()), Err(BuildError::Unaligned { length: 33 }));
    let refused = folder.push_values(&[0; 96], |_, _| ());
    assert_eq!(refused, Err(BuildError::TooLong { size: 2 * UNIT }));
    folder.push_values(&[0; 32], |_, _| ()).unwrap();
    let refused = folder.push_values(&[0; 64], |_, _| ());
    assert_eq!(refused, Err(BuildError::TooLong { size: 2 * UNIT }));
    let mut builder = TreeBuilder::new(2 * UNIT);
    builder.push(&content(UNIT_BYTES)).unwrap();
    let refused = builder.push(&content(UNIT_BYTES + 1));
    assert_eq!(refused, Err(BuildError::TooLong { size: 2 * UNIT }));
    let refused = folder.finish().unwrap_err();
    assert_eq!(refused, BuildError::TooShort { size: 2 * UNIT, received: UNIT });
}

#[test]
fn a_hash_prints_as_b3sum_does_and_reads_back() {
    let hash = Hash::of(b"");
    let text = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";
    assert_eq!(hash.to_string(), text);
    assert_eq!(text.parse::<Hash>().unwrap(), hash);
    assert_eq!(format!("{hash:?}"), format!("Hash({text})"));
    assert_eq!(hash.as_bytes(), blake3::hash(b"").as_bytes());
    assert_eq!("af13".parse::<Hash>(), Err(ParseHashError::Length { length: 4 }));
    let bad = text.replace("f3262", "f326é");
    assert_eq!(bad.parse::<Hash>(), Err(ParseHashError::Digit { position: 63 }));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// However the content is cut into pieces, the root is BLAKE3's.
    #[test]
    fn any_content_in_any_pieces_has_the_root_of_blake3(
        size in 0usize..3 * GROUP_BYTES / 2,
        seed in any::<u8>(),
        pieces in prop::collection::vec(1usize..100_000, 1..20),
    ) {
        let bytes: Vec<u8> = content(size).iter().map(|byte| byte ^ seed).collect();
        let mut builder = TreeBuilder::new(size as u64);
        let mut rest = &bytes[..];
        for piece in pieces.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (head, tail) = rest.split_at((*piece).min(rest.len()));
            builder.push(head).unwrap();
            rest = tail;
        }
        let tree = builder.finish().unwrap();
        prop_assert_eq!(tree.root.0, *blake3::hash(&bytes).as_bytes());
        let shape = Shape::new(size as u64);
        for (level, values) in (1..).zip(&tree.levels) {
            prop_assert_eq!(values.len() as u64, shape.level_bytes(level));
        }
    }
}
