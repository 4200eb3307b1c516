//! A writer against a head and disks of this process: the catalog is the real one, in memory.

#![allow(clippy::unwrap_used)]

mod put;
mod world;
