//! The catalog over its engines: one suite for all, a state machine beside a plain model,
//! the same beside a real directory, and the scenarios of the design by name.

#![allow(clippy::unwrap_used)]

mod acls;
mod doors;
mod engines;
mod loans;
mod machine;
mod machines;
mod mending;
mod model;
mod moving;
mod policies;
mod posix;
mod quotas;
mod rebuild;
mod removal;
mod replicas;
mod room;
mod rules;
mod same;
mod scenarios;
mod sessions;
mod storage;
mod suite;
mod support;
mod trash;
mod versions;

/// The engine of the tests of this directory. `byname-postgres` runs most of them on its own.
mod under_test {
    pub(crate) use byname_catalog::engine::MemoryEngine as TestEngine;
    /// Random cases of a test that each want an engine of their own.
    pub(crate) const CASES_MAX: u32 = 1 << 20;
}
