//! The verifier: complete in any order, bounded, and never fooled.

use std::collections::HashMap;

use byname_security::tree::{
    Check, Folder, GROUP_BYTES, Hash, NodeId, NodeRejected, Shape, SpanCheck, Tree, UNIT_BYTES,
    Verifier,
};
use proptest::prelude::*;

use super::{SIZES, content, nodes_downwards};

/// Checks a unit as a client does: fetches whatever node is named, until there is an answer.
fn check_fetching(verifier: &mut Verifier, tree: &Tree, unit_index: u64, unit: &[u8]) -> Check {
    for _ in 0..=tree.levels.len() {
        match verifier.check(unit_index, unit) {
            Check::Need(id) => verifier.add_node(id, tree.node(id).unwrap()).unwrap(),
            answer => return answer,
        }
    }
    panic!("a path has no more nodes than the tree has levels");
}

fn loaded(tree: &Tree, size: usize) -> Verifier {
    let mut verifier = Verifier::new(tree.root, size as u64, 64);
    for id in nodes_downwards(tree) {
        verifier.add_node(id, tree.node(id).unwrap()).unwrap();
    }
    verifier
}

#[test]
fn a_node_that_is_held_is_handed_out_as_it_came_and_no_other() {
    let size = SIZES[SIZES.len() - 1];
    let tree = Tree::of(&content(size));
    let ids = nodes_downwards(&tree);
    let (last, others) = ids.split_last().unwrap();
    assert!(!others.is_empty());
    let mut verifier = Verifier::new(tree.root, size as u64, ids.len());
    others.iter().for_each(|id| verifier.add_node(*id, tree.node(*id).unwrap()).unwrap());
    for id in others {
        assert_eq!(verifier.node(*id), tree.node(*id));
    }
    assert_eq!(verifier.node(*last), None);
}

#[test]
fn every_unit_verifies_backwards_with_the_smallest_memory() {
    let bytes = content(SIZES[SIZES.len() - 1]);
    for size in SIZES {
        let bytes = &bytes[..size];
        let tree = Tree::of(bytes);
        let mut verifier = Verifier::new(tree.root, size as u64, 0);
        let units: Vec<&[u8]> =
            if size == 0 { vec![&[]] } else { bytes.chunks(UNIT_BYTES).collect() };
        for (unit_index, unit) in units.iter().enumerate().rev() {
            let unit_index = unit_index as u64;
            let answer = check_fetching(&mut verifier, &tree, unit_index, unit);
            assert_eq!(answer, Check::Verified, "size {size} unit {unit_index}");
            assert!(verifier.node_count() <= tree.levels.len(), "size {size}");
        }
    }
}

#[test]
fn the_topmost_missing_node_is_asked_for_first() {
    let bytes = content(GROUP_BYTES + 1);
    let tree = Tree::of(&bytes);
    let mut verifier = Verifier::new(tree.root, bytes.len() as u64, 8);
    let top = NodeId { level: 2, index: 0 };
    let last = NodeId { level: 1, index: 1 };
    assert_eq!(verifier.check(256, &bytes[GROUP_BYTES..]), Check::Need(top));
    let early = verifier.add_node(last, tree.node(last).unwrap());
    assert_eq!(early, Err(NodeRejected::Need(top)));
    verifier.add_node(top, tree.node(top).unwrap()).unwrap();
    assert_eq!(verifier.check(256, &bytes[GROUP_BYTES..]), Check::Need(last));
    verifier.add_node(last, tree.node(last).unwrap()).unwrap();
    assert_eq!(verifier.check(256, &bytes[GROUP_BYTES..]), Check::Verified);
}

