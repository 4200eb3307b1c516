//! Names of strategies with their parameters, and the suppression they share.

use super::kinds::{KINDS, PREFIX};
use super::suppression::{MS_NS, Suppression};
use super::*;
use crate::testing::name;

#[test]
fn strategies_are_found_with_and_without_version() {
    for (label, version, _) in KINDS {
        let full = name(&format!("{PREFIX}/{label}/v={version}"));
        let short = name(&format!("{PREFIX}/{label}"));
        for wanted in [&full, &short] {
            assert_eq!(instance_name(&*by_name(wanted.view()).unwrap()), full);
        }
    }
    assert_eq!(default_strategy().label(), ("best-route", 5));
    for unknown in ["/localhost/nfd/strategy/multicast/v=6", "/localhost/nfd/strategy", "/x"] {
        assert!(by_name(name(unknown).view()).is_none(), "{unknown}");
    }
}

#[test]
fn parameters_are_taken_shown_and_checked() {
    for (given, shown) in [
        ("best-route/v=5/retx-suppression-initial~20", None),
        ("multicast/v=5/retx-suppression-max~500/retx-suppression-multiplier~3", None),
        ("asf/v=5/probing-interval~1000/max-timeouts~1", None),
        ("asf/v=5/max-timeouts~3", Some("asf/v=5")),
        ("random/retx-suppression-initial~10", Some("random/v=1")),
        ("access/v=1/retx-suppression-initial~20", None),
    ] {
        let found = by_name(name(&format!("{PREFIX}/{given}")).view()).expect(given);
        let expected = format!("{PREFIX}/{}", shown.unwrap_or(given));
        assert_eq!(instance_name(&*found), name(&expected));
    }
    for refused in [
        "best-route/v=5/probing-interval~1000",
        "best-route/v=5/retx-suppression-initial~0",
        "best-route/v=5/retx-suppression-initial~300",
        "best-route/v=5/retx-suppression-initial~10/retx-suppression-initial~20",
        "asf/v=5/max-timeouts~0",
        "asf/v=5/max-timeouts~many",
        "asf/v=5/max-timeouts",
        "asf/v=5/probing-interval~18446744073709551615",
        "multicast/v=5/~1",
    ] {
        assert!(by_name(name(&format!("{PREFIX}/{refused}")).view()).is_none(), "{refused}");
    }
}

#[test]
fn suppression_grows_up_to_its_maximum() {
    let passed = |suppression: Suppression| -> Vec<u64> {
        let mut interval = 0;
        let mut next = || {
            let held = |ms: &u64| suppression.holds_back(&mut interval.clone(), ms * MS_NS);
            let age = (1..).find(|ms| !held(ms)).unwrap();
            assert!(!suppression.holds_back(&mut interval, age * MS_NS));
            age
        };
        (0..7).map(|_| next()).collect()
    };
    assert_eq!(passed(Suppression::default()), [10, 20, 40, 80, 160, 250, 250]);
    let other = Suppression { initial_ns: 5 * MS_NS, multiplier: 3, max_ns: 100 * MS_NS };
    assert_eq!(passed(other), [5, 15, 45, 100, 100, 100, 100]);
}
