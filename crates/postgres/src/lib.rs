//! The catalog's engine on PostgreSQL: rows of one table, changed by one statement a transaction.
//!
//! What is read is kept in memory, at a *stand*: a generation that each transaction raises by one,
//! and an id that it makes up. A transaction reads at the stand that this process knows and commits
//! on the condition that the stand is still that one. So a commit is one message and one answer,
//! nothing in the server waits for a client that was stopped in the middle, and a head that reads
//! what it wrote itself asks nobody. What others committed comes as the changes since the stand
//! that is known here.
//!
//! * [`PostgresEngine`] is the engine: stands, retries, outages.
//! * `cache` knows rows at a stand, and what they were a little before; no I/O.
//! * `address` is where the database is, `tls` how its server proves that it is the one.
//! * `link` is one connection, `sql` its statements, `schema` the tables and their versions.

mod address;
mod cache;
mod changes;
mod engine;
mod error;
mod link;
mod schema;
mod sql;
mod tls;

pub use engine::PostgresEngine;
pub use error::PostgresError;