#[test]
fn a_flipped_bit_anywhere_in_a_unit_is_bad() {
    for size in [1, 1024, UNIT_BYTES, UNIT_BYTES + 1, 3 * UNIT_BYTES, GROUP_BYTES + 9] {
        let mut bytes = content(size);
        let tree = Tree::of(&bytes);
        let mut verifier = loaded(&tree, size);
        for offset in [0, size / 2, size - 1] {
            bytes[offset] ^= 0x10;
            let unit = offset / UNIT_BYTES;
            let end = size.min((unit + 1) * UNIT_BYTES);
            let answer = verifier.check(unit as u64, &bytes[unit * UNIT_BYTES..end]);
            assert_eq!(answer, Check::Bad, "size {size} offset {offset}");
            bytes[offset] ^= 0x10;
        }
    }
}

#[test]
fn a_genuine_unit_in_the_wrong_place_or_length_is_bad() {
    let size = 3 * UNIT_BYTES + 7;
    // The first two units have equal content, but different places.
    let mut bytes = content(size);
    bytes.copy_within(..UNIT_BYTES, UNIT_BYTES);
    let tree = Tree::of(&bytes);
    let mut verifier = loaded(&tree, size);
    let unit = |index: usize| &bytes[index * UNIT_BYTES..size.min((index + 1) * UNIT_BYTES)];
    assert_eq!(verifier.check(2, unit(2)), Check::Verified);
    assert_eq!(verifier.check(1, unit(2)), Check::Bad);
    assert_eq!(verifier.check(0, &unit(0)[1..]), Check::Bad);
    assert_eq!(verifier.check(0, &bytes[..2 * UNIT_BYTES]), Check::Bad);
    assert_eq!(verifier.check(0, &[]), Check::Bad);
    assert_eq!(verifier.check(3, unit(3)), Check::Verified);
    assert_eq!(verifier.check(3, &unit(3)[..6]), Check::Bad);
    assert_eq!(verifier.check(3, unit(0)), Check::Bad);
    assert_eq!(verifier.check(4, unit(3)), Check::Bad);
    assert_eq!(verifier.check(u64::MAX, unit(0)), Check::Bad);
}

#[test]
fn one_unit_files_are_checked_against_the_root_itself() {
    let bytes = content(UNIT_BYTES);
    for size in [0, 1, UNIT_BYTES] {
        let mut verifier = Verifier::new(Hash::of(&bytes[..size]), size as u64, 4);
        assert_eq!(verifier.check(0, &bytes[..size]), Check::Verified);
        assert_eq!(verifier.check(1, &bytes[..size]), Check::Bad);
        let node = verifier.add_node(NodeId { level: 1, index: 0 }, &[0; 32]);
        assert_eq!(node, Err(NodeRejected::Bad));
    }
    // The right content under a wrong announced size: the size is part of what is checked.
    let mut verifier = Verifier::new(Hash::of(&bytes[..10]), 11, 4);
    assert_eq!(verifier.check(0, &bytes[..10]), Check::Bad);
    assert_eq!(verifier.check(0, &bytes[..11]), Check::Bad);
}

