//! Nodes with real sockets.

mod chain;
mod harness;
mod robust;
mod single;
