//! Nodes with real sockets.
#![allow(clippy::unwrap_used, reason = "a test ends where something is missing")]

mod chain;
mod faces;
mod harness;
mod robust;
mod single;
