//! The catalog over its engines: one suite for all, a state machine beside a plain model,
//! the same beside a real directory, and the scenarios of the design by name.

#![allow(clippy::unwrap_used)]

mod acls;
mod engines;
mod machine;
mod machines;
mod mending;
mod model;
mod moving;
mod policies;
mod posix;
mod rebuild;
mod removal;
mod replicas;
mod rules;
mod scenarios;
mod sessions;
mod storage;
mod suite;
mod support;
mod trash;
mod versions;
