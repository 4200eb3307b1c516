//! Nodes with real sockets.
#![allow(clippy::unwrap_used, reason = "a test ends where something is missing")]

mod chain;
mod faces;
mod fairness;
mod harness;
mod hostile;
mod reliable;
mod reload;
mod robust;
mod shards;
mod single;
mod transports;
