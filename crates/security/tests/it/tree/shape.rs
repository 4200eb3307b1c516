//! Tree shapes at the sizes where one more octet or unit changes them.

use byname_security::tree::{GROUP_BYTES, NodeId, Shape, UNIT_BYTES};

const UNIT: u64 = UNIT_BYTES as u64;

#[test]
fn a_unit_has_a_node_exactly_when_it_exists_and_the_file_has_levels() {
    let node = |index| Some(NodeId { level: 1, index });
    // One unit or none: no levels, so no nodes.
    for size in [0, 1, UNIT] {
        assert_eq!(Shape::new(size).node_of_unit(0), None, "size {size}");
        assert_eq!(Shape::new(size).node_of_unit(1), None, "size {size}");
    }
    let two = Shape::new(UNIT + 1);
    assert_eq!([0, 1, 2, 3].map(|unit| two.node_of_unit(unit)), [node(0), node(0), None, None]);
    let groups = Shape::new(2 * GROUP_BYTES as u64 + 1);
    let nodes = [0, 255, 256, 511, 512, 513].map(|unit| groups.node_of_unit(unit));
    assert_eq!(nodes, [node(0), node(0), node(1), node(1), node(2), None]);
}

#[test]
fn units_and_levels_end_where_the_file_ends() {
    assert_eq!(Shape::new(0).unit_len(0), None);
    let shape = Shape::new(2 * UNIT + 7);
    let lengths = [0, 1, 2, 3, u64::MAX].map(|unit| shape.unit_len(unit));
    assert_eq!(lengths, [Some(UNIT_BYTES), Some(UNIT_BYTES), Some(7), None, None]);
    assert_eq!(Shape::new(2 * UNIT).unit_len(1), Some(UNIT_BYTES));
    assert_eq!([0, 1, 2, 255].map(|level| shape.level_bytes(level)), [0, 3 * 32, 0, 0]);
    assert_eq!([0, 1, 2, 255].map(|level| shape.node_count(level)), [0, 1, 0, 0]);
    let top = NodeId { level: 1, index: 0 };
    assert_eq!((shape.node_len(top), shape.parent(top)), (Some(3 * 32), None));
    let tall = Shape::new(GROUP_BYTES as u64 + 1);
    let parent = Some(NodeId { level: 2, index: 0 });
    assert_eq!(tall.parent(NodeId { level: 1, index: 1 }), parent);
    assert_eq!(tall.parent(NodeId { level: 2, index: 0 }), None);
}

#[test]
fn a_span_is_whole_units_of_the_file_and_never_empty() {
    let shape = Shape::new(3 * UNIT + 10);
    let is_span = |unit, length| shape.check_span(unit, length).is_ok();
    for (unit, length) in [(0, UNIT_BYTES), (0, 3 * UNIT_BYTES), (2, UNIT_BYTES), (3, 10)] {
        assert!(is_span(unit, length), "{unit} {length}");
    }
    assert!(is_span(0, 3 * UNIT_BYTES + 10) && is_span(2, UNIT_BYTES + 10));
    for (unit, length) in [(0, 0), (3, 0), (4, 0), (4, 10), (3, UNIT_BYTES), (0, 4 * UNIT_BYTES)] {
        assert!(!is_span(unit, length), "{unit} {length}");
    }
    assert!(Shape::new(0).check_span(0, 0).is_err(), "an empty file has no unit");
    assert!(Shape::new(UNIT).check_span(0, UNIT_BYTES).is_ok());
}
