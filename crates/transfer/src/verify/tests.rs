//! A file and its tree in memory, cut into segments of any size and mangled in transit.

use super::*;
use byname_security::tree::{Tree, TreeBuilder};
use proptest::prelude::*;

mod whole;

struct Source {
    bytes: Vec<u8>,
    tree: Tree,
    segment_bytes: usize,
}

impl Source {
    fn new(size: usize, segment_bytes: usize) -> Self {
        let bytes: Vec<u8> = (0..size).map(|at| (at / 3 + at / 257 * 7) as u8).collect();
        let mut builder = TreeBuilder::new(size as u64);
        builder.push(&bytes).expect("the size is right");
        Source { bytes, tree: builder.finish().expect("the size is right"), segment_bytes }
    }

    fn part(&self, part: Part) -> &[u8] {
        match part {
            Part::Content => &self.bytes,
            Part::Tree(level) => &self.tree.levels[usize::from(level) - 1],
        }
    }

    fn segment(&self, part: Part, segment: u64) -> Vec<u8> {
        let bytes = self.part(part);
        let start = segment as usize * self.segment_bytes;
        bytes[start..(start + self.segment_bytes).min(bytes.len())].to_vec()
    }

    fn verifier(&self) -> Verifier {
        let size = self.bytes.len() as u64;
        Verifier::new(self.tree.root, size, self.segment_bytes as u64, UnitSet::default())
    }
}

fn fault(verifier: &mut Verifier) -> Option<Fault> {
    verifier.poll_fault().map(|(fault, _)| fault)
}

/// Gives all segments in an order decided by `seed`; `mangle` may change them. Returns what was
/// handed out, whether all of it was verified, and the faults.
fn transfer(
    source: &Source,
    seed: u64,
    mangle: &mut dyn FnMut(Part, u64, &mut Vec<u8>),
) -> (Vec<u8>, u64, Vec<Fault>) {
    let mut verifier = source.verifier();
    // Half of all runs buffer spans, and settle more or less often.
    let is_gathering = seed & 2 == 0;
    if is_gathering {
        verifier.buffer_spans();
    }
    let mut received = vec![0; source.bytes.len()];
    let mut out = |offset: u64, bytes: &[u8]| {
        received[offset as usize..offset as usize + bytes.len()].copy_from_slice(bytes);
    };
    let last = verifier.last_segment(Part::Content).expect("there is content");
    let mut order: Vec<u64> = (0..=last).collect();
    // A quarter in order, a quarter nearly so, the others in none.
    match seed >> 2 & 3 {
        0 => {}
        1 => order.chunks_mut(5).for_each(<[u64]>::reverse),
        _ => order.sort_by_key(|segment| (segment + 1).wrapping_mul(seed | 1)),
    }
    for (at, segment) in order.into_iter().enumerate() {
        if (at as u64).is_multiple_of(3) {
            verifier.prepare(segment);
        }
        let mut bytes = source.segment(Part::Content, segment);
        mangle(Part::Content, segment, &mut bytes);
        verifier.handle_segment(Part::Content, segment, &bytes, &mut out);
        while let Some(node) = verifier.poll_need() {
            let part = Part::Tree(node.level);
            for segment in verifier.segments_of(part, node.index).expect("the level exists") {
                let mut bytes = source.segment(part, segment);
                mangle(part, segment, &mut bytes);
                verifier.handle_segment(part, segment, &bytes, &mut out);
            }
        }
        if (at as u64).is_multiple_of(1 + (seed >> 4) % 40) || segment == last {
            verifier.settle(&mut out);
        }
    }
    while verifier.has_buffered_spans()
        || verifier.poll_need().is_some_and(|node| {
            let part = Part::Tree(node.level);
            for segment in verifier.segments_of(part, node.index).expect("the level exists") {
                let mut bytes = source.segment(part, segment);
                mangle(part, segment, &mut bytes);
                verifier.handle_segment(part, segment, &bytes, &mut out);
            }
            true
        })
    {
        verifier.settle(&mut out);
    }
    let faults = std::iter::from_fn(|| fault(&mut verifier)).collect();
    (received, verifier.verified().count(), faults)
}

