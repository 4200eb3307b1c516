//! Sessions: the public API, the connection, and the threads.
//!
//! All façades send [`command`]s to one [`executor`]. [`client`] runs it on its caller's thread,
//! [`handle`] through a [`queue`] on a [`thread`] of its own, [`transfer`] for whoever has frames
//! and time from elsewhere. [`driver`] runs the engine over the connection of [`net`], [`stripes`]
//! several of them for one file, [`disk_threads`] what downloads do at the local disk.

pub(crate) mod answer;
pub(crate) mod client;
pub(crate) mod command;
pub(crate) mod disk_threads;
pub(crate) mod driver;
pub(crate) mod executor;
pub(crate) mod executor_job;
pub(crate) mod files;
pub(crate) mod handle;
pub(crate) mod net;
pub(crate) mod pending;
pub(crate) mod queue;
pub(crate) mod stripes;
pub(crate) mod thread;
pub mod transfer;
