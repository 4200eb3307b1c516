//! A catalog of random operations as lines of JSON: what is imported says the same, on the embedded
//! engine and in memory, and what somebody has made of the lines is refused or is a sound catalog.

#![allow(clippy::unwrap_used)]

mod hostile;
#[path = "../../../catalog/tests/it/machine.rs"]
#[allow(dead_code, reason = "how engines fail")]
mod machine;
#[path = "../../../catalog/tests/it/model.rs"]
mod model;
mod round;
#[path = "../../../catalog/tests/it/same.rs"]
mod same;
#[path = "../../../catalog/tests/it/support.rs"]
#[allow(dead_code, reason = "tests of the catalog use the rest")]
mod support;

/// The engine of the catalog's tests.
mod under_test {
    pub(crate) use byname_catalog::engine::MemoryEngine as TestEngine;
    pub(crate) const CASES_MAX: u32 = 1 << 20;
}