fn unit_count(size: usize) -> u64 {
    size.div_ceil(UNIT_BYTES).max(1) as u64
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_size_segment_size_and_order_comes_out_whole(
        size in prop_oneof![0usize..40_000, 2_000_000usize..2_200_000],
        segment_bytes in prop_oneof![Just(8192usize), Just(4096), Just(1024), 700usize..9000],
        seed in any::<u64>(),
    ) {
        let source = Source::new(size, segment_bytes);
        let (received, count, faults) = transfer(&source, seed, &mut |_, _, _| {});
        prop_assert_eq!(faults, []);
        prop_assert_eq!(count, unit_count(size));
        prop_assert!(received == source.bytes);
    }

    #[test]
    fn one_flipped_bit_anywhere_is_found_and_never_handed_out(
        size in 1usize..2_200_000,
        segment_bytes in prop_oneof![Just(8192usize), Just(1024)],
        seed in any::<u64>(),
        victim in any::<prop::sample::Index>(),
        bit in 0u8..8,
        is_tree in any::<bool>(),
    ) {
        let source = Source::new(size, segment_bytes);
        let part = if is_tree && size > UNIT_BYTES { Part::Tree(1) } else { Part::Content };
        let at = victim.index(source.part(part).len());
        let (received, count, faults) = transfer(&source, seed, &mut |which, segment, bytes| {
            if which == part && segment as usize == at / segment_bytes {
                bytes[at % segment_bytes] ^= 1 << bit;
            }
        });
        prop_assert!(!faults.is_empty());
        prop_assert!(count < unit_count(size));
        for (unit, bytes) in received.chunks(UNIT_BYTES).enumerate() {
            let start = unit * UNIT_BYTES;
            let is_verified = bytes == &source.bytes[start..start + bytes.len()];
            prop_assert!(is_verified || bytes.iter().all(|byte| *byte == 0));
        }
    }

    #[test]
    fn a_segment_cut_short_or_made_longer_is_found_and_never_handed_out(
        size in 1usize..600_000,
        segment_bytes in prop_oneof![Just(8192usize), Just(1024), 700usize..9000],
        seed in any::<u64>(),
        victim in any::<prop::sample::Index>(),
        change in prop_oneof![-9000isize..0, 1isize..9000],
        is_tree in any::<bool>(),
    ) {
        let source = Source::new(size, segment_bytes);
        let part = if is_tree && size > UNIT_BYTES { Part::Tree(1) } else { Part::Content };
        let segment_count = source.part(part).len().div_ceil(segment_bytes);
        let victim = victim.index(segment_count) as u64;
        let (received, count, faults) = transfer(&source, seed, &mut |which, segment, bytes| {
            if which == part && segment == victim {
                bytes.resize(bytes.len().saturating_add_signed(change), 7);
            }
        });
        let expected = Fault::Segment { part, segment: victim };
        prop_assert!(faults.contains(&expected));
        prop_assert!(count < unit_count(size));
        for (unit, bytes) in received.chunks(UNIT_BYTES).enumerate() {
            let start = unit * UNIT_BYTES;
            let is_verified = bytes == &source.bytes[start..start + bytes.len()];
            prop_assert!(is_verified || bytes.iter().all(|byte| *byte == 0));
        }
    }

    #[test]
    fn under_another_size_an_object_is_never_whole(
        size in 8193usize..300_000,
        change in prop_oneof![-8000i64..0, 1i64..8000],
        seed in any::<u64>(),
    ) {
        // The root is right, but the description claims less or more.
        let source = Source::new(size, 8192);
        let claimed = size.saturating_add_signed(change as isize).max(1) as u64;
        let mut verifier = Verifier::new(source.tree.root, claimed, 8192, UnitSet::default());
        if seed & 1 == 0 {
            verifier.buffer_spans();
        }
        let mut bytes = source.bytes.clone();
        bytes.resize(claimed as usize, 0);
        // Units before the end are the same; the end itself cannot be verified.
        let mut out = |offset: u64, bytes: &[u8]| {
            let start = offset as usize;
            assert!(bytes == &source.bytes[start..start + bytes.len()]);
        };
        for segment in 0..=verifier.last_segment(Part::Content).expect("there is content") {
            let start = segment as usize * 8192;
            let segment_bytes = &bytes[start..(start + 8192).min(bytes.len())];
            verifier.handle_segment(Part::Content, segment, segment_bytes, &mut out);
        }
        verifier.settle(&mut out);
        for level in 1..=verifier.level_count() {
            let mut node = source.tree.levels[usize::from(level) - 1].clone();
            node.resize(claimed.div_ceil(8192) as usize * 32, 0);
            verifier.handle_segment(Part::Tree(level), 0, &node, &mut out);
        }
        verifier.settle(&mut out);
        prop_assert!(verifier.verified().count() < unit_count(claimed as usize));
    }
}

