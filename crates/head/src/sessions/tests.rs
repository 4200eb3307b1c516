//! The window of numbers, beside a set of all that came.

use std::collections::BTreeSet;

use super::*;

/// A window against a set of all numbers that ever came.
#[test]
fn numbers_are_told_apart_within_the_window() {
    let (mut window, mut seen, mut highest) = (Window::default(), BTreeSet::new(), 0_u64);
    let mut state = 7_u64;
    for step in 0..20_000_u64 {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Mostly near, sometimes far behind, sometimes far ahead.
        let number = match step % 50 {
            0 => highest + 1 + (state >> 33) % AHEAD_MAX,
            1 => highest + AHEAD_MAX + 1 + (state >> 33) % 9,
            _ => (highest + 3).saturating_sub((state >> 33) % (WINDOW + 9)),
        };
        let expected = if number == 0 || number + WINDOW <= highest || number > highest + AHEAD_MAX
        {
            Seen::Outside
        } else if seen.contains(&number) {
            Seen::Before
        } else {
            Seen::Never
        };
        assert_eq!(window.note(number), expected, "{number} after {highest}");
        if expected != Seen::Outside {
            seen.insert(number);
            highest = highest.max(number);
        }
    }
}

#[test]
fn numbers_at_the_end_of_all_overflow_nothing() {
    let mut window = Window { highest: u64::MAX - 3, ..Window::default() };
    assert_eq!(window.note(u64::MAX), Seen::Never);
    assert_eq!(window.note(u64::MAX), Seen::Before);
    assert_eq!(window.note(1), Seen::Outside);
}
