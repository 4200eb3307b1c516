//! Small objects that are verified as a whole.

use super::*;

/// Gives all segments of the content in an order, then what settles them. Returns what was handed
/// out, by offset.
fn give_all(
    source: &Source,
    verifier: &mut Verifier,
    order: &[u64],
    mangled: Option<u64>,
) -> Vec<(u64, Vec<u8>)> {
    let mut pieces = Vec::new();
    let mut out = |offset: u64, bytes: &[u8]| pieces.push((offset, bytes.to_vec()));
    for segment in order {
        verifier.prepare(*segment);
        let mut bytes = source.segment(Part::Content, *segment);
        bytes[0] ^= u8::from(mangled == Some(*segment));
        verifier.handle_segment(Part::Content, *segment, &bytes, &mut out);
    }
    verifier.settle(&mut out);
    pieces
}

#[test]
fn a_small_object_that_is_wanted_whole_needs_no_node_and_comes_out_as_a_whole() {
    let whole = WHOLE_BYTES_MAX as usize;
    for (size, segment_bytes) in [(8193, 8192), (65_536, 8192), (whole, 8192), (whole - 5, 3000)] {
        let source = Source::new(size, segment_bytes);
        let last = source.verifier().last_segment(Part::Content).unwrap();
        let forwards: Vec<u64> = (0..=last).collect();
        let backwards: Vec<u64> = forwards.iter().rev().copied().collect();
        for (order, is_buffered) in [(&forwards, true), (&forwards, false), (&backwards, true)] {
            let mut verifier = source.verifier();
            if is_buffered {
                verifier.buffer_spans();
            }
            verifier.verify_whole();
            let pieces = give_all(&source, &mut verifier, order, None);
            assert!(pieces == [(0, source.bytes.clone())], "{size} octets in one piece");
            assert_eq!(verifier.poll_need(), None, "{size}");
            assert!(verifier.is_idle() && verifier.poll_fault().is_none());
            assert_eq!(verifier.verified().count(), unit_count(size));
        }
    }
}

#[test]
fn of_what_is_wanted_whole_nothing_is_handed_out_before_all_of_it_is_there() {
    let source = Source::new(65_536, 8192);
    let mut verifier = source.verifier();
    verifier.buffer_spans();
    verifier.verify_whole();
    assert!(give_all(&source, &mut verifier, &[0, 1, 2, 4, 5, 6, 7], None).is_empty());
    assert_eq!((verifier.poll_need(), verifier.is_idle()), (None, false));
    assert_eq!(give_all(&source, &mut verifier, &[3], None), [(0, source.bytes.clone())]);
}

#[test]
fn a_node_says_what_is_wrong_with_an_object_that_is_wanted_whole() {
    let source = Source::new(65_536, 8192);
    let order: Vec<u64> = (0..8).collect();
    for is_buffered in [true, false] {
        let mut verifier = source.verifier();
        if is_buffered {
            verifier.buffer_spans();
        }
        verifier.verify_whole();
        let pieces = give_all(&source, &mut verifier, &order, Some(5));
        assert!(pieces.is_empty(), "nothing is verified");
        give_nodes(&source, &mut verifier);
        assert_eq!(fault(&mut verifier), Some(Fault::Block { part: Part::Content, block: 5 }));
        assert_eq!(verifier.verified().count(), 7);
        let repaired = give_all(&source, &mut verifier, &[5], None);
        assert_eq!(repaired, [(5 * 8192, source.segment(Part::Content, 5))]);
        assert!(verifier.is_idle() && verifier.poll_fault().is_none());
    }
}

#[test]
fn larger_objects_need_their_nodes_as_ever() {
    let source = Source::new(WHOLE_BYTES_MAX as usize + 1, 8192);
    let mut verifier = source.verifier();
    verifier.verify_whole();
    verifier.prepare(0);
    assert_eq!(verifier.poll_need(), Some(NodeId { level: 1, index: 0 }));
}