#[test]
fn a_wrong_length_is_a_fault_of_the_segment() {
    let source = Source::new(20_000, 8192);
    let (_, _, faults) = transfer(&source, 0, &mut |part, segment, bytes| {
        if part == Part::Content && segment == 2 {
            bytes.push(0);
        }
    });
    assert_eq!(faults, [Fault::Segment { part: Part::Content, segment: 2 }]);
}

#[test]
fn units_that_are_there_already_are_not_handed_out_again() {
    let source = Source::new(3 * UNIT_BYTES, 8192);
    let mut there = UnitSet::default();
    there.insert(1);
    let mut verifier = Verifier::new(source.tree.root, 3 * 8192, 8192, there);
    let mut offsets = Vec::new();
    let mut out = |offset: u64, _: &[u8]| offsets.push(offset);
    verifier.handle_segment(Part::Tree(1), 0, &source.segment(Part::Tree(1), 0), &mut out);
    assert_eq!(verifier.poll_need(), None, "a node nobody asked for is not taken");
    for segment in 0..3 {
        let bytes = source.segment(Part::Content, segment);
        verifier.handle_segment(Part::Content, segment, &bytes, &mut out);
    }
    assert_eq!(verifier.poll_need(), Some(NodeId { level: 1, index: 0 }));
    verifier.handle_segment(Part::Tree(1), 0, &source.segment(Part::Tree(1), 0), &mut out);
    assert_eq!(offsets, [0, 2 * 8192]);
}

#[test]
fn a_bad_unit_can_be_repaired_by_its_segments() {
    let source = Source::new(50_000, 3000);
    let mut verifier = source.verifier();
    let mut received = 0;
    let mut out = |_: u64, bytes: &[u8]| received += bytes.len();
    verifier.prepare(0);
    while let Some(node) = verifier.poll_need() {
        let part = Part::Tree(node.level);
        for segment in verifier.segments_of(part, node.index).expect("exists") {
            verifier.handle_segment(part, segment, &source.segment(part, segment), &mut out);
        }
    }
    for segment in 0..=16 {
        let mut bytes = source.segment(Part::Content, segment);
        bytes[0] ^= u8::from(segment == 5);
        verifier.handle_segment(Part::Content, segment, &bytes, &mut out);
    }
    let Some(Fault::Block { part, block }) = fault(&mut verifier) else { panic!("no fault") };
    assert_eq!((part, block, fault(&mut verifier)), (Part::Content, 1, None));
    for segment in verifier.segments_of(part, block).expect("exists") {
        let bytes = source.segment(part, segment);
        verifier.handle_segment(part, segment, &bytes, &mut out);
    }
    assert_eq!(received, 50_000);
    assert_eq!(verifier.room(), BLOCKS_MAX, "nothing was begun anew beside the bad unit");
}

#[test]
fn what_waits_is_counted_against_the_room() {
    let source = Source::new(2_000_000, 8192);
    let mut verifier = source.verifier();
    for segment in 0..100 {
        let bytes = source.segment(Part::Content, segment);
        verifier.handle_segment(Part::Content, segment, &bytes, &mut |_, _| {});
    }
    assert_eq!(verifier.room(), BLOCKS_MAX - 100);
}

#[test]
fn units_the_owner_has_are_checked_and_not_handed_out() {
    let source = Source::new(4 * UNIT_BYTES, 8192);
    let mut verifier = source.verifier();
    let unit = |index: usize| &source.bytes[index * UNIT_BYTES..(index + 1) * UNIT_BYTES];
    verifier.prepare_unit(0);
    assert_eq!(verifier.poll_need(), Some(NodeId { level: 1, index: 0 }));
    verifier.handle_local(0, unit(0));
    verifier.handle_local(1, unit(2));
    assert_eq!(verifier.verified().count(), 0);
    let mut out = |_: u64, _: &[u8]| panic!("it is there already");
    verifier.handle_segment(Part::Tree(1), 0, &source.segment(Part::Tree(1), 0), &mut out);
    verifier.handle_local(3, unit(3));
    verifier.handle_local(2, &[]);
    assert_eq!(verifier.verified().iter().collect::<Vec<_>>(), [0, 3]);
    let faults: Vec<Fault> = std::iter::from_fn(|| fault(&mut verifier)).collect();
    assert_eq!(faults, [Fault::Local { unit: 1 }, Fault::Local { unit: 2 }]);
    assert_eq!(verifier.room(), BLOCKS_MAX, "nothing waits any more");
}

