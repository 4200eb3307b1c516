//! Fuzzes the target `byname_link` of byname-fuzz-replay.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| byname_fuzz_replay::run("byname_link", input));
