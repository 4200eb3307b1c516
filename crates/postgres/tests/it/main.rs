//! The engine on a PostgreSQL server of the tests' own: the suite of all engines, the catalog's
//! state machine, the scenarios of the design and the catalog's other suites, outages.

#![allow(clippy::unwrap_used)]

#[path = "../../../catalog/tests/it/acls.rs"]
mod acls;
mod cluster;
#[path = "../../../catalog/tests/it/doors.rs"]
mod doors;
mod engine;
#[path = "../../../catalog/tests/it/loans.rs"]
mod loans;
#[path = "../../../catalog/tests/it/machine.rs"]
#[allow(dead_code, reason = "how other engines fail")]
mod machine;
mod machines;
#[path = "../../../catalog/tests/it/mending.rs"]
mod mending;
#[path = "../../../catalog/tests/it/model.rs"]
mod model;
#[path = "../../../catalog/tests/it/moving.rs"]
mod moving;
mod outages;
#[path = "../../../catalog/tests/it/policies.rs"]
mod policies;
#[path = "../../../catalog/tests/it/posix.rs"]
mod posix;
#[path = "../../../catalog/tests/it/quotas.rs"]
mod quotas;
#[path = "../../../catalog/tests/it/rebuild.rs"]
mod rebuild;
#[path = "../../../catalog/tests/it/removal.rs"]
mod removal;
#[path = "../../../catalog/tests/it/replicas.rs"]
mod replicas;
#[path = "../../../catalog/tests/it/room.rs"]
mod room;
#[path = "../../../catalog/tests/it/rules.rs"]
mod rules;
#[path = "../../../catalog/tests/it/same.rs"]
mod same;
#[path = "../../../catalog/tests/it/scenarios.rs"]
mod scenarios;
#[path = "../../../catalog/tests/it/sessions.rs"]
mod sessions;
#[path = "../../../catalog/tests/it/storage.rs"]
#[allow(dead_code, reason = "how the embedded engine loses power")]
mod storage;
#[path = "../../../catalog/tests/it/suite.rs"]
mod suite;
#[path = "../../../catalog/tests/it/support.rs"]
#[allow(dead_code, reason = "other tests of the catalog use the rest")]
mod support;
mod tls;
#[path = "../../../catalog/tests/it/trash.rs"]
mod trash;
mod under_test;
mod upgrade;
#[path = "../../../catalog/tests/it/versions.rs"]
mod versions;