#[test]
fn each_unit_that_waits_counts_once_whoever_has_it_and_however_often_it_came() {
    let source = Source::new(2_000_000, 8192);
    let mut verifier = source.verifier();
    let mut out = |_: u64, _: &[u8]| {};
    let unit = |index: u64| source.segment(Part::Content, index);
    for index in (0..10).chain(0..10) {
        verifier.handle_local(index, &unit(index));
    }
    assert_eq!(verifier.room(), BLOCKS_MAX - 10);
    for index in 10..15 {
        verifier.handle_segment(Part::Content, index, &unit(index), &mut out);
    }
    assert_eq!(verifier.room(), BLOCKS_MAX - 15);
    // What the owner has takes the place of what came, and the other way round.
    verifier.handle_local(14, &unit(14));
    verifier.handle_segment(Part::Content, 0, &unit(0), &mut out);
    assert_eq!(verifier.room(), BLOCKS_MAX - 15);
}

#[test]
fn a_table_with_more_than_it_may_hold_is_named() {
    let source = Source::new((BLOCKS_MAX + 2) * UNIT_BYTES, UNIT_BYTES / 2);
    let mut verifier = source.verifier();
    let mut give = |segment: u64| {
        let bytes = source.segment(Part::Content, segment);
        verifier.handle_segment(Part::Content, segment, &bytes, &mut |_, _| {});
        (verifier.overfull(), verifier.segments_room())
    };
    // Two segments make a unit, which waits for its node.
    for segment in 0..2 * BLOCKS_MAX as u64 - 1 {
        assert_eq!(give(segment).0, None, "{segment}");
    }
    assert_eq!(give(2 * BLOCKS_MAX as u64 - 1), (None, 0));
    let blocks = "blocks that are not verified";
    let overfull = Some((blocks, BLOCKS_MAX + 1, BLOCKS_MAX));
    assert_eq!(give(2 * BLOCKS_MAX as u64), (overfull, 0), "half a unit is one block more");
}

#[test]
fn segments_that_are_no_units_may_all_have_to_wait() {
    let source = Source::new(20 * UNIT_BYTES, UNIT_BYTES / 2);
    let mut verifier = source.verifier();
    let bytes = source.segment(Part::Content, 0);
    verifier.handle_segment(Part::Content, 0, &bytes, &mut |_, _| {});
    assert_eq!(verifier.segments_room(), BLOCKS_MAX - 1);
}

/// More than 512 MiB have two nodes of level 2; of the content one unit is enough.
#[test]
fn nodes_that_came_before_the_one_above_them_are_not_lost() {
    const UNITS: u64 = CHILDREN * CHILDREN + 2;
    let size = UNITS * UNIT_BYTES as u64;
    let mut builder = TreeBuilder::new(size);
    let zeros = vec![0; 64 * UNIT_BYTES];
    let mut left = size as usize;
    while left > 0 {
        let bytes = &zeros[..left.min(zeros.len())];
        builder.push(bytes).expect("the size is right");
        left -= bytes.len();
    }
    let tree = builder.finish().expect("the size is right");
    let mut verifier = Verifier::new(tree.root, size, 8192, UnitSet::default());
    let mut offsets = Vec::new();
    let mut out = |offset: u64, _: &[u8]| offsets.push(offset / UNIT_BYTES as u64);
    verifier.prepare(UNITS - 1);
    let needs: Vec<NodeId> = std::iter::from_fn(|| verifier.poll_need()).collect();
    let path = [(1, CHILDREN), (2, 1), (3, 0)].map(|(level, index)| NodeId { level, index });
    assert_eq!(needs, path);
    verifier.handle_segment(Part::Content, UNITS - 1, &zeros[..UNIT_BYTES], &mut out);
    for node in path {
        let level = &tree.levels[usize::from(node.level) - 1];
        let bytes = level.chunks(UNIT_BYTES).nth(node.index as usize).expect("it is there");
        verifier.handle_segment(Part::Tree(node.level), node.index, bytes, &mut out);
    }
    assert_eq!(offsets, [UNITS - 1]);
}

