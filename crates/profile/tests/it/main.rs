//! The crate's integration tests, as one binary.

// Clippy exempts only the test functions themselves, not their helpers.
#![allow(clippy::unwrap_used)]

mod config;
mod link;
mod open;
mod seen;
