//! Sessions: the public API, the connection, and the threads.
//!
//! [`client`] runs every call on the caller's thread, [`handle`] sends [`command`]s through a
//! [`queue`] to the [`executor`] on a thread of its own, [`transfer`] is for whoever has frames and
//! time from elsewhere. [`driver`] runs the engine over the connection of [`net`].

pub(crate) mod client;
pub(crate) mod command;
pub(crate) mod driver;
pub(crate) mod executor;
pub(crate) mod handle;
pub(crate) mod net;
pub(crate) mod queue;
pub mod transfer;