#[test]
fn neighbours_are_handed_out_together_and_a_bad_one_alone_is_held_back() {
    let source = Source::new(40 * UNIT_BYTES + 77, 8192);
    let mut verifier = source.verifier();
    verifier.buffer_spans();
    let mut pieces = Vec::new();
    verifier.prepare(0);
    verifier.handle_segment(Part::Tree(1), 0, &source.segment(Part::Tree(1), 0), &mut |_, _| {});
    for segment in 0..=40 {
        let mut bytes = source.segment(Part::Content, segment);
        bytes[9] ^= u8::from(segment == 20);
        let mut out = |offset, bytes: &[u8]| pieces.push((offset / 8192, bytes.len()));
        verifier.handle_segment(Part::Content, segment, &bytes, &mut out);
    }
    assert!(!verifier.has_buffered_spans(), "the end of the file has come");
    let alone = (16..32).filter(|unit| *unit != 20).map(|unit| (unit, UNIT_BYTES));
    let expected: Vec<(u64, usize)> = [(0, 16 * UNIT_BYTES)]
        .into_iter()
        .chain(alone)
        .chain([(32, 8 * UNIT_BYTES + 77)])
        .collect();
    assert_eq!(pieces, expected);
    assert_eq!(fault(&mut verifier), Some(Fault::Block { part: Part::Content, block: 20 }));
    let mut again = Vec::new();
    let bytes = source.segment(Part::Content, 20);
    verifier.handle_segment(Part::Content, 20, &bytes, &mut |_, _| {});
    assert!(!verifier.is_idle() && verifier.has_buffered_spans());
    verifier.settle(&mut |offset, bytes| again.push((offset / 8192, bytes.len())));
    assert_eq!(again, [(20, UNIT_BYTES)]);
    assert!(verifier.is_idle() && verifier.verified().count() == 41);
}

#[test]
fn many_segments_may_be_under_way_once_their_nodes_are_here() {
    let source = Source::new(2 * 256 * UNIT_BYTES, 8192);
    let mut verifier = source.verifier();
    (0..BLOCKS_MAX as u64).for_each(|_| verifier.prepare(3));
    assert_eq!(verifier.segments_room(), 0, "all of them would have to wait");
    while let Some(node) = verifier.poll_need() {
        let part = Part::Tree(node.level);
        let bytes = source.segment(part, node.index);
        verifier.handle_segment(part, node.index, &bytes, &mut |_, _| {});
    }
    assert_eq!(verifier.segments_room(), SEGMENTS_MAX);
    verifier.prepare(3);
    assert_eq!(verifier.room(), BLOCKS_MAX, "its node is here");
}

#[test]
fn nodes_are_asked_for_ahead_but_not_beyond_what_is_wanted() {
    let size = 10 * 256 * UNIT_BYTES as u64;
    let mut verifier = Verifier::new(Hash([1; 32]), size, 8192, UnitSet::default());
    let needs = |verifier: &mut Verifier| {
        std::iter::from_fn(|| verifier.poll_need())
            .map(|it| (it.level, it.index))
            .collect::<Vec<_>>()
    };
    verifier.prepare(300);
    assert_eq!(needs(&mut verifier), [(1, 1), (2, 0)]);
    verifier.prefetch_nodes(300, 600, 2000);
    assert_eq!(needs(&mut verifier), [(1, 2), (1, 3)]);
    verifier.prefetch_nodes(300, 100_000, 1300);
    assert_eq!(needs(&mut verifier), [(1, 4), (1, 5)]);
}

#[test]
fn nodes_asked_for_ahead_are_bounded_and_begin_beyond_the_segment() {
    let size = 200 * CHILDREN * UNIT_BYTES as u64;
    let mut verifier = Verifier::new(Hash([1; 32]), size, 8192, UnitSet::default());
    verifier.prefetch_nodes(0, u64::MAX, 200 * CHILDREN - 1);
    let needs: Vec<NodeId> = std::iter::from_fn(|| verifier.poll_need()).collect();
    assert_eq!(needs[..2], [(1, 1), (2, 0)].map(|(level, index)| NodeId { level, index }));
    assert_eq!(needs.len(), NODES_MAX / 2);
}

