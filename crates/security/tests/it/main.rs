//! The crate's integration tests, as one binary.

// Clippy exempts only the test functions themselves, not their helpers.
#![allow(clippy::unwrap_used)]

mod cert;
mod command;
mod foreign;
mod forged_expiry;
mod identity;
mod key;
mod together;
mod tree;
mod trust;
mod vectors;