#[test]
fn nodes_that_are_not_the_signed_ones_are_refused() {
    let bytes = content(2 * GROUP_BYTES + 1);
    let tree = Tree::of(&bytes);
    let mut verifier = Verifier::new(tree.root, bytes.len() as u64, 8);
    let top = NodeId { level: 2, index: 0 };
    let first = NodeId { level: 1, index: 0 };
    for bit in [0, 8 * 32, 8 * 96 - 1] {
        let mut node = tree.node(top).unwrap().to_vec();
        node[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(verifier.add_node(top, &node), Err(NodeRejected::Bad));
    }
    assert_eq!(verifier.add_node(top, &tree.levels[1][..64]), Err(NodeRejected::Bad));
    verifier.add_node(top, tree.node(top).unwrap()).unwrap();
    let second = tree.node(NodeId { level: 1, index: 1 }).unwrap();
    assert_eq!(verifier.add_node(first, second), Err(NodeRejected::Bad));
    for id in [NodeId { level: 0, index: 0 }, NodeId { level: 3, index: 0 }] {
        assert_eq!(verifier.add_node(id, second), Err(NodeRejected::Bad));
    }
    let beyond = NodeId { level: 1, index: u64::MAX };
    assert_eq!(verifier.add_node(beyond, second), Err(NodeRejected::Bad));
    assert_eq!(verifier.add_node(first, &[]), Err(NodeRejected::Bad));
}

#[test]
fn the_right_tree_under_a_wrong_root_or_size_is_refused() {
    let bytes = content(5 * UNIT_BYTES);
    let tree = Tree::of(&bytes);
    let top = NodeId { level: 1, index: 0 };
    let mut wrong_root = Verifier::new(Hash::of(b"other"), bytes.len() as u64, 8);
    assert_eq!(wrong_root.add_node(top, &tree.levels[0]), Err(NodeRejected::Bad));
    let mut wrong_size = Verifier::new(tree.root, bytes.len() as u64 + 1, 8);
    assert_eq!(wrong_size.add_node(top, &tree.levels[0]), Err(NodeRejected::Bad));
}

#[test]
fn a_span_names_its_first_bad_unit() {
    let size = 2 * GROUP_BYTES + 3 * UNIT_BYTES + 100;
    let mut bytes = content(size);
    let tree = Tree::of(&bytes);
    let mut verifier = loaded(&tree, size);
    assert_eq!(verifier.check_span(0, &bytes), SpanCheck::Verified);
    assert_eq!(verifier.check_span(3, &bytes[3 * UNIT_BYTES..]), SpanCheck::Verified);
    for unit_index in [0, 1, 2, 255, 256, 513, 514, 515] {
        bytes[unit_index * UNIT_BYTES + 50] ^= 1;
        let bad = SpanCheck::Bad { unit_index: unit_index as u64 };
        assert_eq!(verifier.check_span(0, &bytes), bad);
        bytes[unit_index * UNIT_BYTES + 50] ^= 1;
    }
    let cut = verifier.check_span(0, &bytes[..UNIT_BYTES + 1]);
    assert_eq!(cut, SpanCheck::Bad { unit_index: 0 });
    assert_eq!(verifier.check_span(0, &[]), SpanCheck::Bad { unit_index: 0 });
    let mut empty = Verifier::new(tree.root, size as u64, 4);
    let need = SpanCheck::Need(NodeId { level: 2, index: 0 });
    assert_eq!(empty.check_span(0, &bytes), need);
}

#[test]
fn a_node_proved_elsewhere_counts_and_may_be_forgotten() {
    let size = 2 * GROUP_BYTES;
    let bytes = content(size);
    let tree = Tree::of(&bytes);
    let id = NodeId { level: 1, index: 1 };
    let node = tree.node(id).unwrap();
    // The root is not known yet: nothing leads from it to this node.
    let mut verifier = Verifier::new(Hash([0; 32]), size as u64, 4);
    assert_eq!(verifier.accept_verified_node(id, &node[1..]), Err(NodeRejected::Bad));
    let beyond = NodeId { level: 1, index: 2 };
    assert_eq!(verifier.accept_verified_node(beyond, node), Err(NodeRejected::Bad));
    verifier.accept_verified_node(id, node).unwrap();
    assert_eq!(verifier.check_span(256, &bytes[GROUP_BYTES..]), SpanCheck::Verified);
    assert_eq!(verifier.check(256, &bytes[..UNIT_BYTES]), Check::Bad);
    verifier.forget_node(id);
    assert!(matches!(verifier.check(256, &bytes[GROUP_BYTES..][..UNIT_BYTES]), Check::Need(_)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Runs of any place and length, cut out of files of any size, with any unit of it bad.
    #[test]
    fn any_span_is_checked_as_its_units_one_by_one(
        size in UNIT_BYTES + 1..40 * UNIT_BYTES,
        start in any::<prop::sample::Index>(),
        count in 1usize..40,
        victim in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = content(size);
        let tree = Tree::of(&bytes);
        let mut verifier = loaded(&tree, size);
        let first = start.index(size.div_ceil(UNIT_BYTES));
        let end = ((first + count) * UNIT_BYTES).min(size);
        let mut expected = SpanCheck::Verified;
        if let Some(victim) = victim {
            let at = first * UNIT_BYTES + victim.index(end - first * UNIT_BYTES);
            bytes[at] ^= 0x10;
            expected = SpanCheck::Bad { unit_index: (at / UNIT_BYTES) as u64 };
        }
        let span = &bytes[first * UNIT_BYTES..end];
        prop_assert_eq!(verifier.check_span(first as u64, span), expected);
    }
}

#[test]
fn forgotten_nodes_are_asked_for_again_and_memory_stays_bounded() {
    let size = 6 * GROUP_BYTES;
    let bytes = content(size);
    let tree = Tree::of(&bytes);
    let mut verifier = Verifier::new(tree.root, size as u64, 3);
    let top = NodeId { level: 2, index: 0 };
    verifier.add_node(top, tree.node(top).unwrap()).unwrap();
    for index in 0..6 {
        let id = NodeId { level: 1, index };
        verifier.add_node(id, tree.node(id).unwrap()).unwrap();
        assert!(verifier.node_count() <= 3);
    }
    // The top node was used by each addition, so the oldest leaf nodes went, not the top.
    let first = verifier.check(0, &bytes[..UNIT_BYTES]);
    assert_eq!(first, Check::Need(NodeId { level: 1, index: 0 }));
    let last = verifier.check(5 * 256, &bytes[5 * GROUP_BYTES..5 * GROUP_BYTES + UNIT_BYTES]);
    assert_eq!(last, Check::Verified);
}

#[test]
fn the_path_above_the_newest_node_is_kept_longest() {
    // Made-up values of three levels, so that no 512 MiB of content are needed.
    let units = 65_537u64;
    let shape = Shape::new(units * UNIT_BYTES as u64);
    let values: Vec<u8> = (0..units).flat_map(|index| Hash::of(&index.to_le_bytes()).0).collect();
    let mut nodes = HashMap::new();
    let mut folder = Folder::new(shape);
    folder
        .push_values(&values, |id, node| {
            nodes.insert(id, node.to_vec());
        })
        .unwrap();
    let mut verifier = Verifier::new(folder.finish().unwrap(), shape.size(), 3);
    // The second leaf pushes out the first, although the top was added long before; so the last
    // node of level 2 can still be checked.
    for (level, index) in [(3, 0), (2, 0), (1, 0), (1, 1), (2, 1)] {
        let id = NodeId { level, index };
        assert_eq!(verifier.add_node(id, &nodes[&id]), Ok(()), "{id:?}");
        assert!(verifier.node_count() <= 3);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever indexes and bytes arrive, the verifier answers; only units of the file verify.
    #[test]
    fn hostile_units_and_nodes_never_panic_and_never_verify(
        size in prop_oneof![0u64..40_000, any::<u64>()],
        unit_index in any::<u64>(),
        level in any::<u8>(),
        index in prop_oneof![0u64..4, any::<u64>()],
        bytes in prop::collection::vec(any::<u8>(), 0..20_000),
    ) {
        let mut verifier = Verifier::new(Hash([7; 32]), size, 2);
        prop_assert_ne!(verifier.check(unit_index, &bytes), Check::Verified);
        prop_assert_ne!(verifier.check(unit_index % 4, &bytes), Check::Verified);
        prop_assert_ne!(verifier.check_span(unit_index, &bytes), SpanCheck::Verified);
        let wild = NodeId { level, index };
        prop_assert!(verifier.add_node(wild, &bytes).is_err());
        let id = NodeId { level: level % 8, index };
        let length = verifier.shape().node_len(id).unwrap_or(0).min(bytes.len());
        prop_assert!(verifier.add_node(id, &bytes[..length]).is_err());
    }
}

/// A node of one value folds to itself, so what its parent says of it would pass for a node.
#[test]
fn a_value_of_the_parent_is_no_node() {
    let size = 2 * GROUP_BYTES;
    let tree = Tree::of(&content(size));
    let top = NodeId { level: 2, index: 0 };
    let mut verifier = Verifier::new(tree.root, size as u64, 8);
    verifier.add_node(top, tree.node(top).unwrap()).unwrap();
    for index in 0..2 {
        let value = &tree.levels[1][index * 32..][..32];
        let id = NodeId { level: 1, index: index as u64 };
        assert_eq!(verifier.add_node(id, value), Err(NodeRejected::Bad));
        assert!(!verifier.has_node(id));
    }
}

#[test]
fn a_root_that_comes_later_is_the_one_that_counts() {
    let size = 2 * GROUP_BYTES + 1;
    let bytes = content(size);
    let tree = Tree::of(&bytes);
    let (top, leaf) = (NodeId { level: 2, index: 0 }, NodeId { level: 1, index: 0 });
    let mut verifier = Verifier::rootless(size as u64, 8);
    // Nothing can be checked against a root that is not known, not even rightly.
    for id in [top, leaf] {
        assert_eq!(verifier.add_node(id, tree.node(id).unwrap()), Err(NodeRejected::Bad));
        assert!(!verifier.has_node(id));
    }
    assert_eq!(verifier.check(0, &bytes[..UNIT_BYTES]), Check::Need(leaf));
    verifier.accept_verified_node(leaf, tree.node(leaf).unwrap()).unwrap();
    assert!(verifier.has_node(leaf));
    verifier.set_root(tree.root);
    assert_eq!(verifier.root(), tree.root);
    assert_eq!(verifier.check(0, &bytes[..UNIT_BYTES]), Check::Verified, "it stays");
    // From now on the way leads from the root.
    let second = &bytes[GROUP_BYTES..][..UNIT_BYTES];
    assert_eq!(verifier.check(256, second), Check::Need(top));
    verifier.add_node(top, tree.node(top).unwrap()).unwrap();
    assert_eq!(verifier.check(256, second), Check::Need(NodeId { level: 1, index: 1 }));
}

#[test]
fn a_file_of_one_unit_is_not_checked_before_its_root_is_known() {
    for size in [0, 10, UNIT_BYTES] {
        let bytes = content(size);
        let mut verifier = Verifier::rootless(size as u64, 8);
        assert_eq!(verifier.check(0, &bytes), Check::Bad);
        verifier.set_root(Hash::of(&bytes));
        assert_eq!(verifier.check(0, &bytes), Check::Verified);
        verifier.set_root(Hash::of(b"another"));
        assert_eq!(verifier.check(0, &bytes), Check::Bad);
    }
}

#[test]
fn fewer_nodes_are_kept_when_asked_for_and_those_used_last_stay() {
    let size = 6 * GROUP_BYTES;
    let bytes = content(size);
    let tree = Tree::of(&bytes);
    let unit = |index: usize| &bytes[index * GROUP_BYTES..][..UNIT_BYTES];
    let leaf = |index: usize| NodeId { level: 1, index: index as u64 };
    // Nodes lie in a map without an order, so that a mistake shows in some rounds only.
    for round in 0..20 {
        let mut verifier = loaded(&tree, size);
        assert_eq!(verifier.node_count(), 7);
        verifier.keep_nodes(7);
        assert_eq!(verifier.node_count(), 7);
        let order = [4, 1, 5, 0, 3, 2].map(|index| (index + round) % 6);
        for index in order {
            assert_eq!(verifier.check(index as u64 * 256, unit(index)), Check::Verified);
        }
        // Checks do not need the top, so it was used longest ago and goes first.
        for kept in (2..7).rev() {
            verifier.keep_nodes(kept);
            let found: Vec<usize> =
                (0..6).filter(|index| verifier.has_node(leaf(*index))).collect();
            let mut newest = order[6 - kept..].to_vec();
            newest.sort_unstable();
            assert_eq!(found, newest, "{kept} of {order:?}");
            assert_eq!(verifier.node_count(), kept);
        }
        verifier.keep_nodes(0);
        assert_eq!(verifier.node_count(), 2, "a path has room in any case");
    }
}