#[test]
fn candidates_are_handed_out_when_their_node_proves_them() {
    let source = Source::new(4 * UNIT_BYTES, 8192);
    let mut verifier = source.verifier();
    let unit = |index: usize| &source.bytes[index * UNIT_BYTES..(index + 1) * UNIT_BYTES];
    verifier.prepare_unit(0);
    verifier.handle_candidate(0, unit(0), &mut |_, _| panic!("nothing is verified yet"));
    verifier.handle_candidate(1, unit(2), &mut |_, _| panic!("nothing is verified yet"));
    let mut offsets = Vec::new();
    let mut out = |offset: u64, _: &[u8]| offsets.push(offset / 8192);
    verifier.handle_segment(Part::Tree(1), 0, &source.segment(Part::Tree(1), 0), &mut out);
    verifier.handle_candidate(3, unit(3), &mut out);
    assert_eq!((offsets, verifier.local_count()), (vec![0, 3], 2));
    assert_eq!(verifier.candidate_bytes(), 2 * UNIT_BYTES as u64);
    assert_eq!(fault(&mut verifier), Some(Fault::Local { unit: 1 }));
}

#[test]
fn nodes_that_the_owner_kept_are_checked_and_not_asked_for() {
    // 300 units: two nodes of level 1 under one of level 2.
    let source = Source::new(300 * UNIT_BYTES, UNIT_BYTES);
    let path = [NodeId { level: 2, index: 0 }, NodeId { level: 1, index: 1 }];
    let mut first = source.verifier();
    first.want_unit(299);
    while let Some(node) = first.poll_need() {
        let part = Part::Tree(node.level);
        let bytes = source.segment(part, node.index);
        first.handle_segment(part, node.index, &bytes, &mut |_, _| {});
    }
    let mut kept = Vec::new();
    while let Some((node, bytes)) = first.poll_arrived_node() {
        kept.push((node, bytes.to_vec()));
    }
    assert_eq!(kept.iter().map(|(node, _)| *node).collect::<Vec<_>>(), path);

    let mut second = source.verifier();
    assert_eq!(second.missing_nodes(299), path);
    let mut forged = kept[0].1.clone();
    forged[40] ^= 1;
    assert!(!second.offer_node(path[0], &forged), "it does not fold to the root");
    assert!(!second.offer_node(path[1], &kept[1].1), "nothing here says that it is the one");
    assert!(kept.iter().all(|(node, bytes)| second.offer_node(*node, bytes)));
    assert_eq!(second.missing_nodes(299), []);
    second.want_unit(299);
    assert_eq!(second.poll_need(), None);
    let mut out = Vec::new();
    let unit = source.segment(Part::Content, 299);
    second.handle_segment(Part::Content, 299, &unit, &mut |_, bytes| out.extend_from_slice(bytes));
    assert!(out == unit);
    // One that is asked for already comes from elsewhere.
    second.want_unit(0);
    assert_eq!(second.missing_nodes(0), []);
}

/// What waits for a node is checked when that comes, perhaps from another source.
#[test]
fn what_is_bad_is_held_against_who_sent_it_and_not_against_who_sends_now() {
    let source = Source::new(3_000_000, 8192);
    for is_buffered in [false, true] {
        let mut verifier = source.verifier();
        if is_buffered {
            verifier.buffer_spans();
        }
        let mut out = |_: u64, _: &[u8]| {};
        let mut bad = source.segment(Part::Content, 3);
        bad[5] ^= 1;
        verifier.prepare(3);
        verifier.set_sender(7);
        verifier.handle_segment(Part::Content, 3, &bad, &mut out);
        verifier.set_sender(8);
        verifier.handle_segment(Part::Content, 4, &source.segment(Part::Content, 4), &mut out);
        verifier.settle(&mut out);
        while let Some(node) = verifier.poll_need() {
            let part = Part::Tree(node.level);
            for segment in verifier.segments_of(part, node.index).expect("the level exists") {
                verifier.handle_segment(part, segment, &source.segment(part, segment), &mut out);
            }
        }
        let fault = Fault::Block { part: Part::Content, block: 3 };
        assert_eq!(verifier.poll_fault(), Some((fault, 7)));
        assert_eq!(verifier.poll_fault(), None);
        assert!(verifier.verified().contains(4));
    }
}

/// Gives a verifier the nodes that it asks for.
fn give_nodes(source: &Source, verifier: &mut Verifier) {
    while let Some(node) = verifier.poll_need() {
        let part = Part::Tree(node.level);
        for segment in verifier.segments_of(part, node.index).expect("the level exists") {
            let bytes = source.segment(part, segment);
            verifier.handle_segment(part, segment, &bytes, &mut |_, _| {});
        }
    }
}

