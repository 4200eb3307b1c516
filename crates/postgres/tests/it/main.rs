//! The engine on a PostgreSQL server of the tests' own: the suite of all engines, the catalog's
//! state machine, outages.

#![allow(clippy::unwrap_used)]

mod cluster;
mod engine;
#[path = "../../../catalog/tests/it/machine.rs"]
#[allow(dead_code, reason = "how other engines fail")]
mod machine;
mod machines;
#[path = "../../../catalog/tests/it/model.rs"]
mod model;
mod outages;
#[path = "../../../catalog/tests/it/suite.rs"]
mod suite;
#[path = "../../../catalog/tests/it/support.rs"]
#[allow(dead_code, reason = "other tests of the catalog use the rest")]
mod support;
