//! Published trees as directories: real mounts, real programs, real faults.
//!
//! Without `/dev/fuse`, or without `fusermount3` for who is not root, each test says SKIPPED and
//! returns.
#![allow(clippy::unwrap_used, reason = "helpers of tests may panic like tests")]

mod cache;
mod calls;
mod changes;
mod command;
mod faults;
mod freshness;
#[allow(dead_code)]
#[path = "../cli/harness.rs"]
mod harness;
mod interrupts;
mod machine;
mod passing;
mod programs;
#[allow(dead_code, reason = "the harness uses it for other tests")]
#[path = "../../examples/tampering_relay/relay.rs"]
mod relay;
mod rollback;
mod scale;
mod scene;
mod several;
mod sites;