#[test]
fn what_comes_over_the_network_is_none_of_what_the_owner_has() {
    let source = Source::new(20 * UNIT_BYTES, 8192);
    let mut verifier = source.verifier();
    (0..5).for_each(|segment| verifier.prepare(segment));
    for segment in 0..3 {
        let bytes = source.segment(Part::Content, segment);
        verifier.handle_segment(Part::Content, segment, &bytes, &mut |_, _| {});
    }
    assert_eq!(verifier.room(), BLOCKS_MAX - 5, "three of five have come and wait");
    give_nodes(&source, &mut verifier);
    assert_eq!((verifier.verified().count(), verifier.local_count()), (3, 0));
}

#[test]
fn a_unit_that_the_owner_kept_is_handed_out_if_the_nodes_that_are_here_prove_it() {
    let source = Source::new(300 * UNIT_BYTES, 8192);
    let mut verifier = source.verifier();
    let unit = source.segment(Part::Content, 299);
    let mut handed = Vec::new();
    let mut out = |offset: u64, bytes: &[u8]| handed.push((offset, bytes.to_vec()));
    let top = NodeId { level: 2, index: 0 };
    assert_eq!(verifier.offer_unit(299, &unit, &mut out), Check::Need(top));
    verifier.want_unit(299);
    give_nodes(&source, &mut verifier);
    let mut forged = unit.clone();
    forged[7] ^= 1;
    assert_eq!(verifier.offer_unit(299, &forged, &mut out), Check::Bad);
    assert!(!verifier.verified().contains(299));
    for _ in 0..2 {
        assert_eq!(verifier.offer_unit(299, &unit, &mut out), Check::Verified);
    }
    assert!(verifier.verified().contains(299) && verifier.room() == BLOCKS_MAX);
    let offset = 299 * UNIT_BYTES as u64;
    assert_eq!(handed, [(offset, unit.clone()), (offset, unit)]);
}

#[test]
fn no_more_nodes_are_kept_than_the_owner_says() {
    let source = Source::new(600 * UNIT_BYTES, 8192);
    let mut verifier = source.verifier();
    [0, 256, 512].into_iter().for_each(|unit| verifier.want_unit(unit));
    give_nodes(&source, &mut verifier);
    assert!([0, 256, 512].into_iter().all(|unit| verifier.missing_nodes(unit).is_empty()));
    verifier.keep_nodes(2);
    let missing = [0, 256, 512].map(|unit| verifier.missing_nodes(unit).len());
    assert_eq!(missing, [1, 1, 0], "the path of the last one used");
}

#[test]
fn after_a_reset_nothing_waits_and_everything_may_be_asked_for_again() {
    let source = Source::new(600 * UNIT_BYTES, UNIT_BYTES / 2);
    let mut verifier = source.verifier();
    let mut out = |_: u64, _: &[u8]| panic!("nothing is proved");
    verifier.want_unit(0);
    give_nodes(&source, &mut verifier);
    // A part of a unit and of a node, a unit that waits, one of the owner, and a fault.
    verifier.prepare(600);
    for segment in [600, 601, 603] {
        let bytes = source.segment(Part::Content, segment);
        verifier.handle_segment(Part::Content, segment, &bytes, &mut out);
    }
    verifier.handle_local(512, &source.bytes[512 * UNIT_BYTES..513 * UNIT_BYTES]);
    verifier.handle_segment(Part::Tree(1), 2, &source.segment(Part::Tree(1), 2), &mut out);
    verifier.handle_segment(Part::Content, 700, &[1], &mut out);
    assert!(!verifier.is_idle() && verifier.room() < BLOCKS_MAX);
    verifier.reset();
    assert!(verifier.is_idle());
    assert_eq!((verifier.room(), verifier.overfull()), (BLOCKS_MAX, None));
    assert_eq!((verifier.poll_need(), verifier.poll_fault()), (None, None));
    assert_eq!(verifier.missing_nodes(0), [], "what was verified is kept");
    assert_eq!(verifier.missing_nodes(300), [NodeId { level: 1, index: 1 }]);
    let rest = source.segment(Part::Tree(1), 3);
    verifier.want_unit(300);
    verifier.handle_segment(Part::Tree(1), 3, &rest, &mut out);
    assert_eq!(verifier.missing_nodes(512), [NodeId { level: 1, index: 2 }]);
    verifier.handle_segment(Part::Tree(1), 2, &source.segment(Part::Tree(1), 2), &mut out);
    verifier.want_unit(300);
    assert_eq!(verifier.missing_nodes(300), [], "both halves came again");
}

