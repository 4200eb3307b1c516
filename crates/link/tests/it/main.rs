//! Links under loss, in virtual time.

// Clippy exempts only the test functions themselves, not their helpers.
#![allow(clippy::unwrap_used)]

mod network;
mod reliability;
