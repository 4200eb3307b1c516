//! Fuzzes the target `tree_verifier` of byname-fuzz-replay.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| byname_fuzz_replay::run("tree_verifier", input));