#[test]
fn after_a_reset_no_span_is_open() {
    let source = Source::new(40 * UNIT_BYTES, 8192);
    let mut verifier = source.verifier();
    verifier.buffer_spans();
    let bytes = source.segment(Part::Content, 3);
    verifier.handle_segment(Part::Content, 3, &bytes, &mut |_, _| panic!("nothing is proved"));
    assert!(verifier.has_buffered_spans());
    verifier.reset();
    assert!(!verifier.has_buffered_spans() && verifier.is_idle());
}

/// Until the root is known the owner vouches for nodes; from then on only the root does.
#[test]
fn once_the_root_is_known_it_alone_says_which_nodes_count() {
    let source = Source::new(600 * UNIT_BYTES, 8192);
    let (size, segment_bytes) = (source.bytes.len() as u64, source.segment_bytes as u64);
    let mut verifier = Verifier::rootless(size, segment_bytes);
    let mut out = |_: u64, _: &[u8]| {};
    verifier.want_unit(0);
    assert_eq!(verifier.poll_need(), Some(NodeId { level: 1, index: 0 }), "no other level");
    verifier.handle_segment(Part::Tree(1), 0, &source.segment(Part::Tree(1), 0), &mut out);
    verifier.handle_segment(Part::Content, 0, &source.segment(Part::Content, 0), &mut out);
    assert!(verifier.verified().contains(0));
    verifier.set_root(source.tree.root);
    assert!(verifier.verified().contains(0));
    verifier.want_unit(300);
    let needs: Vec<NodeId> = std::iter::from_fn(|| verifier.poll_need()).collect();
    let path = [(1, 1), (2, 0)].map(|(level, index)| NodeId { level, index });
    assert_eq!(needs, path);
    let mut forged = source.segment(Part::Tree(1), 1);
    forged[9] ^= 1;
    verifier.handle_segment(Part::Tree(2), 0, &source.segment(Part::Tree(2), 0), &mut out);
    verifier.handle_segment(Part::Tree(1), 1, &forged, &mut out);
    assert_eq!(fault(&mut verifier), Some(Fault::Block { part: Part::Tree(1), block: 1 }));
    verifier.handle_segment(Part::Tree(1), 1, &source.segment(Part::Tree(1), 1), &mut out);
    assert_eq!(verifier.missing_nodes(300), []);
}

#[test]
fn an_empty_file_is_verified_though_units_are_buffered() {
    let source = Source::new(0, 8192);
    let mut verifier = source.verifier();
    verifier.buffer_spans();
    verifier.handle_segment(Part::Content, 0, &[], &mut |_, _| {});
    assert_eq!((verifier.verified().count(), verifier.has_buffered_spans()), (1, false));
}

/// Segments of other sizes than units are numbered otherwise.
#[test]
fn a_segment_as_long_as_the_unit_of_its_number_is_no_unit() {
    let source = Source::new(3 * UNIT_BYTES + 500, 1024);
    let mut verifier = source.verifier();
    verifier.buffer_spans();
    let end = &source.bytes[3 * UNIT_BYTES..];
    verifier.handle_segment(Part::Content, 3, end, &mut |_, _| {});
    assert_eq!(fault(&mut verifier), Some(Fault::Segment { part: Part::Content, segment: 3 }));
}

#[test]
fn a_node_is_let_go_of_when_all_that_it_proves_is_verified() {
    let source = Source::new(600 * UNIT_BYTES, 8192);
    let mut verifier = source.verifier();
    verifier.buffer_spans();
    [0, 256].into_iter().for_each(|unit| verifier.want_unit(unit));
    give_nodes(&source, &mut verifier);
    let take = |verifier: &mut Verifier, units: Range<u64>| {
        for unit in units {
            let bytes = source.segment(Part::Content, unit);
            verifier.handle_segment(Part::Content, unit, &bytes, &mut |_, _| {});
        }
        [0, 256].map(|unit| verifier.missing_nodes(unit).len())
    };
    assert_eq!(take(&mut verifier, 256..511), [0, 0]);
    assert_eq!(take(&mut verifier, 511..512), [0, 1]);
    assert_eq!(take(&mut verifier, 0..256), [1, 1]);
}
