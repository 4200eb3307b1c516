//! Replays every corpus, and inputs made from it with a fixed seed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use byname_fuzz_replay::mutate::Mutator;
use byname_fuzz_replay::{TARGETS, Target};

const MUTATIONS: usize = 20_000;
/// These make keys or hash files for every input.
const SLOW: [&str; 3] = ["certificate", "tree_verifier", "memif"];

fn corpus(target: &Target) -> Vec<Vec<u8>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../corpus").join(target.name);
    let entries = std::fs::read_dir(&folder).expect("every target has a corpus");
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| entry.expect("a readable folder").path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).expect("a readable file")).collect()
}

/// Runs one input and shows it if it is a finding.
fn check(target: &Target, input: &[u8]) {
    if catch_unwind(AssertUnwindSafe(|| (target.run)(input))).is_err() {
        let hex: String = input.iter().map(|octet| format!("{octet:02x}")).collect();
        panic!("target {} fails on {hex}", target.name);
    }
}

fn replay(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("a target");
    let corpus = corpus(target);
    assert!(!corpus.is_empty(), "{name} has no corpus");
    check(target, &[]);
    for input in &corpus {
        check(target, input);
    }
    let mut mutator = Mutator::new(0x6279_6E61_6D65);
    let count = if SLOW.contains(&name) { MUTATIONS / 20 } else { MUTATIONS };
    for _ in 0..count {
        check(target, &mutator.input(&corpus));
    }
}

/// One test for each target, so that they run side by side and fail by name.
macro_rules! replay {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            replay(stringify!($name));
        })*

        #[test]
        fn every_target_is_replayed() {
            let named = [$(stringify!($name)),*];
            assert_eq!(TARGETS.map(|target| target.name).as_slice(), named);
        }
    };
}

replay! {
    packet lp name_uri mgmt signature_info link_reassembly link_send metadata listing manifest
    kept_copy certificate byname_link tree_verifier forwarder
    site memif loan
}
