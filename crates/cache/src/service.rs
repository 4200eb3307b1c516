//! One cache for all users of a machine: a process that owns it, and what others ask of it.
//!
//! The cache's directory belongs to the service alone. A program that wants to read gets
//! descriptors of an entry's files, read-only, and reads them as it would read its own cache's:
//! without a further hop, through its own verifier. A program that has fetched units brings them
//! with the nodes that prove them, and the service writes nothing that does not prove to be of the
//! content it was brought for. So nobody has to trust anybody: the service vouches for nothing, and
//! who brings units can add true ones only.
//!
//! | module | what |
//! |---|---|
//! | [`lending`](crate::lending) | the messages, and the side of a program |
//! | [`server`], [`connection`] | the side of the service: who may ask, and one of them |
//!
//! Invariants of the service, whoever asks:
//! - One thread for each connection, and a bound of them for each user and for all.
//! - Units of one user are checked and written one message at a time, however many connections the
//!   user has, and wait for room rather than push others' out of the queue.
//! - Files that others have open are never locked by the service, and emptied when they are
//!   removed: who keeps a descriptor can neither stop the writer nor keep the disk full.
//! - Names are not taken from anybody: there are no pins and no copies for mirrors here.

mod connection;
mod server;

pub use server::Service;
