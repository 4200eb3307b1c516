//! Names of strategies, and the suppression they share.

use super::*;
use crate::testing::name;

#[test]
fn strategies_are_found_with_and_without_version() {
    for strategy in ALL {
        let full = instance_name(strategy);
        assert!(full.view().last().unwrap().version().is_some());
        let short = full.view().without_last(1).to_name();
        for wanted in [full.view(), short.view()] {
            let found = by_name(wanted).unwrap();
            assert_eq!(found.label(), strategy.label());
        }
    }
    let uri = instance_name(&Multicast).to_string();
    assert_eq!(uri, "/localhost/nfd/strategy/multicast/v=5");
    for unknown in ["/localhost/nfd/strategy/multicast/v=4", "/localhost/nfd/strategy", "/x"] {
        assert!(by_name(name(unknown).view()).is_none(), "{unknown}");
    }
}

#[test]
fn suppression_doubles_up_to_its_maximum() {
    let mut interval = 0;
    let mut passed = Vec::new();
    for _ in 0..8 {
        let age = (1..).find(|ms| !is_suppressed(&mut interval.clone(), ms * 1_000_000)).unwrap();
        assert!(!is_suppressed(&mut interval, age * 1_000_000));
        passed.push(age);
    }
    assert_eq!(passed, [10, 20, 40, 80, 160, 250, 250, 250]);
}
